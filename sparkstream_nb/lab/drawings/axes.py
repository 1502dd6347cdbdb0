"""The axes of a chart as SVG elements."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from dataclasses import dataclass

from .pictures import text_width


@dataclass(frozen=True)
class PlotArea:
    """The rectangle (px) in which a chart's values are drawn."""

    left: float
    right: float
    top: float
    bottom: float


@dataclass(frozen=True)
class ValueMark:
    """A labelled value of the vertical axis, at `y` (px)."""

    value: float
    label: str
    y: float


def cut(text: str, most: int) -> str:
    """A text of `most` characters at most."""
    return text if len(text) <= most else text[: most - 1] + "…"


def draw_value_axis(plot: PlotArea, name: str, marks: Iterable[ValueMark]) -> list[str]:
    """The vertical axis: its name, and a line over the whole plot for each mark."""
    out = [
        f'<text transform="translate(14 {(plot.top + plot.bottom) / 2:.0f}) rotate(-90)" text-anchor="middle" '
        f'class="y-title">{html.escape(name)}</text>'
    ]
    for mark in marks:
        out.append(
            f'<line x1="{plot.left:.0f}" x2="{plot.right:.0f}" y1="{mark.y:.1f}" y2="{mark.y:.1f}" '
            f'stroke="currentColor" stroke-opacity="{0.6 if mark.value == 0 else 0.15}"/>'
            f'<text x="{plot.left - 7:.0f}" y="{mark.y + 4:.1f}" text-anchor="end" class="y-tick">{mark.label}</text>'
        )
    return out


def draw_x_title(plot: PlotArea, title: str) -> str:
    """The title of the horizontal axis."""
    return (
        f'<text x="{(plot.left + plot.right) / 2:.0f}" y="{plot.bottom + 50:.0f}" text-anchor="middle" '
        f'class="x-title">{html.escape(title)}</text>'
    )


class TickRow:
    """The ticks of a horizontal axis, from left to right. A tick whose label would overlap the one before is left out.
    The context of a label, such as its day, is written once, below the first of its ticks.
    """

    def __init__(self, plot: PlotArea) -> None:
        self._base = plot.bottom
        self._context = ""
        self._free = -math.inf

    def restart_context(self) -> None:
        """Writes the context again at the next tick."""
        self._context = ""

    def draw(self, x: float, label: str, context: str) -> list[str]:
        """The elements of a tick at `x` (px)."""
        if x - text_width(label) / 2 < self._free:
            return []
        self._free = x + text_width(label) / 2 + 6
        base = self._base
        out = [
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{base:.0f}" y2="{base + 4:.0f}" stroke="currentColor" '
            f'stroke-opacity=".6"/><text x="{x:.1f}" y="{base + 17:.0f}" text-anchor="middle" '
            f'class="x-tick">{label}</text>'
        ]
        if context != self._context:
            self._context = context
            out.append(
                f'<text x="{x:.1f}" y="{base + 32:.0f}" text-anchor="middle" fill-opacity=".75" '
                f'class="x-tick">{context}</text>'
            )
            self._free = max(self._free, x + text_width(context) / 2 - 20)
        return out
