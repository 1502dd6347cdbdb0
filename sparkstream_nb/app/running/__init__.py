"""A running app: what is sent and fed to it, its clock, and what it is asked."""
