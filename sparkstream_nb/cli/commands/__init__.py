"""A module for each command, with `run(options)`, which carries it out and returns the exit code."""
