"""Stored aggregations: reading, purging and rebuilding them."""
