"""Outputs of nodes: files, commits, and answers to retrieval queries."""
