"""What all operators of a node share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..plan.nodes import Expr
from .batch import EventError
from .columns import Array, Column, Mask, Strings
from .expressions import Context, Env
from .rows import Clock, Rows


@dataclass(slots=True)
class Services:
    """The node's dictionary, the compiler's context, and what is collected during one `step` call.

    `parts` is the number of instances so far of the partition that the operator is in (1 outside), `rank` their
    order in Siddhi's map, `born` the clock (ms) at which each was made.
    """

    strings: Strings
    context: Context
    errors: list[EventError] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    parts: int = 1
    rank: Callable[[], Array | None] = lambda: None
    born: Callable[[], Array] = lambda: np.zeros(1, np.int64)
    in_table: Callable[[str, Expr, Env], Mask] | None = None

    def inside(self) -> Services:
        """The services of a partition: all is shared but the count of instances."""
        return replace(self, parts=0)

    def failed(self, query: str, stream: str, env: Env, columns: list[Column]) -> None:
        """Keeps the rows of `env` that failed, with the values in `columns`."""
        if env.failed is None:
            return
        for row in np.flatnonzero(env.failed).tolist():
            at = np.array([row])
            values = [c.take(at).to_list(self.strings)[0] for c in columns]
            message = env.reason(row) or "the expression failed"
            self.errors.append(EventError(query, stream, int(env.ts[row]), values, message))


def rows_env(rows: Rows, clock: Clock, services: Services) -> Env:
    """An environment over stream rows."""
    from .frame import frame_of

    return Env(len(rows), services.strings, rows.ts, clock.at(rows.root), frame_of(rows).resolve)
