"""The state of a query at a moment, by node: the events in its windows on event time, or its partial matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

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

MOST_ROWS = 50
"""Events of a window on a node, and partial matches of all nodes, that are drawn at most."""
_ROW, _HEADING, _WINDOW_ROW = 30.0, 22.0, 34.0
_LINE = 0.7
"""The place of a partial match in its lane: its labels are above the line."""
_ROWS_BELOW = 2
_WITHIN = Style(INK, opacity=0.08)
_WAITING = Style(BLUE, is_outline=True, width=1.6)
_NEW = Style(GREEN, is_outline=True, width=2)


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
    places: dict[tuple[str, Symbol, Style, float], list[Place]] = field(default_factory=dict)
    labels: list[tuple[float, float, str]] = field(default_factory=list)
    lines: dict[Style, list[tuple[float, float, float]]] = field(default_factory=dict)
    spans: list[tuple[float, float, int]] = field(default_factory=list)
    headings: list[tuple[int, str]] = field(default_factory=list)
    timers: list[int] = field(default_factory=list)
    is_of_lines: bool = False

    def add(self, name: str, symbol: Symbol, style: Style, radius: float, place: Place) -> None:
        """Adds a symbol, with its name in the legend."""
        self.places.setdefault((name, symbol, style, radius), []).append(place)

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
        for (name, symbol, style, radius), places in self.places.items():
            marks += points(places, symbol, radius, style, name=name)
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
        return first - 0.02 * (last - first), max(last, *past_times, now) + 0.02 * (last - first) + 1


def _draw_windows(drawing: _Drawing, changes: Sequence[WindowChanges]) -> list[str]:
    """A lane for each node, of each window."""
    notes = []
    has_several = len({c.window.stream for c in changes}) > 1
    for change in changes:
        lane, events = len(drawing.lanes) + 0.5, change.window.events
        where = f"{change.node} · {change.window.stream}" if has_several else change.node
        drawing.lanes.append(Lane(where, _WINDOW_ROW, shade=0.05 if len(drawing.lanes) % 2 else 0.0))
        if change.window.due is not None:
            drawing.timers.append(change.window.due)
        for i, event in enumerate(events):
            if len(events) > MOST_ROWS and MOST_ROWS // 2 <= i < len(events) - MOST_ROWS // 2:
                continue
            is_next = i == 0 and change.leaves_next
            place = Place(event.timestamp, lane, _event_title(event, is_next, change.window.due))
            if is_next:
                drawing.add("leaves next", "diamond", Style(ORANGE), 5.5, place)
            elif event.is_waiting:
                drawing.add("not emitted yet", "circle", _WAITING, 4.5, place)
            else:
                drawing.add("in the window", "circle", Style(BLUE), 4.5, place)
            if i in change.added_numbers:
                drawing.add("came in this step", "circle", _NEW, 8.5, place)
            drawing.labels.append((event.timestamp, lane, _event_text(event)))
        for event in change.removed_events[:MOST_ROWS]:
            place = Place(event.timestamp, lane, f"{_event_text(event)}\nleft in this step")
            drawing.add("left in this step", "cross", Style(RED, width=2), 4.5, place)
        if len(events) > MOST_ROWS:
            notes.append(f"{where}: the first and the last {MOST_ROWS // 2} of {len(events):,} events are drawn.")
        if len(change.removed_events) > MOST_ROWS:
            rest = format_count(len(change.removed_events) - MOST_ROWS, "further event")
            notes.append(f"{where}: {rest} left in this step.")
    return notes


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
        show_state(whole, source) if isinstance(whole, nodes.AbsentState) else state_names(source)[s.slot]
        for s, whole in zip(states, enclosing_states, strict=True)
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
        drawing.add("event", "circle" if event.values else "bar", Style(colour, width=2.5), 4.5, place)
        drawing.labels.append((event.timestamp, y, text))
        if change.is_new and event is captures[-1][1]:
            drawing.add("came in this step", "circle", _NEW, 8.5, place)
    if change.end is not None:
        place = Place(clock, y, title)
        look = ENDS[change.end]
        drawing.add(waits, look.symbol, Style(colour, width=look.width), look.radius, place)
    drawing.labels.append((max(clock, began + 1), y, waits))
