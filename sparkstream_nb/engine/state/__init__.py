"""A node's state: snapshots, their parts, and data shared by operators."""
