"""An app's settings: configuration files, grants, secrets and arguments."""
