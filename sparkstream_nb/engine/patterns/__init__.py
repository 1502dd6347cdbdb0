"""Patterns and sequences: one compiled state machine equivalent to Siddhi's state processors, event by event."""
