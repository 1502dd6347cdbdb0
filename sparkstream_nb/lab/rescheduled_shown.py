"""The display of a fully distributed app's failures: which partial app ran where, and the effect on events."""

from __future__ import annotations

from ..app import DistributedFailover
from ..app.pictures.moves_picture import moves_picture
from ..app.results.feed_progress import span
from ..charts.value_texts import CountCell, when
from .display import html, limit_of, text
from .drawings.frame_tables import grid_of_frame
from .drawings.image import image
from .drawings.result_blocks import Heading, blocks_html, folded_html
from .drawings.text_tables import Grid
from .failover_shown import OUTPUT_COUNTS


def _grids(failover: DistributedFailover) -> list[Grid]:
    """Outputs by stream, partial apps, their moves, and the log."""
    rows = [
        [r.app, CountCell(r.events), CountCell(r.again), CountCell(r.several), CountCell(r.missing), CountCell(r.lost)]
        for r in failover.apps.itertuples()
    ]
    names = ["partial app", "events", "processed again", "by two nodes", "missing from a state", "lost"]
    outputs = grid_of_frame(failover.frame, counts=OUTPUT_COUNTS, what="stream")
    grids = [outputs, Grid(names, rows, what="partial app")]
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
    more = folded_html("partial apps, moves and incidents", "".join(rest))
    picture = image(moves_picture(failover)) if failover.outcome.happenings else ""
    return blocks_html([Heading(_head(failover))]) + picture + outputs + more
