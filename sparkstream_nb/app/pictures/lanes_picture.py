"""The time line of groups of nodes: which was active when, their faults, and when events were lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...charts.picture import (
    Bars,
    Lane,
    LaneAxis,
    LegendEntry,
    Mark,
    Panel,
    Picture,
    Rules,
    Style,
    Texts,
    TimeAxis,
    floats,
)
from ...charts.style import GREEN, GREY, ORANGE, PINK, RED, SKY
from ...charts.value_texts import when
from ...simulation.timeline import Faulted, Role, RoleSpan, roles

if TYPE_CHECKING:
    from ..results.failover import Failover

ROLE_COLOURS = {Role.ACTIVE: GREEN, Role.PASSIVE: SKY, Role.IDLE: GREY, Role.HALTED: ORANGE, Role.DOWN: RED}
LOST = PINK
SIGNS = {"◆": "election", "▲": "takeover"}
"""Signs on the lanes of nodes, and their meanings."""
EVENTS = "events"
"""The lane of the clients' events."""
_MARGIN = 5 / 30
"""The share of a lane above and below its bars."""


@dataclass(frozen=True)
class RoleSign:
    """A sign of `SIGNS` on the lane of `node` at `at` (ms), and its text."""

    at: int
    node: str
    sign: str
    text: str


@dataclass(frozen=True)
class LaneBar:
    """A stretch of a lane from `first` to `end` (ms), and its text for a pointer. `least`: least width (px); `shift`:
    the part of a lane by which it lies lower; `label`: words on it, if there is room.
    """

    lane: str
    first: int
    end: int
    style: Style
    title: str
    least: float = 1.0
    shift: float = 0.0
    label: str = ""


@dataclass(frozen=True)
class Lanes:
    """The time from `start` to `end` (ms): the `lanes` from above, with `bars`. `summary` is read out, `title` is
    above, `legend` has (words, colour). `faults` are (ms, words).
    """

    summary: str
    title: str
    lanes: Sequence[str]
    start: int
    end: int
    bars: Sequence[LaneBar]
    legend: Sequence[tuple[str, str]]
    faults: Sequence[tuple[int, str]]
    signs: Sequence[RoleSign] = ()


def role_bars(
    spans: Sequence[RoleSpan], lost_between: Sequence[tuple[int, int]], between: tuple[int, int]
) -> tuple[list[LaneBar], list[tuple[str, str]]]:
    """Bars for which role a node had when, and for when (ms, both included) events were lost; and their legend."""
    bars = [LaneBar(EVENTS, *between, Style(opacity=0.12), "events came in")]
    for first, last in lost_between:
        title = f"{when(first)} to {when(last)}: no node took the events"
        bars.append(LaneBar(EVENTS, first, last, Style(LOST), title, least=2.0))
    for s in spans:
        title = f"{s.node} {s.role.value}: {when(s.first)} to {when(s.end)}"
        bars.append(LaneBar(s.node, s.first, s.end, Style(ROLE_COLOURS[s.role]), title))
    legend = [(r.value, ROLE_COLOURS[r]) for r in Role if any(s.role is r for s in spans)]
    return bars, [*legend, *([("events lost", LOST)] if lost_between else [])]


def failover_picture(failover: Failover) -> Picture:
    """The time line of a failover's whole run."""
    o = failover.outcome
    end = max(o.last, o.first + 1)
    spans = [s for g in o.groups for s in roles(g.happenings, end)]
    bars, legend = role_bars(spans, failover.lost_between, (o.first, end))
    return lanes_picture(
        Lanes(
            summary=f"{failover.app}: {failover.said}",
            title=f"{failover.app}: the nodes, and what happened to them",
            lanes=[EVENTS, *failover.groups.nodes],
            start=o.first,
            end=end,
            bars=bars,
            legend=legend,
            faults=[(h.at, str(h)) for h in failover.happenings if isinstance(h, Faulted)],
        )
    )


def lanes_picture(lanes: Lanes) -> Picture:
    """The lanes in their colours; faults as lines with their words."""
    time = TimeAxis("the app's clock (UTC)", [(lanes.start, lanes.end)], "sec")
    names = LaneAxis([Lane(name) for name in lanes.lanes])
    faults = [(at, words) for at, words in lanes.faults if lanes.start <= at <= lanes.end]
    rules = Rules(
        x=floats([at for at, _ in faults]), words=[w for _, w in faults], titles=[w for _, w in faults],
        style=Style(width=1, dash="dot"),
    )  # fmt: skip
    number_by_name = {name: i for i, name in enumerate(lanes.lanes)}
    marks = [*_bars(lanes.bars, number_by_name), rules, *_signs(lanes.signs, number_by_name)]
    legend = [LegendEntry(words, _sample(colour)) for words, colour in lanes.legend]
    signs = {s.sign for s in lanes.signs}
    legend += [LegendEntry(f"{sign} {words}") for sign, words in SIGNS.items() if sign in signs]
    return Picture(lanes.title, [Panel(time, names, marks, has_grid=False)], legend=legend, summary=lanes.summary)


def _sample(colour: str) -> Mark:
    nothing = floats([])
    return Bars(x0=nothing, x1=nothing, y0=nothing, y1=nothing, style=Style(colour), rounding=2)


def _bars(bars: Sequence[LaneBar], number_by_name: dict[str, int]) -> Iterator[Mark]:
    """The bars, of one look in one mark."""
    bars_by_look: dict[tuple[Style, float, bool], list[LaneBar]] = {}
    for bar in bars:
        bars_by_look.setdefault((bar.style, bar.least, bool(bar.label)), []).append(bar)
    for (style, least, has_label), rows in bars_by_look.items():
        top = floats([number_by_name[b.lane] + _MARGIN + b.shift for b in rows])
        yield Bars(
            x0=floats([b.first for b in rows]), x1=floats([b.end for b in rows]), y0=top, y1=top + 1 - 2 * _MARGIN,
            style=style, least=least, rounding=2, titles=[b.title for b in rows],
            labels=[b.label for b in rows] if has_label else (), overflows=True,
        )  # fmt: skip


def _signs(signs: Sequence[RoleSign], number_by_name: dict[str, int]) -> Iterator[Mark]:
    if signs:
        yield Texts(
            x=floats([s.at for s in signs]), y=floats([number_by_name[s.node] + 0.5 for s in signs]),
            texts=[s.sign for s in signs], titles=[f"{when(s.at)}: {s.text}" for s in signs], overlap=True, signs=True,
        )  # fmt: skip
