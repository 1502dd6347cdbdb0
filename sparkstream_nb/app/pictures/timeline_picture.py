"""The time line of alerts: a lane for the truth and one for each node, with a mark for each output.

Shape and colour show the verdict on an output. Outputs that lie closer than a mark is wide share one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ...charts.picture import INK, Lane, LaneAxis, Panel, Picture, Points, Style, Symbol, TimeAxis, floats
from ...charts.style import BLUE, GREEN, ORANGE, RED, WIDTH
from ...charts.text_places import text_width
from ...charts.value_texts import format_count, text_of, when

if TYPE_CHECKING:
    from ..results.divergence import Divergence, Match, Verdict
    from ..results.output_matching import Alert

_CELL = 10.0  # px: marks are at least so far apart
_ROW = 14.0  # px
_LISTED = 3
MOST_STREAMS = 12
"""Streams in one picture, at most."""
# Okabe and Ito's colours, which the colour-blind tell apart; the shapes differ as well.
LOOKS: Mapping[Verdict, tuple[Symbol, Style]] = {
    "same": ("circle", Style(INK, opacity=0.65)),
    "lost": ("circle", Style(RED, is_outline=True, width=2)),
    "spurious": ("triangle", Style(ORANGE)),
    "late": ("diamond", Style(BLUE)),
    "duplicated": ("square", Style(GREEN)),
}
_VERDICTS = tuple(LOOKS)
MEANINGS: Mapping[Verdict, str] = {
    "same": "as on one node",
    "lost": "one node has it, no node of these",
    "spurious": "one node does not have it",
    "late": "one node has it at another time",
    "duplicated": "an additional output that one node has",
}


@dataclass(frozen=True)
class TimelineMark:
    """Outputs with the same verdict that share a place in a lane (0: the truth, then the nodes from 1). `at`: the
    middle of their place (ms)."""

    lane: int
    verdict: Verdict
    at: float
    matches: tuple[Match, ...]

    def alert(self, m: Match) -> Alert:
        """The output in this lane."""
        output = m.true if self.lane == 0 else m.found
        assert output is not None
        return output


@dataclass(frozen=True, eq=False)
class Timeline:
    """The outputs to a stream between two moments (ms by the app's clock, both included), for a picture `width` px
    wide."""

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
        if 1.3 * text_width(queries + rest) <= self.width or ", " not in queries:
            return queries + rest
        return f"{self.stream} ({queries.count(', ') + 1} queries){rest}"

    @cached_property
    def counts(self) -> Counter[Verdict]:
        """The number of outputs of the whole stream by verdict."""
        return Counter(m.verdict for m in self.divergence.matches[self.stream])

    @cached_property
    def lanes(self) -> list[str]:
        """The names of the lanes."""
        return ["truth", *self.divergence.shards]

    @cached_property
    def marks(self) -> list[TimelineMark]:
        """In order of lane, verdict and time."""
        cell_ms = _CELL * max(1, self.end - self.start) / self.width
        cells: dict[tuple[int, int, int], list[Match]] = defaultdict(list)
        for m in self.divergence.matches[self.stream]:
            for lane, alert in ((0, m.true), (0 if m.found is None else 1 + (m.found.node or 0), m.found)):
                if alert is not None and self.start <= alert.clock <= self.end:
                    cell = int((alert.clock - self.start) // cell_ms)
                    cells[lane, _VERDICTS.index(m.verdict), cell].append(m)
        out = []
        for (lane, verdict, _), matches in sorted(cells.items(), key=lambda item: item[0]):
            clocks = [a.clock for m in matches for a in ((m.true,) if lane == 0 else (m.found,)) if a is not None]
            middle = (min(clocks) + max(clocks)) / 2
            out.append(TimelineMark(lane, _VERDICTS[verdict], middle, tuple(matches)))
        return out

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


def timeline_picture(t: Timeline, *, pinned_mark: int | None = None, has_titles: bool = True) -> Picture:
    """The picture; the key of a mark is its number in `t.marks`, and the one of the number `pinned_mark` has a ring.
    Without `has_titles` no mark has a text for a pointer: the cause of each output takes time to find."""
    panel = _panel(t, {v: f"{v} {t.counts[v]:,}" for v in _VERDICTS if t.counts[v]}, has_titles)
    rings = []
    for points in panel.marks:
        if isinstance(points, Points) and pinned_mark in points.keys:
            i = points.keys.index(pinned_mark)
            ring = Style(INK, is_outline=True, width=1.5)
            rings = [Points(x=points.x[[i]], y=points.y[[i]], style=ring, radius=8, part="pinned")]
    return Picture(t.title, [replace(panel, marks=[*panel.marks, *rings])])


def divergence_picture(divergence: Divergence) -> Picture:
    """The time lines of all streams with outputs, below one another; the one that lost most is first."""
    first = worst(divergence)
    streams = [first, *(s for s in divergence.matches if s != first)]
    timelines = [full_timeline(divergence, s) for s in streams[:MOST_STREAMS]]
    panels = [replace(_panel(t, {v: v for v in _VERDICTS if t.counts[v]}, True), title=t.title) for t in timelines]
    further_count = len(streams) - len(panels)
    notes = [f"{format_count(further_count, 'further stream')} are not drawn"] if further_count else []
    differences = format_count(divergence.differences, "output")
    return Picture(f"{divergence.app}: {differences} that differ from one node's", panels, notes)


def _panel(t: Timeline, names: Mapping[Verdict, str], has_titles: bool) -> Panel:
    """The lanes; `names`: of the verdicts, in the legend."""
    height = _ROW * max(1, len(names)) + 8
    lanes = [
        Lane(name, height, is_bold=i == 0, shade=0.09 if i == 0 else 0.04 if i % 2 else 0.0)
        for i, name in enumerate(t.lanes)
    ]
    room = 0.01 * (t.end - t.start) if t.end - t.start > 100 else 500
    time = TimeAxis("the app's clock (UTC)", [(t.start - room, t.end + room)], "sec")
    return Panel(time, LaneAxis(lanes), list(_points(t, names, height, has_titles)))


def _points(t: Timeline, names: Mapping[Verdict, str], height: float, has_titles: bool) -> Iterator[Points]:
    for row, (verdict, name) in enumerate(names.items()):
        numbers = [i for i, m in enumerate(t.marks) if m.verdict == verdict]
        marks = [t.marks[i] for i in numbers]
        symbol, style = LOOKS[verdict]
        sizes = [len(m.matches) for m in marks]
        yield Points(
            x=floats([m.at for m in marks]), y=floats([m.lane for m in marks]) + (4 + _ROW * (row + 0.5)) / height,
            symbol=symbol, style=style, radius=4.5, radii=[3.0 if n == 1 else 4.2 if n < 10 else 5.4 for n in sizes],
            name=name, keys=numbers, part="mark",
            titles=[f"{t.lanes[m.lane]}: {t.describe_mark(m)}" for m in marks] if has_titles else (),
        )  # fmt: skip
