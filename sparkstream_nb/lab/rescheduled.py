"""How the failures of a fully distributed app look: which partial app ran where, and what that did to events."""

from __future__ import annotations

import html as markup

from ..cluster import DistributedFailover
from ..cluster.progress import span
from ..simulation.placements import RunSpan, leader_spans
from .display import DISPLAY_LIMIT, html, text
from .pictures import INK, WIDTH, embedded, text_width
from .roles import ROW, TOP, axis, bar, fault_marks
from .tables import Count, Grid, paragraph, when

# Okabe and Ito's colours, which the colour-blind tell apart; nodes beyond them begin anew.
_NODES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")


def svg(shown: DistributedFailover, width: int = WIDTH) -> str:
    """A lane for the leading manager and one for each partial app, in the colours of the nodes; two nodes that run one
    at once share its lane. Faults are lines with their words."""
    o, cluster = shown.outcome, shown.distributed.scenario.cluster
    apps = list(o.reports)
    lanes = ["leader", *apps]
    left = 20 + max(map(text_width, lanes))
    start, end = o.first, max(o.last, o.first + 1)

    def x(ms: int) -> float:
        return left + (ms - start) / (end - start) * (width - 18 - left)

    bottom = TOP + ROW * len(lanes)
    title = markup.escape(f"{shown.app}: {shown.said}")
    head = markup.escape(f"{shown.app}: where its partial apps ran")
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 52:.0f}" width="{width}" '
        f'height="{bottom + 52:.0f}" role="img" aria-label="{title}" '
        f'style="font:12px system-ui,sans-serif;color:{INK}" fill="currentColor">'
        f'<text x="4" y="18" font-size="14" font-weight="600">{head}</text>'
    ]
    colours = {n: _NODES[i % len(_NODES)] for i, n in enumerate(cluster.nodes)}
    at = 8.0
    for node, colour in colours.items():
        out.append(
            f'<rect x="{at:.0f}" y="28" width="12" height="12" rx="2" fill="{colour}"/>'
            f'<text x="{at + 17:.0f}" y="39">{markup.escape(node)}</text>'
        )
        at += 34 + text_width(node)
    for i, name in enumerate(lanes):
        out.append(f'<text x="8" y="{TOP + ROW * (i + 0.5) + 4:.0f}">{markup.escape(name)}</text>')
    for s in leader_spans(o.happenings, end):
        told = f"{s.node} leads: {when(s.first)} to {when(s.end)}"
        out.append(bar(x(s.first), x(s.end), 0, "currentColor", told, 0.25))
        if x(s.end) - x(s.first) > text_width(s.node):
            out.append(f'<text x="{x(s.first) + 5:.1f}" y="{TOP + ROW / 2 + 4:.0f}">{markup.escape(s.node)}</text>')
    for i, app in enumerate(apps):
        own = [s for s in shown.spans if s.app == app]
        for s in own:
            told = f"{app} on {s.node}: {when(s.first)} to {when(s.end)}"
            shift = 0.18 if any(_before(other, s) for other in own) else 0.0
            out.append(bar(x(s.first), x(s.end), 1 + i + shift, colours[s.node], told))
    out += fault_marks(shown.happenings, x, width, bottom)
    out += axis(start, end, width, left, bottom)
    return "".join([*out, "</svg>"])


def _before(other: RunSpan, s: RunSpan) -> bool:
    """Whether another node ran it already, and still does."""
    return other is not s and (other.first, other.node) < (s.first, s.node) and other.end > s.first


def _grids(shown: DistributedFailover) -> list[Grid]:
    """Outputs by stream, partial apps, what was moved, and what came to pass."""
    counts = shown.frame.astype(object)
    for verdict in ("same", "lost", "spurious", "duplicated"):
        counts[verdict] = [Count(n) for n in counts[verdict]]
    rows = [
        [r.app, Count(r.events), Count(r.again), Count(r.several), Count(r.missing), Count(r.lost)]
        for r in shown.apps.itertuples()
    ]
    names = ["partial app", "events", "processed again", "by two nodes", "missing from a state", "lost"]
    grids = [Grid.of_frame(counts, what="stream"), Grid(names, rows, what="partial app")]
    if shown.moves:
        names = ["begins again", "on", "at", "no node ran it", "revision of", "again", "waiting", "missing"]
        moved = [
            [m.app, m.node, when(m.at), "" if m.gap is None else span(m.gap / 1000),
             "none" if m.revision is None else when(m.revision), Count(m.again), Count(m.waiting), Count(m.missing)]
            for m in shown.moves[:DISPLAY_LIMIT]
        ]  # fmt: skip
        grids.append(Grid(names, moved, total=len(shown.moves), what="move"))
    if shown.happenings:
        told = [[when(h.at), str(h)] for h in shown.happenings[:DISPLAY_LIMIT]]
        grids.append(Grid(["at", "what"], told, total=len(shown.happenings), what="happening"))
    return grids


def _head(shown: DistributedFailover) -> str:
    nodes = len(shown.distributed.nodes)
    on = "1 resource node" if nodes == 1 else f"{nodes} resource nodes"
    return f"{shown.app} on {on}, against one node that never fails: {shown.said}"


@text.register
def _(shown: DistributedFailover) -> str:
    return "\n\n".join([_head(shown), *(g.text(footer=False) for g in _grids(shown))])


@html.register
def _(shown: DistributedFailover) -> str:
    outputs, *rest = (g.html(footer=False) for g in _grids(shown))
    more = f"<details><summary>partial apps, moves and what came to pass</summary>{''.join(rest)}</details>"
    picture = embedded(svg(shown), f"{shown.app}: {shown.said}") if shown.outcome.happenings else ""
    return "".join([paragraph(f"<b>{markup.escape(_head(shown))}</b>"), picture, outputs, more])
