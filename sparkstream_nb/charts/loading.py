"""Figures of Plotly, which is loaded on first use: it takes its time, and need not be installed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ..errors import SparkStreamError
from .picture import Picture
from .plotly_picture import plotly_figure

if TYPE_CHECKING:
    from plotly.graph_objects import Figure as Figure

_INK = "#444"
"""The colour of texts and lines in the place of the page's."""


def draw_figure(picture: Picture) -> Figure:
    """A picture as a Plotly figure. Raises SparkStreamError where Plotly is not installed."""
    try:
        plotly = import_module("plotly.graph_objects")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "plotly":
            raise
        text = "Figures need Plotly, which is not installed: pip install 'sparkstream-nb[magics]'"
        raise SparkStreamError(text) from None
    plain = plotly_figure(picture, ink=_INK)
    figure: Figure = plotly.Figure(plain.data, {**plain.layout, "template": "plotly_white"})
    return figure
