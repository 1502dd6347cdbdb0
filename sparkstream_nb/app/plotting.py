"""Figures of frames that answers give, such as the frame of `App.aggregation`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from .. import argument_checks
from ..argument_types import explain_arguments
from ..charts.frame_picture import frame_picture
from ..charts.frame_plot import ChartKind, FramePlot
from ..charts.loading import draw_figure
from ..errors import Misuse, shown

if TYPE_CHECKING:
    from ..charts.loading import Figure


@explain_arguments
def plot(
    frame: pd.DataFrame,
    y: str | Sequence[str] | None = None,
    *,
    by: str | None = None,
    x: str | None = None,
    kind: ChartKind = "line",
    title: str = "",
) -> Figure:
    """A frame of answers, events or buckets as a Plotly figure, for further work.

    `y`: a column of numbers, or several (default: all others). `by`: a line for each value of this column (default: the
    shard's or the node's, else the only column of texts). `x` (default: the time of the bucket or of the event).
    `kind`: "line", "bar" or "points". A line of more than 20,000 points is thinned, and the figure says so.

    Raises `Misuse` for unknown columns and without numbers or rows, SparkStreamError where Plotly is not installed.
    """
    if not isinstance(frame, pd.DataFrame):
        raise Misuse(f"plot takes a pandas frame, such as Result.frame, not {shown(frame)}")
    argument_checks.optional_str("title", title)
    return draw_figure(frame_picture(frame, title, FramePlot(y, by, x, kind)))
