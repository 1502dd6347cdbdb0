"""The display of traces."""

from __future__ import annotations

from collections.abc import Sequence

from ..app.pictures import pattern_trace_picture as patterns
from ..app.pictures import window_trace_picture as windows
from ..app.pictures.trace_labels import feed_notes, moment_text, values_text
from ..app.results.traces import PatternTrace, Stay, WindowTrace
from ..charts.picture import INK, Picture
from ..charts.style import WIDTH
from ..charts.svg_picture import SAVED_INK, svg
from .display import html, text
from .drawings.image import image
from .drawings.pictures import on_white

_CHART = 48
"""Characters of a bar in plain text."""


def trace_svg(trace: WindowTrace | PatternTrace, *, width: int = WIDTH, ink: str = SAVED_INK) -> str:
    """The picture of a trace as an SVG element, `width` px wide; on a white ground, unless the texts have the page's
    colour (`ink`)."""
    element = svg(trace_picture(trace), width, ink)
    return element if ink == INK else on_white(element)


def trace_picture(trace: WindowTrace | PatternTrace) -> Picture:
    """The picture of a trace."""
    if isinstance(trace, WindowTrace):
        return windows.window_trace_picture(trace)
    return patterns.pattern_trace_picture(trace)


# ------------------------------------------------------------------------------------------------------------- windows


@html.register
def _(trace: WindowTrace) -> str:
    return image(trace_picture(trace))


@text.register
def _(trace: WindowTrace) -> str:
    """The picture in characters: `░` an event that is not emitted yet, `█` one in the window, `▶` still there."""
    lines = [windows.title_of(trace)]
    start, end = trace.feed.start, max(trace.feed.end, trace.feed.start + 1)
    total = sum(len(w.stays) for w in trace.windows)
    labels = windows.labels_of(trace)
    stay_count = 0
    for w in trace.windows:
        stays = list(w.stays)[: windows.MOST_BARS]
        stay_count += len(stays)
        if len(trace.windows) > 1:
            lines.append(f"{w.stream}: {w.text}")
        names = [windows.label_of(s, labels) for s in stays]
        wide = min(max(map(len, names), default=0), 30)
        lines += [
            f"{name[:wide]:<{wide}}  {_chart(s, start, end)}  {_span(s, start)}"
            for name, s in zip(names, stays, strict=True)
        ]
        if w.resets:
            lines.append(f"reset at {', '.join(moment_text(r, start) for r in w.resets)}")
    lines += _outputs_text(trace, start)
    return "\n".join([*lines, *feed_notes(trace.feed, stay_count, total, "event")])


def _chart(s: Stay, start: int, end: int) -> str:
    def place(ms: int) -> int:
        return round((min(ms, end) - start) / (end - start) * _CHART)

    first, last = place(s.entry), place(end if s.left is None else s.left)
    if not s.held:
        return (" " * first + ("·" if s.emitted is None else "•")).ljust(_CHART + 1)
    turn = last if s.emitted is None else min(max(place(s.emitted), first), last)
    bar = " " * first + "░" * (turn - first) + "█" * (last - turn)
    return (bar + ("▶" if s.left is None else "")).ljust(_CHART + 1)


def _span(s: Stay, start: int) -> str:
    entry_text = moment_text(s.entry, start)
    if not s.held:
        return f"{entry_text}: {'not taken in' if s.emitted is None else 'emitted at once'}"
    emission_text = "" if s.emitted in (None, s.entry) else f", emitted {moment_text(s.emitted or 0, start)}"
    return f"{entry_text} to {'the end' if s.left is None else moment_text(s.left, start)}{emission_text}"


def _outputs_text(t: WindowTrace, start: int) -> Sequence[str]:
    outputs = t.outputs[: windows.MOST_BARS]
    return [
        f"output at {moment_text(o.time, start)}: {'expired ' if o.expired else ''}{values_text(o.values)}"
        for o in outputs
    ]


# ------------------------------------------------------------------------------------------------------------ patterns


@html.register
def _(trace: PatternTrace) -> str:
    return image(trace_picture(trace))


@text.register
def _(trace: PatternTrace) -> str:
    """The partial matches in words, a line for each."""
    partials = list(trace.partials)[: patterns.MOST_LANES]
    lines = [patterns.title_of(trace), patterns.describe(trace), *(patterns.partial_text(trace, p) for p in partials)]
    lines += [
        f"output at {moment_text(o.time, trace.feed.start)}: {values_text(o.values)}"
        for o in list(trace.outputs)[: patterns.MOST_LANES]
    ]
    notes = feed_notes(trace.feed, len(partials), len(trace.partials), "partial match", "partial matches")
    return "\n".join([*lines, *notes])
