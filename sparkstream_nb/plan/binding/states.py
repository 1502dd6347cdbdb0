"""Patterns and sequences: states, slots, filters (Siddhi's `StateInputStreamParser`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...errors import SiddhiBindError
from ...lang import tree
from ..nodes import AbsentState, CountState, EveryState, LogicalState, NextState, Slot, State, StateInput, StreamState
from .query_inputs import PartitionPlace, bind_handlers
from .scope import Scope, VisibleEvent


@dataclass
class _Binder:
    """Walks the states. Slots are numbered in the order of the text; `visible_events` are in the order in which
    Siddhi makes them: of `A and B` it makes B first, of `A and not B` A, so the other's filter may name that one.
    Where two states have one name, it means the one made first, in filters (their own too) and in the select."""

    place: PartitionPlace
    slots: dict[int, Slot] = field(default_factory=dict)
    visible_events: list[VisibleEvent] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)
    refs: list[str] = field(default_factory=list)
    used_names: set[str] = field(default_factory=set)
    """The names in `visible_events`."""

    def state(self, s: tree.StateElement) -> State:
        match s:
            case tree.StreamState():
                return self.stream(s, is_counted=False)
            case tree.CountState():
                return CountState(self.stream(s.state, is_counted=True), s.least, s.most)
            case tree.AbsentState():
                return self.absent(s)
            case tree.LogicalState():
                if isinstance(s.right, tree.AbsentState) and not isinstance(s.left, tree.AbsentState):
                    left = self.one(s.left)
                    return LogicalState(s.op, left, self.one(s.right))
                right = self.one(s.right)
                return LogicalState(s.op, self.one(s.left), right)
            case tree.NextState():
                first = self.state(s.first)
                return NextState(first, self.state(s.then))
            case tree.EveryState():
                return EveryState(self.state(s.state))
        raise TypeError(type(s))

    def one(self, s: tree.StreamState | tree.AbsentState) -> StreamState | AbsentState:
        return self.absent(s) if isinstance(s, tree.AbsentState) else self.stream(s, is_counted=False)

    def absent(self, s: tree.AbsentState) -> AbsentState:
        return AbsentState(self.stream(s.state, is_counted=False), s.wait.millis if s.wait is not None else None)

    def stream(self, s: tree.StreamState, *, is_counted: bool) -> StreamState:
        symbols = self.place.symbols
        source = symbols.source(s.source, self.place.partition, s.source.span)
        if source.kind in ("table", "aggregation"):
            raise SiddhiBindError(f"'{source.id}' is a {source.kind}: it does not send events", s.source.span)
        slot = self.numbers[id(s)]
        name = s.ref or str(s.source)
        of = None if s.ref is None else str(s.source)
        event = VisibleEvent(slot, name, source.schema, is_counted, source.kind, of=of)
        later = tuple(r for r in self.refs if r != s.ref and r not in self.used_names)
        scope = Scope(
            symbols,
            (*self.visible_events, event),
            "a pattern's filter",
            own_slot=slot,
            own_ref=s.ref,
            later=later,
            tables=False,
        )
        bound = bind_handlers(source, s.handlers, scope, slot, "pattern")
        self.visible_events.append(VisibleEvent(slot, name, bound.schema, is_counted, source.kind, of=of))
        self.used_names.add(name)
        self.slots[slot] = Slot(s.ref, source, bound.schema, is_counted)
        return StreamState(slot, bound)


def _streams(s: tree.StateElement) -> Iterator[tree.StreamState]:
    while isinstance(s, tree.NextState):
        yield from _streams(s.first)
        s = s.then
    match s:
        case tree.StreamState():
            yield s
        case tree.CountState() | tree.AbsentState():
            yield s.state
        case tree.LogicalState():
            yield from _streams(s.left)
            yield from _streams(s.right)
        case tree.EveryState():
            yield from _streams(s.state)


def bind_states(stream: tree.StateStream, place: PartitionPlace) -> tuple[StateInput, tuple[VisibleEvent, ...]]:
    """A pattern or sequence, and the entries that its select sees, in the order in which `*` gives them."""
    binder = _Binder(place)
    for number, s in enumerate(_streams(stream.state)):
        binder.numbers[id(s)] = number
        if s.ref is not None:
            binder.refs.append(s.ref)
    state = binder.state(stream.state)
    slots = tuple(binder.slots[i] for i in range(len(binder.slots)))
    within = stream.within.millis if stream.within is not None else None
    return StateInput(stream.kind, state, slots, within), tuple(binder.visible_events)
