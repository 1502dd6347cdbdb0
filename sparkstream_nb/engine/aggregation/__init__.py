"""Incremental aggregations (`define aggregation`): buckets of seconds to years, by group."""

from __future__ import annotations

from .bucket_calendar import Calendar, within_range
from .bucket_retrieval import answer_rows, bounds_of
from .operator import AggregationOp
from .storable import UnstorableRow, storable
from .stored_buckets import Stored, from_table, merge_stored, view

__all__ = [
    "AggregationOp",
    "Calendar",
    "Stored",
    "UnstorableRow",
    "answer_rows",
    "bounds_of",
    "from_table",
    "merge_stored",
    "storable",
    "view",
    "within_range",
]
