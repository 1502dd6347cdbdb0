"""Random feeds: ties, gaps, ticks, nulls, disorder, several events at once."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from random import Random
from typing import Any

from .expressions import WORDS


@dataclass
class Stream:
    """A stream that events are sent to. `types` maps attribute to type; `t` (long) is near the event's own time."""

    id: str
    types: dict[str, str]


@dataclass
class Habits:
    """How a feed behaves: shares of steps that are nulls, ties, late, ticks, batches; and the usual gap in ms."""

    null: float = 0.0
    tie: float = 0.15
    late: float = 0.0
    tick: float = 0.08
    batch: float = 0.0
    gap: int = 300
    start: int = 1000
    queries: list[str] = field(default_factory=list)


def habits(r: Random) -> Habits:
    """Habits of a feed: most are clean, each trouble has its share."""
    return Habits(
        null=r.choice((0.0, 0.0, 0.12)), late=r.choice((0.0, 0.0, 0.0, 0.12)), batch=r.choice((0.0, 0.0, 0.12)),
        tick=r.choice((0.0, 0.08, 0.2)), gap=r.choice((60, 300, 300, 900)),
    )  # fmt: skip


def value(r: Random, h: Habits, name: str, type: str, ts: int) -> Any:
    """A value of an attribute. Floats and doubles are quarters, so that sums are exact in any order."""
    if name == "t":
        return ts + (r.choice((0, 0, 0, -50, -300)) if h.late else 0)
    if name == "g":
        zone = r.choice(("", "", " +05:30"))
        at = ts // 1000 - (r.choice((0, 0, 3, 70)) if h.late else 0) + (19_800 if zone else 0)
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at)) + zone
    if r.random() < h.null:
        return None
    if type == "string":
        return r.choice(WORDS)
    if type == "bool":
        return r.random() < 0.5
    n = r.choice((r.randrange(-3, 15), r.randrange(0, 12), r.randrange(0, 40)))
    return n if type in ("int", "long") else n + r.choice((0.0, 0.25, 0.5, 0.75))


def feed(r: Random, h: Habits, streams: list[Stream], steps: int) -> list[Any]:
    """The steps of a case's feed; queries of the habits come spread over its last third and at its end."""
    now, out = h.start, []
    for _ in range(steps):
        which = r.random()
        if which >= h.tie:
            now += r.choice((r.randrange(1, h.gap), r.randrange(1, h.gap), h.gap, r.randrange(1, 2 * h.gap)))
            if r.random() < 0.05:
                now += r.choice((1000, 2500, 10 * h.gap))
        if r.random() < h.tick:
            out.append({"tick": now})
            continue
        s = r.choice(streams)
        ts = now - r.randrange(1, 2 * h.gap) if r.random() < h.late else now

        def row(s: Stream = s, at: int = ts) -> list[Any]:
            return [value(r, h, name, type, at) for name, type in s.types.items()]

        if r.random() < h.batch:
            times = [ts] + [ts + r.choice((0, 0, 1, 40)) for _ in range(r.randrange(1, 4))]
            times.sort()
            out.append({"stream": s.id, "batch": [[at, row(at=at)] for at in times]})
            now = max(now, times[-1])
        else:
            out.append([s.id, ts, row()])
    if r.random() < 0.5:
        out.append({"tick": now + r.choice((500, 2000, 5000))})
    for query in h.queries:
        out.insert(r.randrange(2 * len(out) // 3, len(out)) if r.random() < 0.4 else len(out), {"query": query})
    return out
