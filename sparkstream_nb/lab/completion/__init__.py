"""What can be written at a cursor in SiddhiQL."""

from .places import Query, at_cursor

__all__ = ["Query", "at_cursor"]
