"""The display of failovers: a pair's outputs against one node's, and the costs of many failovers."""

from __future__ import annotations

import html

import pandas as pd

from ..app import Failover, FailoverStudy
from ..app.results.feed_progress import span
from .drawings.costs import image as costs_image
from .drawings.roles import image as roles_image
from .drawings.text_tables import CountCell, Grid, paragraph, when


def _grids(shown: Failover, limit: int) -> list[Grid]:
    """Outputs by stream, events that were lost or repeated, takeovers, and the log."""
    counts = shown.frame.astype(object)
    for verdict in ("same", "lost", "spurious", "duplicated"):
        counts[verdict] = [CountCell(n) for n in counts[verdict]]
    grids = [Grid.of_frame(counts, what="stream")]
    several = len(shown.groups.pairs) > 1
    if several:
        rows = [
            [r.group, r.nodes, CountCell(r.events), f"{r.share:.0%}", CountCell(r.lost)]
            for r in shown.shares.itertuples()
        ]
        grids.append(Grid(["group", "nodes", "events", "share", "lost"], rows, what="group"))
    if len(shown.events):
        rows = [
            [*([r.group] if several else []), r.reason, CountCell(r.events), _when(r.first), _when(r.last)]
            for r in shown.events.itertuples()
        ]
        names = [*(["group"] if several else []), "events", "how many", "from", "to"]
        grids.append(Grid(names, rows, what="reason"))
    if shown.takeovers:
        names = ["takes over", "at", "no active node", "revision of", "replayed", "missing", "doubled"]
        taken = [
            [t.node, when(t.at), "" if t.gap is None else span(t.gap / 1000),
             "none" if t.revision is None else when(t.revision),
             CountCell(t.replayed), CountCell(t.missing), CountCell(t.doubled)]
            for t in shown.takeovers
        ]  # fmt: skip
        grids.append(Grid(names, taken, what="takeover"))
    if shown.happenings:
        told = [[when(h.at), str(h)] for h in shown.happenings[:limit]]
        grids.append(Grid(["at", "what"], told, total=len(shown.happenings), what="happening"))
    return grids


def _when(moment: pd.Timestamp) -> str:
    return when(moment.value // 1_000_000)


def _head(shown: Failover) -> str:
    count = len(shown.groups.pairs)
    on = "two nodes" if count == 1 else f"{count} groups of two nodes (the busiest has {shown.skew:.2f} times the mean)"
    return f"{shown.app} on {on}, against one that never fails: {shown.said}"


def failover_text(shown: Failover, limit: int) -> str:
    """Outputs, affected events, takeovers, and `limit` events of the log."""
    return "\n\n".join([_head(shown), *(g.text(footer=False) for g in _grids(shown, limit))])


def failover_html(shown: Failover, limit: int) -> str:
    """The same as HTML, with the time line of the nodes."""
    outputs, *rest = (g.html(footer=False) for g in _grids(shown, limit))
    more = f"<details><summary>events, takeovers and incidents</summary>{''.join(rest)}</details>"
    picture = roles_image(shown) if any(g.happenings for g in shown.outcome.groups) else ""
    head = paragraph(f"<b>{html.escape(_head(shown))}</b>")
    return "".join([head, picture, outputs, more if rest else ""])


def _costs_grid(shown: FailoverStudy, limit: int) -> Grid:
    names = [*shown.varied, "runs", "no active node", "events lost", "lost", "spurious", "duplicated"]
    costs = ("events_lost", "lost", "spurious", "duplicated")
    rows = []
    for r in shown.settings.head(limit).to_dict("records"):
        gap = f"{r['gap_median'] / 1000:.1f} ({r['gap_p95'] / 1000:.1f}) s"
        counts = [f"{r[f'{c}_median']:,.0f} ({r[f'{c}_p95']:,.0f})" for c in costs]
        rows.append([*(r[n] for n in shown.varied), CountCell(r["runs"]), gap, *counts])
    return Grid(names, rows, total=len(shown.settings), what="setting")


def study_text(shown: FailoverStudy, limit: int) -> str:
    """Medians of `limit` settings, and their costs."""
    head = f"{shown.app}: {shown.said}\nmedians, and in parentheses the 95th percentile"
    return f"{head}\n\n{_costs_grid(shown, limit).text()}"


def study_html(shown: FailoverStudy, limit: int) -> str:
    """The same as HTML, with a chart."""
    medians = "medians and 95th percentiles"
    table = f"<details><summary>{medians}</summary>{_costs_grid(shown, limit).html()}</details>"
    said = paragraph(f"<b>{html.escape(shown.app)}</b>: {html.escape(shown.said)}")
    return f"{said}{costs_image(shown)}{table}"
