"""An app in parts: how it is split, and where each part runs."""
