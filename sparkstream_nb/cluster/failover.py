"""Failovers of a pair: who took over when, which events were lost or processed twice, and what outputs that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from ..lanes.pair import Loss, Takeover
from ..simulation.faults import Scenario
from ..simulation.timeline import Happening, Role, roles
from ..spark.failover import PairOutcome
from .frontend import Displayed


@dataclass(frozen=True)
class TakenOver:
    """A takeover: the node, when (ms), how long (ms) nobody was active before (None: it was the first start, or the
    other one was active until then), from which revision (ms; None: an empty state), and how many events it replayed,
    its state lacks, and its state has twice."""

    node: str
    at: int
    gap: int | None
    revision: int | None
    replayed: int
    missing: int
    doubled: int


@dataclass(frozen=True, repr=False, eq=False)
class Failover(Displayed):
    """What a pair made of all that came in, held against one node that takes it and never fails.

    An output that both have is the same; else it is lost, or duplicated where the pair put it out more often, or
    spurious where one node never put it out. Times are ms since 1970.
    """

    app: str
    scenario: Scenario
    outcome: PairOutcome
    queries: Mapping[str, str]
    """Derived streams, and the queries that write them."""

    @property
    def happenings(self) -> Sequence[Happening]:
        """What came to pass, in order, without the start."""
        return [h for h in self.outcome.happenings if h.at > self.outcome.happenings[0].at]

    @cached_property
    def takeovers(self) -> list[TakenOver]:
        """Each time that a node became the active one, but for the first start."""
        return [_taken_over(t, self.outcome.happenings) for t in self.outcome.report.takeovers[1:]]

    @property
    def lost(self) -> int:
        """How many events no node took."""
        return sum(map(len, self.outcome.report.lost.values()))

    @property
    def replayed(self) -> int:
        """How many events were processed twice: by the node that took them, and by the one that took over."""
        return sum(t.replayed for t in self.takeovers)

    @cached_property
    def events(self) -> pd.DataFrame:
        """Events that came to harm: reason, events, and when the first and the last of them came (ms)."""
        report, times = self.outcome.report, self.outcome.times
        found = [(why, spans) for by in (report.lost, report.unheld) for why, spans in by.items() if len(spans)]
        rows = []
        for why, spans in sorted(found, key=lambda x: list(Loss).index(x[0])):
            ends = list(spans)
            rows.append([why.value, len(spans), int(times[ends[0][0]]), int(times[ends[-1][1] - 1])])
        return pd.DataFrame(rows, columns=["reason", "events", "first", "last"])

    @cached_property
    def lost_between(self) -> list[tuple[int, int]]:
        """From when to when (ms, both included) events came that no node took."""
        times = self.outcome.times
        spans = sorted(span for own in self.outcome.report.lost.values() for span in own)
        return [(int(times[first]), int(times[end - 1])) for first, end in spans]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each derived stream: query, stream, same, lost, spurious, duplicated."""
        rows = [
            [self.queries.get(s, ""), s, t.same, t.lost, t.spurious, t.duplicated]
            for s, t in self.outcome.tallies.items()
        ]
        return pd.DataFrame(rows, columns=["query", "stream", "same", "lost", "spurious", "duplicated"])

    @cached_property
    def timeline(self) -> pd.DataFrame:
        """What came to pass: at (ms), what."""
        return pd.DataFrame([[h.at, str(h)] for h in self.happenings], columns=["at", "what"])

    def summary(self) -> str:
        return f"<Failover of {self.app}: {self.said}>"

    @property
    def said(self) -> str:
        """The events and outputs that came to harm, in a line."""
        t = self.outcome.tallies.values()
        lost, spurious, twice = (sum(getattr(x, n) for x in t) for n in ("lost", "spurious", "duplicated"))
        takeovers = "1 takeover" if len(self.takeovers) == 1 else f"{len(self.takeovers)} takeovers"
        events = f"of {len(self.outcome.times):,} events {self.lost:,} lost and {self.replayed:,} processed twice"
        return f"{takeovers}; {events}; outputs {lost:,} lost, {spurious:,} spurious, {twice:,} duplicated"


def _taken_over(t: Takeover, happenings: Sequence[Happening]) -> TakenOver:
    return TakenOver(
        t.node, t.at, _gap(t, happenings), t.revision, len(t.replayed), len(t.missing), len(t.doubled)
    )  # fmt: skip


def _gap(t: Takeover, happenings: Sequence[Happening]) -> int | None:
    """How long nobody was active before a takeover."""
    before = [s for s in roles(happenings, t.at) if s.role is Role.ACTIVE]
    ended = max((s.end for s in before), default=None)
    return None if ended is None or ended == t.at else t.at - ended
