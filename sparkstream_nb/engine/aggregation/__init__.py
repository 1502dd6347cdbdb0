"""Incremental aggregations (`define aggregation`): buckets of seconds to years, by group."""

from __future__ import annotations

from .calendar import Calendar, within_range
from .operator import AggregationOp
from .retrieval import answer_rows, bounds_of
from .storable import UnstorableRow, storable
from .stored import Stored, from_table, merge_stored, view

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
