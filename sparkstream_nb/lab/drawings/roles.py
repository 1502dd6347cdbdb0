"""The time line of groups of nodes: which was active when, their faults, and when events were lost."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...app.results.failover import Failover
from ...charts.value_texts import when
from ...simulation.timeline import Faulted, Role, RoleSpan, roles
from .charts import time_ticks
from .pictures import INK, WIDTH, embed_svg, text_width

_ROW, _TOP, _TICK_ROOM = 30.0, 64.0, 86.0
_LABEL_ROW, _LABEL_ROWS = 13.0, 20
"""Rows for the words of faults: their height (px) and their largest number."""
# Okabe and Ito's colours, which the colour-blind tell apart.
COLOURS = {
    Role.ACTIVE: "#009E73", Role.PASSIVE: "#56B4E9", Role.IDLE: "#999999", Role.HALTED: "#E69F00", Role.DOWN: "#D55E00",
}  # fmt: skip
LOST = "#CC79A7"
MARKS = {"◆": "election", "▲": "takeover"}
"""Signs on the lanes of nodes, and their meanings."""


@dataclass(frozen=True)
class RoleMark:
    """A sign of `MARKS` on the lane of `node` at `at` (ms), and its text."""

    at: int
    node: str
    sign: str
    text: str


@dataclass(frozen=True)
class Bar:
    """A stretch of a lane from `first` to `end` (ms), and its text for a pointer. `least`: least width (px); `shift`:
    the part of a lane by which it lies lower; `label`: words on it, if there is room.
    """

    lane: str
    first: int
    end: int
    colour: str
    title: str
    opacity: float = 1.0
    least: float = 1.0
    shift: float = 0.0
    label: str = ""


@dataclass(frozen=True)
class Lanes:
    """The picture from `start` to `end` (ms): the `lanes` from above, with `bars`. `title` is read out, `head` is
    above, `legend` has (words, colour). `faults` are (ms, words).
    """

    title: str
    head: str
    lanes: Sequence[str]
    start: int
    end: int
    bars: Sequence[Bar]
    legend: Sequence[tuple[str, str]]
    faults: Sequence[tuple[int, str]]
    marks: Sequence[RoleMark] = ()


EVENTS = "events"
"""The lane of the clients' events."""


def role_bars(
    spans: Sequence[RoleSpan], lost_between: Sequence[tuple[int, int]], between: tuple[int, int]
) -> tuple[list[Bar], list[tuple[str, str]]]:
    """Bars for which role a node had when, and for when (ms, both included) events were lost; and their legend."""
    bars = [Bar(EVENTS, *between, "currentColor", "events came in", 0.12)]
    for first, last in lost_between:
        title = f"{when(first)} to {when(last)}: no node took the events"
        bars.append(Bar(EVENTS, first, last, LOST, title, least=2.0))
    for s in spans:
        title = f"{s.node} {s.role.value}: {when(s.first)} to {when(s.end)}"
        bars.append(Bar(s.node, s.first, s.end, COLOURS[s.role], title))
    legend = [(r.value, COLOURS[r]) for r in Role if any(s.role is r for s in spans)]
    return bars, [*legend, *([("events lost", LOST)] if lost_between else [])]


def lanes_of(failover: Failover) -> Lanes:
    """The time line of a failover's whole run."""
    o = failover.outcome
    end = max(o.last, o.first + 1)
    spans = [s for g in o.groups for s in roles(g.happenings, end)]
    bars, legend = role_bars(spans, failover.lost_between, (o.first, end))
    return Lanes(
        title=f"{failover.app}: {failover.said}",
        head=f"{failover.app}: the nodes, and what happened to them",
        lanes=[EVENTS, *failover.groups.nodes],
        start=o.first,
        end=end,
        bars=bars,
        legend=legend,
        faults=[(h.at, str(h)) for h in failover.happenings if isinstance(h, Faulted)],
    )


def svg(lanes: Lanes, width: int = WIDTH) -> str:
    """The lanes in their colours; faults as lines with their words."""
    return "".join(_RolesDrawing(lanes, width).parts())


def image(failover: Failover) -> str:
    """The time line of a failover as an HTML image."""
    lanes = lanes_of(failover)
    return embed_svg(svg(lanes), lanes.title)


class _RolesDrawing:
    def __init__(self, lanes: Lanes, width: int) -> None:
        self.lanes, self.width = lanes, width
        self.left = 20 + min(max(map(text_width, lanes.lanes)), width / 4)
        self.names = [_cut(name, self.left - 16) for name in lanes.lanes]
        self.place = {name: i for i, name in enumerate(lanes.lanes)}
        self.labels, rows = self._labels()
        self.top = _TOP + _LABEL_ROW * max(0, rows - 1)
        self.bottom = self.top + _ROW * len(lanes.lanes)

    def x(self, ms: int) -> float:
        start, end = self.lanes.start, self.lanes.end
        share = (min(max(ms, start), end) - start) / (end - start)
        return self.left + share * (self.width - 18 - self.left)

    def _within(self, first: int, last: int) -> bool:
        return last >= self.lanes.start and first <= self.lanes.end

    def _labels(self) -> tuple[list[tuple[float, int] | None], int]:
        """For each fault the x and the row of its words, None if there is no room; and the number of rows."""
        free, out = list[float](), list[tuple[float, int] | None]()
        for at, text in self.lanes.faults:
            x = max(4.0, min(self.x(at), self.width - 4 - text_width(text)))
            row = next((i for i, f in enumerate(free) if x > f), len(free))
            if row == _LABEL_ROWS or not self._within(at, at):
                out.append(None)
                continue
            free[row:] = [x + text_width(text) + 6, *free[row + 1 :]]
            out.append((x, row))
        return out, 1 + max((place[1] for place in out if place is not None), default=0)

    def parts(self) -> Iterator[str]:
        lanes, height = self.lanes, self.bottom + 52
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {height:.0f}" width="{self.width}" '
            f'height="{height:.0f}" role="img" aria-label="{html.escape(lanes.title)}" '
            f'style="font:12px system-ui,sans-serif;color:{INK}" fill="currentColor">'
            f'<text x="4" y="18" font-size="14" font-weight="600">{html.escape(lanes.head)}</text>'
        )
        yield from self._legend()
        for i, name in enumerate(self.names):
            yield f'<text x="8" y="{self.top + _ROW * (i + 0.5) + 4:.0f}">{html.escape(name)}</text>'
        for bar in lanes.bars:
            yield from self._bar(bar)
        for (at, text), label in zip(lanes.faults, self.labels, strict=True):
            if not self._within(at, at):
                continue
            place, words = self.x(at), html.escape(text)
            yield (
                f'<line x1="{place:.1f}" x2="{place:.1f}" y1="{self.top - 4:.0f}" y2="{self.bottom:.0f}" '
                f'stroke="currentColor" stroke-dasharray="3 3"><title>{words}</title></line>'
            )
            if label is not None:
                y = self.top - 9 - _LABEL_ROW * label[1]
                yield f'<text x="{label[0]:.1f}" y="{y:.0f}" font-size="11">{words}</text>'
        for m in lanes.marks:
            if self._within(m.at, m.at):
                y = self.top + _ROW * (self.place[m.node] + 0.5) + 4
                yield (
                    f'<text x="{self.x(m.at):.1f}" y="{y:.0f}" text-anchor="middle" fill="#111" stroke="#fff" '
                    f'stroke-width="2.5" paint-order="stroke">{m.sign}'
                    f"<title>{html.escape(f'{when(m.at)}: {m.text}')}</title></text>"
                )
        yield from self._axis()
        yield "</svg>"

    def _legend(self) -> Iterator[str]:
        lanes = self.lanes
        at = 8.0
        for label, colour in lanes.legend:
            yield (
                f'<rect x="{at:.0f}" y="28" width="12" height="12" rx="2" fill="{colour}"/>'
                f'<text x="{at + 17:.0f}" y="39">{html.escape(label)}</text>'
            )
            at += 34 + text_width(label)
        for sign, meaning in MARKS.items():
            if any(m.sign == sign for m in lanes.marks):
                yield f'<text x="{at + 2:.0f}" y="39">{sign} {meaning}</text>'
                at += 34 + text_width(meaning)

    def _bar(self, bar: Bar) -> Iterator[str]:
        if not self._within(bar.first, bar.end):
            return
        row = self.place[bar.lane]
        left, wide = self.x(bar.first), max(bar.least, self.x(bar.end) - self.x(bar.first))
        yield (
            f'<rect x="{left:.1f}" y="{self.top + _ROW * (row + bar.shift) + 5:.0f}" width="{wide:.1f}" '
            f'height="{_ROW - 10:.0f}" rx="2" fill="{bar.colour}" fill-opacity="{bar.opacity}">'
            f"<title>{html.escape(bar.title)}</title></rect>"
        )
        later = [self.x(b.first) for b in self.lanes.bars if b.lane == bar.lane and b.first > bar.first]
        room = max(wide, min([*later, self.width - 18.0]) - left)  # the words may go on behind a short bar
        if bar.label and room > text_width(bar.label) + 5:
            y = self.top + _ROW * (row + 0.5) + 4
            yield f'<text x="{left + 5:.1f}" y="{y:.0f}">{html.escape(bar.label)}</text>'

    def _axis(self) -> Iterator[str]:
        start, end = self.lanes.start, self.lanes.end
        yield (
            f'<text x="{(self.left + self.width) / 2:.0f}" y="{self.bottom + 46:.0f}" text-anchor="middle">'
            "the app's clock (UTC)</text>"
        )
        previous_context = ""
        for k in time_ticks(start, end + 1, "sec", (self.width - self.left) / _TICK_ROOM):
            x = self.x(k.ms)
            yield f'<text x="{x:.1f}" y="{self.bottom + 15:.0f}" text-anchor="middle">{k.label}</text>'
            if k.context != previous_context:
                previous_context = k.context
                yield (
                    f'<text x="{x:.1f}" y="{self.bottom + 29:.0f}" text-anchor="middle" fill-opacity=".75">'
                    f"{k.context}</text>"
                )


def _cut(text: str, room: float) -> str:
    """The beginning of a text that fits into a width (px)."""
    while len(text) > 1 and text_width(text) > room:
        text = text[:-2] + "…"
    return text
