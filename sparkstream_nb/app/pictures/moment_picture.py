"""The state of a query at a moment, by node: the events in its windows on event time, or its partial matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from ...charts.picture import (
    INK,
    Bars,
    Lane,
    LaneAxis,
    Mark,
    Panel,
    Picture,
    Rules,
    Segments,
    Style,
    Symbol,
    Texts,
    floats,
)
from ...charts.value_texts import format_count, when
from ...plan import nodes
from ...plan.query_parts import enclosing_state, stream_states
from ...plan.reports.show_input import show_state, show_states, state_names
from ..results.moment_changes import PartialChange, WindowChanges, partial_changes, window_changes
from .trace_labels import BLUE, ENDS, GREEN, LABEL_SIZE, ORANGE, RED, Place, clock_axis, points, values_text

if TYPE_CHECKING:
    from ...engine.runtime.descriptions import DescribedEvent
    from ..results.moment import Moment, QueryMoment


class _Look(NamedTuple):
    """The symbol of a mark, with its name in the legend and its radius (px)."""

    name: str
    symbol: Symbol
    style: Style
    radius: float


MOST_ROWS = 50
"""Events of a window on a node, and partial matches of all nodes, that are drawn at most."""
_ROW, _HEADING, _WINDOW_ROW = 30.0, 22.0, 34.0
_LINE = 0.7
"""The place of a partial match in its lane: its labels are above the line."""
_ROWS_BELOW = 2
_ROOM = 0.04
"""The share of the axis after the last mark: the label of a tick has room there."""
_WITHIN = Style(INK, opacity=0.08)
_IN_WINDOW = _Look("in the window", "circle", Style(BLUE), 4.5)
_WAITING = _Look("not emitted yet", "circle", Style(BLUE, is_outline=True, width=1.6), 4.5)
_NEXT = _Look("leaves next", "diamond", Style(ORANGE), 5.5)
_NEW = _Look("came in this step", "circle", Style(GREEN, is_outline=True, width=2), 8.5)
_GONE = _Look("left in this step", "cross", Style(RED, width=2), 4.5)
_LOWEST = (_IN_WINDOW, _WAITING, _NEXT)
"""The looks that are below all others."""


def moment_picture(now: Moment, before: Moment | None, query: str) -> Picture | None:
    """The picture of a query's state; None if it keeps no events. `before`: the moment one step earlier, against which
    changes are marked."""
    moment = now[query]
    drawing = _Drawing(is_of_lines=isinstance(moment.query.input, nodes.StateInput))
    if isinstance(moment.query.input, nodes.StateInput):
        notes = _draw_partials(drawing, moment, partial_changes(now, before, query), now.clock or 0)
        title = f"{query}: {show_states(moment.query.input)}"
    elif any(q.windows for q in moment.by_node.values()):
        notes = _draw_windows(drawing, window_changes(now, before, query))
        title = f"{query}: {moment.input_text}"
    else:
        return None
    return drawing.picture(title, notes, now.clock)


@dataclass
class _Drawing:
    """Lanes from above, with bars, lines, symbols by look, and labels at their places. `is_of_lines`: the symbols are
    on lines, and their labels above these."""

    lanes: list[Lane] = field(default_factory=list)
    places: dict[_Look, list[Place]] = field(default_factory=lambda: {look: [] for look in _LOWEST})
    labels: list[tuple[float, float, str]] = field(default_factory=list)
    lines: dict[Style, list[tuple[float, float, float]]] = field(default_factory=dict)
    spans: list[tuple[float, float, int]] = field(default_factory=list)
    headings: list[tuple[int, str]] = field(default_factory=list)
    timers: list[int] = field(default_factory=list)
    is_of_lines: bool = False

    def add(self, look: _Look, place: Place) -> None:
        """Adds a symbol."""
        self.places.setdefault(look, []).append(place)

    def add_heading(self, text: str) -> None:
        """Adds a lane with a heading."""
        self.headings.append((len(self.lanes), text))
        self.lanes.append(Lane("", _HEADING, shade=0.05))

    def picture(self, title: str, notes: Sequence[str], clock: int | None) -> Picture:
        """All of it on the axis of event time, with the clock of the moment."""
        first, last = self._span(clock)
        marks: list[Mark] = list(self._bars())
        for style, lines in self.lines.items():
            x0, x1, y = (floats(v) for v in zip(*lines, strict=True))
            marks.append(Segments(x0=x0, x1=x1, y0=y, y1=y, style=style))
        for look, places in self.places.items():
            marks += points(places, look.symbol, look.radius, look.style, name=look.name)
        if self.labels:
            at, lanes, texts = zip(*sorted(self.labels), strict=True)
            rows, shift = (0, -5.0) if self.is_of_lines else (_ROWS_BELOW, 4.0)
            marks.append(
                Texts(
                    x=floats(at), y=floats(lanes), texts=texts, anchor="beside", rows=rows, shift=shift, size=LABEL_SIZE
                )
            )  # fmt: skip
        for lane, text in self.headings:
            marks.append(Texts(x=floats([first]), y=floats([lane + 0.5]), texts=[text], anchor="start", is_bold=True))
        if clock is not None:
            marks.append(Rules(x=floats([clock]), style=Style(INK, width=2), name="this moment"))
        if timers := sorted({t for t in self.timers if first <= t <= last}):
            marks.append(Rules(x=floats(timers), style=Style(INK, opacity=0.6, dash="dot"), name="next timer"))
        axis = replace(clock_axis(int(first), int(last)), title="event time (UTC)")
        return Picture(title, [Panel(axis, LaneAxis(self.lanes or [Lane("", _ROW)]), marks)], notes)

    def _bars(self) -> Iterator[Mark]:
        if self.spans:
            x0, x1, lane = (floats(v) for v in zip(*self.spans, strict=True))
            yield Bars(x0=x0, x1=x1, y0=lane + 0.1, y1=lane + 0.9, style=_WITHIN, rounding=3, name="within")

    def _span(self, clock: int | None) -> tuple[float, float]:
        """From the first mark to the last; of what is still to come, three times as long as what was at most."""
        past_times = [p.time for places in self.places.values() for p in places]
        now = max(past_times, default=0) if clock is None else clock
        first = min([*past_times, now])
        later = [*self.timers, *(end for _, end, _ in self.spans), now]
        last = min(max(later), now + 3 * max(now - first, 1000))
        return first - 0.02 * (last - first), max(last, *past_times, now) + _ROOM * (last - first) + 1


def _draw_windows(drawing: _Drawing, changes: Sequence[WindowChanges]) -> list[str]:
    """A lane for each node, of each window."""
    notes = []
    is_join = len(changes) > len({c.node for c in changes})
    for change in changes:
        window, lane = change.window, len(drawing.lanes) + 0.5
        name = f"{change.node} · {window.stream}#{window.function}" if is_join else change.node
        drawing.lanes.append(Lane(name, _WINDOW_ROW, shade=0.05 if len(drawing.lanes) % 2 else 0.0))
        if window.due is not None:
            drawing.timers.append(window.due)
        next_numbers, numbers = change.next_numbers, _drawn_numbers(change)
        for i in numbers:
            event, is_next = window.events[i], i in next_numbers
            place = Place(event.timestamp, lane, _event_title(event, is_next, window.due))
            drawing.add(_NEXT if is_next else _WAITING if event.is_waiting else _IN_WINDOW, place)
            if i in change.added_numbers:
                drawing.add(_NEW, place)
            drawing.labels.append((event.timestamp, lane, _event_text(event)))
        for event in change.removed_events[:MOST_ROWS]:
            drawing.add(_GONE, Place(event.timestamp, lane, f"{_event_text(event)}\nleft in this step"))
        if len(numbers) < len(window.events):
            notes.append(
                f"{name}: {len(numbers)} of {len(window.events):,} events are drawn, the first, the last and new ones."
            )
        if len(change.removed_events) > MOST_ROWS:
            rest = format_count(len(change.removed_events) - MOST_ROWS, "further event")
            notes.append(f"{name}: {rest} left in this step.")
    return notes


def _drawn_numbers(change: WindowChanges) -> list[int]:
    """The numbers of the events of a window that are drawn, ascending: of many the new, the first and the last."""
    count = len(change.window.events)
    if count <= MOST_ROWS:
        return list(range(count))
    ends = [number for i in range(MOST_ROWS) for number in (i, count - 1 - i)]
    return sorted(list(dict.fromkeys([*sorted(change.added_numbers), *ends]))[:MOST_ROWS])


def _event_text(event: DescribedEvent) -> str:
    text = values_text(event.values)
    return f"{event.key}: {text}" if event.key and event.key not in map(str, event.values.values()) else text


def _event_title(event: DescribedEvent, is_next: bool, due: int | None) -> str:
    lines = [_event_text(event), when(event.timestamp)]
    if is_next:
        lines.append("leaves next" if due is None else f"leaves next, at {when(due)}")
    return "\n".join(lines)


def _waits_text(change: PartialChange, slots: Sequence[int], source: nodes.StateInput, clock: int) -> str:
    """The states that a partial match waits for, and until when: `within` ends it, or an absence is long enough."""
    by_slot = {s.slot: s for s in stream_states(source.state)}
    states = [by_slot[slots[i]] for i in change.partial.waits_for]
    enclosing_states = [enclosing_state(source.state, s) for s in states]
    names = [
        show_state(outer, source) if isinstance(outer, nodes.AbsentState) else state_names(source)[s.slot]
        for s, outer in zip(states, enclosing_states, strict=True)
    ]
    ends = [max(change.times) + s.wait for s in enclosing_states if isinstance(s, nodes.AbsentState) and s.wait]
    if source.within is not None:
        ends.append(min(change.times) + source.within)
    if not ends:
        return f"waits for {', '.join(names)}"
    end = min(ends)
    return f"waits for {', '.join(names)}{' until' if end >= clock else ', within ended'} {_time_text(end, clock)}"


def _time_text(ms: int, clock: int) -> str:
    """A time; on the day of the clock without the day."""
    day, _, time = when(ms).partition(" ")
    return time if when(clock).startswith(day) else when(ms)


def _draw_partials(drawing: _Drawing, moment: QueryMoment, changes: Sequence[PartialChange], clock: int) -> list[str]:
    """A heading for each node, and below it a lane for each partial match; of many the changed ones and the last."""
    share = max(1, MOST_ROWS // max(1, len(moment.by_node)))
    notes = []
    for node, state in moment.by_node.items():
        rows = [c for c in changes if c.node == node]
        if state.due is not None:
            drawing.timers.append(state.due)
        count = sum(row.end is None for row in rows)
        drawing.add_heading(f"{node}: {format_count(count, 'partial match', 'partial matches')}")
        order = sorted(range(len(rows)), key=lambda i: (not rows[i].is_changed, -max(rows[i].times)))
        for i in sorted(order[:share]):
            _draw_partial(drawing, moment, rows[i], clock)
        if len(rows) > share:
            rest = format_count(len(rows) - share, "further partial match", "further partial matches")
            notes.append(f"{node}: {rest} not drawn.")
    return notes


def _draw_partial(drawing: _Drawing, moment: QueryMoment, change: PartialChange, clock: int) -> None:
    """A lane with the events of a partial match, the time that `within` leaves it, and what it waits for."""
    source, partial, lane = moment.query.input, change.partial, len(drawing.lanes)
    assert isinstance(source, nodes.StateInput)
    slots = moment.by_node[change.node].slots
    names = [state_names(source)[slot] for slot in slots]
    began, y = min(change.times), lane + _LINE
    ends = None if source.within is None else began + source.within
    colour = ENDS[change.end or "waiting"].colour
    captures = [(name, event) for name, events in zip(names, partial.events, strict=True) for event in events]
    captures.sort(key=lambda capture: capture[1].timestamp)
    waits = _waits_text(change, slots, source, clock) if change.end is None else ENDS[change.end].words
    texts = [f"{name}: {_event_text(event)}" if event.values else f"not {name}" for name, event in captures]
    title = "\n".join([*texts, waits])
    drawing.lanes.append(Lane(partial.key, _ROW))
    if ends is not None:
        drawing.spans.append((began, ends, lane))
    drawing.lines.setdefault(Style(colour, width=2), []).append((began, max(clock, began), y))
    for (_, event), text in zip(captures, texts, strict=True):
        place = Place(event.timestamp, y, title)
        drawing.add(_Look("event", "circle" if event.values else "bar", Style(colour, width=2.5), 4.5), place)
        drawing.labels.append((event.timestamp, y, text))
        if change.is_new and event is captures[-1][1]:
            drawing.add(_NEW, place)
    if change.end is not None:
        place = Place(clock, y, title)
        look = ENDS[change.end]
        drawing.add(_Look(waits, look.symbol, Style(colour, width=look.width), look.radius), place)
    drawing.labels.append((max(clock, began + 1), y, waits))
