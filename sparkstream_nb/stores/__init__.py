"""Stores: the database that the nodes of a deployment share. DuckDB by default."""

from __future__ import annotations

from .duckdb import DuckDBStore
from .protocol import BucketRange, Buckets, ErrorRow, Groups, ShardRows, Store
from .shards import shard_warnings

__all__ = [
    "BucketRange",
    "Buckets",
    "DuckDBStore",
    "ErrorRow",
    "Groups",
    "ShardRows",
    "Store",
    "shard_warnings",
]
