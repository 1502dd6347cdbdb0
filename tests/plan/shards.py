"""Runs each query of an app on one node and on three, and tells whether its outputs are the same bag."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reference.engine_cases import input_batch
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, OutputOptions, StreamRows
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.nodes.partitioning import by_hash
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.nodes import Partition, Plan, Query
from sparkstream_nb.plan.table_requests import TableChanges, Terms, Values
from sparkstream_nb.types import Type

NODES = 3
STORE = "@store(type='rdbms', jdbc.url='jdbc:sqlite:t.db')"
Place = Callable[[str, StreamRows], Any]
"""The node (from 0) of each row of a stream, int64[n]."""


def app_and_events(case: Mapping[str, Any]) -> tuple[Plan, InputBatch] | None:
    """The plan of a case and its events, without queries and restarts; None where the app is refused."""
    try:
        plan = compile_app(case["app"], properties=case.get("properties", {}))
        NodeEngine(plan, allow_scripts=True)
    except SparkStreamError:
        return None
    steps = [s for s in case["feed"] if not (isinstance(s, dict) and ("query" in s or "restart" in s))]
    return plan, input_batch(plan, steps)


def one_by_one(batch: InputBatch) -> InputBatch:
    """The same events, each in a step of its own."""
    where: list[tuple[int, str | None, int]] = []
    filled: set[int] = set()
    for stream, rows in batch.rows.items():
        for i, step in enumerate(rows.step.tolist()):
            where.append((step, stream, i))
            filled.add(step)
    where += [(s, None, 0) for s in range(len(batch.clock)) if s not in filled]
    where.sort(key=lambda w: (w[0], w[2]))
    clock = np.array(
        [batch.clock[s] if stream is None else batch.rows[stream].ts[i] for s, stream, i in where], np.int64
    )
    step_of = {(stream, i): n for n, (_, stream, i) in enumerate(where) if stream is not None}
    rows_of = {
        stream: StreamRows(np.array([step_of[stream, i] for i in range(len(r.ts))], np.int64), r.ts, r.columns)
        for stream, r in batch.rows.items()
    }
    return InputBatch(clock, rows_of)


def by_keys(plan: Plan, keys: Mapping[str, str], nodes: int = NODES) -> Place:
    """Routes streams by the keys that they have, all else round robin."""

    def place(stream: str, rows: StreamRows) -> Any:
        if stream not in keys:
            return rows.step % nodes
        schema = plan.streams[stream].source.schema
        at = schema.find(keys[stream])
        assert at is not None
        return by_hash(rows.columns[at], schema[at].type, nodes)

    return place


def in_a_database(app: str) -> str:
    """The app with all of its tables in a database."""
    return re.sub(r"define\s+table", f"{STORE} define table", app, flags=re.IGNORECASE)


class Rows:
    """A database that nodes share. Tables that no query writes have rows from the beginning, of the events' values."""

    def __init__(self, plan: Plan, batch: InputBatch) -> None:
        self.tables = {t: d for t, d in plan.tables.items() if d.is_stored}
        written = {q.output.target.id for q in plan.queries}
        values = _values(plan, batch)
        self.rows: dict[str, list[Values]] = {}
        for id_, t in self.tables.items():
            found = [values.get(a.type) or [None] for a in t.source.schema]
            rows = [tuple(v[i % len(v)] for v in found) for i in range(4)] if id_ not in written else []
            keys = t.primary_key or range(len(t.source.schema))
            self.rows[id_] = list({tuple(r[k] for k in keys): r for r in rows}.values())

    def fetch(self, table: str, wanted: Sequence[Terms] | None) -> Sequence[Values]:
        return list(self.rows[table])

    def unfit(self, table: str, row: Values) -> str | None:
        return None

    def apply(self, changes: Sequence[TableChanges]) -> None:
        for c in changes:
            key = self.tables[c.table].primary_key

            def key_of(row: Values, key: tuple[int, ...] = key) -> Values:
                return tuple(row[a] for a in key) if key else row

            gone = {*c.removals, *((key_of(r) for r in c.new) if key else ())}
            self.rows[c.table] = [r for r in self.rows[c.table] if key_of(r) not in gone] + list(c.new)


def _values(plan: Plan, batch: InputBatch) -> dict[Type, list[Any]]:
    out: dict[Type, dict[Any, None]] = {}
    for stream, rows in batch.rows.items():
        for a, column in zip(plan.streams[stream].source.schema, rows.columns, strict=True):
            if a.type is not Type.OBJECT:
                found = column if isinstance(column, list) else column.to_pylist()
                out.setdefault(a.type, {}).update(dict.fromkeys(v for v in found if v is not None))
    return {t: list(v) for t, v in out.items()}


def all_named(plan: Plan) -> Plan:
    """The plan whose queries are all told of in `Outputs.queries`."""
    elements: list[Query | Partition] = []
    for e in plan.elements:
        if isinstance(e, Partition):
            elements.append(replace(e, queries=tuple(replace(q, named=True) for q in e.queries)))
        else:
            elements.append(replace(e, named=True))
    return replace(plan, elements=tuple(elements))


def outputs(plan: Plan, batch: InputBatch, place: Place | None, *, start: int = 0) -> dict[str, Counter[str]]:
    """By query, the bag of what it puts out on all nodes, expired events apart. `place` None: on one node. With a table
    in a database the nodes have their turns in an order that the events do not have: the last node first."""
    database = Rows(plan, batch)
    out: dict[str, Counter[str]] = {q.name: Counter() for q in plan.queries}
    for node in reversed(range(1 if place is None else NODES)):
        own = batch
        if place is not None:
            rows = {}
            for stream, r in batch.rows.items():
                index = np.flatnonzero(place(stream, r) == node)
                columns = [
                    [c[i] for i in index.tolist()] if isinstance(c, list) else c.take(index) for c in r.columns
                ]
                rows[stream] = StreamRows(r.step[index], r.ts[index], columns)
            own = InputBatch(batch.clock, rows)
        engine = NodeEngine(plan, outputs=OutputOptions(trace=True), allow_scripts=True, start=start)
        for part in (InputBatch(np.empty(0, np.int64)), own):
            engine.read_tables_from(database)
            for name, kinds in engine.step(part).queries.items():
                for kind, emitted in enumerate(kinds):
                    out[name].update(_text(kind, ts, values) for ts, values in emitted.rows())
            database.apply(engine.take_table_changes())
    return out


def _text(kind: int, ts: int, values: list[Any]) -> str:
    return json.dumps([kind, ts, values], default=str, sort_keys=True)


def wrong_claims(
    plan: Plan, batch: InputBatch, *, start: int = 0
) -> Iterator[tuple[Query, Counter[str], Counter[str]]]:
    """The queries whose outputs on three nodes, under the routing that their safety names, are not those of one node:
    with what is lost and what is spurious. Events come one by one."""
    plan, batch = all_named(plan), one_by_one(batch)
    truth = outputs(plan, batch, None, start=start)
    found: dict[str, dict[str, Counter[str]]] = {}
    for q in plan.queries:
        if q.safety.level == "node-dependent":
            continue
        keys = json.dumps(dict(q.safety.keys), sort_keys=True)
        if keys not in found:
            found[keys] = outputs(plan, batch, by_keys(plan, dict(q.safety.keys)), start=start)
        if found[keys][q.name] != truth[q.name]:
            yield q, truth[q.name] - found[keys][q.name], found[keys][q.name] - truth[q.name]
