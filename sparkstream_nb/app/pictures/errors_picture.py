"""The errors of an app by reason, over the time of their events."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...charts.frame_picture import LineAxes, NamedLine, lines_picture
from ...charts.frame_plot import numbers_of
from ...charts.picture import Picture
from ...charts.point_store import MOST_SERIES, Points
from ...errors import Misuse


def errors_picture(frame: pd.DataFrame, title: str) -> Picture:
    """Bars of the errors of each reason; those without a time are counted in a note. `frame`: timestamp, reason. Raises
    `Misuse` without errors."""
    if not len(frame):
        raise Misuse("there is nothing to draw: the app has no errors")
    times = numbers_of(frame["timestamp"])
    has_time = np.isfinite(times)
    reasons = frame["reason"].map(str)
    if not has_time.any():
        counts = reasons.value_counts()
        points = Points(np.arange(len(counts), dtype=np.float64), counts.to_numpy(np.float64))
        axes = LineAxes(title, "reason", "errors", names=list(counts.index))
        return lines_picture([NamedLine("", points)], axes, "bar")
    first, last = float(times[has_time].min()), float(times[has_time].max())
    edges = np.linspace(first, last if last > first else first + 1_000, 61)
    middles = (edges[1:] + edges[:-1]) / 2
    lines = []
    for reason in reasons[has_time].value_counts().index[:MOST_SERIES]:
        counts, _ = np.histogram(times[has_time & (reasons == reason).to_numpy()], edges)
        lines.append(NamedLine(reason, Points(middles, counts.astype(np.float64))))
    without = int((~has_time).sum())
    notes = [f"{without:,} more have no time"] if without else []
    axes = LineAxes(title, "event time (UTC)", "errors", True, notes=notes, is_stacked=True)
    return lines_picture(lines, axes, "bar")
