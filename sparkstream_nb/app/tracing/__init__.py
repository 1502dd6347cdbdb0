"""Traces: a private node runs an app's text over a feed, step by step, and its windows and patterns are read."""
