"""Failures of a fully distributed app's nodes: which partial apps were moved when, which events are missing from a
state, processed twice or lost, and what outputs that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from ..lanes.distributed import Distributed
from ..simulation.placements import RunSpan, run_spans
from ..simulation.timeline import Happening
from ..spark.rescheduled import DistributedOutcome
from .frontend import Displayed


@dataclass(frozen=True)
class Move:
    """A partial app begins on a node at `at` (ms), after `gap` ms in which no node ran it (None: another one did until
    then, or still does), from a revision (ms; None: an empty state). How many events it processed `again`, found
    `waiting` in its topics, and how many of those that had been processed its state is `missing`."""

    app: str
    node: str
    at: int
    gap: int | None
    revision: int | None
    again: int
    waiting: int
    missing: int


@dataclass(frozen=True, repr=False, eq=False)
class DistributedFailover(Displayed):
    """What the nodes of a fully distributed app made of all that came in, held against one node that takes it and never
    fails.

    An output that both have is the same; else it is lost, or duplicated where the nodes put it out more often, or
    spurious where one node never put it out. Times are ms since 1970.
    """

    app: str
    distributed: Distributed
    outcome: DistributedOutcome
    queries: Mapping[str, str]
    """Derived streams, and the queries that write them."""

    @cached_property
    def happenings(self) -> Sequence[Happening]:
        """What came to pass, in order, without the start."""
        return [h for h in self.outcome.happenings if h.at > self.outcome.first]

    @cached_property
    def spans(self) -> list[RunSpan]:
        """Which partial app ran where when."""
        return run_spans(self.outcome.happenings, max(self.outcome.last, self.outcome.first + 1))

    @cached_property
    def moves(self) -> list[Move]:
        """Each time that a partial app began to run, but for the first start."""
        found = []
        for app, report in self.outcome.reports.items():
            own = [s for s in self.spans if s.app == app]
            for b in report.begun:
                if b.at <= self.outcome.first:
                    continue
                before = [s.end for s in own if s.first < b.at]
                gap = None if not before or max(before) >= b.at else b.at - max(before)
                found.append(Move(app, b.node, b.at, gap, b.revision, len(b.again), len(b.waiting), len(b.missing)))
        return sorted(found, key=lambda m: m.at)

    @property
    def lost(self) -> int:
        """How many events of clients no receiver took."""
        return sum(len(r.lost) for r in self.outcome.reports.values())

    @cached_property
    def apps(self) -> pd.DataFrame:
        """A row for each partial app: app, events that came to it, those that were processed again, that two nodes took
        at once, that a restored state was missing, and that were lost."""
        rows = []
        for app, r in self.outcome.reports.items():
            again, missing = (sum(len(getattr(b, what)) for b in r.begun) for what in ("again", "missing"))
            rows.append([app, r.events, again, len(r.several), missing, len(r.lost)])
        return pd.DataFrame(rows, columns=["app", "events", "again", "several", "missing", "lost"])

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
        return f"<DistributedFailover of {self.app}: {self.said}>"

    @property
    def said(self) -> str:
        """The events and outputs that came to harm, in a line."""
        t = self.outcome.tallies.values()
        lost, spurious, twice = (sum(getattr(x, n) for x in t) for n in ("lost", "spurious", "duplicated"))
        a = self.apps
        moves = "1 partial app" if len(self.moves) == 1 else f"{len(self.moves)} partial apps"
        events = f"events {a['again'].sum() + a['several'].sum():,} processed twice, {a['missing'].sum():,} missing"
        return (
            f"{moves} begun again; {events} from a state, {self.lost:,} lost; outputs {lost:,} lost, {spurious:,} "
            f"spurious, {twice:,} duplicated"
        )
