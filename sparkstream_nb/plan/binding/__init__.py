"""The parts of the binder, one file for each part of an app."""
