"""The time line of a fully distributed app: which partial app ran on which node, and who led."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from ...charts.picture import Picture, Style
from ...charts.style import COLOURS
from ...charts.value_texts import when
from ...simulation.placements import RunSpan, leader_spans
from ...simulation.timeline import Faulted
from .lanes_picture import LaneBar, Lanes, lanes_picture

if TYPE_CHECKING:
    from ..results.rescheduling import DistributedFailover

_LEADERS = 4
_NODES = COLOURS[:-1]
"""The colours of nodes, without the grey; further nodes repeat them."""


def moves_picture(failover: DistributedFailover) -> Picture:
    """A lane for the leading manager and one for each partial app, in the colours of the nodes; two nodes that run one
    at once share its lane."""
    o, cluster = failover.outcome, failover.distributed.scenario.cluster
    end = max(o.last, o.first + 1)
    colours = {n: _NODES[i % len(_NODES)] for i, n in enumerate(cluster.nodes)}
    bars = []
    leaders = leader_spans(o.happenings, end)
    for s in leaders:
        title = f"{s.node} leads: {when(s.first)} to {when(s.end)}"
        bars.append(LaneBar("leader", s.first, s.end, Style(opacity=0.25), title, label=s.node))
    for s in failover.spans:
        title = f"{s.app} on {s.node}: {when(s.first)} to {when(s.end)}"
        shift = 0.18 if any(_before(other, s) for other in failover.spans) else 0.0
        bars.append(LaneBar(s.app, s.first, s.end, Style(colours[s.node]), title, shift=shift))
    lanes = Lanes(
        summary=f"{failover.app}: {failover.said}",
        title=f"{failover.app}: where its partial apps ran{_describe_leaders(leaders)}",
        lanes=["leader", *o.reports],
        start=o.first,
        end=end,
        bars=bars,
        legend=list(colours.items()),
        faults=[(h.at, str(h)) for h in failover.happenings if isinstance(h, Faulted)],
    )
    return lanes_picture(lanes)



def _describe_leaders(leaders: Sequence[RunSpan]) -> str:
    """Who led, one after the other: a bar may be too short for a name."""
    names = [name for name, _ in groupby(s.node for s in leaders)]
    leader_names = [*names[:_LEADERS], *([f"{len(names) - _LEADERS:,} more"] if len(names) > _LEADERS else [])]
    return f"; led by {', then '.join(leader_names)}" if len(names) > 1 else ""


def _before(other: RunSpan, s: RunSpan) -> bool:
    """True if another node ran it already, and still does."""
    same = other is not s and other.app == s.app
    return same and (other.first, other.node) < (s.first, s.node) and other.end > s.first
