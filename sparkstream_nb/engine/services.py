"""What all operators of a node share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..types import Type
from .batch import EventError
from .columns import Array, Column, Mask, Strings
from .expressions import Context, Env
from .faults import ErrorObject, fault_stream
from .rows import Clock, Rows


@dataclass(slots=True)
class Services:
    """The node's dictionary, the compiler's context, and what is collected during one `step` call.

    `parts` is the number of instances so far of the partition that the operator is in (1 outside), `rank` their
    order in the map of a Siddhi scheduler, `hashes` those of their keys, `born` the clock (ms) at which each was made,
    `gone` the root from which on it is forgotten (None: none is), `deaths` those roots, one after the other, and which
    instances are forgotten there, as far as something may still be held for them, `partitioned` whether it is in one.
    `on_error` is what `@OnError` says of a stream, `faults` what an operator's last run put into fault streams.
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
    deaths: Callable[[], Sequence[tuple[int, Array]]] = lambda: ()
    partitioned: bool = False
    in_table: Callable[..., Mask] | None = None
    on_error: Mapping[str, str] = field(default_factory=dict)
    faults: list[tuple[str, Rows]] = field(default_factory=list)

    def inside(self) -> Services:
        """The services of a partition: all is shared but the count of instances."""
        return replace(self, parts=0, partitioned=True)

    def failed(
        self, query: str, stream: str, env: Env, columns: list[Column], root: Array | None = None,
        only: Mask | None = None,
    ) -> None:  # fmt: skip
        """Sends the rows of `env` that failed where the errors of `stream` go; `columns` are its attributes.

        `root` int64[n] are the rows' roots: without them nothing can go to a fault stream. `only` leaves rows out.
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


def rows_env(rows: Rows, clock: Clock, services: Services) -> Env:
    """An environment over stream rows."""
    from .frame import frame_of

    return Env(len(rows), services.strings, rows.ts, clock.at(rows.root), frame_of(rows).resolve)
