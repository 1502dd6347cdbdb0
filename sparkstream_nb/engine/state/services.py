"""The services that all operators of a node share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from ...types import Type
from ..columnar.column_data import Array, Column, Mask, StringPool
from ..columnar.error_routing import ErrorObject, fault_stream
from ..columnar.rows import Rows
from ..expressions import Context, Env
from .node_batch import EventError
from .watching import Watching


@dataclass(slots=True)
class ClockStart:
    """Start of a node's clock (ms): `start`, from which on absent states at the beginning of a pattern wait,
    and `first`, its time after the first step, from which on the intervals of purges count (None: no step yet).
    """

    start: int = 0
    first: int | None = None


class PartitionInstances(Protocol):
    """The instances of a partition, as the operators inside know them."""

    instance_count: int
    """Number of instances so far."""
    deaths: list[tuple[int, Array]]
    """Order keys in order, each with the instances that are purged there and may still have state."""

    def rank(self) -> Array | None:
        """int64 per instance: its order in the map of a Siddhi scheduler."""

    def hashes(self) -> Array | None:
        """int64 per instance: the hash of its key."""

    def born(self) -> Array:
        """int64 per instance: the clock (ms) at which it was made."""

    def purge_keys(self) -> Array | None:
        """int64 per instance: the order key from which on it is purged; None if none is."""


class OneInstance:
    """Outside of partitions: one instance, which is never purged."""

    def __init__(self) -> None:
        self.instance_count, self.deaths = 1, list[tuple[int, Array]]()

    def rank(self) -> Array | None:
        return None

    def hashes(self) -> Array | None:
        return None

    def born(self) -> Array:
        return np.zeros(1, np.int64)

    def purge_keys(self) -> Array | None:
        return None


@dataclass(slots=True)
class Services:
    """The node's dictionary, the compiler's context, and the errors, logs and faults of one `step` call.

    `partition` has the instances of the partition that the operator is in. `on_error` is the action of `@OnError` by
    stream, `faults` the rows of an operator's last run for fault streams. `clock` is the start of the node's clock.
    `watching`: the operator that is watched for a trace (None: none is). `describes`: windows and patterns hold all
    attributes of their events, so that they can be described.
    """

    strings: StringPool
    context: Context
    errors: list[EventError] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    partition: PartitionInstances = field(default_factory=OneInstance)
    in_table: Callable[..., Mask] | None = None
    on_error: Mapping[str, str] = field(default_factory=dict)
    clock: ClockStart = field(default_factory=ClockStart)
    faults: list[tuple[str, Rows]] = field(default_factory=list)
    watching: Watching | None = None
    describes: bool = False

    def keeps_all(self, name: str) -> bool:
        """True if the windows of the query or named window `name` hold all attributes of their events."""
        return self.describes or self.watches(name)

    def watches(self, name: str) -> bool:
        """True if the query or named window `name` is watched for a trace."""
        return self.watching is not None and self.watching.name == name

    @property
    def is_partitioned(self) -> bool:
        """True if the operator is in a partition."""
        return not isinstance(self.partition, OneInstance)

    @property
    def instances(self) -> int:
        """Number of instances so far of the partition that the operator is in; 1 outside."""
        return self.partition.instance_count

    def inside(self, partition: PartitionInstances) -> Services:
        """The services of a partition: all else is shared."""
        return replace(self, partition=partition)

    def route_failed(
        self, query: str, stream: str, env: Env, columns: list[Column], order_key: Array | None = None,
        only: Mask | None = None,
    ) -> None:  # fmt: skip
        """Routes the failed rows of `env` as `@OnError` of `stream` says; `columns` are its attributes.

        `order_key` int64[n] are the rows' order keys: without them no row can go to a fault stream. `only` restricts
        the rows.
        """
        if env.failed_rows is None:
            return
        rows = np.flatnonzero(env.failed_rows if only is None else env.failed_rows & only)
        if len(rows) == 0:
            return
        errors = [ErrorObject(env.reason(row) or "the expression failed") for row in rows.tolist()]
        failed_columns = [c.take(rows) for c in columns]
        self.route_refused(
            query, stream, failed_columns, env.ts[rows], None if order_key is None else order_key[rows], errors
        )

    def route_refused(
        self, by: str, stream: str, columns: list[Column], ts: Array, order_key: Array | None, errors: list[ErrorObject]
    ) -> None:
        """Send events of `stream`, each with its error, where `@OnError` says; `by` is the part that refused them."""
        action = self.on_error.get(stream)
        if action == "STREAM" and order_key is not None:
            error = Column.of(Type.OBJECT, list(errors), self.strings)
            self.faults.append((fault_stream(stream), Rows([*columns, error], ts, order_key, np.arange(len(ts)))))
            return
        if action != "LOG":
            self.keep(by, stream, columns, ts, errors)
            return
        for at, row, reason in zip(ts.tolist(), self._values(columns, len(ts)), errors, strict=True):
            self.logs.append(f"{by}: {stream} at {at}, {row}: {reason}")

    def keep(self, by: str, stream: str, columns: list[Column], ts: Array, errors: list[ErrorObject]) -> None:
        """Adds events, each with its error, to the errors of the step."""
        for at, row, reason in zip(ts.tolist(), self._values(columns, len(ts)), errors, strict=True):
            self.errors.append(EventError(by, stream, at, row, str(reason)))

    def _values(self, columns: list[Column], n: int) -> list[list[Any]]:
        """The rows of `columns`, n of them."""
        rows = zip(*(c.to_list(self.strings) for c in columns), strict=True) if columns else ([] for _ in range(n))
        return [list(row) for row in rows]
