"""The services that all operators of a node share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ..types import Type
from .batch import EventError
from .columns import Array, Column, Mask, Strings
from .expressions import Context, Env
from .faults import ErrorObject, fault_stream
from .rows import Rows


@dataclass(slots=True)
class ClockStart:
    """Where the clock of a node began (ms): `start`, from which on absent states at the beginning of a pattern wait,
    and `first`, its time after the first step, from which on the intervals of purges count (None: no step yet)."""

    start: int = 0
    first: int | None = None


@dataclass(slots=True)
class Services:
    """The node's dictionary, the compiler's context, and what is collected during one `step` call.

    `parts` is the number of instances so far of the partition that the operator is in (1 outside), `rank` their order
    in the map of a Siddhi scheduler, `hashes` those of their keys, `born` the clock (ms) at which each was made, `gone`
    the root from which on it is purged (None: none is), `partitioned` whether it is in a partition. `on_error` is the
    action of `@OnError` by stream, `faults` the rows of an operator's last run for fault streams. `clock` tells where
    the node's clock began.
    """

    strings: Strings
    context: Context
    errors: list[EventError] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    parts: int = 1
    rank: Callable[[], Array | None] = lambda: None
    hashes: Callable[[], Array | None] = lambda: None
    born: Callable[[], Array] = lambda: np.zeros(1, np.int64)
    gone: Callable[[], Array | None] = lambda: None
    partitioned: bool = False
    in_table: Callable[..., Mask] | None = None
    on_error: Mapping[str, str] = field(default_factory=dict)
    clock: ClockStart = field(default_factory=ClockStart)
    faults: list[tuple[str, Rows]] = field(default_factory=list)

    def inside(self) -> Services:
        """The services of a partition: all is shared but the count of instances."""
        return replace(self, parts=0, partitioned=True)

    def failed(
        self, query: str, stream: str, env: Env, columns: list[Column], root: Array | None = None,
        only: Mask | None = None,
    ) -> None:  # fmt: skip
        """Routes the failed rows of `env` as `@OnError` of `stream` says; `columns` are its attributes.

        `root` int64[n] are the rows' roots: without them no row can go to a fault stream. `only` restricts the rows.
        """
        if env.failed is None:
            return
        rows = np.flatnonzero(env.failed if only is None else env.failed & only)
        if len(rows) == 0:
            return
        reasons = [env.reason(row) or "the expression failed" for row in rows.tolist()]
        held = [c.take(rows) for c in columns]
        action = self.on_error.get(stream)
        if action == "STREAM" and root is not None:
            error = Column.of(Type.OBJECT, [ErrorObject(r) for r in reasons], self.strings)
            fault = Rows([*held, error], env.ts[rows], root[rows], np.arange(len(rows)))
            self.faults.append((fault_stream(stream), fault))
            return
        values = zip(*(c.to_list(self.strings) for c in held), strict=True) if held else ([] for _ in reasons)
        for ts, row, reason in zip(env.ts[rows].tolist(), values, reasons, strict=True):
            if action == "LOG":
                self.logs.append(f"{query}: {stream} at {ts}, {list(row)}: {reason}")
            else:
                self.errors.append(EventError(query, stream, ts, list(row), reason))
