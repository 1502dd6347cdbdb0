"""The node engine, one simulated Siddhi server: an app's plan, its state and its clock.

A node runs a micro-batch in one of two modes, with the same operators and the same results:

- *by operator*: every operator processes the whole batch as columns, upstream operators first. The order keys of the
rows (see `rows`) and the event paths of the app (see `operator_graph`) give Siddhi's order of events and timers.
- *by chunk*: each chunk is pushed through everything it causes before the next one is taken, as Siddhi does. Used for
  apps whose queries form a cycle, or whose order the paths do not determine (`operator_graph.build` gives the reason).
  If only some table changes are unordered, only the events that cause them run in this mode (`batch_splitter`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..limits import Limits
from ..plan import nodes
from ..plan.connectors.outside import published_streams
from ..plan.gaps import refuse, refuse_retrieval
from ..plan.leadership import leads
from ..plan.output_labels import stream_of
from ..plan.plugins import require
from ..plan.table_requests import RowSource, TableChanges
from ..types import Type
from .columnar.blocks import Buffer, Tracked
from .columnar.column_data import Array, Column, StringPool, UnreadColumn, writable
from .columnar.javamap import string_hash, walk_order
from .columnar.malloc_tuning import keep_freed_memory
from .columnar.rows import ORDER_KEY_BITS, Clock, Rows, event_order, in_order
from .columnar.timers import earliest
from .expressions import Context
from .runtime.assembly import Assembly
from .runtime.batch_splitter import make_batch_splitter
from .runtime.memory_topics import GroupOperator
from .runtime.ondemand_queries import answer
from .runtime.operator_graph import build
from .runtime.operators import AggregationOperator, EntryOperator, Operator, QueryOperator, entry
from .runtime.state_names import NOT_CARRIED, carry_over, state_names
from .runtime.step_outputs import OutputCollector, StepOutputs, as_read, observable_streams
from .runtime.table_cycles import two_pass_tables
from .runtime.triggers import start_rows
from .scripts import scripts_of
from .state.node_batch import PLAIN_OUTPUTS, InputBatch, OutputOptions, Outputs, RetrievalAnswer, UnreadAttribute
from .state.saving import Form, by_change, plain
from .state.services import Services
from .state.snapshot import pack, pack_buffers, save_parts, unpack
from .step_count import StepCount

SLICE = 1 << 17
"""Steps that go through the operators at a time: the columns of more do not stay in a core's cache."""
_SPARSE = 32
"""Maximum factor by which slices grow if few of their steps have events."""
_LEAST, _MANY = 512, 32
"""Smallest slice, and the number of passes of table cycles above which slices shrink to it."""


class NodeEngine:
    """A node that runs `plan`.

    `shard` is the id under which it writes aggregations. `start` is the time (ms) at which the clock starts, 0 in
    Siddhi's playback; None: the time of the first event or tick. `by_chunk` forces the mode *by chunk*, for tests.
    `limits`: bounds on what one event may use. `tokens` name the parts of the state (`plan.state_units.state_tokens`),
    so that a snapshot can be restored where the plan has changed since; without them, it is one of the same plan.
    Raises `NotInThisBuild` for an app that needs a declared gap, SiddhiBindError for one with script functions unless
    `allow_scripts`, and PluginError where an extension that it calls is not installed.
    """

    def __init__(
        self,
        plan: nodes.Plan,
        *,
        shard: str = "",
        allow_scripts: bool = False,
        by_chunk: bool = False,
        start: int | None = None,
        limits: Limits | None = None,
        tokens: Mapping[str, str] | None = None,
        outputs: OutputOptions = PLAIN_OUTPUTS,
    ) -> None:
        refuse(plan)
        require(plan.plugins)
        keep_freed_memory()
        self.plan, self.shard, self.trace = plan, shard, outputs.trace
        scripts, zone = scripts_of(plan, allow_scripts), plan.properties.get("timezone", "UTC")
        context = Context(
            scripts=scripts, timezone=zone, limits=Limits() if limits is None else limits, leads=leads(plan)
        )
        self.services = Services(StringPool(), context, watching=outputs.watching, describes=outputs.describes)
        self._tokens = tokens
        self.now = 0 if start is None else start
        self._start_known = start is not None
        self.steps = 1  # step 0 is the start, before any event
        self.started = False
        self._schemas = {s: d.source.schema for s, d in plan.streams.items()}
        self.parts = Assembly(plan, self.services, outputs.stored)
        self.operators = self.parts.operators
        keyed_tables = frozenset(t for t, how in self.parts.buffered_tables.items() if how.key)
        self.graph = build([op.node for op in self.operators], two_pass_tables(plan), keyed_tables)
        self.splitter = make_batch_splitter(self.operators, two_pass_tables(plan)) if self.graph.order is None else None
        self._run_graph = self.graph if self.splitter is None else self.splitter.graph
        for i, op in enumerate(self.operators):
            if isinstance(op, QueryOperator) and self._run_graph.order is not None:
                op.place(self._run_graph.ranks[i], self._run_graph.ties.get(i))
            if isinstance(op, AggregationOperator) and self._run_graph.order is not None:
                op.rank = self._run_graph.ranks[i]
        self._published_streams: frozenset[str] = published_streams(plan) if outputs.publishes else frozenset()
        self._output_streams = {s for op in self.operators for s in observable_streams(op)} | self._published_streams
        self._labels = outputs.labels
        self._output_streams -= set(map(stream_of, self._labels.values()))
        self._by_operator = self._run_graph.order is not None and not by_chunk
        self._slice, self._passes, self._rests = _LEAST if self._run_graph.fixpoints else SLICE, 0, 0
        queries = [op.query for op in self.operators if isinstance(op, QueryOperator)]
        self._collector = OutputCollector(self.services, outputs, self._schemas, queries)
        self._empty = self._empties()
        self.passed = StepCount()
        self._waiting: dict[int, Clock] = {}
        """By operator, the last movement of the clock that it left out (`_may_wait`)."""
        self._idle_operators: set[int] = set()
        """Operators that may leave out movements: the first one makes those begin that wait for nothing else."""

    def _is_labelled(self, op: Operator) -> bool:
        return op.name in self._labels and isinstance(op, QueryOperator)

    def _empties(self) -> dict[str, Rows]:
        """No rows, for every stream key of the graph."""
        none = np.empty(0, np.int64)
        out = {s: self._rows(s, none, none, None) for s in self._schemas}
        for s in out:
            if nodes.is_of_partition(s):
                out[s] = Rows(out[s].columns, none, none, none, None, none.astype(np.int32))
        for w in self.parts.windows.values():
            columns = [Column.empty(t) for t in w.types]
            out[entry(w.id)] = Rows(columns, none, none, none)
            out[w.id] = Rows([*columns, *[Column.empty(Type.LONG)] * (1 + w.is_ordered)], none, none, none)
        for op in self.operators:
            if isinstance(op, EntryOperator):
                rows = out[op.entry.stream]
                assert op.node.target is not None
                out[op.node.target] = Rows(rows.columns, none, none, none, None, np.empty(0, np.int32))
            elif isinstance(op, GroupOperator):
                out[op.name] = out[op.node.inputs[0]]
        return out

    # ------------------------------------------------------------------------------------------------------ running

    def step(self, batch: InputBatch) -> Outputs:
        """Runs a micro-batch and returns its output; state and clock advance.

        Raises KeyError for a stream that the app does not define, ValueError for columns that do not fit its schema.
        """
        step_outputs = StepOutputs(self.trace)
        if not self.started and (self._start_known or len(batch.clock)):
            self._start(step_outputs, self.now if self._start_known else int(batch.clock[0]))
        clock = self._clock(batch.clock)
        if self.services.clock.first is None and len(clock.now):
            self.services.clock.first = int(clock.now[0])
        inputs = {s: self._rows(s, r.step, r.ts, r.columns) for s, r in batch.rows.items() if len(r.ts)}
        at_once = self._run_graph.events_only and any(map(_sent_at_once, inputs.values()))
        tables = self.parts.logged_tables
        by_operator = self._by_operator and not at_once and all(t.can_buffer(len(clock.now)) for t in tables)
        for a, b in self._slices(len(clock.now), sum(map(len, inputs.values()))):
            slice_inputs, part = self._between(inputs, a, b), clock.part(a, b)
            if not by_operator or self._rests:
                self._run_by_chunk(slice_inputs, part, step_outputs)
            elif self.splitter is None:
                self._run_by_operator(slice_inputs, part, step_outputs)
                self.passed.count += len(part.now)
            else:
                for x, y, in_one_run in self.splitter.cut(slice_inputs, part):
                    run = self._run_by_operator if in_one_run else self._run_by_chunk
                    run(self._between(slice_inputs, a + x, a + y), part.part(x, y), step_outputs)
                    self.passed.count += y - x if in_one_run else 0
        outputs = self._collector.collect(step_outputs, self.steps)
        for id, aggregation in self.parts.aggregations.items():
            table = aggregation.partials()
            if table is not None:
                outputs.partials[id] = table
        for instances in self.parts.instances.values():
            instances.release()
        self.steps += len(batch.clock)
        return outputs

    def _slices(self, n: int, events: int) -> Iterator[tuple[int, int]]:
        """Ranges (first step, step behind the last) of the `n` steps that go through the operators at a time, for
        `events` events: more steps if most have no event, as events of other nodes. If table cycles take a pass for
        each event of a key, slices shrink to keep the passes few; if one key still dominates, the next `_rests` slices
        run serially.
        """
        a = 0
        while a < max(n, 1):
            sparse = min(n // max(events, 1), _SPARSE) if self._slice == SLICE else 1
            b = min(a + self._slice * max(sparse, 1), n)
            self._passes = 0
            yield a, b
            if self._rests:
                self._rests -= 1
            elif 4 * self._passes > max(b - a, _MANY):
                self._rests = _MANY
            elif self._passes > _MANY:
                self._slice = max(self._slice // 2, _LEAST)
            elif self._run_graph.fixpoints and self._passes < _MANY // 2 and b - a == self._slice:
                self._slice = min(2 * self._slice, SLICE)
            a = max(b, a + 1)

    @property
    def first_clock(self) -> int | None:
        """The clock (ms) after the first step; None: there was none yet."""
        return self.services.clock.first

    def next_due(self) -> int | None:
        """The earliest time (ms) at which a tick can have a visible effect; None if no tick can.

        It may be too early, and is in the past if partition instances wait for the next movement of the clock
        (`timers`), but it is never too late: a tick before it emits nothing.
        """
        due = earliest(op.next_due() for op in self.operators)
        return None if due is None else int(due)

    @property
    def may_rest(self) -> bool:
        """True if the node may leave out movements of the clock that bring no event and are before `next_due`, and
        make up for them by one: its output is the same. It differs if timers are in a partition:
        of equal times of its instances one fires with each movement (`timers`).
        """
        return self.started and not any(op.node.has_timers for op in self.operators if _in_partition(op))

    def skip(self, steps: int, first: int, last: int) -> None:
        """Advances by `steps` steps, from clock `first` to `last` (ms), whose events no operator of the plan reads."""
        if not self.started:
            self._start_clock(self.now if self._start_known else first)
        if self.services.clock.first is None:
            self.services.clock.first = max(self.now, first)
        self.steps += steps
        self.now = max(self.now, last)

    def _start_clock(self, time: int) -> None:
        self.started = True
        self.now = self.services.clock.start = time

    def _start(self, out: StepOutputs, time: int) -> None:
        """Starts the clock at `time` (ms) and fires the triggers at 'start': once for the state, before the first step.
        """
        self._start_clock(time)
        clock = Clock(self.steps - 1, np.array([self.now], np.int64), np.zeros(1, np.bool_), 0, 0)
        triggers = list(self.plan.triggers.values())
        for i in walk_order([string_hash(t.id) for t in triggers], len(triggers)):  # Siddhi keeps them in a map
            trigger = triggers[i]
            if trigger.start:
                rows = start_rows(self.steps - 1, self.now)
                self._push(trigger.id, rows, clock, out)
                out.note(trigger.id, rows)

    def _clock(self, times: Array) -> Clock:
        clock, self.now = Clock.over(times, self.now, self.steps)
        return clock

    def _between(self, inputs: dict[str, Rows], a: int, b: int) -> dict[str, Rows]:
        """The events of the steps a ≤ i < b."""
        out = {}
        for stream, rows in inputs.items():
            bounds = (self.steps + a) << ORDER_KEY_BITS, (self.steps + b) << ORDER_KEY_BITS
            low, high = np.searchsorted(rows.order_key, bounds).tolist()
            if high > low:
                out[stream] = rows if high - low == len(rows) else rows.slice(low, high)
        return out

    def _rows(self, stream: str, step: Array, ts: Array, columns: list[Any] | None) -> Rows:
        schema = self._schemas[stream]
        strings = self.services.strings
        if columns is None:
            cols = [Column.empty(t) for t in schema.types]
        else:
            if len(columns) != len(schema):
                raise ValueError(f"{stream} has {len(schema)} attributes, the batch {len(columns)}")
            cols = [_column(t, c, strings) for t, c in zip(schema.types, columns, strict=True)]
        return Rows(cols, writable(np.ascontiguousarray(ts, np.int64)), *event_order(step, self.steps))

    def _run_by_operator(self, inputs: dict[str, Rows], clock: Clock, out: StepOutputs) -> None:
        assert self._run_graph.order is not None
        for table in self.parts.logged_tables:
            table.begin()
        outputs: dict[str, list[tuple[int, Rows]]] = {}
        ready: dict[str, Rows] = {}
        for stage in self._run_graph.order:
            if stage[0] in self._run_graph.cycles:
                results = self._in_circle(stage, inputs, outputs, ready, clock)
            else:
                results = self._through(stage, inputs, outputs, ready, clock)
            for op, rows in results:
                op.apply(rows, clock)
                out.output_of(op, rows)
                if self._is_labelled(op):
                    out.note(self._labels[op.name], as_read(op, rows))
        for stream in self._output_streams & (outputs.keys() | (self._published_streams & inputs.keys())):
            parts = [(-1, inputs[stream])] if stream in self._published_streams and stream in inputs else []
            out.note(stream, in_order(parts + outputs.get(stream, [])))
        for table in self.parts.logged_tables:
            table.settle()

    def _through(
        self, stage: Sequence[int], inputs: Mapping[str, Rows], outputs: dict[str, list[tuple[int, Rows]]],
        ready: dict[str, Rows], clock: Clock,
    ) -> list[tuple[Operator, Rows]]:  # fmt: skip
        """Run operators; their outputs go into `outputs`, and are still to be applied. `ready` are the streams
        that are complete.
        """
        out = []
        for i in stage:
            op = self.operators[i]
            for s in op.node.inputs:
                if s not in ready and (s in outputs or s in inputs):
                    parts = [(-1, inputs[s])] if s in inputs else []
                    ready[s] = in_order(parts + outputs.get(s, []))
            if not op.node.has_timers and not any(s in ready for s in op.node.inputs):
                continue
            rows = op.run({s: ready.get(s, self._empty[s]) for s in op.node.inputs}, clock)
            for stream, fault in self._faults():
                outputs.setdefault(stream, []).append((self._run_graph.ranks[i], fault))
            if rows is None or len(rows) == 0:
                continue
            out.append((op, rows))
            if op.node.target is not None:
                outputs.setdefault(op.node.target, []).append((self._run_graph.ranks[i], as_read(op, rows)))
        return out

    def _in_circle(
        self, stage: Sequence[int], inputs: Mapping[str, Rows], outputs: dict[str, list[tuple[int, Rows]]],
        ready: dict[str, Rows], clock: Clock,
    ) -> list[tuple[Operator, Rows]]:  # fmt: skip
        """`_through` for operators that read tables which they change: once to learn their writes, and once with these
        writes, or until the writes repeat (`table_cycles`).
        """
        tables = [self.parts.tables[t] for t in {t for i in stage for t in self.operators[i].node.logged_writes}]
        marks = [t.mark() for t in tables]
        lengths_before = [(x, len(x)) for x in (self.services.errors, self.services.logs, self.services.faults)]
        passes, before, until_same = 0, None, stage[0] in self._run_graph.fixpoints
        while True:
            out, complete = {s: [*w] for s, w in outputs.items()}, dict(ready)
            results = self._through(stage, inputs, out, complete, clock)
            for table, mark in zip(tables, marks, strict=True):
                table.rewind(mark)
            if before is not None and (not until_same or passes > len(clock.now) or _same(results, before)):
                break
            for op, rows in results:
                op.apply(rows, clock)
            for x, n in lengths_before:
                del x[n:]
            passes, before = passes + 1, results
        self._passes = max(self._passes, passes)
        outputs.update(out)
        ready.update(complete)
        return results

    def _run_by_chunk(self, inputs: dict[str, Rows], clock: Clock, out: StepOutputs) -> None:
        chunks: dict[int, list[tuple[str, Rows, list[int]]]] = {}
        quiet = Clock(clock.base, clock.now, clock.may_fire, 0, 0)
        for stream, rows in inputs.items():
            for chunk, takers in self._taken(stream, rows, quiet):
                chunks.setdefault(int(chunk.order_key[0]) >> ORDER_KEY_BITS, []).append((stream, chunk, takers))
        timer_ops = [(k, op) for k, op in enumerate(self.operators) if op.node.has_timers]
        for i in range(len(clock.now)):
            if clock.may_fire[i]:
                at = Clock(clock.base, clock.now, clock.may_fire, i, i + 1)
                for k, op in timer_ops:
                    if k in self._idle_operators and not _is_due(op, int(clock.now[i])):
                        self._waiting[k] = at
                        continue
                    self._waiting.pop(k, None)
                    if self._may_wait(op):
                        self._idle_operators.add(k)
                    self._emit(op, self._run_timers(op, at), quiet, out)
            for stream, chunk, takers in chunks.get(clock.base + i, []):
                self._push(stream, chunk, quiet, out, takers)
                if stream in self._published_streams:
                    out.note(stream, chunk)
            self.passed.count += 1
        for k in list(self._waiting):
            self._catch_up(k)

    def _may_wait(self, op: Operator) -> bool:
        """True if an operator may leave out movements of the clock before its `next_due` and make up for them by the
        last one: a query outside of partitions (`may_rest`) that no other operator and no trace looks into."""
        return (
            isinstance(op, QueryOperator)
            and not _in_partition(op)
            and not op.query.read_windows
            and self.services.watching is None
        )

    def _run_timers(self, op: Operator, clock: Clock) -> Rows | None:
        return op.run({s: self._empty[s] for s in op.node.inputs}, clock)

    def _catch_up(self, k: int) -> None:
        """Makes up for the movements of the clock that operator `k` left out."""
        rows = self._run_timers(self.operators[k], self._waiting.pop(k))
        assert rows is None or len(rows) == 0, "no timer was due"

    def _taken(self, stream: str, rows: Rows, clock: Clock) -> Iterator[tuple[Rows, list[int]]]:
        """The chunks of a stream that bring something about, each with the operators that have to see it: filters are
        asked about all of them at once, as one event takes a query as long as thousands."""
        starts = np.flatnonzero(np.append(True, rows.chunk[1:] != rows.chunk[:-1]))
        receivers = self.graph.receivers.get(stream, [])
        sees = np.ones((len(receivers), len(starts)), np.bool_)
        for k, i in enumerate(receivers):
            op = self.operators[i]
            if isinstance(op, QueryOperator):
                sees[k] = np.logical_or.reduceat(op.query.passing_rows(stream, rows, clock), starts)
        ends = np.append(starts[1:], len(rows))
        for c in np.flatnonzero(sees.any(axis=0) | (stream in self._published_streams)).tolist():
            takers = [i for k, i in enumerate(receivers) if sees[k, c]]
            yield rows.slice(int(starts[c]), int(ends[c])), takers

    def _push(
        self, stream: str, rows: Rows, clock: Clock, out: StepOutputs, takers: Sequence[int] | None = None
    ) -> None:
        """`takers`: the operators that have to see the rows; None: all that read the stream."""
        for i in self.graph.receivers.get(stream, []) if takers is None else takers:
            op = self.operators[i]
            if i in self._waiting:
                self._catch_up(i)
            inputs = {s: rows if s == stream else self._empty[s] for s in op.node.inputs}
            self._emit(op, op.run(inputs, clock), clock, out)

    def _faults(self) -> list[tuple[str, Rows]]:
        """Hand over the rows that the operator that ran last put into fault streams."""
        faults = list(self.services.faults)
        self.services.faults.clear()
        return faults

    def _emit(self, op: Operator, rows: Rows | None, clock: Clock, out: StepOutputs) -> None:
        for stream, fault in self._faults():
            for chunk in fault.by_chunk():
                self._push(stream, chunk, clock, out)
            out.note(stream, fault)
        if rows is None or len(rows) == 0:
            return
        target = op.node.target
        for chunk in rows.by_chunk():
            op.apply(chunk, clock)
            out.output_of(op, chunk)
            if target is not None:
                chunk = as_read(op, chunk)
                self._push(target, chunk, clock, out)
                if self._is_labelled(op):
                    out.note(self._labels[op.name], chunk)
                elif target in self._output_streams:  # the listener of a stream is its last reader
                    out.note(target, chunk)

    # ------------------------------------------------------------------------------------------------------ results

    def answer(self, retrieval: nodes.Retrieval) -> RetrievalAnswer:
        """The answer to an on-demand query over this node's own state; it may change a table.

        Raises `SiddhiRuntimeError` if the query cannot be answered.
        """
        refuse_retrieval(retrieval)
        return answer(retrieval, self.parts, self.services, self.now)

    # ------------------------------------------------------------------------------------------------ stored tables

    def read_tables_from(self, source: RowSource) -> None:
        """Set the source of rows of tables in a database, until `take_table_changes`."""
        for table in self.parts.stored_tables.values():
            table.source = source

    def take_table_changes(self) -> list[TableChanges]:
        """Changes of tables in a database since their rows were read; their rows are then dropped."""
        changes = [t.changes() for t in self.parts.stored_tables.values()]
        for table in self.parts.stored_tables.values():
            table.forget()
            table.source = None
        return [c for c in changes if c is not None]

    # -------------------------------------------------------------------------------------------------------- state

    def snapshot(self) -> bytes:
        """All state as bytes; equal states give equal bytes."""
        return pack(self._state(plain), self.services.strings)

    def saved_parts(self) -> list[Buffer | Tracked]:
        """All state as a runner stores it, in parts that are the engine's own memory, valid until the next step. Most
        of a tracked part is not read again unless it was written since the last call.
        """
        strings = self.services.strings
        return save_parts(self._state(by_change), strings) or [*pack_buffers(self._state(plain), strings)]

    @property
    def stale(self) -> bool:
        """True if the node should be rebuilt from its saved state, because most of its strings are no longer used."""
        return self.services.strings.stale

    def _state(self, form: Form) -> dict[str, Any]:
        state = {
            "now": self.now,
            "steps": self.steps,
            "started": self.started,
            "clock": [self.services.clock.start, self.services.clock.first],
            "operators": [form(op) for op in self.operators],
            "tables": {i: form(t) for i, t in self.parts.tables.items()},
            "instances": {i: form(p) for i, p in self.parts.instances.items()},
        }
        if self._tokens is not None:
            state["tokens"] = state_names(self.operators, self.parts, self._tokens)
            state["began"] = {i: op.query.began for i, op in self._began_later()}
        return state

    def _began_later(self) -> Iterator[tuple[int, QueryOperator]]:
        for i, op in enumerate(self.operators):
            if isinstance(op, QueryOperator) and op.query.began is not None:
                yield i, op

    def restore(self, blob: bytes, without: Collection[str] = ()) -> None:
        """Restores a snapshot of the same plan; with `tokens`, the parts whose tokens are in it and not in `without`,
        and all else begins at its clock. Raises ValueError if the bytes are not a snapshot."""
        state = unpack(blob, self.services.strings)
        self.now, self.steps, self.started = state["now"], state["steps"], state["started"]
        self.services.clock.start, self.services.clock.first = state["clock"]
        if self._tokens is not None and "tokens" in state:
            tokens = {key: "" if t in without else t for key, t in self._tokens.items()}
            names = state_names(self.operators, self.parts, tokens)
            fresh_operators = carry_over(state, names)
            for i in fresh_operators if self.started else ():
                op = self.operators[i]
                if isinstance(op, QueryOperator) and not op.query.services.is_partitioned:
                    op.query.begin_at(self.now)
        for i, s in state["instances"].items():
            self.parts.instances[i].load(s)
        for i, s in state["tables"].items():
            self.parts.tables[i].load(s)
        for i, s in enumerate(state["operators"]):
            if s is not NOT_CARRIED:
                self.operators[i].load(s)
        for i, began in state.get("began", {}).items():
            self.operators[i].query.begin_at(began)

    def stats(self) -> dict[str, Any]:
        """Clock, steps taken, how the app runs, and the bytes and rows that every query, window and table holds."""
        state_bytes = {op.name: op.bytes for op in self.operators} | {i: t.bytes for i, t in self.parts.tables.items()}
        rows = {op.name: op.rows for op in self.operators} | {i: t.rows for i, t in self.parts.tables.items()}
        runs = "by operator" if self._by_operator else f"by chunk: {self.graph.reason or 'asked for'}"
        if self._by_operator and self.splitter is not None:
            runs += f", by chunk where tables change: {self.graph.reason}"
        return {
            "clock": self.now,
            "steps": self.steps - 1,
            "runs": runs,
            "state_bytes": state_bytes,
            "state_rows": {name: n for name, n in rows.items() if n is not None},
        }


def _same(a: Sequence[tuple[Operator, Rows]], b: Sequence[tuple[Operator, Rows]]) -> bool:
    """True if the same operators have the same outputs."""
    return [op for op, _ in a] == [op for op, _ in b] and all(x.alike(y) for (_, x), (_, y) in zip(a, b, strict=True))


def _column(type: Type, column: Any, strings: StringPool) -> Column:
    """A column of `StreamRows` as an engine column."""
    if isinstance(column, UnreadAttribute):
        return UnreadColumn(type, len(column))
    return Column.of(type, column, strings) if isinstance(column, list) else Column.from_arrow(type, column, strings)


def _is_due(op: Operator, now: int) -> bool:
    due = op.next_due()
    return due is not None and due <= now


def _in_partition(op: Operator) -> bool:
    return isinstance(op, EntryOperator) or (isinstance(op, QueryOperator) and op.query.services.is_partitioned)


def _sent_at_once(rows: Rows) -> bool:
    """True if any step brings several events."""
    return bool(np.any(rows.order_key[1:] == rows.order_key[:-1]))
