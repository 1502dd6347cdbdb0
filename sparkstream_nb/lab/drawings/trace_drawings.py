"""The drawings of traces, by class."""

from __future__ import annotations

from ...app.results.traces import PatternTrace, WindowTrace
from . import pattern_trace_drawing, window_trace_drawing
from .pictures import INK, WIDTH, on_white


def svg(trace: WindowTrace | PatternTrace, *, width: int = WIDTH, ink: str = INK) -> str:
    """The picture of a trace as an SVG element; on a white ground, unless the texts have the page's colour (`ink`)."""
    if isinstance(trace, WindowTrace):
        picture = window_trace_drawing.svg(trace, width=width, ink=ink)
    else:
        picture = pattern_trace_drawing.svg(trace, width=width, ink=ink)
    return picture if ink == "currentColor" else on_white(picture)
