"""The time line of groups of nodes: which was active when, what happened to them, and when events were lost."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable

from ..cluster.failover import Failover
from ..simulation.timeline import Faulted, Happening, Role, roles
from .charts import time_ticks
from .pictures import INK, WIDTH, embedded, text_width
from .tables import when

ROW, TOP, _TICK_ROOM = 30.0, 64.0, 86.0
# Okabe and Ito's colours, which the colour-blind tell apart.
COLOURS = {Role.ACTIVE: "#009E73", Role.PASSIVE: "#56B4E9", Role.HALTED: "#E69F00", Role.DOWN: "#D55E00"}
_LOST = "#CC79A7"


def svg(shown: Failover, width: int = WIDTH) -> str:
    """A lane for the clients' events and one for each node, in their colours; faults as lines with their words."""
    o, nodes = shown.outcome, shown.groups.nodes
    lanes = ["events", *nodes]
    left = 20 + max(map(text_width, lanes))
    start, end = o.first, max(o.last, o.first + 1)

    def x(ms: int) -> float:
        return left + (ms - start) / (end - start) * (width - 18 - left)

    bottom = TOP + ROW * len(lanes)
    title = html.escape(f"{shown.app}: {shown.said}")
    head = html.escape(f"{shown.app}: the nodes, and what happened to them")
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 52:.0f}" width="{width}" '
        f'height="{bottom + 52:.0f}" role="img" aria-label="{title}" '
        f'style="font:12px system-ui,sans-serif;color:{INK}" fill="currentColor">'
        f'<text x="4" y="18" font-size="14" font-weight="600">{head}</text>'
    ]
    spans = [s for g in o.groups for s in roles(g.happenings, end)]
    legend = [(r.value, COLOURS[r]) for r in Role if any(s.role is r for s in spans)]
    at = 8.0
    for label, colour in [*legend, *([("events lost", _LOST)] if shown.lost else [])]:
        out.append(
            f'<rect x="{at:.0f}" y="28" width="12" height="12" rx="2" fill="{colour}"/>'
            f'<text x="{at + 17:.0f}" y="39">{label}</text>'
        )
        at += 34 + text_width(label)
    for i, name in enumerate(lanes):
        out.append(f'<text x="8" y="{TOP + ROW * (i + 0.5) + 4:.0f}">{html.escape(name)}</text>')
    out += [bar(x(start), x(end), 0, "currentColor", "events came in", 0.12)]
    for first, last in shown.lost_between:
        told = f"{when(first)} to {when(last)}: no node took the events"
        out.append(bar(x(first), max(x(last), x(first) + 2), 0, _LOST, told))
    for s in spans:
        told = f"{s.node} {s.role.value}: {when(s.first)} to {when(s.end)}"
        out.append(bar(x(s.first), x(s.end), 1 + nodes.index(s.node), COLOURS[s.role], told))
    out += fault_marks(shown.happenings, x, width, bottom)
    out += axis(start, end, width, left, bottom)
    return "".join([*out, "</svg>"])


def image(shown: Failover) -> str:
    """`svg` as an HTML image."""
    return embedded(svg(shown), f"{shown.app}: {shown.said}")


def bar(first: float, end: float, lane: float, colour: str, told: str, opacity: float = 1.0) -> str:
    """A bar in a lane, with what a pointer over it tells."""
    y = TOP + ROW * lane + 5
    return (
        f'<rect x="{first:.1f}" y="{y:.0f}" width="{max(1.0, end - first):.1f}" height="{ROW - 10:.0f}" rx="2" '
        f'fill="{colour}" fill-opacity="{opacity}"><title>{html.escape(told)}</title></rect>'
    )


def fault_marks(happenings: Iterable[Happening], x: Callable[[int], float], width: int, bottom: float) -> list[str]:
    """A line for each fault, with its words where there is room for them."""
    out = []
    free = -1e9
    for h in happenings:
        if isinstance(h, Faulted):
            place = x(h.at)
            out.append(
                f'<line x1="{place:.1f}" x2="{place:.1f}" y1="{TOP - 4:.0f}" y2="{bottom:.0f}" '
                f'stroke="currentColor" stroke-dasharray="3 3"><title>{html.escape(str(h))}</title></line>'
            )
            words = text_width(str(h))
            begin = min(place, width - 4 - words)
            if begin > free:
                out.append(f'<text x="{begin:.1f}" y="{TOP - 9:.0f}" font-size="11">{html.escape(str(h))}</text>')
                free = begin + words + 6
    return out


def axis(start: int, end: int, width: int, left: float, bottom: float) -> list[str]:
    """The app's clock below the lanes."""
    out = [
        f'<text x="{(left + width) / 2:.0f}" y="{bottom + 46:.0f}" text-anchor="middle">the app\'s clock (UTC)</text>'
    ]
    former = ""
    for k in time_ticks(start, end + 1, "sec", (width - left) / _TICK_ROOM):
        x = left + (k.ms - start) / (end - start) * (width - 18 - left)
        out.append(f'<text x="{x:.1f}" y="{bottom + 15:.0f}" text-anchor="middle">{k.label}</text>')
        if k.context != former:
            former = k.context
            out.append(
                f'<text x="{x:.1f}" y="{bottom + 29:.0f}" text-anchor="middle" fill-opacity=".75">{k.context}</text>'
            )
    return out
