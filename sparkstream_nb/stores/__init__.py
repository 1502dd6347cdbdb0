"""Stores: the database that the nodes of a deployment share. DuckDB by default."""

from __future__ import annotations

from .duckdb import DuckDBStore
from .protocol import ErrorRow, ShardRows, Store
from .shards import shard_warnings

__all__ = ["DuckDBStore", "ErrorRow", "ShardRows", "Store", "shard_warnings"]
