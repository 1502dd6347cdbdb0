"""The display of traces."""

from __future__ import annotations

from ..app.results.traces import PatternTrace, WindowTrace
from .display import html, text
from .drawings import pattern_trace_drawing, window_trace_drawing


@text.register
def _(trace: WindowTrace) -> str:
    return window_trace_drawing.text(trace)


@html.register
def _(trace: WindowTrace) -> str:
    return window_trace_drawing.image(trace)


@text.register
def _(trace: PatternTrace) -> str:
    return pattern_trace_drawing.text(trace)


@html.register
def _(trace: PatternTrace) -> str:
    return pattern_trace_drawing.image(trace)
