"""The partial matches of a pattern, read from the machine's own state."""

from __future__ import annotations

from dataclasses import dataclass

from .dump import LISTS
from .machine_memory import EVENTS
from .op import StateOp

Captured = tuple[tuple[int, ...], ...]
"""By processor, the log numbers of the events that a match has; `EMPTY_EVENT` for an absence that lasted long enough.
"""


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


def partial_matches_of(op: StateOp) -> list[PartialMatch]:
    """The partial matches that the machine holds, in the order of its lists. One that has no event yet, and waits
    for the first one, is among them."""
    dump, records = op.pools.dump()
    n = len(op.layout.processors)
    chains = [0, *dump["chains"].tolist()]
    events = dump["events"].tolist()
    where: dict[int, tuple[int, list[int]]] = {}
    fresh: set[int] = set()
    halves = {q for q, p in enumerate(op.layout.processors) if p.partner >= 0 and not p.is_or}
    lists = dump["lists"].view(LISTS).ravel()
    waiting = lists["pending"].tolist()
    at = 0
    for i, (pending, new) in enumerate(zip(waiting, lists["new"].tolist(), strict=True)):
        for partial in dump["cells"][at : at + pending + new].tolist():
            _, states = where.setdefault(partial, (i // n, []))
            if i % n not in states:
                states.append(i % n)
            if i % n in halves and waiting[i] != waiting[i - i % n + op.layout.processors[i % n].partner]:
                fresh.add(partial)  # a sequence keeps one that has one side of an `and`
        fresh.update(dump["cells"][at + pending : at + pending + new].tolist())
        at += pending + new
    out = []
    for partial, (instance, states) in where.items():
        captures = []
        for p, word in enumerate(dump["partials"][partial, EVENTS : EVENTS + n].tolist()):
            if op.layout.processors[p].is_counted:
                captures.append(tuple(events[chains[word - 1] : chains[word]]) if word else ())
            else:
                captures.append((word,) if word else ())
        goes_on = not op.layout.sequence or partial in fresh
        due = max((int(lists["scheduled_time"][instance * n + q]) for q in states), default=0)
        record, waiting_at = int(records[partial]), tuple(sorted(states))
        out.append(PartialMatch(record, instance, tuple(captures), waiting_at, due, goes_on))
    return out
