"""Completion of SiddhiQL at a cursor."""

from .places import Query, at_cursor

__all__ = ["Query", "at_cursor"]
