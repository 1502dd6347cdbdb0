"""Pauses between tries of something unavailable: a database, a source, a sink's target, an address."""

from __future__ import annotations

import random
from collections.abc import Callable


class Pauses:
    """Pauses (seconds) that double from `first` to `longest`.

    Each is drawn from the upper half of its length, so that those who wait for the same do not all try at once. `draw`
    gives numbers from 0 to below 1.
    """

    def __init__(self, first: float, longest: float, draw: Callable[[], float] = random.random) -> None:
        self._first, self._longest, self._draw = first, longest, draw
        self._length = first

    def next(self) -> float:
        """The pause until the next try: between half of its length and all of it."""
        pause = self._length * (0.5 + self._draw() / 2)
        self._length = min(2 * self._length, self._longest)
        return pause

    def reset(self) -> None:
        """A try succeeded: the next pause is the first one again."""
        self._length = self._first
