"""The chart of a failover study: for each setting, the costs of failovers in the median, and at worst in 19 of 20."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...charts.picture import Bars, Lane, LaneAxis, NumberAxis, Panel, Picture, Points, Style, Texts, floats
from ...charts.style import RED, SKY
from ...charts.ticks import short

if TYPE_CHECKING:
    from ..results.failover_study import FailoverStudy

MOST_SETTINGS = 40
_BAR, _MEDIAN = Style(SKY), Style(RED, width=3)


class Cost(NamedTuple):
    """A column of a failover study, with the label of its chart; a value is divided by `unit`."""

    column: str
    label: str
    unit: float = 1.0


COSTS = (
    Cost("gap", "no active node, s", 1000.0),
    Cost("events_lost", "events lost"),
    Cost("lost", "outputs lost"),
    Cost("duplicated", "outputs duplicated"),
)


def costs_picture(study: FailoverStudy) -> Picture:
    """A row for each setting; by cost a bar to the 95th percentile, with a mark at the median."""
    settings = study.settings.head(MOST_SETTINGS).to_dict("records")
    names = [", ".join(f"{n} {row[n]}" for n in study.varied) or "as it is" for row in settings]
    lanes = LaneAxis([Lane(name, 22) for name in names])
    rows = np.arange(len(settings), dtype=np.float64)
    panels = []
    for cost, label, unit in COSTS:
        medians, highs = (floats([row[f"{cost}_{part}"] for row in settings]) / unit for part in ("median", "p95"))
        most = max(1e-9, float(highs.max(initial=0.0)))
        titles = [
            f"{name}: {label} {short(m)} in the median, {short(h)} at most in 19 of 20"
            for name, m, h in zip(names, medians.tolist(), highs.tolist(), strict=True)
        ]
        bars = Bars(
            x0=np.zeros(len(rows)), x1=highs, y0=rows, y1=rows + 1, inset=3, style=_BAR, name="19 of 20 cost no more",
            titles=titles,
        )  # fmt: skip
        marks = Points(x=medians, y=rows + 0.5, symbol="bar", radius=9, style=_MEDIAN, name="median", titles=titles)
        words = Texts(x=highs, y=rows + 0.5, texts=[short(m) for m in medians.tolist()], anchor="beside")
        panels.append(Panel(NumberAxis("", 0.0, 1.35 * most), lanes, [bars, marks, words], label))
    title = f"{study.app}: what {len(study.runs):,} failovers cost"
    return Picture(title, panels, columns=len(COSTS), summary=f"{study.app}: {study.said}")
