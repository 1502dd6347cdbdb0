"""Common parts of the drawings of traces: the axis of time, labels of events, the lane of outputs."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from ...app.results.traces import TracedFeed, TracedOutput
from ...charts.value_texts import format_count, text_of, when
from ...errors import escape_controls
from .pictures import INK, WIDTH, text_width

_DAY = 86_400_000
_STEPS = (
    *(10**k * m for k in range(3) for m in (1, 2, 5)),
    *(1000 * s for s in (1, 2, 5, 10, 15, 30)), *(60_000 * m for m in (1, 2, 5, 10, 15, 30)),
    *(3_600_000 * h for h in (1, 2, 3, 6, 12)), *(_DAY * d for d in (1, 2, 7, 14, 28, 91, 182, 365)),
)  # fmt: skip
"""Distances (ms) of ticks."""
_TICK_ROOM = 96.0
_RIGHT = 30.0
"""Room (px) behind the last moment, for arrows."""
LABEL_WIDTH = 250.0
"""Width (px) of the labels of lanes at most."""
BLUE, ORANGE, GREEN, RED = "#1E88D2", "#E69F00", "#009E73", "#D55E00"
"""Okabe and Ito's colours, which the colour-blind tell apart; the blue is lighter, so that it reads on dark too."""


def moment_text(ms: int, start: int) -> str:
    """A moment of a trace that starts at `start`: seconds since 1970 for clocks on that day, as of examples; else the
    time in UTC."""
    return when(ms) if start >= _DAY or start < 0 else short_duration(ms)


def short_duration(ms: int) -> str:
    """`1.5 s`, `2 min`, `1 h 30 min`; the unit fits the duration."""
    if abs(ms) < 60_000:
        return f"{ms / 1000:g} s"
    hours, rest = divmod(ms, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    parts = [(hours, "h"), (minutes, "min"), (rest / 1000, "s")]
    return " ".join(f"{n:g} {unit}" for n, unit in parts if n)


def values_text(values: Mapping[str, Any]) -> str:
    """The values of an event, in the order of its attributes."""
    return ", ".join(text_of(v, name) for name, v in values.items())


class EventLabels:
    """The texts of labels of events: their chosen attributes, else all but those that repeat the event's own time.

    `rows` are the times (ms) and values of the events that are drawn.
    """

    def __init__(self, label_names: Sequence[str], rows: Sequence[tuple[int, Mapping[str, Any]]]) -> None:
        self._label_names = label_names
        names = {name for _, values in rows for name in values}
        self._repeated_names = {n for n in names if all(at >= _DAY and values.get(n, at) == at for at, values in rows)}

    def text(self, values: Mapping[str, Any]) -> str:
        """The label of an event with these values; all of them where none would be left."""
        names = [n for n in self._label_names if n in values] or [n for n in values if n not in self._repeated_names]
        return values_text({n: values[n] for n in names or values})


_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape_text(text: str) -> str:
    """A text for an SVG element: escaped, and without the characters that XML does not allow."""
    return html.escape(_NOT_XML.sub("\ufffd", escape_controls(text)))


def cut_text(text: str, room: float) -> str:
    """The beginning of a text that fits into a width (px)."""
    while len(text) > 1 and text_width(text) > room:
        text = text[:-2] + "…"
    return text


def cut_values(text: str, room: float) -> str:
    """The first values of a label that fit into a width (px); of the first one its beginning."""
    cut = cut_text(text, room)
    comma = cut.rfind(",")
    return cut if cut == text or comma < 0 else f"{cut[:comma]}…"


@dataclass
class LabelRow:
    """Places labels beside marks of one row, from left to right, so that they do not overlap. `free`: where the last
    one ends (px)."""

    y: float
    free: float

    def has_room(self, text: str, x: float, following: float) -> bool:
        """True if the whole label of the mark at `x` fits beside it."""
        full = 0.93 * text_width(text)
        return (x + 8 >= self.free and following - x - 16 >= full) or x - self.free - 14 > full

    def place(self, text: str, x: float, following: float) -> str:
        """A label of the mark at `x`, if there is room: to its right as far as the `following` mark, cut if need be,
        else to its left."""
        full, right, left = 0.93 * text_width(text), following - x - 16, x - self.free - 14
        begin, self.free = self.free, max(self.free, x + 5)
        if right < full < left and x - full > begin:
            return self._text(text, x - 8, "end")
        label = cut_values(text, right / 0.93)
        if right < 10 or label in ("", "…") or (len(label) < len(text) and right < 40):
            return ""
        self.free = x + 8 + 0.93 * text_width(label)
        return self._text(label, x + 8, "start")

    def _text(self, label: str, x: float, anchor: str) -> str:
        label_text = escape_text(label)
        return f'<text x="{x:.1f}" y="{self.y:.0f}" font-size="11" text-anchor="{anchor}">{label_text}</text>'


def feed_notes(feed: TracedFeed, drawn_count: int, total: int, what: str, several: str | None = None) -> list[str]:
    """Notes on events that a drawing leaves out."""
    notes = []
    if drawn_count < total:
        notes.append(f"The first {drawn_count:,} of {format_count(total, what, several)} are drawn.")
    if feed.cut:
        notes.append(f"The trace uses the first {feed.events:,} of the feed's {feed.given:,} events (limit).")
    return notes


@dataclass(frozen=True)
class Axis:
    """The time from `start` to `end` (ms) between `left` and the right edge of a picture that is `width` px wide."""

    start: int
    end: int
    left: float
    width: int = WIDTH

    def x(self, ms: int) -> float:
        """The place (px) of a moment."""
        room = self.width - self.left - _RIGHT
        return self.left + (min(max(ms, self.start), self.end) - self.start) / max(1, self.end - self.start) * room

    def ticks(self) -> list[tuple[int, str]]:
        """Moments (ms) with their labels, at distances that read well."""
        most = max(2.0, (self.width - self.left) / _TICK_ROOM)
        span = max(1, self.end - self.start)
        step = next((s for s in _STEPS if span / s <= most), _STEPS[-1])
        first = -(-self.start // step) * step
        return [(ms, self._label(ms, step)) for ms in range(first, self.end + 1, step)]

    def _label(self, ms: int, step: int) -> str:
        if 0 <= self.start < _DAY:
            return short_duration(ms)
        try:
            moment = datetime.fromtimestamp(ms / 1000, UTC)
        except (OverflowError, ValueError):  # no calendar has it
            return str(ms)
        if step >= _DAY:
            return moment.strftime("%Y-%m-%d")
        text = moment.strftime("%H:%M:%S" if step < 60_000 else "%H:%M")
        return f"{text}.{ms % 1000:03d}" if step < 1000 else text

    def draw(self, top: float, bottom: float) -> Iterator[str]:
        """Lines at the ticks between `top` and `bottom`, and their labels below."""
        for ms, label in self.ticks():
            x = self.x(ms)
            yield (
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.0f}" y2="{bottom:.0f}" stroke="currentColor" '
                f'stroke-opacity=".13"/><text x="{x:.1f}" y="{bottom + 15:.0f}" text-anchor="middle">{label}</text>'
            )
        day = 0 <= self.start < _DAY
        axis_title = "the app's clock" if day else f"the app's clock (UTC), from {when(self.start)}"
        middle = (self.left + self.width) / 2
        yield f'<text x="{middle:.0f}" y="{bottom + 32:.0f}" text-anchor="middle">{axis_title}</text>'


AXIS_HEIGHT = 40.0


def output_lane(
    axis: Axis, outputs: Sequence[TracedOutput], top: float, label_names: Sequence[str] = ()
) -> Iterator[str]:
    """Marks of the query's outputs, one mark for each moment, and their values where there is room; of the attributes
    `label_names` alone, if there are any."""
    labels = EventLabels(label_names, [(o.time, o.values) for o in outputs])
    middle = top + 12
    yield f'<text x="8" y="{middle + 4:.0f}" font-weight="600">outputs</text>'
    groups = [(time, list(outputs_at)) for time, outputs_at in groupby(outputs, key=lambda o: o.time)]
    row = LabelRow(middle + 4, axis.left)
    for i, (time, outputs_at) in enumerate(groups):
        x = axis.x(time)
        following = axis.x(groups[i + 1][0]) if i + 1 < len(groups) else float(axis.width)
        title = "\n".join(("expired: " if o.expired else "") + values_text(o.values) for o in outputs_at)
        hollow = all(o.expired for o in outputs_at)
        fill = f'fill="none" stroke="{ORANGE}" stroke-width="1.6"' if hollow else f'fill="{ORANGE}"'
        many = f"{len(outputs_at)}×" if len(outputs_at) > 1 else ""
        yield (f'<path d="M{x:.1f} {middle - 5:.1f}l5 9h-10z" {fill}><title>{escape_text(title)}</title></path>')
        yield row.place(many or labels.text(outputs_at[0].values), x, following)


OUTPUT_HEIGHT = 26.0


@dataclass(frozen=True)
class Heading:
    """The head of a drawing: its title, a description of the whole for readers who do not see it, and a legend of
    (mark, words)."""

    title: str
    description: str
    legend: Sequence[tuple[str, str]]


HEAD_HEIGHT = 58.0


def picture(heading: Heading, width: int, height: float, parts: Sequence[str], ink: str = INK) -> str:
    """The whole SVG element. `ink`: the colour of texts; `currentColor` for the colour of the page around it."""
    title, description = escape_text(heading.title), escape_text(heading.description)
    lines = _title_lines(heading.title, width)
    below = 18 * (len(lines) - 1)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + below:.0f}" width="{width}" '
        f'height="{height + below:.0f}" role="img" aria-label="{title}" '
        f'style="font:12px system-ui,sans-serif;color:{ink};max-width:100%;height:auto" fill="currentColor">'
        f"<title>{title}</title><desc>{description}</desc>"
    ]
    out += [
        f'<text x="8" y="{18 + 18 * i}" font-size="14" font-weight="600">{escape_text(line)}</text>'
        for i, line in enumerate(lines)
    ]
    if below:
        out.append(f'<g transform="translate(0 {below})">')
    x = 14.0
    for mark, words in heading.legend:
        out.append(f'<g transform="translate({x:.0f} 40)">{mark}</g><text x="{x + 16:.0f}" y="44">{words}</text>')
        x += 42 + text_width(words)
    return "".join([*out, *parts, "</g></svg>" if below else "</svg>"])


def _title_lines(title: str, width: int) -> list[str]:
    """A title in one line or two of a picture that is `width` px wide; what does not fit is cut."""
    room = (width - 16) / 1.3  # its letters are wider than others
    if text_width(title) <= room:
        return [title]
    first = textwrap.wrap(title, max(8, int(room / text_width("x"))), break_on_hyphens=False)[0]
    return [first, cut_text(title[len(first) :].strip(), room)]


def note_lines(notes: Sequence[str], top: float) -> list[str]:
    """Notes below a drawing."""
    return [
        f'<text x="8" y="{top + 16 * i:.0f}" font-style="italic">{escape_text(note)}</text>'
        for i, note in enumerate(notes)
    ]
