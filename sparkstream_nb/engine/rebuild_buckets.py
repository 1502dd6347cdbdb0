"""Buckets that are made again: coarse ones of finer ones, or all of them of the events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..plan.nodes import AggDuration, AggregationDef, Plan
from .aggregation.bucket_calendar import Calendar
from .aggregation.stored_buckets import Stored, from_table, group_names, merge_stored, to_table
from .columnar.column_data import Array, StringPool
from .expressions import Context
from .node import NodeEngine
from .state.node_batch import InputBatch, OutputOptions, StreamRows
from .state.services import Services

Key = tuple[Any, ...]


def coarser(definition: AggregationDef, finer: pa.Table, duration: AggDuration, zone: str) -> pa.Table:
    """The partials of `duration` that stored rows of a finer duration add up to."""
    services = Services(StringPool(), Context())
    rows = from_table(definition, finer, services)
    starts = Calendar(zone).floor(duration, rows.bucket)
    return to_table(
        merge_stored(Stored(definition, starts, rows.keys, rows.base, rows.last), services), duration, services
    )


def keys_of(definition: AggregationDef, rows: pa.Table) -> list[Key]:
    """(start of the bucket in ms, values of the group-by attributes) of partials or of rows that a store read. Doubles
    are texts, as NaN equals nothing, and -0.0 is another key than 0.0."""
    time = "AGG_TIMESTAMP" if definition.by is None else "AGG_EVENT_TIMESTAMP"
    columns = (rows.column(n).to_pylist() for n in (time, *group_names(definition)))
    return list(zip(*([repr(v) if isinstance(v, float) else v for v in c] for c in columns), strict=True))


@dataclass
class Counted:
    """Partials of some events, and the reasons why others have none."""

    partials: pa.Table | None
    failed: list[str]


def from_events(plan: Plan, aggregation: str, batches: Iterable[tuple[Array, list[pa.Array]]]) -> Iterator[Counted]:
    """Partials of batches of (times in ms, columns) of the aggregation's stream. The times move the app's clock."""
    definition = plan.aggregations[aggregation]
    alone = replace(plan, elements=(), triggers={}, aggregations={aggregation: definition})
    node, stream = NodeEngine(alone, outputs=OutputOptions(stored=True)), definition.input.source.id
    for ts, columns in batches:
        out = node.step(InputBatch(ts, {stream: StreamRows(np.arange(len(ts)), ts, columns)}))
        yield Counted(out.partials.get(aggregation), [e.message for e in out.errors])
