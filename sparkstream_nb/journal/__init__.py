"""The journal of an app's input: entries, routing to nodes, and the rows in which results are passed on."""
