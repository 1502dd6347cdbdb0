"""A pattern that is watched for a trace: it keeps the events that reached it and its matches, and shows its partial
matches, read from the machine's own state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..columnar.column_data import Array
from ..columnar.rows import Clock, Rows
from .machine_partials import Captured, PartialMatch, partial_matches_of
from .matches import Matches
from .op import StateOp


@dataclass(frozen=True)
class PatternEvent:
    """An event that reached the pattern: its log number, stream and partition instance, and its time (ms)."""

    number: int
    stream: str
    instance: int
    time: int
    values: tuple[Any, ...]


@dataclass(frozen=True)
class FullMatch:
    """A match, and its time (ms)."""

    instance: int
    captured: Captured
    time: int


class WatchedPattern(StateOp):
    """A pattern that keeps all its events, and a record of the last runs until `take` returns it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._new_events: list[PatternEvent] = []
        self._new_matches: list[FullMatch] = []

    def run(self, inputs: Sequence[tuple[str, Rows]], clock: Clock) -> Matches:
        self._trim_at = np.iinfo(np.int64).max  # numbers of events stay
        before = self.log.n
        matches = super().run(inputs, clock)
        if self.log.n > before:
            self._record(before, inputs)
        if len(matches):
            self._new_matches += _full_matches(matches)
        return matches

    def take(self) -> tuple[list[PatternEvent], list[FullMatch]]:
        """The events that reached the pattern, and its matches, since the last call."""
        out = self._new_events, self._new_matches
        self._new_events, self._new_matches = [], []
        return out

    def _record(self, first: int, inputs: Sequence[tuple[str, Rows]]) -> None:
        """Keeps the rows of a run, whose log numbers begin with `first`, in the order in which they were taken."""
        by_stream = {s: r for s, r in inputs if len(r)}
        events = []
        for s in self.tie:
            if (rows := by_stream.get(s)) is None:
                continue
            values = zip(*(c.to_list(self.services.strings) for c in rows.columns), strict=True)
            keys, instances = rows.order_key.tolist(), rows.instances().tolist()
            events += [
                (key, s, instance, ts, tuple(row))
                for key, instance, ts, row in zip(keys, instances, rows.ts.tolist(), values, strict=True)
            ]
        events.sort(key=lambda event: event[0])
        self._new_events += [PatternEvent(first + i, *event[1:]) for i, event in enumerate(events)]

    def partial_matches(self) -> list[PartialMatch]:
        """The partial matches that the machine holds (`partial_matches_of`)."""
        return partial_matches_of(self)


def _full_matches(matches: Matches) -> list[FullMatch]:
    slots = matches.slots
    instances = [0] * len(matches) if matches.instance is None else matches.instance.tolist()

    def events_of(p: int, k: int) -> tuple[int, ...]:
        first: int = int(slots.first[p, k])
        if not slots.layout.processors[p].is_counted:
            return (first,) if first else ()
        events: Array = slots.events[first : first + int(slots.count[p, k])]
        return tuple(events.tolist())

    n = len(slots.layout.processors)
    return [
        FullMatch(instance, tuple(events_of(p, k) for p in range(n)), ts)
        for k, (instance, ts) in enumerate(zip(instances, matches.ts.tolist(), strict=True))
    ]
