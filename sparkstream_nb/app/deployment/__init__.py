"""A deployment and its folder: its record, owner, changes and scaling."""
