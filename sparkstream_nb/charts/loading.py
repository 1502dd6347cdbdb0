"""Draws figures with Plotly, which is loaded on first use: it takes its time, and need not be installed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ..errors import SparkStreamError
from .picture import Picture

if TYPE_CHECKING:
    from .plotly_picture import Figure


def draw_figure(picture: Picture) -> Figure:
    """A picture as a Plotly figure. Raises SparkStreamError where Plotly is not installed."""
    try:
        renderer = import_module(".plotly_picture", __package__)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "plotly":
            raise
        raise SparkStreamError("Figures need Plotly, which is not installed: pip install plotly") from None
    figure: Figure = renderer.figure_of(picture)
    return figure
