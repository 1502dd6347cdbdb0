"""The protocol of stores, independent of database, SQL dialect and driver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from ..errors import without_surrogates
from ..plan.nodes import AggDuration, AggregationDef, BatchClock


@dataclass(frozen=True)
class ErrorRow:
    """A rejected or failed event: its stream, timestamp (ms; None: not known), values by schema, and why."""

    stream: str
    ts: int | None
    values: list[Any]
    reason: str

    def __post_init__(self) -> None:
        # An object's value may have halves of surrogate pairs, which no database stores as text.
        object.__setattr__(self, "reason", without_surrogates(self.reason))


@dataclass(frozen=True)
class BatchKey:
    """The key of a micro-batch in the ledger: the names of its app and of the app's run, and its number."""

    app: str
    run: str
    batch: int


@dataclass(frozen=True)
class ShardRows:
    """The number of rows of an aggregation that one shard holds, over all durations."""

    shard: str
    rows: int


class Every(Enum):
    """All values of a group-by attribute, null among them."""

    VALUE = "every value"


EVERY: Final = Every.VALUE


@dataclass(frozen=True)
class GroupFilter:
    """Filter of the groups of an aggregation that are read: each one, by default.

    `only`: the values of the group-by attributes that groups must have, in their order; `EVERY` for any. `equal`:
    (attribute, value) pairs that the groups must have; a value that a null is stored as also lets groups with null
    there pass. `merged`: all these groups as one, whose group-by attributes are null.
    """

    only: tuple[Any, ...] | None = None
    equal: tuple[tuple[str, Any], ...] = ()
    merged: bool = False


EACH_GROUP = GroupFilter()


@dataclass(frozen=True)
class BucketRange:
    """Buckets of a duration with `start` ≤ bucket < `end` (ms): at most `most`, the latest or the earliest of them."""

    start: int
    end: int
    most: int
    latest: bool = True


@dataclass(frozen=True)
class KeySearch:
    """The first `most` values of the group-by attribute number `key`, only those whose text contains `containing`, in
    any case of letters."""

    key: int
    most: int
    containing: str = ""


@dataclass(frozen=True, eq=False)
class Buckets:
    """`starts` int64[n]: starts (ms) of buckets that hold rows, ascending. Of `total` buckets in all, `before` are
    earlier than these."""

    starts: np.ndarray[Any, np.dtype[np.int64]]
    before: int
    total: int


Partials: TypeAlias = Mapping[tuple[str, str], pa.Table]
"""Tables of partials by aggregation and shard id."""

KEPT_BATCHES = 1000
"""Micro-batches of a run that a ledger remembers; Spark repeats the last one."""


class Store(Protocol):
    """A database that the nodes of a deployment share: tables of aggregations, ledger, errors.

    Aggregations are named by their ids; `prepare` must have been called with their definitions. Tables of partials are
    as in `engine.state.node_batch.Outputs.partials`: in a record batch per duration at most one row for a bucket and
    group. A table's batches are merged one after the other.
    """

    def prepare(self, definitions: Iterable[AggregationDef]) -> None:
        """Creates missing tables and checks existing ones. Raises StoreError with the ways out."""
        ...

    def unfit(self, aggregation: str, partials: pa.Table) -> dict[int, str]:
        """Why rows of a table of partials cannot be stored, by row number; the others can.

        The answer depends on the rows and the columns of the tables alone, so a replay gives the same.
        """
        ...

    def commit(
        self, key: BatchKey, partials: Partials, errors: Sequence[ErrorRow] = (), clock: BatchClock | None = None
    ) -> bool:
        """Merges the partials of (aggregation id, shard id) into the tables and stores `errors`, all or nothing.

        `clock` decides which purges of aggregations (`@purge`) are due: they run before the merge.

        If the ledger has the key, nothing changes and False is returned.
        """
        ...

    def last_committed(self, app: str, run: str) -> int:
        """The last micro-batch of a run that is in the ledger; -1 for none."""
        ...

    def read(
        self, aggregation: str, per: AggDuration, start: int, end: int, groups: GroupFilter = EACH_GROUP
    ) -> pa.Table:
        """Rows with start ≤ bucket < end (ms), merged over shards, by time. Never waits for a commit under way.

        Columns: AGG_TIMESTAMP, [AGG_EVENT_TIMESTAMP,] group-by attributes, base columns, [AGG_LAST_EVENT_TIMESTAMP].
        Sets are lists.
        """
        ...

    def read_by_shard(
        self, aggregation: str, per: AggDuration, start: int, end: int, groups: GroupFilter = EACH_GROUP
    ) -> pa.Table:
        """Read without merging the shards, with SHARD_ID after AGG_TIMESTAMP.

        Raises StoreError if the aggregation is not partitioned.
        """
        ...

    def count(
        self, aggregation: str, per: AggDuration, bucket_range: BucketRange, groups: GroupFilter = EACH_GROUP
    ) -> int:
        """Number of rows in the buckets of a range, of all shards; its `most` if there are more."""
        ...

    def buckets(
        self, aggregation: str, per: AggDuration, bucket_range: BucketRange, groups: GroupFilter = EACH_GROUP
    ) -> Buckets:
        """The buckets that hold rows of `groups`, over all shards."""
        ...

    def last_bucket(
        self, aggregation: str, per: AggDuration, shard: str, end: int, groups: GroupFilter = EACH_GROUP
    ) -> int | None:
        """The start (ms) of the last bucket before `end` in which `shard` holds rows of `groups`."""
        ...

    def key_values(
        self, aggregation: str, per: AggDuration, search: KeySearch, groups: GroupFilter = EACH_GROUP
    ) -> list[Any]:
        """The distinct values of a group-by attribute that `groups` have, in order."""
        ...

    def shards(self, aggregation: str) -> list[ShardRows]:
        """The shards that hold rows, by id; empty if the aggregation is not partitioned."""
        ...

    def move_shard(self, aggregation: str, old: str, new: str) -> None:
        """Gives the rows of shard `old` to shard `new`, merged with those that it has."""
        ...

    def delete_shard(self, aggregation: str, shard: str) -> None:
        """Deletes the rows of one shard."""
        ...

    def purged_before(self, aggregation: str, duration: AggDuration) -> int | None:
        """The time (ms) before which `@purge` has deleted buckets of a duration; None if it has not."""
        ...

    def replace(self, aggregation: str, partials: Mapping[str, Sequence[pa.Table]], *, alone: bool = False) -> None:
        """Puts partials, by shard, in place of the rows of the same bucket and group, all or nothing.

        With `alone` the rows of all other shards are deleted. Raises StoreError for tables in which another server has
        several rows for a bucket.
        """
        ...

    def add_shard_id(self, aggregation: str, shard: str, *, dry_run: bool = False) -> list[str]:
        """Adds SHARD_ID to tables that lack it, and to their keys; existing rows get `shard`.

        Returns the statements, which `dry_run` does not execute.
        """
        ...

    def drop(self, aggregation: str) -> None:
        """Drops the tables of an aggregation; `prepare` creates them again."""
        ...

    def errors(self, app: str) -> pa.Table:
        """The errors kept for `app`, oldest first: id (never used twice), stream, ts, values (JSON text), reason."""

    def forget_errors(self, app: str, ids: Sequence[int]) -> None:
        """Removes errors of `app` by their ids."""
        ...

    def trim_errors(self, app: str, most: int | None) -> int:
        """Drops the oldest errors of `app`, so that `most` are left (None: drops none). Returns how many were dropped
        so far, by this call and those before, also of other processes."""
        ...

    def close(self) -> None:
        """Closes the database. The store cannot be used afterwards."""
        ...
