"""The time of an app's nodes as a flame: nodes, their queries, windows and aggregations, and the parts of these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from ...charts.picture import Bars, Lane, LaneAxis, NumberAxis, Panel, Picture, Style, floats
from ...charts.style import COLOURS, GREY
from ...charts.ticks import short

if TYPE_CHECKING:
    from ..results.app_profile import PartProfile, Profile

_LANES = ("node", "element", "part")


@dataclass(frozen=True)
class _Box:
    """A bar in a lane from `begin` to `end` (ms), with its label, the element that gives its colour (empty: none), and
    a text for a pointer."""

    lane: int
    begin: float
    end: float
    label: str
    element: str
    title: str


def profile_picture(profile: Profile) -> Picture:
    """A bar for each node, below it one for each element, and for each part, as wide as its time (ms)."""
    boxes = list(_boxes(profile))
    elements = list(dict.fromkeys(p.element for p in profile.parts))
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(elements)}
    marks = []
    for lane in range(len(_LANES)):
        row = [b for b in boxes if b.lane == lane]
        marks.append(
            Bars(
                x0=floats([b.begin for b in row]), x1=floats([b.end for b in row]),
                y0=np.full(len(row), float(lane)), y1=np.full(len(row), lane + 1.0),
                colours=[colours.get(b.element, GREY) for b in row], labels=[b.label for b in row],
                titles=[f"{b.title}: {_share(b, profile.ms)}" for b in row],
                inset=1, rounding=2, style=Style(opacity=0.8),
            )
        )  # fmt: skip
    axis = NumberAxis("working time of the nodes (ms)", 0.0, max(profile.ms, 1e-6))
    lanes = LaneAxis([Lane(name, 28) for name in _LANES])
    title = f"{profile.app}: the nodes' time for {profile.events:,} events"
    return Picture(title, [Panel(axis, lanes, marks)], summary=f"{title}: {short(profile.ms)} ms")


def _share(box: _Box, total: float) -> str:
    ms = box.end - box.begin
    return f"{short(ms)} ms, {ms / total:.0%}" if total else f"{short(ms)} ms"


def _boxes(profile: Profile) -> Iterator[_Box]:
    at = 0.0
    for node in profile.nodes:
        end = at + node.ms
        yield _Box(0, at, end, node.node, "", node.node)
        parts = [p for p in profile.parts if p.node == node.node]
        for _, group in groupby(parts, key=lambda p: p.element):
            element_parts = list(group)
            yield from _element_boxes(element_parts, at)
            at += sum(p.ms for p in element_parts)
        if end > at:
            yield _Box(1, at, end, "between them", "", f"{node.node}: between queries, windows and aggregations")
        at = end


def _element_boxes(parts: list[PartProfile], begin: float) -> Iterator[_Box]:
    """The bars of an element and of its parts from `begin` on."""
    name, at = parts[0].element, begin
    for part in parts:
        title = f"{part.node}, {name}, {part.part}, {part.rows_in:,} rows in"
        yield _Box(2, at, at + part.ms, part.part, name, title)
        at += part.ms
    yield _Box(1, begin, at, name, name, f"{parts[0].node}, {name}")
