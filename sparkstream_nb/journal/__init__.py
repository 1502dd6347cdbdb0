"""The journal of what comes in: entries, routing to nodes, and the rows in which results are passed on."""
