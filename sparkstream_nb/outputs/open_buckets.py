"""Aggregations as a WSO2 deployment that is partitioned by id would show them: without the buckets that are open.

There a retrieval reads the database alone: the table of the duration asked for, and for its buckets that are not full
yet the tables of the finer durations (Siddhi's `IncrementalAggregateCompileCondition.find`: the nodes' memory is read
only if the deployment is not distributed). Each table gives the rows whose event time lies within the bounds; a finer
one gives them from the start of the bucket of the next coarser duration on that the clock of the node that is asked is
in. So a coarse bucket that begins before the bounds is composed of its finer rows within them, as long as it is open;
and rows of shards that lag behind the clock of the node asked are missing there.

In playback a node writes a bucket when an event for a later one comes. So of every shard the last bucket of the finest
duration is missing from every answer. Here everything that a micro-batch has committed is in the database, and the
functions below leave the open buckets out again.

Without playback the clock is the wall's: a bucket is written when it ends by that clock, and a row's AGG_TIMESTAMP is
the moment at which its events came. So of events of the past nothing is hidden, but for as long as one bucket of the
finest duration lasts; and as the coarse buckets in which they came are open then, every coarse bucket is composed of
the finest rows within the bounds. When the next coarser bucket of the clock ends, its rows take their place, up to the
duration asked for: then whole buckets are shown, as without `as_wso2`.

Late events and restarts are not shown. A row there has the bucket in which its events arrived besides their own, and
both close by it; here tasks add events up in parallel and know no clock of arrival (`tests/live/server_model.py` has
the servers' rules).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..engine.aggregation import Calendar
from ..engine.aggregation.stored_buckets import EVENT_TIMESTAMP, TIMESTAMP
from ..errors import Misuse, nearest
from ..plan.nodes import AggDuration, AggregationDef
from ..stores.store_protocol import EACH_GROUP, GroupFilter, Store

SHARD = "SHARD_ID"
ALIVE = "alive"
"""In the place of a shard: servers without playback, whose clock is the wall's."""
_EVER = 1 << 62
_HOUR = 3_600_000
_INTO_THE_NEXT: Mapping[AggDuration, int] = {
    "sec": 1000, "min": 60_000, "hour": _HOUR, "day": 26 * _HOUR, "month": 32 * 24 * _HOUR, "year": 367 * 24 * _HOUR,
}  # fmt: skip
"""A time (ms) that leads from the start of any bucket, of a day with 25 hours too, into the next one."""
_NEVER = -1
"""The clock (ms) of a node without an event."""


def check_node(name: str, shards: Collection[str]) -> None:
    """Raises `Misuse` if the node that is to answer is neither one of `shards` nor "alive"."""
    if name not in (ALIVE, *shards):
        raise Misuse(nearest(f"as_wso2: there is no shard '{name}'", name, [ALIVE, *shards]))


@dataclass(frozen=True)
class BucketRows:
    """The rows of `groups` in the buckets of a duration with `bounds[0]` ≤ bucket < `bounds[1]` (ms)."""

    per: AggDuration
    bounds: tuple[int, int]
    groups: GroupFilter

    @classmethod
    def of_buckets(cls, per: AggDuration, first: int, last: int, groups: GroupFilter, zone: str) -> BucketRows:
        """The rows of the buckets that start from `first` to `last` (ms), to the end of the last one."""
        return cls(per, (first, _floor(Calendar(zone), per, last + _INTO_THE_NEXT[per])), groups)


def closed_rows(
    store: Store, definition: AggregationDef, selection: BucketRows, zone: str, shard: str | None = None
) -> pa.Table:
    """The selection by shard (`Store.read_by_shard`), as the node of `shard` answers, or the one with the latest
    event: without the buckets that are open, and with what the finer durations have of them. A shard may have several
    rows for a bucket and group: they are to be merged. `zone`: the buckets' time zone.
    """
    per, bounds, groups = selection.per, selection.bounds, selection.groups
    calendar = Calendar(zone)
    finest = definition.durations[0]
    last_by_shard: dict[str, int] = {}
    for shard_rows in store.shards(definition.id):
        last = store.last_bucket(definition.id, finest, shard_rows.shard, _EVER, EACH_GROUP)
        if last is not None:
            last_by_shard[shard_rows.shard] = last
    clock = max(last_by_shard.values(), default=_NEVER) if shard is None else last_by_shard.get(shard, _NEVER)
    number = definition.durations.index(per)
    table = store.read_by_shard(definition.id, per, *bounds, groups)
    parts = [_full_buckets(table, per, last_by_shard, calendar)]
    for duration, coarser in zip(definition.durations[:number], definition.durations[1 : number + 1], strict=True):
        begin = max(bounds[0], _floor(calendar, coarser, clock))
        if begin >= bounds[1]:
            continue
        rows = store.read_by_shard(definition.id, duration, begin, bounds[1], groups)
        rows = _in_buckets(_full_buckets(rows, duration, last_by_shard, calendar), per, calendar)
        parts.append(rows.select(table.column_names).cast(table.schema))
    return pa.concat_tables(parts)


def finest_rows(store: Store, definition: AggregationDef, selection: BucketRows, zone: str) -> pa.Table:
    """The selection by shard, composed of the finest rows whose buckets start within the bounds, as servers whose clock
    is the wall's answer while the next coarser bucket of that clock is open."""
    rows = store.read_by_shard(definition.id, definition.durations[0], *selection.bounds, selection.groups)
    return _in_buckets(rows, selection.per, Calendar(zone))


def _in_buckets(rows: pa.Table, per: AggDuration, calendar: Calendar) -> pa.Table:
    """The rows with the times of the buckets of a duration that they are in."""
    time = EVENT_TIMESTAMP if EVENT_TIMESTAMP in rows.column_names else TIMESTAMP
    starts = pa.array(calendar.floor(per, rows.column(time).to_numpy()), pa.int64())
    for name in {time, TIMESTAMP}:
        number = rows.column_names.index(name)
        rows = rows.set_column(number, rows.schema.field(number), starts)
    return rows


def _full_buckets(
    rows: pa.Table, duration: AggDuration, last_by_shard: Mapping[str, int], calendar: Calendar
) -> pa.Table:
    """The rows of buckets that their shards have written: a later one has begun."""
    shards = rows.column(SHARD).to_pylist()
    ends = {shard: _floor(calendar, duration, last) for shard, last in last_by_shard.items()}
    is_closed = rows.column(TIMESTAMP).to_numpy() < np.array([ends.get(shard, -_EVER) for shard in shards], np.int64)
    return rows.filter(pa.array(is_closed))


def _floor(calendar: Calendar, duration: AggDuration, ms: int) -> int:
    return int(calendar.floor(duration, np.array([ms], np.int64))[0])
