"""The time line of alerts: a lane for the truth and one for each node, with a mark for each output.

Shape and colour show the verdict on an output. Outputs that lie closer than a mark is wide share one.
"""

from __future__ import annotations

import html
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ...app.results.divergence import VERDICTS, Alert, Divergence, Match, Verdict
from ...charts.value_texts import format_count, text_of, when
from .charts import time_ticks
from .pictures import INK, WIDTH, embed_svg, text_width

_CELL = 10.0  # px: marks are at least so far apart
_ROW = 14.0  # px
_LEFT = 20.0
_TICK_ROOM = 86.0
_TITLE = 1.3  # the width of a letter of the title to that of others
_LISTED = 3

# Okabe and Ito's colours, which the colour-blind tell apart; the shapes differ as well.
COLOURS: Mapping[Verdict, str] = {
    "same": "currentColor", "lost": "#D55E00", "spurious": "#E69F00", "late": "#0072B2", "duplicated": "#009E73",
}  # fmt: skip
MEANINGS: Mapping[Verdict, str] = {
    "same": "as on one node",
    "lost": "one node has it, no node of these",
    "spurious": "one node does not have it",
    "late": "one node has it at another time",
    "duplicated": "an additional output that one node has",
}


@dataclass(frozen=True)
class TimelineMark:
    """Outputs with the same verdict that share a place in a lane (0: the truth, then the nodes from 1). `x` in px."""

    lane: int
    verdict: Verdict
    x: float
    matches: tuple[Match, ...]

    def alert(self, m: Match) -> Alert:
        """The output in this lane."""
        output = m.true if self.lane == 0 else m.found
        assert output is not None
        return output


@dataclass(frozen=True, eq=False)
class Timeline:
    """The outputs to a stream between two moments (ms by the app's clock, both included), drawn `width` px wide."""

    divergence: Divergence
    stream: str
    start: int
    end: int
    width: int = WIDTH

    @property
    def title(self) -> str:
        """The title, with the number of outputs of one node and the number of nodes they are compared with. Where the
        names of the queries would be wider than the picture, it has their number."""
        d = self.divergence
        true = sum(m.true is not None for m in d.matches[self.stream])
        on = f"{d.nodes} node{'s' if d.nodes > 1 else ''}"
        routing_text = f" under {d.way.route}" if d.way.route else ""
        rest = f": {format_count(true, 'output')} of one node, and their counterparts on {on}{routing_text}"
        queries = d.queries[self.stream]
        if _TITLE * text_width(queries + rest) <= self.width or ", " not in queries:
            return queries + rest
        return f"{self.stream} ({queries.count(', ') + 1} queries){rest}"

    @cached_property
    def counts(self) -> Counter[Verdict]:
        """The number of outputs of the whole stream by verdict."""
        return Counter(m.verdict for m in self.divergence.matches[self.stream])

    @cached_property
    def lanes(self) -> list[str]:
        return ["truth", *self.divergence.shards]

    @cached_property
    def left(self) -> float:
        """The left end of the time axis (px)."""
        return _LEFT + max(map(text_width, self.lanes))

    @cached_property
    def marks(self) -> list[TimelineMark]:
        """In order of lane, verdict and time."""
        cells: dict[tuple[int, int, int], list[Match]] = defaultdict(list)
        for m in self.divergence.matches[self.stream]:
            for lane, alert in ((0, m.true), (0 if m.found is None else 1 + (m.found.node or 0), m.found)):
                if alert is not None and self.start <= alert.clock <= self.end:
                    cell = int((self.x(alert.clock) - self.left) // _CELL)
                    cells[lane, VERDICTS.index(m.verdict), cell].append(m)
        out = []
        for (lane, verdict, cell), cell_matches in sorted(cells.items(), key=lambda item: item[0]):
            x = self.left + (cell + 0.5) * _CELL
            out.append(TimelineMark(lane, VERDICTS[verdict], x, tuple(cell_matches)))
        return out

    def x(self, ms: int) -> float:
        return self.left + (ms - self.start) / max(1, self.end - self.start) * (self.width - 18 - _CELL - self.left)

    def time(self, x: float) -> int:
        """The moment (ms) at a place of the axis, the inverse of `x`."""
        share = (x - self.left) / (self.width - 18 - _CELL - self.left)
        return self.start + round(min(1.0, max(0.0, share)) * (self.end - self.start))

    def describe_mark(self, mark: TimelineMark, *, limit: int = _LISTED) -> str:
        """The meaning of a mark, in lines of plain text."""
        n = len(mark.matches)
        alerts = [mark.alert(m) for m in mark.matches]
        first, last = when(min(a.clock for a in alerts)), when(max(a.clock for a in alerts))
        many = f"{n:,} × " if n > 1 else ""
        lines = [f"{many}{mark.verdict}: {MEANINGS[mark.verdict]}", first if first == last else f"{first} to {last}"]
        several = ", " in self.divergence.queries[self.stream]
        for m, alert in zip(mark.matches[:limit], alerts, strict=False):
            values = zip(self.names, alert.values, strict=True)
            values_text = ", ".join(f"{name} {text_of(v)}" for name, v in values)
            lines.append(f"{alert.query}: {values_text}" if several and alert.query else values_text)
            if m.verdict != "same":
                lines.append(f"  {self.divergence.cause(m)}")
        if n > limit:
            lines.append(f"and {n - limit:,} more")
        return "\n".join(lines)

    @property
    def names(self) -> Sequence[str]:
        """The attributes of the outputs."""
        return self.divergence.truth.nodes.plan.streams[self.stream].source.schema.names


def worst(divergence: Divergence) -> str:
    """The stream that has lost most outputs; of several, the one with most that differ."""

    def wrong(stream: str) -> tuple[int, int]:
        verdicts = Counter(m.verdict for m in divergence.matches[stream])
        return verdicts["lost"], verdicts.total() - verdicts["same"]

    return max(divergence.matches, key=wrong)


def full_timeline(divergence: Divergence, stream: str, width: int = WIDTH) -> Timeline:
    """From the first output to the last."""
    clocks = [a.clock for m in divergence.matches[stream] for a in (m.true, m.found) if a is not None]
    return Timeline(divergence, stream, min(clocks, default=0), max(clocks, default=1), width)


def svg(t: Timeline, *, live: bool = False) -> str:
    """The picture. `live`: every mark carries its number and its text, for a pointer."""
    verdicts = [v for v in VERDICTS if t.counts[v]]
    rows = {v: i for i, v in enumerate(verdicts)}
    tall = _ROW * max(1, len(verdicts)) + 8
    top = 64.0
    bottom = top + tall * len(t.lanes)
    height = bottom + 52
    title = html.escape(t.title)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {t.width} {height:.0f}" width="{t.width}" '
        f'height="{height:.0f}" role="{"group" if live else "img"}" aria-label="{title}" '
        f'style="font:12px system-ui,sans-serif;color:{INK}" fill="currentColor">'
        f'<text x="4" y="18" font-size="14" font-weight="600">{title}</text>'
    ]
    x = 12.0
    for v in verdicts:
        label = f"{v} {t.counts[v]:,}"
        out.append(f'{_shape(v, x, 42, 4.5)}<text x="{x + 10:.0f}" y="46">{label}</text>')
        x += 30 + text_width(label)
    for i, name in enumerate(t.lanes):
        y = top + tall * i
        weight = ' font-weight="600"' if i == 0 else ""
        shade = ".09" if i == 0 else ".04" if i % 2 else "0"
        out.append(
            f'<rect x="0" y="{y:.0f}" width="{t.width}" height="{tall:.0f}" fill-opacity="{shade}"/>'
            f'<text x="8" y="{y + tall / 2 + 4:.0f}"{weight}>{html.escape(name)}</text>'
        )
    out += _axis(t, top, bottom)
    for number, mark in enumerate(t.marks):
        y = top + tall * mark.lane + 4 + _ROW * (rows[mark.verdict] + 0.5)
        n = len(mark.matches)
        shape = _shape(mark.verdict, mark.x, y, 3.0 if n == 1 else 4.2 if n < 10 else 5.4)
        if live:
            mark_title = html.escape(t.describe_mark(mark))
            area = f'<rect x="{mark.x - 6:.1f}" y="{y - 7:.1f}" width="12" height="14" fill="transparent"/>'
            shape = (
                f'<g class="mark" tabindex="0" role="button" aria-label="{html.escape(t.lanes[mark.lane])}: '
                f'{mark_title}" data-mark="{number}" data-values="{mark_title}">{area}{shape}</g>'
            )
        out.append(shape)
    return "".join([*out, "</svg>"])


def image(t: Timeline) -> str:
    """`svg` as an HTML image."""
    return embed_svg(svg(t), t.title)


def _axis(t: Timeline, top: float, bottom: float) -> list[str]:
    middle = (t.left + t.width) / 2
    out = [f'<text x="{middle:.0f}" y="{bottom + 46:.0f}" text-anchor="middle">the app\'s clock (UTC)</text>']
    ticks = time_ticks(t.start, t.end + 1, "sec", (t.width - t.left) / _TICK_ROOM)
    labels = [(k.ms, k.label, k.context) for k in ticks] or [(t.start, when(t.start), "")]
    previous_context, free = "", -1e9
    for ms, label, context in labels:
        x = t.x(ms) + _CELL / 2
        out.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.0f}" y2="{bottom:.0f}" stroke="currentColor" '
            'stroke-opacity=".12"/>'
        )
        half = text_width(label) / 2
        if x - half > free:
            out.append(f'<text x="{x:.1f}" y="{bottom + 15:.0f}" text-anchor="middle">{label}</text>')
            free = x + half + 6
            if context != previous_context:
                previous_context = context
                out.append(
                    f'<text x="{x:.1f}" y="{bottom + 29:.0f}" text-anchor="middle" fill-opacity=".75">{context}</text>'
                )
                free = max(free, x + text_width(context) / 2 - 20)
    return out


def _shape(verdict: Verdict, x: float, y: float, r: float) -> str:
    colour = COLOURS[verdict]
    match verdict:
        case "same":
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" fill-opacity=".65"/>'
        case "lost":
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" fill="none" stroke="{colour}" stroke-width="2"/>'
        case "spurious":
            d = f"M{x:.1f} {y - r:.1f}l{r:.1f} {1.8 * r:.1f}h{-2 * r:.1f}z"
        case "late":
            h = f"{1.2 * r:.1f}"
            d = f"M{x:.1f} {y - 1.2 * r:.1f}l{h} {h}l-{h} {h}l-{h} -{h}z"
        case _:
            d = f"M{x - r:.1f} {y - r:.1f}h{2 * r:.1f}v{2 * r:.1f}h{-2 * r:.1f}z"
    return f'<path d="{d}" fill="{colour}"/>'
