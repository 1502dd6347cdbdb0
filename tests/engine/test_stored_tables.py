"""Tables in a database, over a source that is a list of rows: they do what tables in memory do."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.lang.parser import parse_on_demand
from sparkstream_nb.plan import bind_retrieval, compile_app
from sparkstream_nb.plan.nodes import Plan
from sparkstream_nb.plan.table_requests import TableChanges, Terms, Values

STORE = "@store(type='rdbms', jdbc.url='jdbc:sqlite:t.db')"
STREAM = "define stream S (kind string, k string, v long);\n"
KEYED = "@primaryKey('k') define table T (k string, v long);\n"
PLAIN = "define table T (k string, v long);\n"
QUERIES = (
    "from S[kind == 'insert'] select k, v insert into T;",
    "from S[kind == 'upsert'] select k, v update or insert into T set T.v = v on T.k == k;",
    "from S[kind == 'add'] select k, v update T set T.v = T.v + v on T.k == k;",
    "from S[kind == 'above'] select v update T set T.v = T.v - 1L on T.v > v;",
    "from S[kind == 'delete'] delete T on T.k == k;",
    "from S[kind == 'below'] delete T on T.v < v and T.k != k;",
    "from S[kind == 'rename'] select k, str:concat(k, 'x') as other update T set T.k = other on T.k == k;",
    "from S[kind == 'find'] join T on S.k == T.k select T.k as k, T.v as v insert into Found;",
    "from S[kind == 'range'] join T on S.v <= T.v and S.k != T.k select T.k as k, T.v as v insert into Range;",
    "from S[kind == 'in' and (T.k == k in T)] select k insert into In;",
)
_OPS = {"==": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class Rows:
    """A database: rows in order. With `key`, the place of a row's key."""

    def __init__(self, keyed: bool) -> None:
        self.keyed, self.rows, self.asked = keyed, list[Values](), list[Sequence[Terms] | None]()

    def fetch(self, table: str, wanted: Sequence[Terms] | None) -> Sequence[Values]:
        self.asked.append(wanted)
        if wanted is None:
            return list(self.rows)
        return [r for r in self.rows if any(all(_OPS[t.op](r[t.attr], t.value) for t in w) for w in wanted)]

    def unfit(self, table: str, row: Values) -> str | None:
        return "is too long" if row[0].startswith("too long") else None

    def apply(self, changes: Sequence[TableChanges]) -> None:
        for c in changes:
            if self.keyed:
                keys = {*c.removals, *((r[0],) for r in c.new)}
                self.rows = [r for r in self.rows if (r[0],) not in keys]
            else:
                self.rows = [r for r in self.rows if r not in c.removals]
            self.rows += c.new


def batch(events: Sequence[tuple[str, str, int]], at: int) -> InputBatch:
    steps = np.arange(len(events))
    columns: list[list[Any]] = [list(c) for c in zip(*events, strict=True)]
    return InputBatch(at + steps, {"S": StreamRows(steps, at + steps, columns)})


def emitted(engine: NodeEngine, events: Sequence[tuple[str, str, int]], at: int) -> dict[tuple[str, int], Counter[Any]]:
    """By stream and time, the rows that queries put out."""
    out: dict[tuple[str, int], Counter[Any]] = {}
    for name, found in engine.step(batch(events, at)).streams.items():
        for ts, row in found.rows():
            out.setdefault((name, ts), Counter())[tuple(row)] += 1
    return out


def held(engine: NodeEngine) -> Counter[Any]:
    retrieval = bind_retrieval(parse_on_demand("from T select k, v"), engine.plan, "")
    return Counter(map(tuple, engine.answer(retrieval).rows))


EVENT = st.tuples(
    st.sampled_from(["insert", "upsert", "add", "above", "delete", "below", "rename", "find", "range", "in"]),
    st.sampled_from(["a", "b", "c", "ax"]),
    st.integers(0, 6),
)


@cache
def plan(table: str) -> Plan:
    """The plan of all queries over a table."""
    return compile_app(STREAM + table + "\n".join(QUERIES))


@pytest.mark.parametrize("table", [KEYED, PLAIN], ids=["key", "no key"])
@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.lists(EVENT, min_size=1, max_size=12), min_size=1, max_size=4))
def test_a_stored_table_does_what_one_in_memory_does(table: str, batches: list[list[tuple[str, str, int]]]) -> None:
    memory, stored = NodeEngine(plan(table)), NodeEngine(plan(STORE + table))
    database = Rows(table is KEYED)
    for i, events in enumerate(batches):
        stored.read_tables_from(database)
        assert emitted(stored, events, 100 * i) == emitted(memory, events, 100 * i)
        database.apply(stored.take_table_changes())
        assert Counter(database.rows) == held(memory)


def keyed_engine() -> tuple[NodeEngine, Rows]:
    return NodeEngine(plan(STORE + KEYED)), Rows(True)


def test_only_the_rows_that_are_asked_for_are_fetched_and_each_once() -> None:
    engine, database = keyed_engine()
    database.rows = [(f"k{i}", i) for i in range(1000)]
    engine.read_tables_from(database)
    engine.step(batch([("find", "k7", 0), ("find", "k7", 0), ("upsert", "k7", 1), ("range", "z", 998)], 0))
    assert [[[(t.attr, t.op, t.value) for t in w] for w in wanted or []] for wanted in database.asked] == [
        [[(0, "==", "k7")]],
        [[(1, ">=", 998)]],
    ]
    assert engine.take_table_changes() == [TableChanges("T", [], [("k7", 1)])]
    assert engine.take_table_changes() == []


def test_inserts_into_a_table_without_a_key_fetch_nothing() -> None:
    engine = NodeEngine(compile_app(STREAM + STORE + PLAIN + QUERIES[0]))
    database = Rows(False)
    engine.read_tables_from(database)
    engine.step(batch([("insert", "a", 1), ("insert", "a", 1)], 0))
    assert database.asked == []
    assert engine.take_table_changes() == [TableChanges("T", [], [("a", 1), ("a", 1)])]


def test_rows_that_the_database_cannot_hold_or_has_are_errors() -> None:
    engine, database = keyed_engine()
    database.rows = [("a", 1)]
    engine.read_tables_from(database)
    events = [("insert", "a", 2), ("insert", "b", 3), ("insert", "b", 4), ("insert", "too long a key", 5)]
    errors = engine.step(batch([*events, ("find", "b", 0)], 0)).errors
    taken = "table T has a row with this primary key already"
    assert [(e.stream, e.values, e.message) for e in errors] == [
        ("T", ["a", 2], taken),
        ("T", ["b", 4], taken),
        ("T", ["too long a key", 5], "is too long"),
    ]
    assert engine.take_table_changes() == [TableChanges("T", [], [("b", 3)])]


def test_an_app_without_a_deployment_says_so() -> None:
    engine, _ = keyed_engine()
    with pytest.raises(SparkStreamError, match="Table 'T' is in a database: a deployment alone can open it"):
        engine.step(batch([("find", "a", 0)], 0))


def test_the_table_is_no_part_of_the_state() -> None:
    engine, database = keyed_engine()
    before = len(engine.snapshot())
    engine.read_tables_from(database)
    engine.step(batch([("insert", f"k{i}", i) for i in range(500)], 0))
    database.apply(engine.take_table_changes())
    assert len(engine.snapshot()) < before + 200
    again, _ = keyed_engine()
    again.restore(engine.snapshot())
    again.read_tables_from(database)
    assert emitted(again, [("find", "k3", 0)], 1000) == {("Found", 1000): Counter({("k3", 3): 1})}
