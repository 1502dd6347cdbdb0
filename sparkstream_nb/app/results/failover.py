"""Failovers of groups of nodes: who took over when, which events were lost or processed twice, which outputs changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from ...charts.picture import Picture
from ...nodes.pair import Loss, Takeover
from ...replay.failover_replay import FailoverOutcome
from ...simulation.node_groups import NodeGroups
from ...simulation.timeline import Happening, gap_before
from ..pictures.lanes_picture import failover_picture
from .against_one import AgainstOneNode


@dataclass(frozen=True)
class TakenOver:
    """A takeover: the node, when (ms), how long (ms) no node was active before (None: it was the first start, or the
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
class Failover(AgainstOneNode):
    """Groups of nodes that fail, compared with one node that takes every event and never fails."""

    outcome: FailoverOutcome
    groups: NodeGroups

    def picture(self) -> Picture:
        return failover_picture(self)

    @cached_property
    def happenings(self) -> Sequence[Happening]:
        happenings = [h for g in self.outcome.groups for h in g.happenings if h.at > g.happenings[0].at]
        return sorted(happenings, key=lambda h: h.at)

    @cached_property
    def takeovers(self) -> list[TakenOver]:
        """Each time that a node became the active one of its group, except the first start."""
        takeovers = [_describe_takeover(t, g.happenings) for g in self.outcome.groups for t in g.report.takeovers[1:]]
        return sorted(takeovers, key=lambda t: t.at)

    @property
    def lost(self) -> int:
        """The number of events that no node took."""
        return sum(len(spans) for g in self.outcome.groups for spans in g.report.lost_events.values())

    @property
    def replayed(self) -> int:
        """The number of events that were processed twice: by the node that took them, and by the one that took over."""
        return sum(t.replayed for t in self.takeovers)

    @cached_property
    def events(self) -> pd.DataFrame:
        """Affected events: reason, events, and when the first and the last of them came (times in UTC); of
        several groups also the group, first."""
        rows = []
        for name, group in zip(self.groups.names, self.outcome.groups, strict=True):
            report, times = group.report, group.times
            by_reason = [*report.lost_events.items(), *report.unqueued_events.items()]
            losses = [(why, spans) for why, spans in by_reason if len(spans)]
            for why, spans in sorted(losses, key=lambda x: list(Loss).index(x[0])):
                ends = list(spans)
                rows.append([name, why.value, len(spans), int(times[ends[0][0]]), int(times[ends[-1][1] - 1])])
        frame = pd.DataFrame(rows, columns=["group", "reason", "events", "first", "last"])
        for moment in ("first", "last"):
            frame[moment] = pd.to_datetime(frame[moment].astype("int64"), unit="ms")
        return frame if len(self.groups.pairs) > 1 else frame.drop(columns="group")

    @cached_property
    def shares(self) -> pd.DataFrame:
        """A row for each group: group, nodes, events that the layer sent to it, its share of all, those lost."""
        events_by_group = [len(g.times) for g in self.outcome.groups]
        lost_by_group = [sum(map(len, g.report.lost_events.values())) for g in self.outcome.groups]
        nodes = [", ".join(p.nodes) for p in self.groups.pairs]
        share = [n / max(1, sum(events_by_group)) for n in events_by_group]
        return pd.DataFrame(
            {
                "group": self.groups.names,
                "nodes": nodes,
                "events": events_by_group,
                "share": share,
                "lost": lost_by_group,
            }
        )

    @property
    def skew(self) -> float:
        """The busiest group's share, as a multiple of the mean."""
        events_by_group = [len(g.times) for g in self.outcome.groups]
        return max(events_by_group) * len(events_by_group) / max(1, sum(events_by_group))

    @cached_property
    def lost_between(self) -> list[tuple[int, int]]:
        """From when to when (ms, both included) events came that no node took."""
        return sorted(
            (int(g.times[first]), int(g.times[end - 1]))
            for g in self.outcome.groups
            for lost_spans in g.report.lost_events.values()
            for first, end in lost_spans
        )

    @property
    def said(self) -> str:
        takeovers = "1 takeover" if len(self.takeovers) == 1 else f"{len(self.takeovers):,} takeovers"
        event_count = sum(len(g.times) for g in self.outcome.groups)
        if not event_count:
            return "no events yet"
        events = f"of {event_count:,} events {self.lost:,} lost and {self.replayed:,} processed twice"
        return f"{takeovers}; {events}; {self.outputs_said()}"


def _describe_takeover(t: Takeover, happenings: Sequence[Happening]) -> TakenOver:
    return TakenOver(
        t.node, t.at, gap_before(t.at, happenings), t.revision, len(t.replayed), len(t.missing), len(t.twice)
    )  # fmt: skip
