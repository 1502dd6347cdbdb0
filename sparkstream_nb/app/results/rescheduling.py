"""Failures of a fully distributed app's nodes: which partial apps were moved when, which events are missing from a
state, processed twice or lost, and which outputs changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from ...charts.picture import Picture
from ...nodes.distributed import Distributed
from ...replay.rescheduling_replay import DistributedOutcome
from ...simulation.placements import RunSpan, run_spans
from ...simulation.timeline import Happening
from ..pictures.moves_picture import moves_picture
from .against_one import AgainstOneNode


@dataclass(frozen=True)
class Move:
    """A partial app begins on a node at `at` (ms), after `gap` ms in which no node ran it (None: another one did until
    then, or still does), from a revision (ms; None: an empty state). How many events it processed `again`, found
    `waiting` in its topics, and how many processed events its state is `missing`."""

    app: str
    node: str
    at: int
    gap: int | None
    revision: int | None
    again: int
    waiting: int
    missing: int


@dataclass(frozen=True, repr=False, eq=False)
class DistributedFailover(AgainstOneNode):
    """Nodes of a fully distributed app, compared with one node that takes every event and never
    fails."""

    outcome: DistributedOutcome
    distributed: Distributed

    def picture(self) -> Picture:
        return moves_picture(self)

    @cached_property
    def happenings(self) -> Sequence[Happening]:
        return [h for h in self.outcome.happenings if h.at > self.outcome.first]

    @cached_property
    def spans(self) -> list[RunSpan]:
        """The places and times at which partial apps ran."""
        return run_spans(self.outcome.happenings, max(self.outcome.last, self.outcome.first + 1))

    @cached_property
    def moves(self) -> list[Move]:
        """Each time that a partial app began to run, except the first start."""
        moves = []
        for app, report in self.outcome.reports.items():
            app_spans = [s for s in self.spans if s.app == app]
            for b in report.beginnings:
                if b.at <= self.outcome.first:
                    continue
                before = [s.end for s in app_spans if s.first < b.at]
                gap = None if not before or max(before) >= b.at else b.at - max(before)
                moves.append(Move(app, b.node, b.at, gap, b.revision, len(b.again), len(b.waiting), len(b.missing)))
        return sorted(moves, key=lambda m: m.at)

    @property
    def lost(self) -> int:
        """The number of clients' events that no receiver took."""
        return sum(len(r.lost_events) for r in self.outcome.reports.values())

    @cached_property
    def apps(self) -> pd.DataFrame:
        """A row for each partial app: app, and events that it received, that were processed again, that two nodes took
        at once, that a restored state was missing, and that were lost."""
        rows = []
        for app, r in self.outcome.reports.items():
            again, missing = (sum(len(getattr(b, what)) for b in r.beginnings) for what in ("again", "missing"))
            rows.append([app, r.events, again, len(r.several), missing, len(r.lost_events)])
        return pd.DataFrame(rows, columns=["app", "events", "again", "several", "missing", "lost"])

    @property
    def said(self) -> str:
        a = self.apps
        if not a["events"].sum():
            return "no events yet"
        moves = "1 partial app" if len(self.moves) == 1 else f"{len(self.moves):,} partial apps"
        events = f"events {a['again'].sum() + a['several'].sum():,} processed twice, {a['missing'].sum():,} missing"
        return f"{moves} begun again; {events} from a state, {self.lost:,} lost; {self.outputs_said()}"
