"""Completion of SiddhiQL at a cursor."""

from .places import CompletionQuery, at_cursor

__all__ = ["CompletionQuery", "at_cursor"]
