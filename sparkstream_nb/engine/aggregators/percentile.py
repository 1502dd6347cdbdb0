"""`math:percentile(x, p)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import Type
from ..arrays import grown
from ..columns import Array, Column, Mask
from ..jit import inlined, kernel
from ..rows import CURRENT, EXPIRED, RESET
from .base import NO_KIND, Base, null_rows, shared

_AT_ONCE = 256
"""So many values are compared sooner in the processor's wide registers than halved, which it cannot guess."""


@inlined
def _place(held: Array, n: Any, value: Any, after: bool) -> Any:
    """Where `value` belongs among the first `n` of `held`, which are sorted: before those that are equal, or `after`
    them."""
    low: Any = np.uint64(0)
    size: Any = np.uint64(n)
    while size > _AT_ONCE:
        half = size >> np.uint64(1)
        there = held[low + half]
        if there < value or (after and not value < there):
            low += half
            size -= half
        else:
            size = half
    end = low + size
    for j in range(low, end):
        there = held[np.uint64(j)]
        low += np.uint64(not value < there if after else there < value)
    return low


@kernel
def _percentiles(share: float, values: Array, kind: Array, held: Array, n: int, out: Array, null: Array) -> int:
    """The percentile after each op, and how many are `held` at the end. `n` are, sorted, at the beginning of `held`,
    which has room for all that come."""
    for i in range(len(values)):
        k: Any = kind[i] if len(kind) else CURRENT
        v = values[i]
        if k == RESET:
            n = 0
        elif k == CURRENT:
            at = _place(held, n, v, True)
            for j in range(n, at, -1):
                held[np.uint64(j)] = held[np.uint64(j - 1)]
            held[at] = v
            n += 1
        elif k == EXPIRED:
            at = _place(held, n, v, False)
            if at < n and held[at] == v:
                n -= 1
                for j in range(at, n):
                    held[np.uint64(j)] = held[np.uint64(j + 1)]
        null[i] = n == 0
        out[i] = 0.0
        if n:
            place = share * n / 100
            whole = int(place)
            if place == whole:
                out[i] = held[n - 1] if whole == n else (held[whole - 1] + held[whole]) / 2
            else:
                out[i] = held[max(int(np.floor(place + 0.5)) - 1, 0)]
    return n


class Percentile(Base):
    """DOUBLE: the value at p percent (more than 0, at most 100) of the sorted values, or between the two around it;
    null for none.

    As in siddhi-execution-math (`PercentileFunctionExtension`) one list serves all groups of the query.
    """

    by_group = False

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self.narrow = args[0] in (Type.INT, Type.LONG)
        self.held = np.zeros(16, np.float64)
        self.size = 0
        self.touched: set[int] = set()

    def refused(self, args: tuple[Column, ...]) -> tuple[Mask, str] | None:
        return null_rows(args[0], "math:percentile takes no null")

    def run(
        self, args: tuple[Column, ...], kind: Array | None, group: Array, groups: int, part: Array | None = None
    ) -> Column:
        n, values = len(group), args[0].values
        out, null = np.empty(n), np.empty(n, np.bool_)
        if n == 0:
            return Column(Type.DOUBLE, out)
        if self.narrow:  # through a float, as there
            values = values.astype(np.float32)
        kinds = shared(self.touched, kind, part)
        self.held = grown(self.held, self.size + n)
        self.size = _percentiles(
            float(args[1].values[0]), values.astype(np.float64), NO_KIND if kinds is None else kinds, self.held,
            self.size, out, null,
        )  # fmt: skip
        return Column(Type.DOUBLE, out, null if null.any() else None)

    def forget(self, groups: Array, parts: Array) -> None:
        """The values of the instances stay in the one list."""
        self.touched.difference_update(parts.tolist())

    def state(self) -> dict[str, Any]:
        return {"held": self.held[: self.size].copy(), "touched": sorted(self.touched)}

    def load(self, state: dict[str, Any]) -> None:
        self.held, self.touched = state["held"].copy(), set(state["touched"])
        self.size = len(self.held)
