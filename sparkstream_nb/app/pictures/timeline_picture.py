"""The time line of alerts: a lane for the truth and one for each node, with a mark for each output.

Shape and colour show the verdict on an output. Outputs that lie closer than a mark is wide share one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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
_NUMBERS: Mapping[Verdict, int] = {verdict: number for number, verdict in enumerate(_VERDICTS)}
MEANINGS: Mapping[Verdict, str] = {
    "same": "as on one node",
    "lost": "one node has it, no node of these",
    "spurious": "one node does not have it",
    "late": "one node has it at another time",
    "duplicated": "an additional output that one node has",
}


@dataclass(frozen=True, eq=False)
class OutputPlaces:
    """The outputs to a stream as they lie in a time line, one after the other: `clocks` int64[n] (ms), `lanes` and
    `verdicts` int64[n] (numbers of `_VERDICTS`), and `numbers` int64[n], of their matches."""

    clocks: NDArray[np.int64]
    lanes: NDArray[np.int64]
    verdicts: NDArray[np.int64]
    numbers: NDArray[np.int64]

    @staticmethod
    def of(matches: Sequence[Match]) -> OutputPlaces:
        """The places of both sides of matches."""
        rows = [
            (alert.clock, lane, _NUMBERS[m.verdict], number)
            for number, m in enumerate(matches)
            for lane, alert in ((0, m.true), (0 if m.found is None else 1 + (m.found.node or 0), m.found))
            if alert is not None
        ]
        columns = np.array(rows, np.int64).reshape(-1, 4).T
        return OutputPlaces(*np.ascontiguousarray(columns))

    def where(self, mask: NDArray[np.bool_]) -> OutputPlaces:
        """A part of them."""
        return OutputPlaces(self.clocks[mask], self.lanes[mask], self.verdicts[mask], self.numbers[mask])


@dataclass(frozen=True, eq=False)
class TimelineMark:
    """Outputs with the same verdict that share a place in a lane (0: the truth, then the nodes from 1), from `first` to
    `last` (ms). `numbers`: of their matches among all of the stream's."""

    lane: int
    verdict: Verdict
    first: int
    last: int
    numbers: NDArray[np.int64]
    all_matches: Sequence[Match]

    @property
    def at(self) -> float:
        """The middle of their place (ms)."""
        return (self.first + self.last) / 2

    @property
    def matches(self) -> list[Match]:
        """The matches, in order of time."""
        return self.first_matches(len(self.numbers))

    def first_matches(self, most: int) -> list[Match]:
        """The first `most` of them."""
        return [self.all_matches[number] for number in self.numbers[:most].tolist()]

    def alert(self, m: Match) -> Alert:
        """The output in this lane."""
        output = m.true if self.lane == 0 else m.found
        assert output is not None
        return output


@dataclass(frozen=True)
class Timeline:
    """The outputs to a stream between two moments (ms by the app's clock, both included), for a picture `width` px
    wide; with `keys` the outputs alone that have one of these values of attributes."""

    divergence: Divergence
    stream: str
    start: int
    end: int
    width: int = WIDTH
    keys: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The title, with the number of outputs of one node and the number of nodes they are compared with. Where the
        names of the queries would be wider than the picture, it has their number."""
        d = self.divergence
        true = int((d.places(self.stream).lanes == 0).sum())
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
        return self.divergence.verdict_counts[self.stream]

    @cached_property
    def lanes(self) -> list[str]:
        """The names of the lanes."""
        return ["truth", *self.divergence.shards]

    @cached_property
    def marks(self) -> list[TimelineMark]:
        """In order of lane, verdict and time."""
        matches = self.divergence.matches[self.stream]
        places = self.divergence.places(self.stream)
        places = places.where((places.clocks >= self.start) & (places.clocks <= self.end))
        for name, values in self.keys.items():
            if name in self.names:
                has_value = self.divergence.values_of(self.stream, name).isin(values).to_numpy()
                places = places.where(has_value[places.numbers])
        if not len(places.clocks):
            return []
        cell_ms = _CELL * max(1, self.end - self.start) / self.width
        cells = ((places.clocks - self.start) // cell_ms).astype(np.int64)
        cell_count = int(cells.max()) + 1
        groups = (places.lanes * len(_VERDICTS) + places.verdicts) * cell_count + cells
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
        clocks = places.clocks[order]
        firsts, lasts = (f.reduceat(clocks, starts).tolist() for f in (np.minimum, np.maximum))
        parts = np.split(places.numbers[order], starts[1:])
        lanes, verdicts = places.lanes[order[starts]].tolist(), places.verdicts[order[starts]].tolist()
        return [
            TimelineMark(lane, _VERDICTS[verdict], first, last, numbers, matches)
            for lane, verdict, first, last, numbers in zip(lanes, verdicts, firsts, lasts, parts, strict=True)
        ]

    def describe_mark(self, mark: TimelineMark, *, limit: int = _LISTED) -> str:
        """The meaning of a mark, in lines of plain text."""
        n = len(mark.numbers)
        first, last = when(mark.first), when(mark.last)
        many = f"{n:,} × " if n > 1 else ""
        lines = [f"{many}{mark.verdict}: {MEANINGS[mark.verdict]}", first if first == last else f"{first} to {last}"]
        several = ", " in self.divergence.queries[self.stream]
        for m in mark.first_matches(limit):
            alert = mark.alert(m)
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
        verdicts = divergence.verdict_counts[stream]
        return verdicts["lost"], verdicts.total() - verdicts["same"]

    return max(divergence.matches, key=wrong)


def full_timeline(divergence: Divergence, stream: str, width: int = WIDTH) -> Timeline:
    """From the first output to the last."""
    clocks = divergence.places(stream).clocks
    start, end = (int(clocks.min()), int(clocks.max())) if len(clocks) else (0, 1)
    return Timeline(divergence, stream, start, end, width)


def timeline_picture(t: Timeline, *, pinned_mark: int | None = None, has_titles: bool = True) -> Picture:
    """The picture; the key of a mark is its number in `t.marks`, and the one of the number `pinned_mark` has a ring.
    Without `has_titles` no mark has a text for a pointer: the cause of each output takes time to find."""
    panel = _panel(t, {v: f"{v} {t.counts[v]:,}" for v in _VERDICTS if t.counts[v]}, has_titles)
    return with_ring(Picture(t.title, [panel], _key_notes(t)), pinned_mark)


def with_ring(picture: Picture, mark: int | None) -> Picture:
    """The picture of a time line with a ring around the mark of this number."""
    (panel,) = picture.panels
    for points in panel.marks:
        if isinstance(points, Points) and mark in points.keys:
            i = points.keys.index(mark)
            style = Style(INK, is_outline=True, width=1.5)
            ring = Points(x=points.x[[i]], y=points.y[[i]], style=style, radius=8, part="pinned")
            return replace(picture, panels=[replace(panel, marks=[*panel.marks, ring])])
    return picture


def _key_notes(t: Timeline) -> list[str]:
    """A note on outputs that are not drawn."""
    keys = {name: values for name, values in t.keys.items() if name in t.names}
    names = ", ".join(f"{name} {' or '.join(map(text_of, values))}" for name, values in keys.items())
    return [f"only outputs with {names}"] if keys else []


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
        sizes = [len(m.numbers) for m in marks]
        yield Points(
            x=floats([m.at for m in marks]), y=floats([m.lane for m in marks]) + (4 + _ROW * (row + 0.5)) / height,
            symbol=symbol, style=style, radius=4.5, radii=[3.0 if n == 1 else 4.2 if n < 10 else 5.4 for n in sizes],
            name=name, keys=numbers, part="mark",
            titles=[f"{t.lanes[m.lane]}: {t.describe_mark(m)}" for m in marks] if has_titles else (),
        )  # fmt: skip
