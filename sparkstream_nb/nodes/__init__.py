"""Groups of nodes that carry out a simulated timeline: real engines, their revisions, queues and outputs."""
