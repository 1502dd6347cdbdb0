"""The rows that an expression is evaluated over (`Env`) and its compile-time context (`Context`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...limits import Limits
from ...plan.nodes import Agg, EventRef, Expr, Ref
from ..columnar.column_data import Array, Column, Mask, StringPool

Script = Callable[[list[Any]], Any]
"""A function of `define function`: takes the arguments of one row as Python values, answers one; may raise."""


@dataclass(slots=True)
class Env:
    """`n` rows to evaluate over.

    `ts` int64[n]: timestamps of the events; `now` int64[n]: the app's clock at each row (both ms).
    `resolve` gives the column of an attribute; for an `EventRef` a BOOL column whose null mask says that the event is
    absent. `event_time` gives the timestamps (LONG column) of a whole event, for `eventTimestamp(e)`.
    `tables(table, condition, env)` answers `condition in table` for every row, as a mask; it may leave rows outside
    `env.active` False. `aggs` holds the columns of the aggregators.

    `failed_rows` marks the rows whose evaluation raised an error (None: no row); `reasons` are the errors in order.
    `active` marks the rows to evaluate; `and`, `or` or `ifThenElse` have decided the others (None: all rows).
    """

    n: int
    strings: StringPool
    ts: Array
    now: Array | Callable[[], Array]
    resolve: Callable[[Ref | EventRef], Column]
    aggs: Mapping[Agg, Column] = field(default_factory=dict)
    tables: Callable[[str, Expr, Env], Mask] | None = None
    event_time: Callable[[EventRef], Column] | None = None
    failed_rows: Mask | None = None
    reasons: list[tuple[Mask, str]] = field(default_factory=list)
    active: Mask | None = None

    def clock(self) -> Array:
        """int64[n]: the app's clock at each row, ms. `now` may be a function, as few expressions use it."""
        return self.now() if callable(self.now) else self.now

    def fail(self, mask: Mask, message: str) -> None:
        """Marks the rows of `mask` (bool[n]) as failed with `message`; rows that are not active stay untouched."""
        if self.active is not None:
            mask = mask & self.active
        if not mask.any():
            return
        self.failed_rows = mask.copy() if self.failed_rows is None else self.failed_rows | mask
        self.reasons.append((mask, message))

    def reason(self, row: int) -> str | None:
        """The first error of row `row`; None if it did not fail."""
        return next((message for mask, message in self.reasons if mask[row]), None)

    def narrow(self, mask: Mask) -> Mask | None:
        """Restricts the active rows to `mask`; returns the former `active` to restore."""
        outer_active = self.active
        self.active = mask if outer_active is None else outer_active & mask
        return outer_active


Evaluator = Callable[[Env], Column]


@dataclass(frozen=True)
class Context:
    """The compile-time context: the app's own functions by name, a random number generator, the wall clock (ms), the
    time zone of cron expressions, the limits of one event, and whether the node is the leader of its app.
    """

    scripts: Mapping[str, Script] = field(default_factory=dict)
    random: np.random.Generator = field(default_factory=np.random.default_rng)
    wall: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    timezone: str = "UTC"
    limits: Limits = field(default_factory=Limits)
    leads: bool = True
