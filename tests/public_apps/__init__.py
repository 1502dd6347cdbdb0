"""Apps that others published: which of them are accepted, and why the others are not. `python -m tests.public_apps`."""
