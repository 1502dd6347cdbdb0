"""Stores: the database that the nodes of a deployment share. DuckDB by default."""

from __future__ import annotations

from .duckdb import DuckDBStore
from .shards import shard_warnings
from .store_protocol import EVERY, BucketRange, Buckets, ErrorRow, Every, GroupFilter, ShardRows, Store

__all__ = [
    "EVERY",
    "BucketRange",
    "Buckets",
    "DuckDBStore",
    "ErrorRow",
    "Every",
    "GroupFilter",
    "ShardRows",
    "Store",
    "shard_warnings",
]
