"""The display of traces."""

from __future__ import annotations

from ..app.results.traces import PatternTrace, WindowTrace
from .display import html, text
from .drawings import pattern_trace_drawing, window_trace_drawing


@text.register
def _(shown: WindowTrace) -> str:
    return window_trace_drawing.text(shown)


@html.register
def _(shown: WindowTrace) -> str:
    return window_trace_drawing.image(shown)


@text.register
def _(shown: PatternTrace) -> str:
    return pattern_trace_drawing.text(shown)


@html.register
def _(shown: PatternTrace) -> str:
    return pattern_trace_drawing.image(shown)
