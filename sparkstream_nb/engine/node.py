"""One simulated Siddhi server: an app's plan, its state and its clock.

A node takes a micro-batch in one of two ways, with the same operators and the same results:

- *by operator*: every operator takes the whole batch as columns, upstream operators first. The roots of the rows (see
  `rows`) put timer output and events in Siddhi's order. This is how all apps run whose streams form a tree.
- *by chunk*: each chunk is pushed through everything it causes before the next one is taken, as Siddhi does. This is
  how apps run whose queries feed back on one another or merge derived streams (`graph.build` says which).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..plan import nodes
from ..plan.gaps import refuse
from .aggregation import AggregationOp
from .batch import Answer, Emitted, InputBatch, Outputs
from .columns import Array, Column, Strings
from .expressions import Context
from .graph import OpNode, build
from .joins import Lookup
from .query import QueryOp, split_kinds
from .rows import EVENT_PHASE, ROOT_BITS, Clock, Rows, concat_rows, one_by_one
from .services import Services
from .snapshot import pack, unpack


class NodeEngine:
    """A node that runs `plan`.

    `shard` is the id under which it writes aggregations. With `trace`, `Outputs.queries` holds what every named query
    put out. `by_chunk` forces the second way of running, for tests. Raises `NotInThisBuild` for an app that needs
    what the engine cannot do yet.
    """

    def __init__(
        self, plan: nodes.Plan, *, shard: str = "", trace: bool = False, allow_scripts: bool = False, by_chunk: bool = False
    ) -> None:
        refuse(plan)
        self.plan, self.shard, self.trace = plan, shard, trace
        self.services = Services(Strings(), Context())
        self.now = 0
        self.steps = 0
        self._schemas = {s: d.source.schema for s, d in plan.streams.items()}
        self.aggregations = {a.id: AggregationOp(a, self.services) for a in plan.aggregations.values()}
        self.queries: list[QueryOp] = []
        phase = 0
        for q in plan.queries:
            op = QueryOp(q, self.services, phase, self._lookups)
            phase += op.schedulers
            self.queries.append(op)
        self._readers: dict[str, list[AggregationOp]] = {}
        for agg in self.aggregations.values():
            self._readers.setdefault(agg.input, []).append(agg)
        self.graph = build([OpNode(q.inputs, q.target.id) for q in self.queries])
        self._by_operator = self.graph.order is not None and not by_chunk
        self._empty = {s: self._rows(s, np.empty(0, np.int64), np.empty(0, np.int64), None) for s in self._schemas}

    def _lookups(self, join: nodes.JoinInput) -> dict[int, Lookup]:
        """The sides of a join that are not streams."""
        return {}

    # ------------------------------------------------------------------------------------------------------ running

    def step(self, batch: InputBatch) -> Outputs:
        """Takes a micro-batch and returns what it put out; state and clock move on.

        Raises KeyError for a stream that the app does not define, ValueError for columns that do not fit its schema.
        """
        clock = self._clock(batch.clock)
        inputs = {s: self._rows(s, r.step + self.steps, r.ts, r.columns) for s, r in batch.rows.items() if len(r.ts)}
        collected = _Collected(self.trace)
        if self._by_operator and not (self.graph.derived & inputs.keys()):
            self._run_by_operator(inputs, clock, collected)
        else:
            self._run_by_chunk(inputs, clock, collected)
        outputs = self._outputs(collected)
        self.steps += len(batch.clock)
        return outputs

    def _clock(self, times: Array) -> Clock:
        times = np.asarray(times, np.int64)
        if len(times) == 0:
            return Clock(self.steps, times, np.empty(0, np.bool_), 0, 0)
        now = np.maximum(np.maximum.accumulate(times), self.now)
        before = np.empty_like(now)
        before[0], before[1:] = self.now, now[:-1]
        self.now = int(now[-1])
        return Clock(self.steps, now, times >= before, 0, len(times))

    def _rows(self, stream: str, step: Array, ts: Array, columns: list[Any] | None) -> Rows:
        schema = self._schemas[stream]
        strings = self.services.strings
        if columns is None:
            cols = [Column.empty(t) for t in schema.types]
        else:
            if len(columns) != len(schema):
                raise ValueError(f"{stream} has {len(schema)} attributes, the batch {len(columns)}")
            cols = [
                Column.of(t, c, strings) if isinstance(c, list) else Column.from_arrow(t, c, strings)
                for t, c in zip(schema.types, columns, strict=True)
            ]
        step = np.asarray(step, np.int64)
        return Rows(cols, np.asarray(ts, np.int64), (step << ROOT_BITS) | EVENT_PHASE, step)

    def _run_by_operator(self, inputs: dict[str, Rows], clock: Clock, out: _Collected) -> None:
        assert self.graph.order is not None
        for stream, readers in self._readers.items():
            if stream not in self.graph.derived:
                for agg in readers:
                    agg.run(inputs.get(stream, self._empty[stream]), clock)
        for i in self.graph.order:
            op = self.queries[i]
            if not op.timed and not any(s in inputs for s in op.inputs):
                continue
            given = {s: inputs.get(s, self._empty[s]) for s in op.inputs}
            if op.event_by_event:
                given = {s: one_by_one(r) for s, r in given.items()}
            selected = op.run(given, clock)
            out.query(op, selected.rows)
            rows = op.emitted(selected)
            if op.target.kind != "stream":
                continue
            if len(rows):
                inputs[op.target.id] = rows
                out.stream(op.target.id, rows)
            for agg in self._readers.get(op.target.id, []):
                agg.run(rows, clock)

    def _run_by_chunk(self, inputs: dict[str, Rows], clock: Clock, out: _Collected) -> None:
        chunks: dict[int, list[tuple[str, Rows]]] = {}
        for stream, rows in inputs.items():
            for chunk in rows.by_chunk():
                chunks.setdefault(int(chunk.chunk[0]), []).append((stream, chunk))
        timed = [op for op in self.queries if op.timed]
        quiet = Clock(clock.base, clock.now, clock.moved, 0, 0)
        for i in range(len(clock.now)):
            if clock.moved[i]:
                at = Clock(clock.base, clock.now, clock.moved, i, i + 1)
                for op in timed:
                    self._emit(op, op.run({s: self._empty[s] for s in op.inputs}, at), quiet, out)
                for agg in self.aggregations.values():
                    agg.run(self._empty[agg.input], at)
            for stream, chunk in chunks.get(clock.base + i, []):
                self._push(stream, chunk, quiet, out)

    def _push(self, stream: str, rows: Rows, clock: Clock, out: _Collected) -> None:
        for agg in self._readers.get(stream, []):
            agg.run(rows, clock)
        for i in self.graph.receivers.get(stream, []):
            op = self.queries[i]
            inputs = {s: rows if s == stream else self._empty[s] for s in op.inputs}
            self._emit(op, op.run(inputs, clock), clock, out)

    def _emit(self, op: QueryOp, selected: Any, clock: Clock, out: _Collected) -> None:
        if not len(selected.rows):
            return
        for part in selected.rows.by_chunk():
            out.query(op, part)
            rows = Rows(part.columns, part.ts, part.root, part.chunk, None, part.part)
            out.stream(op.target.id, rows)
            self._push(op.target.id, rows, clock, out)

    # ------------------------------------------------------------------------------------------------------ results

    def _outputs(self, collected: _Collected) -> Outputs:
        outputs = Outputs(errors=self.services.errors, logs=self.services.logs)
        self.services.errors, self.services.logs = [], []
        for stream, parts in collected.streams.items():
            outputs.streams[stream] = self._emitted(concat_rows(parts), self._schemas[stream].names)
        for op in self.queries if self.trace else []:
            parts = collected.queries.get(op.name)
            if op.query.named:
                empty = Rows([Column.empty(t) for t in op.query.select.schema.types], *[np.empty(0, np.int64)] * 3)
                current, expired = split_kinds(concat_rows(parts) if parts else empty)
                names = op.query.select.schema.names
                outputs.queries[op.name] = (self._emitted(current, names), self._emitted(expired, names))
        for id, agg in self.aggregations.items():
            table = agg.partials()
            if table is not None:
                outputs.partials[id] = table
        return outputs

    def _emitted(self, rows: Rows, names: tuple[str, ...]) -> Emitted:
        strings = self.services.strings
        columns = [
            c.to_list(strings) if c.type is nodes.Type.OBJECT else c.to_arrow(strings) for c in rows.columns
        ]
        return Emitted(names, (rows.root >> ROOT_BITS) - self.steps, rows.ts, columns)

    def answer(self, retrieval: nodes.Retrieval) -> Answer:
        """The answer to an on-demand query over this node's own state."""
        source = retrieval.source
        if source is None or source.kind != "aggregation":
            raise NotImplementedError("only aggregations are read; the binder's gaps refuse the rest")
        return self.aggregations[source.id].answer(retrieval, self.now)

    # -------------------------------------------------------------------------------------------------------- state

    def snapshot(self) -> bytes:
        """All state as bytes; equal states give equal bytes."""
        state = {
            "now": self.now,
            "steps": self.steps,
            "queries": [q.state() for q in self.queries],
            "aggregations": {i: a.state() for i, a in self.aggregations.items()},
        }
        return pack(state, self.services.strings)

    def restore(self, blob: bytes) -> None:
        """Takes over a snapshot of the same plan. Raises ValueError for bytes that are no snapshot."""
        state = unpack(blob, self.services.strings)
        self.now, self.steps = state["now"], state["steps"]
        for q, s in zip(self.queries, state["queries"], strict=True):
            q.load(s)
        for i, s in state["aggregations"].items():
            self.aggregations[i].load(s)

    def stats(self) -> dict[str, Any]:
        """Clock, steps taken, how the app runs, and the bytes that every query and aggregation holds."""
        return {
            "clock": self.now,
            "steps": self.steps,
            "runs": "by operator" if self._by_operator else f"by chunk: {self.graph.reason or 'asked for'}",
            "state_bytes": {q.name: q.bytes for q in self.queries} | {i: a.bytes for i, a in self.aggregations.items()},
        }


class _Collected:
    """What the operators put out during one step call."""

    def __init__(self, trace: bool) -> None:
        self.trace = trace
        self.streams: dict[str, list[Rows]] = {}
        self.queries: dict[str, list[Rows]] = {}

    def stream(self, id: str, rows: Rows) -> None:
        if len(rows):
            self.streams.setdefault(id, []).append(rows)

    def query(self, op: QueryOp, rows: Rows) -> None:
        if self.trace and len(rows):
            self.queries.setdefault(op.name, []).append(rows)
