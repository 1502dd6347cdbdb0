"""Runs an app's aggregations alone: events straight into the operators, on a virtual clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sparkstream_nb.engine.aggregation import AggregationOp, answer_rows, bounds_of
from sparkstream_nb.engine.batch import Answer
from sparkstream_nb.engine.columns import Column, Strings
from sparkstream_nb.engine.expressions import Context, compile_condition
from sparkstream_nb.engine.rows import EVENT_PHASE, ROOT_BITS, Clock, Rows
from sparkstream_nb.engine.services import Services, rows_env
from sparkstream_nb.lang.parser import parse, parse_on_demand
from sparkstream_nb.plan.bind import bind, bind_retrieval
from sparkstream_nb.plan.nodes import AggregationDef, FilterStep, Plan


def plan_of(text: str, properties: dict[str, str] | None = None) -> Plan:
    return bind(parse(text), text, properties or {})


class Aggregations:
    """The aggregations of one node. `send` takes events (timestamp, values) of one stream as one batch."""

    def __init__(self, plan: Plan, *, keep: bool = True) -> None:
        self.plan = plan
        self.services = Services(Strings(), Context())
        zone = plan.properties.get("aggTimeZone", "GMT")
        self.ops = {d.id: AggregationOp(d, self.services, zone=zone, keep=keep) for d in plan.aggregations.values()}
        self.now = -(2**62)
        self.step = 0

    def tick(self, ms: int) -> None:
        self.now = max(self.now, ms)

    def send(self, stream: str, events: Sequence[tuple[int, Sequence[Any]]], *, chunk: bool = False) -> None:
        """`chunk` sends all events at once, so that they see the clock of the last one."""
        if not events:
            return
        schema = self.plan.schema(stream)
        ts = np.array([t for t, _ in events], np.int64)
        columns = [
            Column.of(a.type, [v[i] for _, v in events], self.services.strings) for i, a in enumerate(schema)
        ]
        self.push(stream, Rows(columns, ts, np.empty(0), np.empty(0)), chunk=chunk)

    def push(self, stream: str, rows: Rows, *, chunk: bool = False) -> None:
        n = len(rows.ts)
        now = np.maximum.accumulate(np.append(self.now, rows.ts))[1:]
        if chunk:
            now = np.array([max(self.now, int(rows.ts[-1]))])
        step = np.zeros(n, np.int64) if chunk else np.arange(n)
        root = ((self.step + step) << ROOT_BITS) | EVENT_PHASE
        clock = Clock(self.step, now, np.ones(len(now), np.bool_), 0, 0)
        for op in self.ops.values():
            if op.definition.input.source.id == stream:
                op.run(self._filtered(op.definition, Rows(rows.columns, rows.ts, root, step), clock), clock)
        self.now = int(now[-1])
        self.step += len(now)

    def _filtered(self, definition: AggregationDef, rows: Rows, clock: Clock) -> Rows:
        for s in definition.input.steps:
            assert isinstance(s, FilterStep)
            passes = compile_condition(s.condition, self.services.context)(rows_env(rows, clock, self.services))
            rows = rows.take(np.flatnonzero(passes))
        return rows

    def query(self, text: str) -> Answer:
        retrieval = bind_retrieval(parse_on_demand(text), self.plan, text)
        assert retrieval.source is not None
        op = self.ops[retrieval.source.id]
        per, start, end = bounds_of(retrieval, op.definition, self.services, self.now)
        return answer_rows(retrieval, op.rows(per, start, end), self.services, self.now)

    def partials(self) -> dict[str, pa.Table]:
        tables = {name: op.partials() for name, op in self.ops.items()}
        return {name: t for name, t in tables.items() if t is not None}
