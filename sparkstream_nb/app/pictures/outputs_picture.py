"""The outputs of failing nodes by stream and verdict, below a time line of the nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from ...charts.picture import Bars, Lane, LaneAxis, Mark, NumberAxis, Panel, Picture, Style, floats
from ...charts.style import GREY
from ...charts.ticks import number_ticks
from .timeline_picture import LOOKS

_SAME = GREY


def with_outputs(picture: Picture, counts: pd.DataFrame) -> Picture:
    """`picture` with a panel of bars. `counts`: query, stream, and a column for each verdict."""
    rows = np.arange(len(counts), dtype=np.float64)
    base = np.zeros(len(counts))
    marks: list[Mark] = []
    for verdict, (_, style) in LOOKS.items():
        if verdict not in counts.columns:
            continue
        values = floats(counts[verdict])
        colour = _SAME if verdict == "same" else style.colour
        titles = [f"{s}: {int(v):,} {verdict}" for s, v in zip(counts["stream"], values.tolist(), strict=True)]
        bars = Bars(
            x0=base, x1=base + values, y0=rows, y1=rows + 1, inset=4, style=Style(colour), name=verdict, titles=titles
        )
        marks.append(bars)
        base = base + values
    ticks = number_ticks(0.0, float(base.max(initial=1.0)), 8)
    names = LaneAxis([Lane(str(s), 26) for s in counts["stream"]])
    x = NumberAxis("outputs", 0.0, ticks[-1], ticks)
    panel = Panel(x, names, marks, "outputs, against one node that never fails")
    return replace(picture, panels=[*picture.panels, panel])
