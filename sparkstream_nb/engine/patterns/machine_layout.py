"""Compiles the plan's tree of states to the processors of the machine, connected as in Siddhi.

The rules follow `StateInputStreamParser` and the `InnerStateRuntime` classes: which processor follows which, which one
restarts an `every`, in which order states are reset, updated and initialised, and the calls of a stream's receiver.
Processors are numbered as Siddhi numbers state ids: in the order of the text, but the right side of `and` and `or`
before the left, and an absent side always on the left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ...lang.tree import UNBOUNDED
from ...plan import nodes
from ..columnar.column_data import Array
from .machine_memory import ABSENT, ABSENT_LOGICAL, COUNT, LOGICAL, STREAM, StateDescription
from .records import dtype_of


@dataclass(slots=True)
class Processor:
    """One state: its kind and wiring (processor numbers, -1 for none)."""

    kind: int
    state: nodes.StreamState
    start: bool
    least: int = 0
    most: int = UNBOUNDED
    wait: int = -1
    is_or: bool = False
    partner: int = -1
    next: int = -1
    every: int = -1
    within_every: int = -1
    renews: int = -1
    """For an absent state: the first state of the group under `every` that restarts when its event comes."""
    callback: int = -1
    returns: int = -1
    last: bool = False
    timer: int = -1
    phase: int = 0

    @property
    def absent(self) -> bool:
        return self.kind in (ABSENT, ABSENT_LOGICAL)

    @property
    def is_counted(self) -> bool:
        return self.kind == COUNT


@dataclass(slots=True)
class _Runtime:
    """Siddhi's `InnerStateRuntime`: processors in the order in which each operation reaches them."""

    first: int
    last: int
    resets: list[int]
    updates: list[int]
    inits: list[int]
    setups: list[int]
    members: list[int]


@dataclass(slots=True)
class PatternLayout:
    """The processors of a pattern and the orders in which they are called.

    `streams`: the source ids that the pattern reads, in order of first use; `receivers[s]`: the processors that take
    events of stream s, in the order in which the receiver updates them (events reach them in reverse).
    `timers`: the absent processors by their schedulers' order. `slots`: processor of each slot of the plan.
    """

    input: nodes.StateInput
    processors: list[Processor] = field(default_factory=list)
    streams: list[str] = field(default_factory=list)
    receivers: list[list[int]] = field(default_factory=list)
    resets: list[int] = field(default_factory=list)
    updates: list[int] = field(default_factory=list)
    inits: list[int] = field(default_factory=list)
    startup: list[int] = field(default_factory=list)
    timers: list[int] = field(default_factory=list)
    slots: dict[int, int] = field(default_factory=dict)

    @property
    def sequence(self) -> bool:
        return self.input.kind == "sequence"

    def stream_of(self, p: int) -> int:
        """The number of the stream whose events processor `p` takes."""
        return self.streams.index(self.processors[p].state.input.source.id)

    @property
    def begins_alone(self) -> bool:
        """True if an instance starts without an event of its own: a first state is absent, or needs no event."""
        return any(p.start and (p.absent or (p.is_counted and p.least == 0)) for p in self.processors)

    @property
    def starts(self) -> list[int]:
        return [i for i, p in enumerate(self.processors) if p.start]


def lay_out(input: nodes.StateInput, scheduler: int) -> PatternLayout:
    """The processors of a pattern; its schedulers are numbered from `scheduler` on."""
    out = PatternLayout(input)
    runtime = _parse(out, input.state, True)
    ps = out.processors
    for state in _states(input.state):
        source = state.input.source.id
        if source not in out.streams:
            out.streams.append(source)
    for p in ps:
        if p.returns < 0:
            p.returns = ps.index(p)
    ps[runtime.first].returns = runtime.last
    _set_last(ps, runtime.last)
    out.resets, out.updates, out.inits = runtime.resets, runtime.updates, runtime.inits
    out.receivers = [[p for p in runtime.setups if out.stream_of(p) == s] for s in range(len(out.streams))]
    out.slots = {p.state.slot: i for i, p in enumerate(ps)}
    for k, i in enumerate(out.timers):
        ps[i].timer, ps[i].phase = k, scheduler + k
    return out


def _states(state: nodes.State) -> Iterator[nodes.StreamState]:
    """All streams of a state, in the order of the text."""
    if isinstance(state, nodes.StreamState):
        yield state
    elif isinstance(state, nodes.CountState | nodes.AbsentState):
        yield state.state
    elif isinstance(state, nodes.EveryState):
        yield from _states(state.state)
    elif isinstance(state, nodes.NextState):
        yield from _states(state.first)
        yield from _states(state.then)
    elif isinstance(state, nodes.LogicalState):
        yield from _states(state.left)
        yield from _states(state.right)


def _parse(out: PatternLayout, state: nodes.State, start: bool) -> _Runtime:
    if isinstance(state, nodes.StreamState):
        return _single(out, Processor(STREAM, state, start))
    if isinstance(state, nodes.AbsentState):
        if state.wait is None:
            raise ValueError("an absent state that is the whole pattern needs a waiting time")
        runtime = _single(out, Processor(ABSENT, state.state, start, wait=state.wait))
        out.timers.append(runtime.first)
        out.startup.append(runtime.first)
        return runtime
    if isinstance(state, nodes.CountState):
        return _single(out, Processor(COUNT, state.state, start, least=state.least, most=state.most))
    if isinstance(state, nodes.EveryState):
        return _every(out, state, start)
    if isinstance(state, nodes.NextState):
        return _next(out, state, start)
    if isinstance(state, nodes.LogicalState):
        return _logical(out, state, start)
    raise TypeError(f"unknown state {type(state).__name__}")


def _single(out: PatternLayout, processor: Processor) -> _Runtime:
    i = len(out.processors)
    out.processors.append(processor)
    return _Runtime(i, i, [i], [i], [i], [i], [i])


def _every(out: PatternLayout, state: nodes.EveryState, start: bool) -> _Runtime:
    inner = _parse(out, state.state, start)
    ps = out.processors
    for i in _both(ps, inner.last):
        ps[i].every = inner.first
    for i in inner.members:
        ps[i].within_every = inner.first
    # A group whose first part restarts by itself (`every A -> not B`) need not restart as a whole.
    if not any(ps[i].every >= 0 for i in inner.members if i not in _both(ps, inner.last)):
        for i in inner.members:
            first = inner.first in _both(ps, i)
            if ps[i].absent and not first and not ps[i].is_or:
                ps[i].renews = inner.first
    # Siddhi's EveryInnerStateRuntime hands on init and setup, but resets and updates its first processor only.
    return _Runtime(inner.first, inner.last, [inner.first], [inner.first], inner.inits, inner.setups, inner.members)


def _next(out: PatternLayout, state: nodes.NextState, start: bool) -> _Runtime:
    a = _parse(out, state.first, start)
    b = _parse(out, state.then, False)
    ps = out.processors
    for i in _both(ps, a.last):
        ps[i].next = b.first
    last = ps[a.last]
    if last.is_counted and last.start and out.sequence and last.least == 0:
        ps[b.first].callback = a.last
    return _Runtime(
        a.first, b.last, b.resets + a.resets, a.updates + b.updates, a.inits + b.inits, a.setups + b.setups,
        a.members + b.members,
    )  # fmt: skip


def _logical(out: PatternLayout, state: nodes.LogicalState, start: bool) -> _Runtime:
    left, right = state.left, state.right
    if isinstance(right, nodes.AbsentState) and not isinstance(left, nodes.AbsentState):
        left, right = right, left
    ps = out.processors
    numbers = []
    for side in (right, left):
        absent = isinstance(side, nodes.AbsentState)
        inner = side.state if isinstance(side, nodes.AbsentState) else side
        wait = side.wait if isinstance(side, nodes.AbsentState) and side.wait is not None else -1
        kind = ABSENT_LOGICAL if absent else LOGICAL
        numbers.append(_single(out, Processor(kind, inner, start, wait=wait, is_or=state.op == "or")).first)
    second, first = numbers
    ps[second].partner, ps[first].partner = first, second
    for i in (first, second):
        if ps[i].absent:
            out.timers.append(i)
            out.startup.append(i)
    both = [second, first]
    return _Runtime(first, second, [second], [second], both, both, both)


def _both(ps: list[Processor], i: int) -> list[int]:
    """A processor, and its partner if it is a side of a logical state."""
    return [i] if ps[i].partner < 0 else [i, ps[i].partner]


def _set_last(ps: list[Processor], last: int) -> None:
    for i in _both(ps, last):
        ps[i].last = True


def table(layout: PatternLayout) -> Array:
    """The machine's table of states (`StateDescription`[processors]), without the fields of filters."""
    ps = layout.processors
    out = np.zeros(len(ps), dtype_of(StateDescription))
    steady = layout.input.within is not None and all(
        p.kind in (STREAM, LOGICAL) or (p.is_counted and p.least > 0) for p in ps if p.start
    )
    for i, p in enumerate(ps):
        row = out[i]
        row["kind"], row["start"], row["least"], row["most"] = p.kind, p.start, p.least, p.most
        row["next"], row["every"], row["within_every"] = p.next, p.every, p.within_every
        row["last"], row["returns"], row["callback"] = p.last, p.returns, p.callback
        row["partner"], row["is_or"], row["wait"], row["phase"] = p.partner, p.is_or, p.wait, p.phase
        row["is_counted"], row["timer"], row["stream"] = p.is_counted, p.timer, layout.stream_of(i)
        row["program"], row["keys"], row["bound"] = -1, -1, -1
        row["steady"] = steady and not p.start
        row["starts_again"] = p.kind == STREAM and p.start and p.every == i and p.callback < 0
        row["renews"] = p.renews
        row["init_again"] = p.every >= 0 or (layout.sequence and p.next >= 0 and ps[p.next].absent)
    return out


def end_list(numbers: list[int]) -> Array:
    """A list for the machine: ends with -1."""
    return np.array([*numbers, -1], np.int64)


def receivers(layout: PatternLayout) -> Array:
    """For stream s: the index of its processors in this same array and their number, at 2s and 2s + 1."""
    head: list[int] = []
    body: list[int] = []
    base = 2 * len(layout.streams)
    for numbers in layout.receivers:
        head += [base + len(body), len(numbers)]
        body += numbers
    return np.array(head + body, np.int64)


def selecting_streams(layout: PatternLayout) -> Array:
    """Per stream, whether its receiver passes matches to the select: it knows the select through the processor that was
    set up last (`StateMultiProcessStreamReceiver.setNext`), or through its only processor's last state."""
    out = []
    for numbers in layout.receivers:
        p = numbers[-1] if len(numbers) > 1 else layout.processors[numbers[-1]].returns
        out.append(int(layout.processors[p].last))
    return np.array(out, np.int64)
