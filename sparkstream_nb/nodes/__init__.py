"""Groups of nodes that carry out what a simulation says: real engines, their revisions, queues and outputs."""
