"""Partials without the rows that a database cannot hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...plan.nodes import AggregationDef
from ..columnar.column_data import StringPool
from ..expressions import Context
from ..state.services import Services
from .bucket_calendar import Calendar
from .stored_buckets import TIMESTAMP, Stored, from_table, group_names, merge_stored, to_table

Unfit = Callable[[pa.Table], dict[int, str]]
"""Why rows of a table of partials cannot be stored, by row number."""


@dataclass(frozen=True)
class UnstorableRow:
    """A row of partials: its bucket (start, ms), its group-by and base columns, and why it cannot be stored."""

    bucket: int
    values: list[Any]
    reason: str


def storable(
    definition: AggregationDef, zone: str, partials: pa.Table, unfit: Unfit
) -> tuple[pa.Table, list[UnstorableRow]]:
    """`partials` without the rows that are `unfit`, and those rows.

    Rows left out of a bucket of the smallest duration are left out of the larger buckets too: these are recomputed from
    the remaining rows, so reads of all durations agree. A row of a larger duration is left out only where the smaller
    ones fit.
    """
    if not unfit(partials):
        return partials, []
    services, calendar = Services(StringPool(), Context()), Calendar(zone)
    smaller: Stored | None = None
    tables, left = [], []
    for duration in definition.durations:
        if smaller is None:
            rows = partials.filter(pc.equal(partials.column("duration"), duration))
            fresh = from_table(definition, rows, services)
        else:
            bucket = calendar.floor(duration, smaller.bucket)
            fresh = Stored(definition, bucket, smaller.keys, smaller.base, smaller.last)
        table = to_table(merge_stored(fresh, services), duration, services)
        bad = unfit(table)
        left += _left_out(definition, table, bad)
        fits = np.ones(table.num_rows, np.bool_)
        fits[list(bad)] = False
        table = table.filter(pa.array(fits))
        smaller = from_table(definition, table, services)
        tables.append(table)
    return pa.concat_tables(tables), left


def _left_out(definition: AggregationDef, table: pa.Table, bad: dict[int, str]) -> list[UnstorableRow]:
    names = [*group_names(definition), *(b.name for b in definition.base)]
    out = []
    for i, reason in sorted(bad.items()):
        (row,) = table.slice(i, 1).to_pylist()
        out.append(UnstorableRow(row[TIMESTAMP], [row[n] for n in names], f"per {row['duration']}: {reason}"))
    return out
