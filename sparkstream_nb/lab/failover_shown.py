"""The display of failovers: a pair's outputs against one node's, and the costs of many failovers."""

from __future__ import annotations

import html

import pandas as pd

from ..app import Failover, FailoverStudy
from ..app.pictures.costs_picture import costs_picture
from ..app.pictures.lanes_picture import failover_picture
from ..app.results.feed_progress import span
from ..charts.value_texts import CountCell, when
from .drawings.frame_tables import grid_of_frame
from .drawings.image import image
from .drawings.result_blocks import Heading, blocks_html, folded_html
from .drawings.text_tables import Grid, paragraph

OUTPUT_COUNTS = ("same", "lost", "spurious", "duplicated")
"""The columns of a comparison with one node."""


def _grids(failover: Failover, limit: int) -> list[Grid]:
    """Outputs by stream, events that were lost or repeated, takeovers, and the log."""
    grids = [grid_of_frame(failover.frame, counts=OUTPUT_COUNTS, what="stream")]
    several = len(failover.groups.pairs) > 1
    if several:
        rows = [
            [r.group, r.nodes, CountCell(r.events), f"{r.share:.0%}", CountCell(r.lost)]
            for r in failover.shares.itertuples()
        ]
        grids.append(Grid(["group", "nodes", "events", "share", "lost"], rows, what="group"))
    if len(failover.events):
        rows = [
            [*([r.group] if several else []), r.reason, CountCell(r.events), _when(r.first), _when(r.last)]
            for r in failover.events.itertuples()
        ]
        names = [*(["group"] if several else []), "events", "how many", "from", "to"]
        grids.append(Grid(names, rows, what="reason"))
    if failover.takeovers:
        names = ["takes over", "at", "no active node", "revision of", "replayed", "missing", "doubled"]
        takeover_rows = [
            [t.node, when(t.at), "" if t.gap is None else span(t.gap / 1000),
             "none" if t.revision is None else when(t.revision),
             CountCell(t.replayed), CountCell(t.missing), CountCell(t.doubled)]
            for t in failover.takeovers
        ]  # fmt: skip
        grids.append(Grid(names, takeover_rows, what="takeover"))
    if failover.happenings:
        happening_rows = [[when(h.at), str(h)] for h in failover.happenings[:limit]]
        grids.append(Grid(["at", "what"], happening_rows, total=len(failover.happenings), what="happening"))
    return grids


def _when(moment: pd.Timestamp) -> str:
    return when(moment.value // 1_000_000)


def _head(failover: Failover) -> str:
    count = len(failover.groups.pairs)
    on = (
        "two nodes"
        if count == 1
        else f"{count} groups of two nodes (the busiest has {failover.skew:.2f} times the mean)"
    )
    return f"{failover.app} on {on}, against one that never fails: {failover.said}"


def failover_text(failover: Failover, limit: int) -> str:
    """Outputs, affected events, takeovers, and `limit` events of the log."""
    return "\n\n".join([_head(failover), *(g.text(footer=False) for g in _grids(failover, limit))])


def failover_html(failover: Failover, limit: int) -> str:
    """The same as HTML, with the time line of the nodes."""
    outputs, *rest = (g.html(footer=False) for g in _grids(failover, limit))
    more = folded_html("events, takeovers and incidents", "".join(rest)) if rest else ""
    picture = image(failover_picture(failover)) if any(g.happenings for g in failover.outcome.groups) else ""
    return blocks_html([Heading(_head(failover))]) + picture + outputs + more


def _costs_grid(study: FailoverStudy, limit: int) -> Grid:
    names = [*study.varied, "runs", "no active node", "events lost", "lost", "spurious", "duplicated"]
    costs = ("events_lost", "lost", "spurious", "duplicated")
    rows = []
    for r in study.settings.head(limit).to_dict("records"):
        gap = f"{r['gap_median'] / 1000:.1f} ({r['gap_p95'] / 1000:.1f}) s"
        counts = [f"{r[f'{c}_median']:,.0f} ({r[f'{c}_p95']:,.0f})" for c in costs]
        rows.append([*(r[n] for n in study.varied), CountCell(r["runs"]), gap, *counts])
    return Grid(names, rows, total=len(study.settings), what="setting")


def study_text(study: FailoverStudy, limit: int) -> str:
    """Medians of `limit` settings, and their costs."""
    head = f"{study.app}: {study.said}\nmedians, and in parentheses the 95th percentile"
    return f"{head}\n\n{_costs_grid(study, limit).text()}"


def study_html(study: FailoverStudy, limit: int) -> str:
    """The same as HTML, with a chart."""
    table = folded_html("medians and 95th percentiles", _costs_grid(study, limit).html())
    summary = paragraph(f"<b>{html.escape(study.app)}</b>: {html.escape(study.said)}")
    return f"{summary}{image(costs_picture(study))}{table}"
