"""`math:percentile(x, p)`."""

from __future__ import annotations

import bisect
import math
from typing import Any

import numpy as np

from ...types import Type
from ..columns import Array, Column, Mask
from ..rows import CURRENT, EXPIRED, RESET
from .base import Base, null_rows, shared


class Percentile(Base):
    """DOUBLE: the value at p percent of the sorted values, or between the two around it; null for none.

    As in siddhi-execution-math (`PercentileFunctionExtension`) one list serves all groups of the query.
    """

    by_group = False

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self.narrow = args[0] in (Type.INT, Type.LONG)
        self.held: list[float] = []
        self.touched: set[int] = set()

    def refused(self, args: tuple[Column, ...]) -> tuple[Mask, str] | None:
        return null_rows(args[0], "math:percentile takes no null")

    def run(
        self, args: tuple[Column, ...], kind: Array | None, group: Array, groups: int, part: Array | None = None
    ) -> Column:
        values = args[0].values
        if self.narrow:  # through a float, as there
            values = values.astype(np.float32)
        numbers, share = values.astype(np.float64).tolist(), args[1].values.tolist()
        taken = shared(self.touched, kind, part)
        kinds = [CURRENT] * len(group) if taken is None else taken.tolist()
        out, null = np.zeros(len(group)), np.zeros(len(group), np.bool_)
        for i, (k, v) in enumerate(zip(kinds, numbers, strict=True)):
            if k == RESET:
                self.held.clear()
            elif k == CURRENT:
                bisect.insort(self.held, v)
            elif k == EXPIRED:
                at = bisect.bisect_left(self.held, v)
                if at < len(self.held) and self.held[at] == v:
                    del self.held[at]
            if self.held:
                out[i] = self._at(share[i])
            else:
                null[i] = True
        return Column(Type.DOUBLE, out, null if null.any() else None)

    def _at(self, share: float) -> float:
        held = self.held
        place = share * len(held) / 100
        whole = int(place)
        if place == whole:
            return held[-1] if whole == len(held) else (held[whole - 1] + held[whole]) / 2
        return held[max(math.floor(place + 0.5) - 1, 0)]

    def state(self) -> dict[str, Any]:
        return {"held": np.array(self.held, np.float64), "touched": sorted(self.touched)}

    def load(self, state: dict[str, Any]) -> None:
        self.held, self.touched = state["held"].tolist(), set(state["touched"])
