"""Aggregations as a WSO2 deployment that is partitioned by id would show them: without the buckets that are open.

There a retrieval reads the database alone: the table of the duration asked for, and for a bucket of it that is not full
yet the tables of the finer durations (Siddhi's `IncrementalAggregateCompileCondition.find`: the nodes' memory is read
only if the deployment is not distributed). A node writes a bucket of the finest duration when an event for a later one
comes. So of every shard the last bucket of the finest duration is missing from every answer. Here everything that a
micro-batch has committed is in the database, and the functions below leave the open buckets out again.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..engine.aggregation import Calendar
from ..engine.aggregation.stored_buckets import EVENT_TIMESTAMP, TIMESTAMP
from ..plan.nodes import AggDuration, AggregationDef
from ..stores.store_protocol import EACH_GROUP, GroupFilter, Store

SHARD = "SHARD_ID"
_EVER = 1 << 62


def closed_rows(
    store: Store, definition: AggregationDef, per: AggDuration, bounds: tuple[int, int], groups: GroupFilter, zone: str
) -> pa.Table:
    """The rows of a duration by shard (`Store.read_by_shard`) with `bounds[0]` ≤ bucket < `bounds[1]` (ms), without the
    share of the last bucket of the finest duration. A shard may have several rows for a bucket and group: they are to
    be merged. `zone`: the buckets' time zone.
    """
    table = store.read_by_shard(definition.id, per, *bounds, groups)
    calendar = Calendar(zone)
    time = EVENT_TIMESTAMP if EVENT_TIMESTAMP in table.column_names else TIMESTAMP
    finer = definition.durations[: definition.durations.index(per)][::-1]
    parts = [table]
    for shard in pc.unique(table.column(SHARD)).to_pylist():
        last = store.last_bucket(definition.id, definition.durations[0], shard, _EVER, EACH_GROUP)
        if last is None:
            continue
        bucket = _floor(calendar, per, last)
        of_shard = pc.equal(parts[0].column(SHARD), pa.scalar(shard))
        open_ = pc.and_(of_shard, pc.greater_equal(parts[0].column(time), bucket))
        if not pc.any(open_).as_py():
            continue
        parts[0] = parts[0].filter(pc.invert(open_))
        begin = bucket
        for duration in finer:
            end = _floor(calendar, duration, last)
            if begin < end:
                rows = store.read_by_shard(definition.id, duration, begin, end, groups)
                rows = rows.filter(pc.equal(rows.column(SHARD), pa.scalar(shard)))
                starts = pa.array(np.full(len(rows), bucket), pa.int64())
                for name in {time, TIMESTAMP}:
                    rows = rows.set_column(rows.column_names.index(name), name, starts)
                parts.append(rows.select(table.column_names).cast(table.schema))
            begin = end
    return pa.concat_tables(parts)


def _floor(calendar: Calendar, duration: AggDuration, ms: int) -> int:
    return int(calendar.floor(duration, np.array([ms], np.int64))[0])
