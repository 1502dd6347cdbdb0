"""Bases of results that give Plotly figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from ...charts.frame_picture import frame_picture
from ...charts.frame_plot import ChartKind, FramePlot
from ...charts.loading import draw_figure
from ...charts.picture import Picture
from .frontend import Displayed

if TYPE_CHECKING:
    from ...charts.loading import Figure


class Pictured(Displayed):
    """A result that has a picture."""

    def picture(self) -> Picture:
        """The picture of the result."""
        raise NotImplementedError

    @property
    def figure(self) -> Figure:
        """The picture as a Plotly figure. Raises SparkStreamError where Plotly is not installed."""
        return draw_figure(self.picture())


class Plottable(Displayed):
    """A result whose rows can be plotted."""

    def _rows_to_plot(self, by: str | None) -> tuple[pd.DataFrame, str]:
        """The rows, which get a line for each value of `by`, and the title of their figure."""
        raise NotImplementedError

    def plot(
        self,
        y: str | Sequence[str] | None = None,
        *,
        by: str | None = None,
        x: str | None = None,
        kind: ChartKind = "line",
    ) -> Figure:
        """The rows as a Plotly figure; with `by="SHARD_ID"` a line for each shard, the events of a stream get one for
        each node by default. See `sparkstream_nb.plot`."""
        frame, title = self._rows_to_plot(by)
        return draw_figure(frame_picture(frame, title, FramePlot(y, by, x, kind)))
