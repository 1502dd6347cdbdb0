"""A node's state: snapshots, their parts, and what operators share."""
