"""The drawing of a pattern: the events by stream above, and below a lane for each partial match with its captures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...app.results.traces import AbsenceWait, Capture, PartialTrace, PatternTrace, TracedEvent
from ...charts.value_texts import format_count
from .pictures import INK, WIDTH, embed_svg, text_width
from .trace_parts import (
    AXIS_HEIGHT,
    BLUE,
    GREEN,
    HEAD_HEIGHT,
    LABEL_WIDTH,
    ORANGE,
    OUTPUT_HEIGHT,
    RED,
    Axis,
    EventLabels,
    Heading,
    LabelRow,
    cut_text,
    escape_text,
    feed_notes,
    moment_text,
    note_lines,
    output_lane,
    picture,
    values_text,
)

MOST_LANES = 40
"""Partial matches that are drawn at most."""
_ROW, _EVENT_ROW, _LABEL_ROW = 30.0, 24.0, 12.0
_ROWS_BELOW = 3
"""Rows of labels below the events of a stream at most."""
_COLOURS = {"match": GREEN, "expired": ORANGE, "dropped": RED, "waiting": BLUE}
_WORDS = {
    "match": "match", "expired": "expired: within passed", "dropped": "dropped", "waiting": "still waits at the end",
}  # fmt: skip


def title_of(t: PatternTrace) -> str:
    """The query and its pattern."""
    return f"{t.query}: {t.text}"


class _PatternDrawing:
    def __init__(self, t: PatternTrace, width: int) -> None:
        self.t, self.width = t, width
        self.partials = list(t.partials)[:MOST_LANES]
        cut = len(self.partials) < len(t.partials)
        ends = [t.feed.end if p.ended is None else p.ended for p in self.partials]
        end = max(ends, default=t.feed.end) if cut else max([t.feed.end, *ends])
        starts = [t.feed.start, *(p.start for p in self.partials)]
        names = [*t.streams, "outputs", *(self._label(p) for p in self.partials)]
        left = 32 + min(max(map(text_width, names)), LABEL_WIDTH, width / 3)
        self.axis = Axis(min(starts), max(end, t.feed.start + 1), left, width)
        self.events = [e for e in t.events if e.time <= self.axis.end]
        self.outputs = [o for o in t.outputs if o.time <= self.axis.end]
        self.notes = feed_notes(t.feed, len(self.partials), len(t.partials), "partial match", "partial matches")

    @staticmethod
    def _label(p: PartialTrace) -> str:
        return f"{p.number}  {p.key}" if p.key else str(p.number)

    def draw(self, ink: str) -> str:
        parts: list[str] = []
        y = top = HEAD_HEIGHT
        guides = []
        event_numbers = {c.event.number for p in self.partials for c in p.captures if c.event is not None}
        for stream in self.t.streams:
            stream_events = [e for e in self.events if e.stream == stream]
            stream_parts, height = self._stream(stream, stream_events, event_numbers, y)
            parts += stream_parts
            y += height
        events_end = y
        y += 8
        for i, p in enumerate(self.partials):
            if i % 2 == 0:
                guides.append(f'<rect x="0" y="{y:.0f}" width="{self.width}" height="{_ROW:.0f}" fill-opacity=".04"/>')
            parts += self._lane(p, y)
            y += _ROW
        guides += self._guides(events_end, y)
        y += 4
        if self.outputs:
            parts += output_lane(self.axis, self.outputs, y, self.t.feed.labels)
            y += OUTPUT_HEIGHT
        grid = list(self.axis.draw(top - 4, y))
        y += AXIS_HEIGHT
        parts += note_lines(self.notes, y + 8)
        heading = Heading(title_of(self.t), describe(self.t), self._legend())
        height = y + 16 * len(self.notes) + 4
        return picture(heading, self.width, height, [*guides, *grid, *parts], ink)

    def _guides(self, top: float, bottom: float) -> Iterator[str]:
        """Thin lines from the captured events down to the partial matches."""
        times = {c.time for p in self.partials for c in p.captures if c.event is not None}
        for time in sorted(times):
            x = self.axis.x(time)
            yield (
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top - 8:.0f}" y2="{bottom:.0f}" stroke="currentColor" '
                'stroke-opacity=".35" stroke-dasharray="1 3"/>'
            )

    def _stream(
        self, stream: str, events: Sequence[TracedEvent], event_numbers: set[int], y: float
    ) -> tuple[list[str], float]:
        """The lane of a stream, and its height. A label that does not fit before the next event is in a row below."""
        axis, middle = self.axis, y + _EVENT_ROW / 2
        name = escape_text(cut_text(stream, axis.left - 18))
        parts = [f'<text x="8" y="{middle + 4:.0f}" font-weight="600">{name}</text>']
        labels = EventLabels(self.t.feed.labels, [(e.timestamp, e.values) for e in events])
        beside, *below = (LabelRow(middle + 4 + _LABEL_ROW * i, axis.left) for i in range(1 + _ROWS_BELOW))
        places, end = [axis.x(e.time) for e in events], float(axis.width)
        used_below = 0
        for x, following, e in zip(places, [*places, end][1:], events, strict=True):
            title = escape_text(f"{e.stream} at {moment_text(e.time, self.t.feed.start)}\n{values_text(e.values)}")
            fill = (
                'fill="currentColor"'
                if e.number in event_numbers
                else 'fill="none" stroke="currentColor" stroke-width="1.4"'
            )
            label = labels.text(e.values)
            roomy = next((i for i, row in enumerate(below) if row.has_room(label, x, end)), None)
            if roomy is None or beside.has_room(label, x, following):
                label_svg = beside.place(label, x, following)
            else:
                label_svg = below[roomy].place(label, x, end)
                beside.free = max(beside.free, x + 5)  # no label covers the mark
                used_below = max(used_below, roomy + 1)
            circle = f'<circle cx="{x:.1f}" cy="{middle:.1f}" r="4.2" {fill}/>'
            parts.append(f"<g><title>{title}</title>{circle}{label_svg}</g>")
        return parts, _EVENT_ROW + _LABEL_ROW * used_below

    def _lane(self, p: PartialTrace, y: float) -> Iterator[str]:
        axis, middle = self.axis, y + _ROW / 2 + 5
        colour = _COLOURS[p.end]
        title = escape_text(partial_text(self.t, p))
        yield f'<g><title>{title}</title><text x="8" y="{middle + 4:.0f}">{escape_text(self._label(p))}</text>'
        for wait in p.waits:
            yield from self._wait(wait, middle)
        begin = axis.x(min([p.start, *(c.time for c in p.captures)]))
        last = axis.x(axis.end if p.ended is None else p.ended)
        turn = axis.x(p.start) if p.parent is not None else begin
        if turn > begin:
            yield _line(begin, turn, middle, colour, ' stroke-dasharray="2 3"')
        yield _line(turn, last, middle, colour)
        yield from self._captures(p, middle, colour)
        yield from self._end(p, last, middle)
        yield "</g>"

    def _wait(self, wait: AbsenceWait, middle: float) -> Iterator[str]:
        first, last = self.axis.x(wait.start), self.axis.x(wait.end)
        if last - first < 1:
            return
        yield wait_band(first, last, middle)
        label = cut_text(self.t.states[wait.state].text, last - first - 8)
        if len(label) > 4:
            middle_x = (first + last) / 2
            yield (
                f'<text x="{middle_x:.1f}" y="{middle - 8:.0f}" font-size="10" text-anchor="middle" '
                f'font-style="italic">{escape_text(label)}</text>'
            )

    def _captures(self, p: PartialTrace, middle: float, colour: str) -> Iterator[str]:
        free = -1e9
        for i, c in enumerate(p.captures):
            x = self.axis.x(c.time)
            shared = i < p.shared
            if c.event is None:
                yield absence_mark(x, middle, colour)
            else:
                yield capture_mark(x, middle, colour, hollow=shared or self.t.states[c.state].absent)
            name = self._capture_name(p, i)
            half = text_width(name) / 2 * 0.85
            if x - half > free:
                yield (
                    f'<text x="{x:.1f}" y="{middle - 8:.0f}" font-size="10.5" text-anchor="middle">'
                    f"{escape_text(name)}</text>"
                )
                free = x + half

    def _capture_name(self, p: PartialTrace, i: int) -> str:
        """`e1`; of several events of one state `e1[0]`; of an absence nothing, as its span has its text."""
        c = p.captures[i]
        if c.event is None:
            return ""
        same = [k for k, other in enumerate(p.captures) if other.state == c.state and other.event is not None]
        name = self.t.states[c.state].name
        return f"{name}[{same.index(i)}]" if len(same) > 1 else name

    def _end(self, p: PartialTrace, x: float, middle: float) -> Iterator[str]:
        yield end_mark(p.end, x, middle)
        words = {"match": "match", "waiting": "waits"}.get(p.end, p.reason or p.end)
        if p.end == "waiting" and x > self.width - 60:
            return
        wide = 0.93 * text_width(words)
        place, y, anchor = x + 10, middle + 4, "start"
        if wide > self.width - x - 14:  # above the line, if its last event is far enough
            place, y, anchor = x - 8, middle - 8, "end"
            if p.captures and self.axis.x(p.captures[-1].time) + 20 > place - wide:
                return
        yield (
            f'<text x="{place:.1f}" y="{y:.0f}" font-size="11" font-style="italic" text-anchor="{anchor}">'
            f"{escape_text(words)}</text>"
        )

    def _legend(self) -> list[tuple[str, str]]:
        ends = {p.end for p in self.partials}
        rows = [(capture_mark(0, 0, "currentColor"), "captured event", bool(self.partials))]
        rows += [(end_mark(end, 0, 0), words, end in ends) for end, words in _WORDS.items()]
        rows.append((wait_band(-6, 9, 0), "waits for an absence", any(p.waits for p in self.partials)))
        copy_line = _line(-6, 9, 0, "currentColor", ' stroke-dasharray="2 3"')
        rows.append((copy_line, "copied by every", any(p.parent is not None for p in self.partials)))
        return [(mark, words) for mark, words, present in rows if present]


def _line(first: float, last: float, middle: float, colour: str, dash: str = "") -> str:
    return (
        f'<line x1="{first:.1f}" x2="{last:.1f}" y1="{middle:.1f}" y2="{middle:.1f}" stroke="{colour}" '
        f'stroke-width="2"{dash}/>'
    )


def capture_mark(x: float, middle: float, colour: str, *, hollow: bool = False) -> str:
    """The event that a state has."""
    fill = f'fill="none" stroke="{colour}" stroke-width="2"' if hollow else f'fill="{colour}"'
    return f'<circle cx="{x:.1f}" cy="{middle:.1f}" r="4.5" {fill}/>'


def absence_mark(x: float, middle: float, colour: str) -> str:
    """The moment at which an absence was long enough."""
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{middle - 7:.1f}" y2="{middle + 7:.1f}" stroke="{colour}" '
        'stroke-width="2.5"/>'
    )


def wait_band(first: float, last: float, middle: float) -> str:
    """The span of an absence that is waited for."""
    return (
        f'<rect x="{first:.1f}" y="{middle - 5:.1f}" width="{last - first:.1f}" height="10" fill="{BLUE}" '
        f'fill-opacity=".13" stroke="{BLUE}" stroke-opacity=".6" stroke-dasharray="4 2"/>'
    )


def end_mark(end: str, x: float, middle: float) -> str:
    """The end of a partial match: a filled square, a cross, a barred circle, an arrow."""
    colour = _COLOURS[end]
    if end == "match":
        return f'<rect x="{x - 5.5:.1f}" y="{middle - 5.5:.1f}" width="11" height="11" rx="1.5" fill="{colour}"/>'
    if end == "waiting":
        return f'<path d="M{x:.1f} {middle - 5:.1f}l7 5l-7 5" fill="none" stroke="{colour}" stroke-width="2"/>'
    if end == "expired":
        return (
            f'<circle cx="{x:.1f}" cy="{middle:.1f}" r="6" fill="none" stroke="{colour}" stroke-width="1.6"/>'
            f'<path d="M{x:.1f} {middle - 4:.1f}v4l3 2" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        )
    return f'<path d="M{x - 5:.1f} {middle - 5:.1f}l10 10m0 -10l-10 10" stroke="{colour}" stroke-width="2.4"/>'


def svg(t: PatternTrace, *, width: int = WIDTH, ink: str = INK) -> str:
    """The picture."""
    return _PatternDrawing(t, width).draw(ink)


def image(t: PatternTrace) -> str:
    """The picture as an HTML image."""
    return embed_svg(svg(t), title_of(t))


def describe(t: PatternTrace) -> str:
    """The picture in words."""
    events = format_count(len(t.events), "event")
    partials = format_count(len(t.partials), "partial match", "partial matches")
    return f"{events}, {partials}, {format_count(len(t.matches), 'match', 'matches')}"


def partial_text(t: PatternTrace, p: PartialTrace) -> str:
    """A partial match in words: `1: e1 at 0 s (A), e2 at 3 s (B): match at 3 s`."""
    start = t.feed.start

    def one(c: Capture) -> str:
        state = t.states[c.state]
        if c.event is None:
            return f"{state.text} at {moment_text(c.time, start)}"
        return f"{state.name} at {moment_text(c.time, start)} ({values_text(c.event.values)})"

    captures = ", ".join(one(c) for c in p.captures) or f"waits from {moment_text(p.start, start)}"
    number = f"{p.number} [{p.key}]" if p.key else str(p.number)
    copy_text = f" copied from {p.parent}," if p.parent is not None else ""
    if p.end == "waiting":
        return f"{number}:{copy_text} {captures}: still waits at the end"
    assert p.ended is not None
    reason = f" ({p.reason})" if p.reason else ""
    return f"{number}:{copy_text} {captures}: {p.end} at {moment_text(p.ended, start)}{reason}"


def text(t: PatternTrace) -> str:
    """The partial matches in words, a line for each."""
    partials = list(t.partials)[:MOST_LANES]
    lines = [title_of(t), describe(t), *(partial_text(t, p) for p in partials)]
    lines += [
        f"output at {moment_text(o.time, t.feed.start)}: {values_text(o.values)}" for o in list(t.outputs)[:MOST_LANES]
    ]
    return "\n".join([*lines, *feed_notes(t.feed, len(partials), len(t.partials), "partial match", "partial matches")])
