"""Several stores that act as one: each aggregation has the database that its `@store` names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import pyarrow as pa

from ..plan.nodes import AggregationDef, BatchClock
from .store_protocol import BatchKey, ErrorRow, Partials, Store

M = TypeVar("M", bound=Callable[..., Any])


def _of_one(method: M) -> M:
    """A method of `Store` about one aggregation, carried out by the store that has it."""

    @wraps(method)
    def call(stores: StoreSet, aggregation: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(stores.store_of(aggregation), method.__name__)(aggregation, *args, **kwargs)

    return cast(M, call)


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

    def store_of(self, aggregation: str) -> Store:
        """The store that has an aggregation."""
        return self._by_aggregation.get(aggregation, self.app_store)

    def prepare(self, definitions: Iterable[AggregationDef]) -> None:
        all_definitions = list(definitions)
        for store in (*self._others, self.app_store):
            store.prepare([d for d in all_definitions if self.store_of(d.id) is store])

    def commit(
        self, key: BatchKey, partials: Partials, errors: Sequence[ErrorRow] = (), clock: BatchClock | None = None
    ) -> bool:
        for store in self._others:
            its = {place: rows for place, rows in partials.items() if self.store_of(place[0]) is store}
            store.commit(key, its, (), clock)
        rest = {place: rows for place, rows in partials.items() if self.store_of(place[0]) is self.app_store}
        return self.app_store.commit(key, rest, errors, clock)

    def last_committed(self, app: str, run: str) -> int:
        return self.app_store.last_committed(app, run)

    def last_begun(self, app: str, run: str) -> int:
        """The last micro-batch of a run that is in the ledger of any of the databases; -1 for none."""
        return max(store.last_committed(app, run) for store in (*self._others, self.app_store))

    unfit = _of_one(Store.unfit)
    read = _of_one(Store.read)
    read_by_shard = _of_one(Store.read_by_shard)
    count = _of_one(Store.count)
    buckets = _of_one(Store.buckets)
    last_bucket = _of_one(Store.last_bucket)
    key_values = _of_one(Store.key_values)
    shards = _of_one(Store.shards)
    move_shard = _of_one(Store.move_shard)
    delete_shard = _of_one(Store.delete_shard)
    purged_before = _of_one(Store.purged_before)
    replace = _of_one(Store.replace)
    add_shard_id = _of_one(Store.add_shard_id)
    drop = _of_one(Store.drop)

    def errors(self, app: str) -> pa.Table:
        return self.app_store.errors(app)

    def forget_errors(self, app: str, ids: Sequence[int]) -> None:
        self.app_store.forget_errors(app, ids)

    def trim_errors(self, app: str, most: int | None) -> int:
        return self.app_store.trim_errors(app, most)

    def close(self) -> None:
        for store in (*self._others, self.app_store):
            store.close()
