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
from .dump import LISTS
from .machine_memory import EVENTS
from .matches import Matches
from .op import StateOp

Captured = tuple[tuple[int, ...], ...]
"""By processor, the log numbers of the events that a match has; `EMPTY_EVENT` for an absence that lasted long enough.
"""


@dataclass(frozen=True)
class PatternEvent:
    """An event that reached the pattern: its log number, stream and partition instance, and its time (ms)."""

    number: int
    stream: str
    instance: int
    time: int
    values: tuple[Any, ...]


@dataclass(frozen=True)
class PartialMatch:
    """A partial match that the machine holds, in one of its records: that stays the same as long as the partial match
    lives. `states`: the processors that it waits at. `due`: when an absence that it waits for from the beginning of the
    pattern is long enough (ms; 0: it does not wait for one). `goes_on`: false for one of a sequence that the last event
    of its streams ended: the machine drops it before the next one.
    """

    record: int
    instance: int
    captured: Captured
    states: tuple[int, ...]
    due: int
    goes_on: bool


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
        """The partial matches that the machine holds, in the order of its lists. One that has no event yet, and waits
        for the first one, is among them."""
        dump, records = self.pools.dump()
        n = len(self.layout.processors)
        chains = [0, *dump["chains"].tolist()]
        events = dump["events"].tolist()
        where: dict[int, tuple[int, list[int]]] = {}
        fresh: set[int] = set()
        halves = {q for q, p in enumerate(self.layout.processors) if p.partner >= 0 and not p.is_or}
        lists = dump["lists"].view(LISTS).ravel()
        waiting = lists["pending"].tolist()
        at = 0
        for i, (pending, new) in enumerate(zip(waiting, lists["new"].tolist(), strict=True)):
            for partial in dump["cells"][at : at + pending + new].tolist():
                _, states = where.setdefault(partial, (i // n, []))
                if i % n not in states:
                    states.append(i % n)
                if i % n in halves and waiting[i] != waiting[i - i % n + self.layout.processors[i % n].partner]:
                    fresh.add(partial)  # a sequence keeps one that has one side of an `and`
            fresh.update(dump["cells"][at + pending : at + pending + new].tolist())
            at += pending + new
        out = []
        for partial, (instance, states) in where.items():
            captures = []
            for p, word in enumerate(dump["partials"][partial, EVENTS : EVENTS + n].tolist()):
                if self.layout.processors[p].is_counted:
                    captures.append(tuple(events[chains[word - 1] : chains[word]]) if word else ())
                else:
                    captures.append((word,) if word else ())
            goes_on = not self.layout.sequence or partial in fresh
            due = max((int(lists["scheduled_time"][instance * n + q]) for q in states), default=0)
            record, waiting_at = int(records[partial]), tuple(sorted(states))
            out.append(PartialMatch(record, instance, tuple(captures), waiting_at, due, goes_on))
        return out


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
