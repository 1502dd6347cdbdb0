"""The display of a fully distributed app's failures: which partial app ran where, and the effect on events."""

from __future__ import annotations

import html as markup
from collections.abc import Sequence
from itertools import groupby

from ..app import DistributedFailover
from ..app.results.feed_progress import span
from ..charts.value_texts import CountCell, when
from ..simulation.placements import RunSpan, leader_spans
from ..simulation.timeline import Faulted
from .display import html, limit_of, text
from .drawings.pictures import embed_svg
from .drawings.roles import Bar, Lanes, svg
from .drawings.text_tables import Grid, paragraph

# Okabe and Ito's colours, which the colour-blind can distinguish; further nodes repeat them.
_LEADERS = 4
_NODES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")


def lanes_of(failover: DistributedFailover) -> Lanes:
    """A lane for the leading manager and one for each partial app, in the colours of the nodes; two nodes that run one
    at once share its lane."""
    o, cluster = failover.outcome, failover.distributed.scenario.cluster
    end = max(o.last, o.first + 1)
    colours = {n: _NODES[i % len(_NODES)] for i, n in enumerate(cluster.nodes)}
    bars = []
    leaders = leader_spans(o.happenings, end)
    for s in leaders:
        title = f"{s.node} leads: {when(s.first)} to {when(s.end)}"
        bars.append(Bar("leader", s.first, s.end, "currentColor", title, 0.25, label=s.node))
    for s in failover.spans:
        title = f"{s.app} on {s.node}: {when(s.first)} to {when(s.end)}"
        shift = 0.18 if any(_before(other, s) for other in failover.spans) else 0.0
        bars.append(Bar(s.app, s.first, s.end, colours[s.node], title, shift=shift))
    return Lanes(
        title=f"{failover.app}: {failover.said}",
        head=f"{failover.app}: where its partial apps ran{_describe_leaders(leaders)}",
        lanes=["leader", *o.reports],
        start=o.first,
        end=end,
        bars=bars,
        legend=list(colours.items()),
        faults=[(h.at, str(h)) for h in failover.happenings if isinstance(h, Faulted)],
    )


def _describe_leaders(leaders: Sequence[RunSpan]) -> str:
    """Who led, one after the other: a bar may be too short for a name."""
    names = [name for name, _ in groupby(s.node for s in leaders)]
    leader_names = [*names[:_LEADERS], *([f"{len(names) - _LEADERS:,} more"] if len(names) > _LEADERS else [])]
    return f"; led by {', then '.join(leader_names)}" if len(names) > 1 else ""


def _before(other: RunSpan, s: RunSpan) -> bool:
    """True if another node ran it already, and still does."""
    same = other is not s and other.app == s.app
    return same and (other.first, other.node) < (s.first, s.node) and other.end > s.first


def _grids(failover: DistributedFailover) -> list[Grid]:
    """Outputs by stream, partial apps, their moves, and the log."""
    counts = failover.frame.astype(object)
    for verdict in ("same", "lost", "spurious", "duplicated"):
        counts[verdict] = [CountCell(n) for n in counts[verdict]]
    rows = [
        [r.app, CountCell(r.events), CountCell(r.again), CountCell(r.several), CountCell(r.missing), CountCell(r.lost)]
        for r in failover.apps.itertuples()
    ]
    names = ["partial app", "events", "processed again", "by two nodes", "missing from a state", "lost"]
    grids = [Grid.of_frame(counts, what="stream"), Grid(names, rows, what="partial app")]
    if failover.moves:
        names = ["begins again", "on", "at", "no node ran it", "revision of", "again", "waiting", "missing"]
        move_rows = [
            [m.app, m.node, when(m.at), "" if m.gap is None else span(m.gap / 1000),
             "none" if m.revision is None else when(m.revision), CountCell(m.again), CountCell(m.waiting),
             CountCell(m.missing)]
            for m in failover.moves[:limit_of()]
        ]  # fmt: skip
        grids.append(Grid(names, move_rows, total=len(failover.moves), what="move"))
    if failover.happenings:
        happening_rows = [[when(h.at), str(h)] for h in failover.happenings[:limit_of()]]
        grids.append(Grid(["at", "what"], happening_rows, total=len(failover.happenings), what="happening"))
    return grids


def _head(failover: DistributedFailover) -> str:
    nodes = len(failover.distributed.nodes)
    on = "1 resource node" if nodes == 1 else f"{nodes} resource nodes"
    return f"{failover.app} on {on}, against one node that never fails: {failover.said}"


@text.register
def _(failover: DistributedFailover) -> str:
    return "\n\n".join([_head(failover), *(g.text(footer=False) for g in _grids(failover))])


@html.register
def _(failover: DistributedFailover) -> str:
    outputs, *rest = (g.html(footer=False) for g in _grids(failover))
    more = f"<details><summary>partial apps, moves and incidents</summary>{''.join(rest)}</details>"
    lanes = lanes_of(failover)
    picture = embed_svg(svg(lanes), lanes.title) if failover.outcome.happenings else ""
    return "".join([paragraph(f"<b>{markup.escape(_head(failover))}</b>"), picture, outputs, more])
