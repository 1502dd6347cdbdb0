"""A running app: its events and feeds, its clock, and its answers."""
