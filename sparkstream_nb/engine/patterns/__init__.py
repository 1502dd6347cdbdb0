"""Patterns and sequences: one compiled automaton that does what Siddhi's state processors do, event by event."""
