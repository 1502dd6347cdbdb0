"""Drawings of traces on the pages of the site, in the colours of the page."""

from __future__ import annotations

from sparkstream_nb.app.results.traces import PatternTrace, WindowTrace
from sparkstream_nb.lab.traces_shown import trace_svg


def drawing(trace: WindowTrace | PatternTrace) -> str:
    """A trace as a block of HTML that is as wide as the page."""
    return f'<div class="drawing">{trace_svg(trace, width=760, ink="currentColor")}</div>\n'
