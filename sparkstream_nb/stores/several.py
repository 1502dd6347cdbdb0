"""Several stores that act as one: each aggregation has the database that its `@store` names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..plan.nodes import AggDuration, AggregationDef, BatchClock
from .store_protocol import EACH_GROUP, BatchKey, BucketRange, Buckets, ErrorRow, GroupFilter, ShardRows, Store


class StoreSet:
    """A `Store` that combines others. `app_store` is the app's, with the errors and all aggregations that are not in
    `others`.

    A batch is committed to each store by a ledger row of its own, the app's last. A crash in between leaves it to the
    batch's repetition to reach those that were not reached.
    """

    def __init__(self, app_store: Store, others: Mapping[str, Store]) -> None:
        self.app_store = app_store
        self._by_aggregation = dict(others)
        self._others = list({id(s): s for s in others.values()}.values())

    def _store(self, aggregation: str) -> Store:
        return self._by_aggregation.get(aggregation, self.app_store)

    def prepare(self, definitions: Iterable[AggregationDef]) -> None:
        all_definitions = list(definitions)
        for store in (*self._others, self.app_store):
            store.prepare([d for d in all_definitions if self._store(d.id) is store])

    def unfit(self, aggregation: str, partials: pa.Table) -> dict[int, str]:
        return self._store(aggregation).unfit(aggregation, partials)

    def commit(
        self,
        key: BatchKey,
        partials: Mapping[tuple[str, str], pa.Table],
        errors: Sequence[ErrorRow] = (),
        clock: BatchClock | None = None,
    ) -> bool:
        for store in self._others:
            its = {place: rows for place, rows in partials.items() if self._store(place[0]) is store}
            store.commit(key, its, (), clock)
        rest = {place: rows for place, rows in partials.items() if self._store(place[0]) is self.app_store}
        return self.app_store.commit(key, rest, errors, clock)

    def last_committed(self, app: str, run: str) -> int:
        return self.app_store.last_committed(app, run)

    def last_begun(self, app: str, run: str) -> int:
        """The last micro-batch of a run that is in the ledger of any of the databases; -1 for none."""
        return max(store.last_committed(app, run) for store in (*self._others, self.app_store))

    def read(
        self, aggregation: str, per: AggDuration, start: int, end: int, groups: GroupFilter = EACH_GROUP
    ) -> pa.Table:
        return self._store(aggregation).read(aggregation, per, start, end, groups)

    def read_by_shard(
        self, aggregation: str, per: AggDuration, start: int, end: int, groups: GroupFilter = EACH_GROUP
    ) -> pa.Table:
        return self._store(aggregation).read_by_shard(aggregation, per, start, end, groups)

    def count(
        self,
        aggregation: str,
        per: AggDuration,
        bounds: tuple[int, int],
        groups: GroupFilter = EACH_GROUP,
        *,
        most: int,
    ) -> int:
        return self._store(aggregation).count(aggregation, per, bounds, groups, most=most)

    def buckets(
        self, aggregation: str, per: AggDuration, bucket_range: BucketRange, groups: GroupFilter = EACH_GROUP
    ) -> Buckets:
        return self._store(aggregation).buckets(aggregation, per, bucket_range, groups)

    def last_bucket(
        self, aggregation: str, per: AggDuration, shard: str, end: int, groups: GroupFilter = EACH_GROUP
    ) -> int | None:
        return self._store(aggregation).last_bucket(aggregation, per, shard, end, groups)

    def key_values(
        self,
        aggregation: str,
        per: AggDuration,
        key: int,
        most: int,
        groups: GroupFilter = EACH_GROUP,
        containing: str = "",
    ) -> list[Any]:
        return self._store(aggregation).key_values(aggregation, per, key, most, groups, containing)

    def shards(self, aggregation: str) -> list[ShardRows]:
        return self._store(aggregation).shards(aggregation)

    def move_shard(self, aggregation: str, old: str, new: str) -> None:
        self._store(aggregation).move_shard(aggregation, old, new)

    def delete_shard(self, aggregation: str, shard: str) -> None:
        self._store(aggregation).delete_shard(aggregation, shard)

    def purged_before(self, aggregation: str, duration: AggDuration) -> int | None:
        return self._store(aggregation).purged_before(aggregation, duration)

    def replace(self, aggregation: str, partials: Mapping[str, Sequence[pa.Table]], *, alone: bool = False) -> None:
        self._store(aggregation).replace(aggregation, partials, alone=alone)

    def add_shard_id(self, aggregation: str, shard: str, *, dry_run: bool = False) -> list[str]:
        return self._store(aggregation).add_shard_id(aggregation, shard, dry_run=dry_run)

    def drop(self, aggregation: str) -> None:
        self._store(aggregation).drop(aggregation)

    def errors(self, app: str) -> pa.Table:
        return self.app_store.errors(app)

    def forget_errors(self, app: str, ids: Sequence[int]) -> None:
        self.app_store.forget_errors(app, ids)

    def trim_errors(self, app: str, most: int | None) -> int:
        return self.app_store.trim_errors(app, most)

    def close(self) -> None:
        for store in (*self._others, self.app_store):
            store.close()
