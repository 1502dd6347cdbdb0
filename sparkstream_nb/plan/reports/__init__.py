"""Reports on a plan: its text, graph, lineage, audit and repairs."""
