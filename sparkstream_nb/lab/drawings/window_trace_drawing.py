"""The drawing of what windows hold: a bar for each event, from its arrival to the moment at which it leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...app.results.traces import Stay, TracedWindow, WindowTrace
from ...charts.value_texts import format_count, text_of
from .pictures import INK, WIDTH, embed_svg, text_width
from .trace_parts import (
    AXIS_HEIGHT,
    BLUE,
    HEAD_HEIGHT,
    LABEL_WIDTH,
    OUTPUT_HEIGHT,
    RED,
    Axis,
    EventLabels,
    Heading,
    cut_values,
    escape_text,
    feed_notes,
    moment_text,
    note_lines,
    output_lane,
    picture,
    values_text,
)

MOST_BARS = 60
"""Events of a window that are drawn at most."""
_ROW = 17.0
_CHART = 48
"""Characters of a bar in plain text."""


def labels_of(t: WindowTrace) -> EventLabels:
    """The labels of its events."""
    events = [s.event for w in t.windows for s in w.stays]
    return EventLabels(t.feed.labels, [(e.timestamp, e.values) for e in events])


def label_of(stay: Stay, labels: EventLabels | None = None) -> str:
    """An event's label, by default all of its values, after the key of its partition, unless that is one of them."""
    key, values = stay.event.key, stay.event.values
    label = values_text(values) if labels is None else labels.text(values)
    return label if key in ("", *map(text_of, values.values())) else f"{key}: {label}"


def title_of(t: WindowTrace) -> str:
    """The query, its windows and the number of events."""
    calls = " and ".join(w.text for w in t.windows)
    return f"{t.query}: {calls} over {format_count(t.feed.events, 'event')}"


class _WindowDrawing:
    def __init__(self, t: WindowTrace, width: int) -> None:
        self.t, self.width = t, width
        self.windows = [(w, list(w.stays)[:MOST_BARS]) for w in t.windows]
        self.labels = labels_of(t)
        stays = [s for _, window_stays in self.windows for s in window_stays]
        total = sum(len(w.stays) for w in t.windows)
        ends = [t.feed.end if s.left is None else s.left for s in stays]
        end = max(ends, default=t.feed.end) if len(stays) < total else t.feed.end
        widest = max((text_width(label_of(s, self.labels)) for s in stays), default=0.0)
        left = 24 + min(max(widest, text_width("outputs")), LABEL_WIDTH, width / 3)
        self.axis = Axis(t.feed.start, max(end, t.feed.start + 1), left, width)
        self.outputs = [o for o in t.outputs if o.time <= self.axis.end]
        self.notes = feed_notes(t.feed, len(stays), total, "event")
        self.has_gaps = len(t.windows) > 1

    def draw(self, ink: str) -> str:
        parts: list[str] = []
        y = top = HEAD_HEIGHT
        for window, stays in self.windows:
            if self.has_gaps:
                name = escape_text(f"{window.stream}: {window.text}")
                parts.append(f'<text x="8" y="{y + 12:.0f}" font-weight="600">{name}</text>')
                y += 20
            bottom = y + _ROW * max(1, len(stays))
            parts += self._resets(window, y, bottom)
            for i, stay in enumerate(stays):
                parts += self._bar(stay, y + _ROW * i)
            y = bottom + 6
        if self.outputs:
            parts += output_lane(self.axis, self.outputs, y, self.t.feed.labels)
            y += OUTPUT_HEIGHT
        grid = list(self.axis.draw(top - 4, y))
        y += AXIS_HEIGHT
        parts += note_lines(self.notes, y + 8)
        heading = Heading(title_of(self.t), describe(self.t), self._legend())
        return picture(heading, self.width, y + 16 * len(self.notes) + 4, [*grid, *parts], ink)

    def _resets(self, window: TracedWindow, top: float, bottom: float) -> Iterator[str]:
        for time in window.resets:
            if time <= self.axis.end:
                x = self.axis.x(time)
                yield (
                    f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top - 2:.0f}" y2="{bottom:.0f}" stroke="{RED}" '
                    'stroke-width="1.3" stroke-dasharray="3 3"/>'
                )

    def _bar(self, s: Stay, y: float) -> Iterator[str]:
        axis, middle = self.axis, y + _ROW / 2
        label = escape_text(cut_values(label_of(s, self.labels), axis.left - 18))
        title = escape_text(self._describe(s))
        yield f'<g><title>{title}</title><text x="8" y="{middle + 4:.0f}">{label}</text>'
        first, last = axis.x(s.entry), axis.x(axis.end if s.left is None else s.left)
        turn = last if s.emitted is None else min(max(axis.x(s.emitted), first), last)
        if not s.held:
            yield dropped_mark(first, middle) if s.emitted is None else passed_mark(first, middle)
        else:
            if turn > first:
                yield waiting_bar(first, turn, middle)
            if last > turn:
                yield held_bar(turn, last, middle)
            if s.left is None:
                yield arrow(last, middle)
        yield "</g>"

    def _describe(self, s: Stay) -> str:
        start = self.t.feed.start
        lines = [label_of(s), f"came at {moment_text(s.entry, start)}"]
        if s.emitted is not None and s.emitted != s.entry:
            lines.append(f"emitted at {moment_text(s.emitted, start)}")
        if not s.held:
            lines.append("not in the window after this step")
        else:
            lines.append("still in the window" if s.left is None else f"left at {moment_text(s.left, start)}")
        return "\n".join(lines)

    def _legend(self) -> list[tuple[str, str]]:
        stays = [s for _, window_stays in self.windows for s in window_stays]
        held_stays = [s for s in stays if s.held]
        rows = [
            (
                held_bar(-6, 8, 0),
                "in the window",
                any(s.emitted is not None and s.left != s.emitted for s in held_stays),
            ),
            (waiting_bar(-6, 8, 0), "not emitted yet", any(s.emitted != s.entry for s in held_stays)),
            (arrow(0, 0), "still there at the end", any(s.left is None for s in held_stays)),
            (passed_mark(0, 0), "emitted at once, not kept", any(not s.held and s.emitted is not None for s in stays)),
            (dropped_mark(0, 0), "not taken in", any(not s.held and s.emitted is None for s in stays)),
            (
                f'<line x1="2" x2="2" y1="-7" y2="7" stroke="{RED}" stroke-width="1.3" stroke-dasharray="3 3"/>',
                "reset", any(w.resets for w in self.t.windows),
            ),
        ]  # fmt: skip
        return [(mark, words) for mark, words, present in rows if present]


def held_bar(first: float, last: float, middle: float) -> str:
    """A bar for the time in the window after the emission."""
    return (
        f'<rect x="{first:.1f}" y="{middle - 5:.1f}" width="{max(last - first, 1):.1f}" height="10" rx="2" '
        f'fill="{BLUE}" fill-opacity=".8"/>'
    )


def waiting_bar(first: float, last: float, middle: float) -> str:
    """A bar for the time before the emission."""
    return (
        f'<rect x="{first + 0.7:.1f}" y="{middle - 4.3:.1f}" width="{max(last - first - 1.4, 1):.1f}" height="8.6" '
        f'rx="2" fill="{BLUE}" fill-opacity=".14" stroke="{BLUE}" stroke-width="1.2" stroke-dasharray="4 2"/>'
    )


def arrow(x: float, middle: float) -> str:
    """The end of a bar that continues."""
    return f'<path d="M{x + 2:.1f} {middle - 5:.1f}l7 5l-7 5z" fill="{BLUE}"/>'


def passed_mark(x: float, middle: float) -> str:
    """A dot for an event that a window emits at once, and does not keep."""
    return f'<circle cx="{x:.1f}" cy="{middle:.1f}" r="4" fill="{BLUE}"/>'


def dropped_mark(x: float, middle: float) -> str:
    """A ring for an event that a window does not take in."""
    return f'<circle cx="{x:.1f}" cy="{middle:.1f}" r="4" fill="none" stroke="currentColor" stroke-width="1.5"/>'


def svg(t: WindowTrace, *, width: int = WIDTH, ink: str = INK) -> str:
    """The picture."""
    return _WindowDrawing(t, width).draw(ink)


def image(t: WindowTrace) -> str:
    """The picture as an HTML image."""
    return embed_svg(svg(t), title_of(t))


def describe(t: WindowTrace) -> str:
    """The picture in words."""
    parts = []
    for w in t.windows:
        most = max((len(s.contents) for s in w.steps), default=0)
        parts.append(f"{w.text} of {w.stream} holds {format_count(most, 'event')} at most")
    parts.append(f"the query has {format_count(len(t.outputs), 'output')}")
    return "; ".join(parts)


def text(t: WindowTrace) -> str:
    """The picture in characters: `░` an event that is not emitted yet, `█` one in the window, `▶` still there."""
    lines = [title_of(t)]
    start, end = t.feed.start, max(t.feed.end, t.feed.start + 1)
    total = sum(len(w.stays) for w in t.windows)
    labels = labels_of(t)
    stay_count = 0
    for w in t.windows:
        stays = list(w.stays)[:MOST_BARS]
        stay_count += len(stays)
        if len(t.windows) > 1:
            lines.append(f"{w.stream}: {w.text}")
        names = [label_of(s, labels) for s in stays]
        wide = min(max(map(len, names), default=0), 30)
        lines += [
            f"{name[:wide]:<{wide}}  {_chart(s, start, end)}  {_span(s, start)}"
            for name, s in zip(names, stays, strict=True)
        ]
        if w.resets:
            lines.append(f"reset at {', '.join(moment_text(r, start) for r in w.resets)}")
    lines += _outputs_text(t, start)
    return "\n".join([*lines, *feed_notes(t.feed, stay_count, total, "event")])


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
    outputs = t.outputs[:MOST_BARS]
    return [
        f"output at {moment_text(o.time, start)}: {'expired ' if o.expired else ''}{values_text(o.values)}"
        for o in outputs
    ]
