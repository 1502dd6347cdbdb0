"""What a front end draws an aggregation from: its groups, its buckets by shard and merged, and news of commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.aggregation import Stored, from_table, merge_stored, view
from ..engine.columns import Strings
from ..engine.expressions import Context
from ..engine.services import Services
from ..plan.nodes import AggDuration, AggregationDef, walk
from ..plan.nodes import Ref as Slot
from ..stores import BucketRange, Groups, Store
from ..types import Schema
from .listeners import OnCommit

SHARD = "SHARD_ID"
ALWAYS = (-62_135_596_800_000, 253_402_300_800_000)
"""The years 1 to 9999 in ms."""


@dataclass(frozen=True)
class BucketQuery:
    """The values of `measure`, a name that the aggregation selects, for buckets of a duration.

    `group`: the values of the group-by attributes of one group; None: all groups merged, where `merges_groups` allows
    it. Of the buckets with `start` ≤ bucket < `end` (ms; None: no bound), the latest `most`, or the earliest.
    """

    per: AggDuration
    measure: str
    group: tuple[Any, ...] | None = None
    start: int | None = None
    end: int | None = None
    most: int = 400
    latest: bool = True


@dataclass(frozen=True, eq=False)
class BucketValues:
    """`starts` int64[n]: starts of the buckets (ms), ascending. `by_shard` float64[shards, n] and `merged` float64[n]:
    NaN where there is nothing. Of `total` buckets in all, `before` are earlier than these."""

    starts: NDArray[np.int64]
    shards: tuple[str, ...]
    by_shard: NDArray[np.float64]
    merged: NDArray[np.float64]
    before: int
    total: int


@dataclass(frozen=True)
class InputStream:
    """The stream to send events to so that an aggregation gets some; `time`: the attribute that it goes by, if any."""

    app: str
    stream: str
    schema: Schema
    time: str | None


class AggregationReader:
    """Reads one aggregation of an app, as far as it is committed, and tells of commits."""

    def __init__(
        self,
        definition: AggregationDef,
        source: InputStream,
        shards: Sequence[str],
        store: Store,
        *,
        follow: Callable[[OnCommit], Callable[[], None]],
        settle: Callable[[], None],
    ) -> None:
        """`settle` waits until what was sent is committed; `follow` is `App.on_commit`."""
        self.definition, self.source, self.shards = definition, source, tuple(shards)
        self._store, self._follow, self._settle = store, follow, settle

    def settle(self) -> None:
        """Waits for events that were sent, though not for a feed that runs."""
        self._settle()

    def follow(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Calls `changed` after commits, on a thread of the app's, until the function returned is called."""
        return self._follow(lambda _: changed())

    def groups(self, per: AggDuration, most: int) -> list[tuple[Any, ...]]:
        """The first `most` groups of a duration, by their texts."""
        found = self._store.groups(self.definition.id, per, most)
        return sorted(found, key=lambda group: [str(v) for v in group])

    def count(self, per: AggDuration) -> int:
        """How many buckets of a duration hold something."""
        return self._store.buckets(self.definition.id, per, BucketRange(*ALWAYS, most=1)).total

    def read(self, query: BucketQuery) -> BucketValues:
        """The values of a query. Raises StoreError where the store is closed."""
        groups = Groups(merged=True) if query.group is None else Groups(only=query.group)
        start = ALWAYS[0] if query.start is None else query.start
        end = ALWAYS[1] if query.end is None else query.end
        name, per = self.definition.id, query.per
        found = self._store.buckets(name, per, BucketRange(start, end, query.most, query.latest), groups)
        if not len(found.starts):
            nothing = np.zeros((len(self.shards), 0))
            return BucketValues(found.starts, self.shards, nothing, np.zeros(0), found.before, found.total)
        bounds = (int(found.starts[0]), int(found.starts[-1]) + 1)
        services = Services(Strings(), Context())
        if self.definition.partitioned:
            table = self._store.read_by_shard(name, per, *bounds, groups)
            stored = from_table(self.definition, table, services)
            owners = [str(s) for s in table.column(SHARD).to_pylist()]
            merged = merge_stored(stored, services)
        else:
            merged = stored = from_table(self.definition, self._store.read(name, per, *bounds, groups), services)
            owners = [self.shards[0]] * len(stored)
        shards = (*self.shards, *sorted(set(owners) - set(self.shards)))
        row = {s: i for i, s in enumerate(shards)}
        by_shard = np.full((len(shards), len(found.starts)), np.nan)
        by_shard[[row[s] for s in owners], np.searchsorted(found.starts, stored.bucket)] = self._measure(
            stored, query.measure, services
        )
        whole = np.full(len(found.starts), np.nan)
        whole[np.searchsorted(found.starts, merged.bucket)] = self._measure(merged, query.measure, services)
        return BucketValues(found.starts, shards, by_shard, whole, found.before, found.total)

    def _measure(self, stored: Stored, name: str, services: Services) -> NDArray[np.float64]:
        """float64 per stored row: a selected value, NaN where it is null."""
        names = self.definition.source.schema.names
        column = view(stored, services)[names.index(name)]
        values = np.array(column.values, np.float64)
        if column.null is not None:
            values[column.null] = np.nan
        return values


def merges_groups(definition: AggregationDef, name: str) -> bool:
    """Whether a selected value means something over all groups: it is made of aggregates alone, without group-by
    attributes and without the latest value of a plain attribute."""
    keys = len(definition.select.group_by)
    output = next(item for item in definition.output if item.name == name)
    slots = [e.attr for e in walk(output.expr) if isinstance(e, Slot)]
    return all(s >= keys and definition.base[s - keys].kind != "last" for s in slots)
