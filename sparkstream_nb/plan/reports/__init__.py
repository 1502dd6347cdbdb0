"""What can be said of a plan: its text, graph, lineage, audit and repairs."""
