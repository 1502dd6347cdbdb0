"""The data from which a front end draws an aggregation: its groups, its buckets by shard and merged, and news of
commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...engine.aggregation import Stored, from_table, merge_stored, view
from ...engine.columnar.column_data import StringPool
from ...engine.expressions import Context
from ...engine.state.services import Services
from ...outputs.open_buckets import BucketRows, closed_rows
from ...plan.nodes import AggDuration, AggregationDef, walk
from ...plan.nodes import Ref as Slot
from ...stores import BucketRange, Buckets, GroupFilter, Store
from ...stores.store_protocol import KeySearch
from ...types import Schema
from .listeners import Followed

SHARD = "SHARD_ID"
ALWAYS = (-62_135_596_800_000, 253_402_300_800_000)
"""The years 1 to 9999 in ms."""
MOST_ROWS = 300_000
"""Stored rows that one read takes up, about: buckets of many groups are read in smaller numbers."""

Group = tuple[Any, ...]
"""For each group-by attribute a value that groups must have, or `EVERY`; empty without `group by`."""


@dataclass(frozen=True)
class BucketQuery:
    """The values of `measure`, a name that the aggregation selects, for buckets of a duration.

    The groups of `group` are merged into one; more than one only where `merges_groups` allows it. Of the buckets with
    `start` ≤ bucket < `end` (ms; None: no bound), the latest `most`, or the earliest. `as_wso2`: also without the
    buckets that are open (`outputs.open_buckets`).
    """

    per: AggDuration
    measure: str
    group: Group = ()
    start: int | None = None
    end: int | None = None
    most: int = 400
    latest: bool = True
    as_wso2: bool = False


@dataclass(frozen=True)
class Shard:
    """A shard of a read. `is_node`: whether it belongs to a node of the deployment. `rows`: in how many of the buckets
    read it holds rows. `last`: the start (ms) of its last bucket with rows, up to the end of the read; None: none."""

    id: str
    is_node: bool = True
    rows: int = 0
    last: int | None = None


@dataclass(frozen=True, eq=False)
class BucketValues:
    """`starts` int64[n]: starts of the buckets (ms), ascending. `by_shard` float64[shards, n] and `merged` float64[n]:
    NaN without a row; `as_wso2` likewise, None if it was not asked for. Of `total` buckets in all, `before`
    are earlier than these.
    """

    starts: NDArray[np.int64]
    shards: tuple[Shard, ...]
    by_shard: NDArray[np.float64]
    merged: NDArray[np.float64]
    before: int
    total: int
    as_wso2: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class InputStream:
    """The stream to send events to so that an aggregation gets some; `time`: the attribute that it goes by, if any."""

    app: str
    stream: str
    schema: Schema
    time: str | None


@dataclass(frozen=True, eq=False)
class StoredAggregation:
    """An aggregation and the store that has it. `nodes` gives the deployment's shard ids, `zone` is the time zone of
    the buckets."""

    definition: AggregationDef
    store: Store
    nodes: Callable[[], Sequence[str]]
    zone: str


class AggregationReader:
    """Reads one aggregation of an app, up to the last commit, and reports commits."""

    def __init__(
        self, aggregation: StoredAggregation, source: InputStream, app: Followed, settle: Callable[[], None]
    ) -> None:
        """`settle` waits until sent events are committed."""
        self.definition, self.source = aggregation.definition, source
        self._nodes, self._store, self._zone = aggregation.nodes, aggregation.store, aggregation.zone
        self._settle, self.target = settle, app

    def settle(self) -> None:
        """Waits for events that were sent, though not for a feed that runs."""
        self._settle()

    def key_values(self, key: int, group: Group, most: int, containing: str = "") -> list[Any]:
        """The first `most` values of the group-by attribute number `key` that go with `group`, in order.

        They come from the coarsest duration that has some, whose table is the smallest. `containing`: a part of
        their texts.
        """
        for per in reversed(self.definition.durations):
            search = KeySearch(key, most, containing)
            values = self._store.key_values(self.definition.id, per, search, GroupFilter(only=group))
            if values:
                return values
        return []

    def count(self, per: AggDuration) -> int:
        """The number of buckets of a duration that hold something."""
        return self._store.buckets(self.definition.id, per, BucketRange(*ALWAYS, most=1)).total

    def read(self, query: BucketQuery) -> BucketValues:
        """The values of a query. Raises StoreError if the store is closed."""
        groups = GroupFilter(only=query.group, merged=True)
        buckets = self._some_buckets(query, groups)
        if not len(buckets.starts):
            return BucketValues(buckets.starts, (), np.zeros((0, 0)), np.zeros(0), buckets.before, buckets.total)
        name, per = self.definition.id, query.per
        bounds = (int(buckets.starts[0]), int(buckets.starts[-1]) + 1)
        services = Services(StringPool(), Context())
        nodes = tuple(self._nodes())
        if self.definition.partitioned:
            table = self._store.read_by_shard(name, per, *bounds, groups)
            all_rows = from_table(self.definition, table, services)
            owners = np.array(table.column(SHARD).to_pylist(), object)
            merged_rows = merge_stored(all_rows, services)
        else:
            merged_rows = all_rows = from_table(self.definition, self._store.read(name, per, *bounds, groups), services)
            nodes = nodes if len(nodes) == 1 else ("all nodes",)
            owners = np.array([nodes[0]] * len(all_rows), object)
        ids = (*nodes, *sorted(set(owners.tolist()) - set(nodes)))
        shards = []
        by_shard = np.full((len(ids), len(buckets.starts)), np.nan)
        values, at = self._measure(all_rows, query.measure, services), np.searchsorted(buckets.starts, all_rows.bucket)
        for i, shard in enumerate(ids):
            is_of_shard = owners == shard
            by_shard[i, at[is_of_shard]] = values[is_of_shard]
            rows = int(is_of_shard.sum())
            if rows:
                last: int | None = int(all_rows.bucket[is_of_shard].max())
            else:
                last = self._store.last_bucket(name, per, shard, bounds[0], groups)
            shards.append(Shard(shard, shard in nodes, rows, last))
        merged_values = np.full(len(buckets.starts), np.nan)
        merged_values[np.searchsorted(buckets.starts, merged_rows.bucket)] = self._measure(
            merged_rows, query.measure, services
        )
        closed_values = None
        if query.as_wso2 and self.definition.partitioned:
            selection = BucketRows.of_buckets(per, bounds[0], bounds[1] - 1, groups, self._zone)
            rows = closed_rows(self._store, self.definition, selection, self._zone)
            shard_rows = merge_stored(from_table(self.definition, rows, services), services)
            closed_values = np.full(len(buckets.starts), np.nan)
            closed_values[np.searchsorted(buckets.starts, shard_rows.bucket)] = self._measure(
                shard_rows, query.measure, services
            )
        return BucketValues(
            buckets.starts, tuple(shards), by_shard, merged_values, buckets.before, buckets.total, closed_values
        )

    def _some_buckets(self, query: BucketQuery, groups: GroupFilter) -> Buckets:
        """The buckets of a query, fewer where they hold more than `MOST_ROWS` rows."""
        start = ALWAYS[0] if query.start is None else query.start
        end = ALWAYS[1] if query.end is None else query.end
        buckets = self._store.buckets(
            self.definition.id, query.per, BucketRange(start, end, query.most, query.latest), groups
        )
        n = len(buckets.starts)
        if n < 2:
            return buckets
        bounds = (int(buckets.starts[0]), int(buckets.starts[-1]) + 1)
        rows = self._store.count(self.definition.id, query.per, BucketRange(*bounds, 100 * MOST_ROWS), groups)
        bucket_limit = min(n, max(1, n * MOST_ROWS // max(1, rows)))
        if query.latest:
            return Buckets(buckets.starts[n - bucket_limit :], buckets.before + n - bucket_limit, buckets.total)
        return Buckets(buckets.starts[:bucket_limit], buckets.before, buckets.total)

    def _measure(self, rows: Stored, name: str, services: Services) -> NDArray[np.float64]:
        """float64 per stored row: a selected value, NaN for null."""
        names = self.definition.source.schema.names
        column = view(rows, services)[names.index(name)]
        values = np.array(column.values, np.float64)
        if column.null is not None:
            values[column.null] = np.nan
        return values


def merges_groups(definition: AggregationDef, name: str) -> bool:
    """True if a selected value means something over all groups: it consists of aggregates alone, without group-by
    attributes and without the latest value of a plain attribute."""
    keys = len(definition.select.group_by)
    output = next(item for item in definition.output if item.name == name)
    slots = [e.attr for e in walk(output.expr) if isinstance(e, Slot)]
    return all(s >= keys and definition.base[s - keys].kind != "last" for s in slots)
