"""Nodes at any position of a recording: they are replayed up to it, from the nearest position whose state is kept."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from threading import RLock
from typing import TypeVar

import numpy as np

from ..engine.columnar.column_data import Array
from ..engine.node import NodeEngine
from ..engine.runtime.descriptions import DescribedNode, DescribedQuery, count_rows, describe, describe_query
from ..engine.runtime.operators import QueryOperator
from ..engine.state.node_batch import InputBatch
from ..nodes.batches import between, events_by_step
from ..plan.nodes import Plan
from .input_history import InputHistory, read_history
from .replay import NodeReplay, Nodes, Recorded, Recording, ReplayedNodes, Way
from .state_folder import StateFolder

T = TypeVar("T")
STRIDE = 1_000_000
"""Steps between positions whose states are kept."""
NEAR = 256
"""The steps before a requested position at which a state is kept too: a step backward is short then."""
MOST_STATES = 24
"""States that are kept at most; the oldest go first."""


@dataclass(frozen=True)
class ReplayedStep:
    """The last step before a position: the clock (ms) and the outputs of each node."""

    clock: int
    outputs: Sequence[NodeReplay]


@dataclass(frozen=True)
class _ItemParts:
    """An item by its number, with the node of each of its events (`ReplayedNodes.places`), and each node's part."""

    item: int
    places: Mapping[str, Array] | None
    batches: Sequence[InputBatch | None]


@dataclass(frozen=True)
class PlacedOutputs:
    """Outputs of each node for some steps; the position after a step is `first` and the step's number."""

    first: int
    outputs: Sequence[NodeReplay]


@dataclass(frozen=True)
class _KeptState:
    position: int
    states: list[bytes]


class TimeMachine:
    """The nodes of a recording. A position is the number of steps (events, events sent at once, or ticks of the clock)
    that they have taken."""

    def __init__(self, recording: Recording, way: Way, nodes: Nodes, folder: StateFolder | None = None) -> None:
        """`folder` has states of earlier replays of the same input; this one adds some."""
        self.recording, self.way = recording, way
        self.lock = RLock()
        """Held by who goes to a position until its state is read."""
        self._nodes = replace(nodes, describes=True)
        self.position = 0
        self.last_step: ReplayedStep | None = None
        """The step that ended at `position`; None at the beginning."""
        self._starts = recording.starts
        self._item_numbers = [i for i, x in enumerate(recording.items) if isinstance(x, Recorded)]
        self._states: dict[int, _KeptState] = {}
        self._folder = folder
        self._positions_on_disk = set() if folder is None else {p for p in folder.positions() if p <= self._starts[-1]}
        self._parts: _ItemParts | None = None
        """The last item that was taken."""
        self._group = self._new_nodes()

    @property
    def steps(self) -> int:
        """The last position."""
        return self._starts[-1]

    @property
    def plan(self) -> Plan:
        """The plan of all nodes."""
        return self._nodes.plan

    @property
    def nodes(self) -> int:
        """Number of nodes, with a leader."""
        return len(self._group.engines)

    def seek(self, position: int) -> None:
        """Goes to a position, from 0 to `steps`, forward or backward."""
        if position == self.position and (position == 0 or self.last_step is not None):
            return
        self._approach(position - 1)
        near = position - 1 - NEAR
        if near > self.position:
            self._advance(near)
            self._keep()
        self._advance(position - 1)
        self._advance(position)

    @cached_property
    def history(self) -> InputHistory:
        """The positions of all events and outputs."""
        return read_history(self.recording, self.way, self._nodes)

    def describe(self) -> list[DescribedNode]:
        """The state of each node at the position."""
        return [describe(engine) for engine in self._group.engines]

    def rows_of(self, name: str) -> int:
        """The events in a query's windows, its partial matches that have an event, or the rows of a table, on the node
        that has most of them. Raises KeyError if it keeps none."""
        return max(count_rows(engine, name) for engine in self._group.engines)

    def position_of_rows(self, name: str, least: int, most_new: int | None) -> int | None:
        """The first position after this one at which `rows_of` is `least` or more; None if there is none. An event adds
        `most_new` rows at most (None: any number), so that positions between are passed over. Goes there, or to the
        end."""
        most_of_step = None if most_new is None else max(1, most_new * self._largest_step)
        while self.position < self.steps:
            stride = 1 if most_of_step is None else max(1, (least - self.rows_of(name)) // most_of_step)
            self._advance(min(self.steps, self.position + stride))
            self.last_step = None  # it may be of several steps
            if self.rows_of(name) >= least:
                return self.position
        return None

    def state_of(self, query: str) -> list[DescribedQuery]:
        """The state of a query on each node that has it."""
        return [
            describe_query(engine, op) for engine in self._group.engines for op in engine.operators
            if isinstance(op, QueryOperator) and op.name == query
        ]  # fmt: skip

    def position_of_change(
        self, read: Callable[[Sequence[NodeEngine]], object], *, step_by_step: int = 0
    ) -> int | None:  # fmt: skip
        """The first position after this one at which `read`, a function of the nodes, has another answer, looked for at
        growing distances after a number of single steps; None if it never has. Goes there, or to the end."""
        answer, stride, grows = read(self._group.engines), 1, True
        last = min(self.steps, self.position + step_by_step)
        while self.position < last:
            self._advance(self.position + 1)
            if read(self._group.engines) != answer:
                return self.position
        base = self._state_here()
        while self.position < self.steps:
            self._advance(min(self.steps, base.position + stride))
            self.last_step = None  # it may be of several steps
            if read(self._group.engines) == answer:
                if self.position < self.steps:
                    base = self._state_here()
                stride = stride * 2 if grows else max(1, stride // 2)
            elif self.position == base.position + 1:
                return self.position
            else:
                stride, grows = max(1, (self.position - base.position) // 2), False
                self._restore(base)
        return None

    def outputs_until(self, position: int) -> Iterator[PlacedOutputs]:
        """Goes to a later position: the outputs of all steps up to it."""
        while self.position < position:
            item, _ = self._locate(self.position)
            end = min(position, (self.position // STRIDE + 1) * STRIDE, self._starts[item + 1])
            before = self.position
            self._advance(end)
            assert self.last_step is not None
            outputs, self.last_step = self.last_step.outputs, None
            yield PlacedOutputs(before + 1, outputs)

    def read(self, function: Callable[[Sequence[NodeEngine]], T]) -> T:
        """The result of a function of the nodes at the position."""
        return function(self._group.engines)

    @cached_property
    def _largest_step(self) -> int:
        """The largest number of events of a step."""
        counts = (events_by_step(item.batch).max(initial=0) for item in self.recording.recorded_events)
        return max(map(int, counts), default=0)

    def events_of_step(self) -> list[tuple[int, str, int]]:
        """The number, stream and node (from 0) of each event of the last step."""
        if self.last_step is None or self._parts is None:
            return []
        item, step = self._locate(self.position - 1)
        events, places = self.recording.recorded_events[item], self._parts.places
        out = []
        for stream, rows in events.batch.rows.items():
            low, high = np.searchsorted(rows.step, [step, step + 1]).tolist()
            for row in range(low, high):
                node = 0 if places is None else int(places[stream][row])
                out.append((int(events.numbers_of(stream)[row]), stream, node))
        return out

    # ------------------------------------------------------------------------------------------------------ internals

    def _locate(self, position: int) -> tuple[int, int]:
        """The item that has the step which begins at a position, and the step's number in it."""
        item = bisect_right(self._starts, position) - 1
        return item, position - self._starts[item]

    def _advance(self, position: int) -> None:
        while self.position < position:
            item, first = self._locate(self.position)
            events = self.recording.recorded_events[item]
            if self._parts is None or self._parts.item != item:
                places = self._group.places(events)
                self._parts = _ItemParts(item, places, self._group.batches(events, places))
            next_stride = (self.position // STRIDE + 1) * STRIDE
            end = min(position, next_stride, self._starts[item + 1]) - self._starts[item]
            batches = [None if b is None else between(b, first, end) for b in self._parts.batches]
            outputs = self._group.take(events, batches)
            self.last_step = ReplayedStep(max(e.now for e in self._group.engines), outputs)
            self.position += end - first
            if self.position == self._starts[item + 1]:
                for text in self._queries_from(self._item_numbers[item] + 1):
                    self._group.change(text)
            if self.position == next_stride:
                self._keep()
                self._keep_on_disk()

    def _new_nodes(self) -> ReplayedNodes:
        """Nodes at the beginning, after the on-demand queries that came before all events."""
        new_nodes = ReplayedNodes(self.recording, self.way, self._nodes)
        for text in self._queries_from(0):
            new_nodes.change(text)
        return new_nodes

    def _queries_from(self, place: int) -> Iterator[str]:
        """The on-demand queries from a place of the recording to the next events."""
        for text in self.recording.items[place:]:
            if not isinstance(text, str):
                return
            yield text

    def _state_here(self) -> _KeptState:
        return _KeptState(self.position, [engine.snapshot() for engine in self._group.engines])

    def _restore(self, state: _KeptState) -> None:
        self._group = ReplayedNodes(self.recording, self.way, self._nodes)
        for engine, node_state in zip(self._group.engines, state.states, strict=True):
            engine.restore(node_state)
        self.position, self.last_step = state.position, None

    def _keep(self) -> None:
        self._states.pop(self.position, None)
        self._states[self.position] = self._state_here()
        while len(self._states) > MOST_STATES:
            del self._states[next(iter(self._states))]

    def _keep_on_disk(self) -> None:
        """Keeps the state on disk too; not the one at the end, which on-demand queries may still change."""
        if self._folder is not None and self.position < self.steps and self.position not in self._positions_on_disk:
            self._folder.write(self.position, self._states[self.position].states)
            self._positions_on_disk.add(self.position)

    def _approach(self, position: int) -> None:
        """Goes to the nearest position up to this one whose state is kept or that it is at, else to the beginning."""
        best = max((p for p in (*self._states, *self._positions_on_disk) if p <= position), default=0)
        if best <= self.position <= position:
            return
        if best in self._positions_on_disk and best not in self._states:
            assert self._folder is not None
            states = self._folder.read(best, self.nodes)
            if states is None:
                self._positions_on_disk.remove(best)
                self._approach(position)
                return
            self._restore(_KeptState(best, states))
        elif best in self._states:
            self._restore(self._states[best])
        else:
            self._group = self._new_nodes()
            self.position, self.last_step = 0, None
