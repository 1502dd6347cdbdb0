"""Sinks that publish a stream's committed outputs outside the app, each from a position of its own."""
