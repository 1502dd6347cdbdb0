"""The pace of a feed: as fast as the app takes it, a rate of events, or a speed of event time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ... import argument_checks
from ...errors import Misuse, shown

_LEAST, _MOST = 1e-9, 1e12
"""The bounds of a pace."""
_LONGEST_WAIT = 3600.0
"""In seconds: a longer wait is several ones. Python's waits end at some 292 years."""


@dataclass(frozen=True)
class Pace:
    """`speed`: ms of event time that pass in a ms of this machine's time. `rate`: events a second. Without either, a
    feed goes as fast as the app takes it.
    """

    speed: float | None = None
    rate: float | None = None

    @staticmethod
    def of(speed: float | None, rate: float | None) -> Pace:
        """Raises `Misuse` if both are given, or one is not a positive number."""
        for name, value in (("speed", speed), ("rate", rate)):
            if value is None:
                continue
            argument_checks.check_number(name, value)
            if value == 0:
                raise Misuse(f"{name} is a positive number, not 0")
            if not _LEAST <= value <= _MOST:
                raise Misuse(f"{name} is {_LEAST:g} to {_MOST:g}, not {shown(value)}")
        if speed is not None and rate is not None:
            raise Misuse("a feed has a speed (of event time) or a rate (events a second), not both")
        return Pace(speed, rate)

    def __bool__(self) -> bool:
        return self.speed is not None or self.rate is not None

    def __str__(self) -> str:
        """`60 times event time`, `1,000 events/s`, or `as fast as possible`."""
        if self.speed is not None:
            return f"{self.speed:g} times event time"
        return "as fast as possible" if self.rate is None else f"{self.rate:,.10g} events/s"


@dataclass(frozen=True)
class DueRows:
    """Rows that may be fed now: `rows` at most (None: any number), up to event time `until` (ms; None: any). If there
    are none, some may be in `wait` seconds.
    """

    rows: int | None = None
    until: int | None = None
    wait: float = 0.0


class Pacer:
    """Says which rows are due. `clock` returns seconds that never go back."""

    def __init__(self, pace: Pace, clock: Callable[[], float]) -> None:
        self.pace = pace
        self._clock = clock
        self._began: float | None = None
        self._time = 0
        self._rows_before = 0

    def rest(self) -> None:
        """The feed stood still: time that passed until the next call of `due` does not count."""
        self._began = None

    def due(self, rows_before: int, time: int | None) -> DueRows:
        """The rows that are due after `rows_before` rows of the feed, where the next has the event time `time` (ms)."""
        if not self.pace:
            return DueRows()
        now = self._clock()
        if self._began is None:
            self._began, self._time, self._rows_before = now, time or 0, rows_before
        seconds = now - self._began
        if self.pace.speed is not None:
            assert time is not None
            until = self._time + int(seconds * 1000 * self.pace.speed)
            return DueRows(until=until, wait=min(_LONGEST_WAIT, max(0, time - until) / 1000 / self.pace.speed))
        assert self.pace.rate is not None
        rows = 1 + int(seconds * self.pace.rate) - (rows_before - self._rows_before)
        if rows > 0:
            return DueRows(rows=rows)
        return DueRows(rows=0, wait=min(_LONGEST_WAIT, (1 - rows) / self.pace.rate))
