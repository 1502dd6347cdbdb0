"""Queries as operators, put together and run in order."""
