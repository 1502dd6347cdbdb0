"""Traces of patterns and sequences: partial matches, read from the machine after each step, become lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from ...engine.patterns.machine_layout import Processor
from ...engine.patterns.machine_memory import EMPTY_EVENT
from ...engine.patterns.machine_partials import Captured, PartialMatch
from ...engine.patterns.watched_pattern import FullMatch, PatternEvent, WatchedPattern
from ...plan import nodes
from ...plan.query_parts import enclosing_state
from ...plan.reports.show_input import show_duration, show_state, show_states, state_names
from ..results.traces import (
    AbsenceWait,
    Capture,
    PartialEnd,
    PartialTrace,
    PatternTrace,
    TracedEvent,
    TracedOutput,
    TracedState,
)
from .trace_feed import TraceFeed
from .traced_node import Moment, TracedNode


@dataclass(eq=False)
class _Lane:
    """A partial match so far. `waits`: by absent state, when it began to wait there."""

    number: int
    instance: int
    start: int
    record: int
    captured: Captured
    states: tuple[int, ...]
    before: Captured
    """`captured` before the present step."""
    captures: list[Capture] = field(default_factory=list)
    parent: int | None = None
    shared: int = 0
    due: int = 0
    waits: dict[int, int] = field(default_factory=dict)
    past_waits: list[AbsenceWait] = field(default_factory=list)
    end: PartialEnd = "waiting"
    ended: int | None = None
    reason: str = ""
    outputs: list[TracedOutput] = field(default_factory=list)

    @property
    def size(self) -> int:
        return _size(self.captured)


def _size(captures: Captured) -> int:
    """The number of captured events."""
    return sum(map(len, captures))


def _begins(captures: Captured, part: Captured) -> bool:
    """True if `captures` has all events of `part`, state by state in the same order."""
    return all(w[: len(p)] == p for w, p in zip(captures, part, strict=True))


class PatternRecorder:
    """Follows the partial matches of one pattern from step to step, by the records that the machine keeps them in."""

    def __init__(self, pattern: WatchedPattern, node: TracedNode) -> None:
        self.pattern, self._node = pattern, node
        self.lanes: list[_Lane] = []
        self.events: dict[int, TracedEvent] = {}
        self._alive: list[_Lane] = []
        self._earlier_matches: list[tuple[int, Captured]] = []
        self._dead: set[tuple[int, int, Captured]] = set()

    @property
    def _processors(self) -> list[Processor]:
        return self.pattern.layout.processors

    @property
    def absence_waits(self) -> set[int]:
        """The numbers of the partial matches that wait for the absence of an event."""
        return {lane.number for lane in self._alive if lane.waits}

    def record(self, moment: Moment) -> None:
        """Reads the pattern after a step."""
        events, matches = self.pattern.take()
        for e in events:
            values = dict(zip(self._node.plan.schema(e.stream).names, e.values, strict=True))
            self.events[e.number] = TracedEvent(
                e.number, e.stream, moment.time, e.time, values, self._node.key_of(e.instance)
            )
        matches = [replace(m, captured=self._without_late_absents(m.captured)) for m in matches]
        before = list(self._alive)
        for lane in before:
            lane.before = lane.captured
        matched_lanes = [self._match(before, m, moment) for m in matches]
        current = [o for o in moment.outputs if not o.expired]
        if len(current) == len(matched_lanes):  # each match has its output: no rate limit and no `having` comes between
            for lane, output in zip(matched_lanes, current, strict=True):
                lane.outputs.append(output)
        self._earlier_matches += [(m.instance, m.captured) for m in matches if _size(m.captured)]
        self._continue(before, moment, events)

    # ------------------------------------------------------------------------------------------------------- matches

    def _match(self, before: Sequence[_Lane], match: FullMatch, moment: Moment) -> _Lane:
        """The lane that ends in a match: the partial match with most of its events, or a new one."""

        def rank(lane: _Lane) -> tuple[int, bool, int]:
            is_fulfilled = any(c.event is None for c in lane.captures) or (moment.timer and bool(lane.waits))
            return _size(lane.before), is_fulfilled, -lane.number

        instance_lanes = [x for x in before if x.instance == match.instance]
        fitting = [x for x in instance_lanes if _begins(match.captured, x.before) and any(rank(x)[:2])]
        best = max(fitting, key=rank, default=None)
        previous_lane = self._find_former(
            match.instance, lambda x: x.end == "match" and _begins(match.captured, x.captured)
        )
        if best is not None:
            lane = best if best in self._alive else self._branch(best, best.before, moment.time)
        elif previous_lane is not None:  # a match may have a further event of a count, and match again
            lane = self._branch(previous_lane, previous_lane.captured, moment.time)
        else:
            lane = self._new(match.instance, moment.time)
        self._capture(lane, match.captured, moment)
        if moment.timer:
            for state in lane.waits:
                lane.captures.append(Capture(moment.time, state, None))
        self._finish(lane, "match", moment.time, "")
        return lane

    # ----------------------------------------------------------------------------------------------- partial matches

    def _continue(self, before: Sequence[_Lane], moment: Moment, events: Sequence[PatternEvent]) -> None:
        """Continues the lanes whose partial matches the machine still holds, begins new ones and ends the others."""
        partial_matches = self.pattern.partial_matches()
        partials = [replace(p, captured=self._without_late_absents(p.captured)) for p in partial_matches]
        partials = [p for p in partials if not self._is_left_over(p)]
        remaining_lanes, fresh = self._continue_lanes(partials, before, moment, events)
        for p in fresh:
            if not self._lives(p, events) or any(
                k.instance == p.instance and k.size and k.captured == p.captured for k in remaining_lanes
            ):
                continue
            if not _size(p.captured) and not self._absences(p.states):
                continue
            lane = self._begin(p, [x for x in before if x not in remaining_lanes], before, moment)
            remaining_lanes.append(lane)
            self._advance(lane, p, moment)
        for lane in [x for x in self._alive if x not in remaining_lanes]:
            self._drop(lane, moment, events)

    def _continue_lanes(
        self,
        partials: Sequence[PartialMatch],
        before: Sequence[_Lane],
        moment: Moment,
        events: Sequence[PatternEvent],
    ) -> tuple[list[_Lane], list[PartialMatch]]:
        """Continues the lanes of `before` whose partial matches are still there; returns those that remain, and the
        partial matches that are new."""
        by_record = {(lane.instance, lane.record): lane for lane in before if lane in self._alive}
        remaining_lanes: list[_Lane] = []
        fresh: list[PartialMatch] = []
        for p in partials:
            lane = by_record.get((p.instance, p.record))
            if lane is None or not _begins(p.captured, lane.captured) or self._restarts(lane, p):
                fresh.append(p)
            elif not self._lives(p, events):
                self._capture(lane, p.captured, moment)
            else:
                remaining_lanes.append(lane)
                self._advance(lane, p, moment)
        return remaining_lanes, fresh

    def _begin(self, p: PartialMatch, going: Sequence[_Lane], before: Sequence[_Lane], moment: Moment) -> _Lane:
        """The lane of a partial match in a new record: one that has no record any more, or a new one."""

        def best_of(lanes: Iterable[_Lane]) -> _Lane | None:
            instance_lanes = [x for x in lanes if x.instance == p.instance]
            fitting = [x for x in instance_lanes if _size(x.before) and _begins(p.captured, x.before)]
            return max(fitting, key=lambda x: _size(x.before), default=None)

        going_lane = best_of(x for x in going if x in self._alive)
        if going_lane is not None:
            going_lane.record = p.record
            return going_lane
        parent = best_of(before)
        previous_lane = self._find_former(
            p.instance, lambda x: bool(_size(p.captured)) and _begins(x.captured, p.captured)
        )
        if parent is not None:
            lane = self._branch(parent, parent.before, moment.time)
        elif previous_lane is not None:  # an `every` within the pattern begins again, and keeps the events before it
            lane = self._branch(previous_lane, p.captured, moment.time)
        else:
            lane = self._new(p.instance, moment.time)
        lane.record = p.record
        if not _size(p.captured):
            wait = max(self._processors[q].wait for q in self._absences(p.states))
            lane.start = p.due - wait if p.due else moment.time
        return lane

    def _advance(self, lane: _Lane, p: PartialMatch, moment: Moment) -> None:
        """Takes over the present captures and states of a partial match."""
        self._capture(lane, p.captured, moment)
        absences = self._absences(p.states)
        for state in [s for s in lane.waits if s not in absences]:
            start = lane.waits.pop(state)
            lane.past_waits.append(AbsenceWait(state, start, moment.time))
            if moment.timer:  # it was absent for long enough
                lane.captures.append(Capture(moment.time, state, None))
        for state in absences:
            lane.waits.setdefault(state, moment.time if lane.captures else lane.start)
        lane.states, lane.due = p.states, p.due

    def _capture(self, lane: _Lane, captures: Captured, moment: Moment) -> None:
        """Adds the captures that a partial match has now and did not have before."""
        for state, (events, old) in enumerate(zip(captures, lane.captured, strict=True)):
            for number in events[len(old) :]:
                event = self.events.get(number) if number > EMPTY_EVENT else None
                lane.captures.append(Capture(moment.time if event is None else event.time, state, event))
        lane.captured = captures
        lane.captures[lane.shared :] = sorted(lane.captures[lane.shared :], key=lambda c: c.time)

    def _drop(self, lane: _Lane, moment: Moment, events: Sequence[PatternEvent]) -> None:
        """Ends a partial match that the machine no longer holds."""
        deadline = self._deadline(lane)
        now = max((e.time for e in events if e.instance == lane.instance), default=moment.time)
        violation = self._find_violation(lane, [e for e in events if e.instance == lane.instance])
        if deadline is not None and now > deadline:
            self._expire(lane, deadline)
        elif violation:
            self._finish(lane, "dropped", moment.time, violation)
        elif self.pattern.layout.sequence:
            self._finish(lane, "dropped", moment.time, "the next event did not fit")
        else:
            self._finish(lane, "dropped", moment.time, "the pattern started again")

    def _find_violation(self, lane: _Lane, events: Sequence[PatternEvent]) -> str:
        """Why an absence that the lane waited for, or has to the end, did not last; "" if it did."""
        for state, processor in enumerate(self._processors):
            if not processor.absent:
                continue
            has_events = any(n > EMPTY_EVENT for n in lane.captured[state])
            stream = processor.state.input.source.id
            if has_events or (state in lane.states and any(e.stream == stream for e in events)):
                return f"an event of {stream} came"
        return ""

    def _expire(self, lane: _Lane, deadline: int) -> None:
        within = self.pattern.layout.input.within
        assert within is not None
        last = max((c.time for c in lane.captures), default=deadline)  # some states take an event before they look
        self._finish(lane, "expired", max(deadline, last), f"{show_duration(within)} passed")

    def _deadline(self, lane: _Lane) -> int | None:
        """The last moment (ms) at which the partial match can continue, by `within`."""
        within = self.pattern.layout.input.within
        starts = [lane.captured[i][0] for i in self.pattern.layout.starts if lane.captured[i]]
        times = [self.events[n].timestamp for n in starts if n in self.events]
        return None if within is None or not times else min(times) + within

    # ------------------------------------------------------------------------------------------------------- helpers

    def _new(self, instance: int, time: int) -> _Lane:
        none: Captured = tuple(() for _ in self._processors)
        lane = _Lane(len(self.lanes) + 1, instance, time, -1, none, (), none)
        self.lanes.append(lane)
        self._alive.append(lane)
        return lane

    def _find_former(self, instance: int, fits: Callable[[_Lane], bool]) -> _Lane | None:
        """The latest lane that `fits`."""
        return next((x for x in reversed(self.lanes) if x.instance == instance and fits(x)), None)

    def _branch(self, parent: _Lane, shared: Captured, time: int) -> _Lane:
        """A copy of a partial match with the events that it shares."""
        lane = self._new(parent.instance, time)
        numbers = {n for events in shared for n in events}
        last = max((self.events[n].time for n in numbers if n in self.events), default=time)
        captures = [c for c in parent.captures if (c.time <= last if c.event is None else c.event.number in numbers)]
        lane.captures, lane.parent, lane.shared, lane.captured = captures, parent.number, len(captures), shared
        return lane

    def _finish(self, lane: _Lane, end: PartialEnd, time: int | None, reason: str) -> None:
        until = time
        for state, start in lane.waits.items():
            lane.past_waits.append(AbsenceWait(state, start, start if until is None else max(start, until)))
        lane.waits = {}
        lane.end, lane.ended, lane.reason = end, time, reason
        self._alive.remove(lane)

    def _absences(self, states: Iterable[int]) -> list[int]:
        """The states among these that wait for the absence of an event for some time."""
        return [s for s in states if self._processors[s].absent and self._processors[s].wait >= 0]

    def _restarts(self, lane: _Lane, p: PartialMatch) -> bool:
        """True if a partial match without events waits for an absence from the beginning again."""
        return not _size(p.captured) and lane.due > 0 and p.due > lane.due and lane.states == p.states

    def _is_left_over(self, p: PartialMatch) -> bool:
        """True for a partial match that was a match already, or waits for nothing, and that the machine has not
        forgotten."""

        def waits_for_nothing(state: int) -> bool:  # the absent side of an `and` whose other side has its event
            processor = self._processors[state]
            return processor.absent and processor.wait < 0 and bool(p.captured[processor.partner])

        if all(map(waits_for_nothing, p.states)):
            return True
        return any(
            instance == p.instance and _begins(p.captured, captures) for instance, captures in self._earlier_matches
        )

    def _without_late_absents(self, captures: Captured) -> Captured:
        """The captures without events of `not ... and` that came when the other side had its event: the machine keeps
        them, and they change nothing."""

        def counts(state: int, events: tuple[int, ...]) -> bool:
            processor = self._processors[state]
            other = captures[processor.partner] if processor.absent and processor.partner >= 0 else ()
            return not (events and other and events[0] > other[0])

        return tuple(events if counts(state, events) else () for state, events in enumerate(captures))

    def _lives(self, p: PartialMatch, new_events: Sequence[PatternEvent]) -> bool:
        """False for one that never becomes a match: the event of an absent state came, or one that a sequence does not
        have at this place. The machine may hold it until the next event."""
        this = (p.instance, p.record, p.captured)
        has_new_event = any(
            processor.absent and any(n > EMPTY_EVENT for n in events)
            for processor, events in zip(self._processors, p.captured, strict=True)
        )
        is_over = not p.goes_on and _size(p.captured) and any(e.instance == p.instance for e in new_events)
        if has_new_event or (is_over and not self._absences(p.states)):  # a timer may come before the next event
            self._dead.add(this)
        return this not in self._dead

    def finish(self, end: int) -> list[PartialTrace]:
        """All partial matches, of which those alive still wait at `end`, or have expired."""
        for lane in list(self._alive):
            deadline = self._deadline(lane)
            if deadline is not None and deadline < end:
                self._expire(lane, deadline)
                continue
            for state, start in lane.waits.items():
                lane.past_waits.append(AbsenceWait(state, start, max(start, end)))
        return [
            PartialTrace(
                x.number, x.start, x.captures, x.end, x.ended, x.reason, x.parent, x.shared, x.past_waits, x.outputs,
                self._node.key_of(x.instance),
            )
            for x in self.lanes
        ]  # fmt: skip


def trace_pattern(node: TracedNode, query: str, feed: TraceFeed) -> PatternTrace:
    """Runs the feed and records the watched pattern."""
    recorder = PatternRecorder(node.watching.pattern, node)
    outputs: list[TracedOutput] = []
    end = feed.start
    at_last: set[int] | None = None

    def is_busy() -> bool:
        nonlocal at_last
        if at_last is None:
            at_last = recorder.absence_waits
        return bool(at_last & recorder.absence_waits)

    for moment in node.moments(feed, is_busy):
        recorder.record(moment)
        outputs += moment.outputs
        end = moment.time
    layout = recorder.pattern.layout
    i = layout.input
    return PatternTrace(
        query, i.kind, show_states(i), [_traced_state(p, i) for p in layout.processors], i.within,
        list(recorder.events.values()), recorder.finish(end), outputs, feed.summarize(end),
        layout.streams,
    )  # fmt: skip


def _traced_state(processor: Processor, i: nodes.StateInput) -> TracedState:
    """A state with its text; that of a count or an absence is the whole of it."""
    text = show_state(enclosing_state(i.state, processor.state) or processor.state, i)
    name = state_names(i)[processor.state.slot]
    return TracedState(name, text, processor.state.input.source.id, processor.absent)
