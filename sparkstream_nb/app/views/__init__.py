"""The views of a cluster: nodes, pairs and resource nodes."""
