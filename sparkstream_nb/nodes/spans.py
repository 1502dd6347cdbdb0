"""Sets of numbers, as spans of consecutive ones."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import numpy as np

from ..engine.columnar.column_data import Array


class Spans:
    """A set of whole numbers, held as ascending spans `first` ≤ n < `end` that do not touch."""

    def __init__(self, *spans: tuple[int, int]) -> None:
        self._first: list[int] = []
        self._end: list[int] = []
        for span in spans:
            self.add(*span)

    @staticmethod
    def of(first: Array, counts: Array, which: Array) -> Spans:
        """The numbers of those steps that are in `which` (bool[n]): `counts` of them from `first` on, ascending."""
        out = Spans()
        low, high = first[which], (first + counts)[which]
        if len(low):
            joins = np.flatnonzero(low[1:] != high[:-1])
            for a, b in zip(low[np.append(0, joins + 1)].tolist(), high[np.append(joins, -1)].tolist(), strict=True):
                out.add(a, b)
        return out

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._first, self._end, strict=True)

    def __len__(self) -> int:
        return sum(self._end) - sum(self._first)

    def __bool__(self) -> bool:
        return bool(self._first)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spans) and (self._first, self._end) == (other._first, other._end)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Spans({', '.join(map(str, self))})"

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self._first, number) - 1
        return place >= 0 and number < self._end[place]

    def add(self, first: int, end: int) -> None:
        """Adds the numbers from `first` to before `end`."""
        if first >= end:
            return
        low, high = bisect_left(self._end, first), bisect_right(self._first, end)
        if low < high:
            first, end = min(first, self._first[low]), max(end, self._end[high - 1])
        self._first[low:high], self._end[low:high] = [first], [end]

    def add_all(self, other: Spans) -> None:
        """Adds all of `other`."""
        for span in other:
            self.add(*span)

    def copy(self) -> Spans:
        """The same numbers."""
        out = Spans()
        out._first, out._end = self._first.copy(), self._end.copy()
        return out

    def without(self, other: Spans) -> Spans:
        """The numbers that are not in `other`."""
        out = Spans()
        for first, end in self:
            place = bisect_right(other._end, first)
            while first < end:
                stop = other._first[place] if place < len(other._first) else end
                if first < stop:
                    out.add(first, min(stop, end))
                if place == len(other._first):
                    break
                first = max(first, other._end[place])
                place += 1
        return out

    def common(self, other: Spans) -> Spans:
        """The numbers that are in both."""
        return self.without(self.without(other))
