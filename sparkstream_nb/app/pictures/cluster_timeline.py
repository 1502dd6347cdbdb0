"""The time line of a cluster that lives: the roles of its nodes, elections and faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...charts.picture import Picture
from ..views.cluster_view import LogKind
from .lanes_picture import EVENTS, Lanes, RoleSign, lanes_picture, role_bars

if TYPE_CHECKING:
    from ..views.cluster_view import ClusterSnapshot

_SIGN = {LogKind.ELECTION: "◆", LogKind.TAKEOVER: "▲"}


def cluster_timeline(snapshot: ClusterSnapshot, last: int | None = None) -> Picture | None:
    """The time line, of the `last` ms if given; None before anything came in."""
    s = snapshot.state
    if s.start is None or s.clock is None:
        return None
    end = max(s.clock, s.start + 1)
    bars, legend = role_bars(s.spans, s.lost_between, (s.start, end))
    lanes = Lanes(
        summary=f"{snapshot.app}: roles of the nodes, {len(s.log):,} entries in the log",
        title="Roles, elections and faults",
        lanes=[EVENTS, *(n.name for n in s.nodes)],
        start=s.start if last is None else max(s.start, end - last),
        end=end,
        bars=bars,
        legend=legend,
        faults=[(h.at, h.text) for h in s.log if h.kind is LogKind.FAULT],
        signs=[RoleSign(h.at, h.node, _SIGN[h.kind], h.text) for h in s.log if h.kind in _SIGN and h.node is not None],
    )
    return lanes_picture(lanes)
