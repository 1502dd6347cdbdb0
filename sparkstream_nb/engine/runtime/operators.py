"""The operators of a node, with one interface: queries, named windows, aggregations and the entries of partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...plan import nodes
from ...plan.nodes import InTable
from ...plan.query_parts import expressions
from ..aggregation import AggregationOp
from ..columnar.rows import ORDER_KEY_BITS, Clock, Rows
from ..columnar.timers import NEVER
from ..joins.lookups import AggregationLookup
from ..select.steps import InputSteps
from ..state.declared import DeclaredState, part, plain_value
from ..state.saving import plain
from ..state.services import Services
from ..tables.table_store import TableLookup, TableWriter
from .named_windows import NamedWindow
from .operator_graph import OpNode
from .partitions import PartitionEntry
from .query_operator import QueryOp


class Operator(Protocol):
    """One operator of a node. `node` is its node in the graph; stream keys are the graph's."""

    node: OpNode

    @property
    def name(self) -> str: ...

    def run(self, inputs: Mapping[str, Rows], clock: Clock) -> Rows | None:
        """Its output for these rows and for the timers that `clock` lets fire; None for an operator without
        output.
        """
        ...

    def apply(self, rows: Rows, clock: Clock) -> None:
        """Applies the effects of an output chunk at its turn, before any downstream operator sees it."""
        ...

    def next_due(self) -> int | None:
        """The earliest time (ms) at which the clock alone can have a visible effect: it may be too early, never too
        late. None if no time does.
        """
        ...

    def state(self) -> Any: ...

    def load(self, state: Any) -> None: ...

    @property
    def bytes(self) -> int: ...

    @property
    def rows(self) -> int | None:
        """Events, partial matches or rows that it holds; None if they are not counted."""
        ...


class StatelessOperator:
    """No-op state methods for stateless operators. Stateful operators override them."""

    __slots__ = ()

    def apply(self, rows: Rows, clock: Clock) -> None:
        """Does nothing."""

    def next_due(self) -> int | None:
        """None: there are no timers."""
        return None

    def state(self) -> Any:
        return None

    def load(self, state: Any) -> None:
        """Does nothing: there is no state."""

    @property
    def bytes(self) -> int:
        return 0

    @property
    def rows(self) -> int | None:
        return None


class _Wrapper(StatelessOperator):
    """An operator around a query or a named window, which has the state."""

    __slots__ = ()

    @property
    def inner(self) -> QueryOp | NamedWindow:
        """The query or window."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        return self.inner.name

    def next_due(self) -> int | None:
        return self.inner.next_due()

    def state(self) -> Any:
        return self.inner.state()

    def save_state(self) -> Any:
        return self.inner.save_state()

    def load(self, state: Any) -> None:
        self.inner.load(state)

    @property
    def bytes(self) -> int:
        return self.inner.bytes

    @property
    def rows(self) -> int | None:
        return self.inner.rows


@dataclass(slots=True)
class QueryOperator(_Wrapper):
    """A query: where its inputs come from, and where its output goes."""

    query: QueryOp
    keys: dict[str, str]
    node: OpNode
    writer: TableWriter | None
    windows: Mapping[str, NamedWindow]
    lookups: list[TableLookup | AggregationLookup]

    def place(self, rank: int, ties: Sequence[str] | None) -> None:
        """Gives the query's table accesses its rank among the operators, and a query with several inputs the order in
        which it receives rows of one order key from them (None: no order key has rows in two inputs).
        """
        if ties is not None:
            order = {key: at for at, key in enumerate(ties)}
            self.query.tie(sorted(self.keys, key=lambda source: order[self.keys[source]]))
        self.query.rank(rank)
        for x in (*self.lookups, *(() if self.writer is None else (self.writer,))):
            x.rank = rank

    @property
    def inner(self) -> QueryOp:
        return self.query

    def run(self, inputs: Mapping[str, Rows], clock: Clock) -> Rows | None:
        query_inputs = {}
        for source, key in self.keys.items():
            rows = inputs[key]
            if source in self.windows and not self.query.joins:
                rows = self.windows[source].readable(rows)
            query_inputs[source] = rows
        out = self.query.run(query_inputs, clock).rows
        for id in self.query.read_windows:
            self.windows[id].looked_into()
        return out

    def apply(self, rows: Rows, clock: Clock) -> None:
        if self.writer is not None:
            self.writer.write(rows, clock.at(rows.order_key))


@dataclass(slots=True)
class WindowOperator(_Wrapper):
    """A named window between the queries that insert into it (`entry`) and those that read it."""

    window: NamedWindow
    node: OpNode

    @property
    def inner(self) -> NamedWindow:
        return self.window

    def run(self, inputs: Mapping[str, Rows], clock: Clock) -> Rows | None:
        return self.window.run(inputs[entry(self.window.id)], clock)


def entry(window: str) -> str:
    """The stream key under which rows enter a named window."""
    return f"{window}>"


@dataclass(slots=True)
class EntryOperator(StatelessOperator):
    """The entry of a stream into a partition."""

    entry: PartitionEntry
    node: OpNode
    instance_count: int = 0
    """Number of instances known to the queries inside."""

    @property
    def name(self) -> str:
        return f"{self.entry.name}/{self.entry.stream}"

    def run(self, inputs: Mapping[str, Rows], clock: Clock) -> Rows | None:
        self.instance_count = self.entry.instances.count
        return self.entry.run(inputs[self.node.inputs[0]], clock)

    def next_due(self) -> int | None:
        """When a key is purged: its timers must not go off after that."""
        return self.entry.instances.next_due()

    def apply(self, rows: Rows, clock: Clock) -> None:
        """An event of several ranges makes an instance, goes through it, and only then makes the next."""
        self.instance_count = max(self.instance_count, int(rows.instances().max()) + 1)
        self.entry.instances.instance_count = self.instance_count


class AggregationOperator(DeclaredState, StatelessOperator):
    """An incremental aggregation and the steps before it.

    In the mode *by operator*, rows are buffered (`begin`) until a join reads the buckets as of an order key (`up_to`),
    or the batch ends (`settle`). `rank` is the operator's place among the operators.

    A purge runs at the first clock step at or after each whole interval since the first clock step, before the event of
    that step. So the moment at which the clock moved does not show, and a purge is not due at any time (`next_due`).
    """

    rank = 0
    steps: InputSteps = part(form=plain)
    aggregation: AggregationOp = part(form=plain)
    _intervals: int = plain_value(0)
    """Number of intervals that have passed."""

    def __init__(self, definition: nodes.AggregationDef, services: Services, zone: str, keep: bool) -> None:
        self._create()
        self.aggregation = AggregationOp(definition, services, zone=zone, keep=keep)
        everything = set(range(len(definition.input.schema)))
        self.steps = InputSteps(definition.input, everything, services, query=definition.id)
        self.id = self.name = definition.id
        self._retention = definition.retention if keep else None
        self._clock = services.clock
        has_timers = self._retention is not None
        self.node = OpNode((definition.input.source.id,), None, writes=(definition.id,), has_timers=has_timers)
        self._buffering = False
        self._waiting: tuple[Rows, Clock] | None = None
        self._purges: list[tuple[int, int]] = []
        """Root and time of the purges that are due and have not run."""

    def run(self, inputs: Mapping[str, Rows], clock: Clock) -> Rows | None:
        rows = inputs[self.node.inputs[0]]
        self._note_purges(clock)
        if len(rows):
            self._waiting = self.steps.run(rows, clock), clock
        if not self._buffering:
            self._take(int(NEVER))
        return None

    def _note_purges(self, clock: Clock) -> None:
        if self._retention is None or clock.last <= clock.first:
            return
        now, first = clock.now[clock.first : clock.last], self._clock.first
        assert first is not None, "the clock has made a step"
        intervals = (now - first) // self._retention.interval
        due = np.flatnonzero(np.diff(intervals, prepend=self._intervals) > 0)
        self._intervals = int(intervals[-1])
        order_keys = (clock.base + clock.first + due) << ORDER_KEY_BITS
        times = first + intervals[due] * self._retention.interval
        self._purges += zip(order_keys.tolist(), times.tolist(), strict=True)

    def can_buffer(self, steps: int) -> bool:
        """True if rows can be buffered, as for a table: always."""
        return True

    def begin(self) -> None:
        """Starts buffering rows."""
        self._buffering = True

    def up_to(self, order_key: int, rank: int) -> bool:
        """Applies the buffered rows and purges that come before (`order_key`, `rank`); whether there were any."""
        return self._take(order_key + (self.rank < rank))

    def _take(self, until: int) -> bool:
        """Adds the buffered rows with order keys below `until`, and runs the purges among them in their order."""
        has_purged = False
        while self._purges and self._purges[0][0] < until:
            order_key, time = self._purges.pop(0)
            self._add(order_key)
            self.aggregation.purge(time)
            has_purged = True
        return self._add(until) or has_purged

    def _add(self, until: int) -> bool:
        if self._waiting is None:
            return False
        rows, clock = self._waiting
        cut = int(np.searchsorted(rows.order_key, until))
        self._waiting = (rows.slice(cut, len(rows)), clock) if cut < len(rows) else None
        self.aggregation.run(rows.slice(0, cut), clock)
        return cut > 0

    def settle(self) -> None:
        """Applies all buffered rows and purges."""
        self._take(int(NEVER))
        self._buffering = False

    @property
    def bytes(self) -> int:
        return self.aggregation.bytes


def tables_read(query: nodes.Query) -> tuple[str, ...]:
    """Tables and aggregations that a query reads by join or by `in`."""
    ids = [e.table for x in expressions(query) for e in nodes.walk(x) if isinstance(e, InTable)]
    if isinstance(query.input, nodes.JoinInput):
        for side in (query.input.left, query.input.right):
            if side.source.kind in ("table", "aggregation"):
                ids.append(side.source.id)
    return tuple(dict.fromkeys(ids))
