"""Joins of streams, windows, tables and aggregations."""
