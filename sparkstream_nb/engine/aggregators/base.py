"""What an aggregator is."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ...types import Type
from ..arrays import grown
from ..columns import Array, Column, Mask
from ..jit import kernel
from ..rows import EXPIRED, RESET, TIMER

NO_MASK = np.zeros(0, np.bool_)
NO_KIND = np.zeros(0, np.int8)


class Aggregator(Protocol):
    """One aggregator of one query."""

    def run(
        self, args: tuple[Column, ...], kind: Array | None, group: Array, groups: int, part: Array | None = None
    ) -> Column:
        """Values after each row. `kind` int8[n] or None (all CURRENT), `group` int32[n] ids below `groups`.

        `part` is the partition instance of each row (None outside): a RESET row clears the groups of its instance.
        """
        ...

    def refused(self, args: tuple[Column, ...]) -> tuple[Mask, str] | None:
        """The rows whose arguments raise an error, and why; None where there is none. They must not come to `run`."""
        ...

    def state(self) -> dict[str, Any]:
        """Plain data that `load` takes back."""
        ...

    def load(self, state: dict[str, Any]) -> None: ...


@kernel
def _count_resets(kind: Array, part: Array, now: Array, out: Array) -> None:
    for i in range(len(kind)):
        p = part[i] if len(part) else 0
        if kind[i] == RESET:
            now[p] += 1
        out[i] = now[p]


class Eras:
    """How many RESET rows each partition instance has seen. A group that was last touched in an older era than its
    row's
    starts from nothing."""

    def __init__(self) -> None:
        self.now = np.zeros(1, np.int64)

    def rows(self, kind: Array | None, part: Array | None) -> Array:
        """The era of each row; one number where it is the same for all."""
        if part is not None and len(part):
            self.now = grown(self.now, int(part.max()) + 1)
        if kind is None or not (kind == RESET).any():
            return self.now[:1] if part is None else self.now[part]
        out = np.empty(len(kind), np.int64)
        _count_resets(kind, np.zeros(0, np.int32) if part is None else part, self.now, out)
        return out


class Base:
    """An aggregator that takes every value. Made from the types of its arguments, and whether rows of its query expire
    one by one (or expired ones are wanted)."""

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        raise NotImplementedError

    def refused(self, args: tuple[Column, ...]) -> tuple[Mask, str] | None:
        return None


def null_rows(column: Column, why: str) -> tuple[Mask, str] | None:
    """Rows without a value, for aggregators that Siddhi lets fail on null."""
    if column.null is None or not column.null.any():
        return None
    return column.null, why


def shared(
    touched: set[int], kind: Array | None, part: Array | None, n: int
) -> tuple[Array | None, Array, int]:
    """(kinds, groups, 1) for an aggregator that keeps one store for all groups and partition instances.

    Siddhi clears such a store at a RESET only where the row's instance has taken an event since its last one; the other
    RESET rows become TIMER rows, which change nothing. `touched` are the instances that have, and is brought up to
    date.
    """
    group = np.zeros(n, np.int32)
    if kind is None:
        touched.update([0] if part is None else np.unique(part).tolist())
        return None, group, 1
    if not (kind == RESET).any():
        touched.update([0] if part is None else np.unique(part[kind <= EXPIRED]).tolist())
        return kind, group, 1
    kinds = kind.copy()
    for i, (k, p) in enumerate(zip(kind.tolist(), [0] * n if part is None else part.tolist(), strict=True)):
        if k == RESET:
            if p not in touched:
                kinds[i] = TIMER
            touched.discard(p)
        elif k <= EXPIRED:
            touched.add(p)
    return kinds, group, 1
