"""One group for each key, and every event counted, whatever the keys: fed, sent one by one, and over several nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odd_keys import ODD_VALUES, counts, identity, values_of
from profiles import examples
from reference.engine_cases import run_case
from sparkstream_nb.engine.columnar.column_data import ARROW
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.journal.routing import Route, assign
from sparkstream_nb.lang.parser import parse_on_demand
from sparkstream_nb.plan import bind_retrieval, compile_app
from sparkstream_nb.types import Type

ROWS = st.lists(st.sampled_from([*ODD_VALUES]), min_size=1, max_size=3).flatmap(
    lambda types: st.tuples(
        st.just(types), st.lists(st.tuples(*map(values_of, types)), min_size=1, max_size=24), st.integers(0, 24)
    )
)
"""Types of a key's attributes, rows, and the row before which the node is saved."""


def app_of(types: Sequence[Type]) -> str:
    names = [f"k{i}" for i in range(len(types))]
    attributes = ", ".join(f"{n} {t.value}" for n, t in zip(names, types, strict=True))
    keys = ", ".join(names)
    distinct = ", ".join(f"distinctCount({n}) as d{i}" for i, n in enumerate(names) if types[i] is not Type.BOOL)
    return f"""
        define stream S ({attributes});
        define aggregation A from S select {keys}, count() as n group by {keys} aggregate every min;
        define aggregation D from S select {distinct or "count() as one"} aggregate every min;
        from S select {keys}, count() as n group by {keys} insert into Groups;
        from S select {distinct or "1 as one"} insert into Distinct;
        from S select {keys}, count() as n group by {keys} output last every 1 events insert into Limited;
    """


def events_of(types: Sequence[Type], rows: Sequence[Sequence[Any]]) -> InputBatch:
    columns = [pa.array([r[i] for r in rows], ARROW[t], from_pandas=False) for i, t in enumerate(types)]
    ts = np.arange(1, len(rows) + 1)
    return InputBatch(ts, {"S": StreamRows(np.arange(len(rows)), ts, columns)})


def outputs(app: str, types: Sequence[Type], batches: Sequence[Sequence[Sequence[Any]]]) -> dict[str, Any]:
    """The rows of the streams, and of the aggregations; the node is saved and restored after each batch."""
    plan = compile_app(app)
    node = NodeEngine(plan)
    streams: dict[str, list[Any]] = {"Groups": [], "Distinct": [], "Limited": []}
    for rows in batches:
        if not rows:
            continue
        out = node.step(events_of(types, rows))
        assert not out.errors
        for name, emitted in out.streams.items():
            if name in streams:
                streams[name] += [values for _, values in emitted.rows()]
        former, node = node, NodeEngine(plan)
        node.restore(former.snapshot())
    read = {}
    for name in ("A", "D"):
        text = f"from {name} within 0L, 100000L per 'minutes' select *"
        read[name] = node.answer(bind_retrieval(parse_on_demand(text), plan, text)).rows
    return {**streams, **read}


def last_counts(rows: Sequence[Sequence[Any]], *, null_is_text: bool) -> dict[tuple[Any, ...], int]:
    return {tuple(identity(v, null_is_text=null_is_text) for v in row[:-1]): row[-1] for row in rows}


@settings(deadline=None, max_examples=examples(60))
@given(ROWS)
def test_every_key_has_its_group(case: tuple[list[Type], list[tuple[Any, ...]], int]) -> None:
    types, rows, cut = case
    app = app_of(types)
    expected = counts(rows)
    # Where a group's key is a text, a null string is the text 'null' (`GroupByKeyGenerator`).
    as_texts = counts(rows, null_is_text=True)
    kept = [[r[i] for r in rows] for i, t in enumerate(types) if t is not Type.BOOL]
    distinct = [len(set(map(identity, c))) for c in kept]
    for batches in ([rows], [[r] for r in rows], [rows[:cut], rows[cut:]]):
        got = outputs(app, types, batches)
        assert last_counts(got["Groups"], null_is_text=True) == as_texts
        assert last_counts(got["Limited"], null_is_text=True) == as_texts
        assert {tuple(map(identity, r[1:-1])): r[-1] for r in got["A"]} == expected
        assert sum(r[-1] for r in got["A"]) == len(rows)
        if distinct:
            assert list(got["Distinct"][-1]) == distinct
            # In an aggregation 0.0 and -0.0 are one value, as in a database.
            stored = [len({identity(v + 0.0 if isinstance(v, float) else v) for v in c}) for c in kept]
            assert [list(r[1:]) for r in got["D"]] == [stored]


@settings(deadline=None, max_examples=examples(40))
@given(ROWS, st.integers(2, 5))
def test_nodes_that_a_key_divides_count_as_one(case: tuple[list[Type], list[tuple[Any, ...]], int], nodes: int) -> None:
    types, rows, _ = case
    app = app_of(types)
    plan = compile_app(app)
    batch = events_of(types, rows)
    place = assign(batch, Route(attribute="k0"), {"S": plan.schema("S")}, nodes, 0)["S"]
    total: dict[tuple[Any, ...], int] = {}
    for node in range(nodes):
        own = [r for r, p in zip(rows, place.tolist(), strict=True) if p == node]
        if own:
            found = last_counts(outputs(app, types, [own])["Groups"], null_is_text=True)
            assert not found.keys() & total.keys()
            total |= found
    assert total == counts(rows, null_is_text=True)


@pytest.mark.parametrize("type", [Type.DOUBLE, Type.FLOAT])
def test_zeros_that_a_join_finds_equal_are_on_one_node(type: Type) -> None:
    rows = [(0.0,), (-0.0,)]
    batch = events_of([type], rows)
    plan = compile_app(f"define stream S (k {type.value}); from S select k insert into O;")
    for nodes in range(2, 9):
        first, second = assign(batch, Route(attribute="k"), {"S": plan.schema("S")}, nodes, 0)["S"].tolist()
        assert first == second


@pytest.mark.parametrize("key", ["@PrimaryKey('k') ", "@Index('k') ", ""])
def test_null_and_the_text_null_are_two_keys_of_a_table(key: str) -> None:
    app = (
        f"define stream S (k string, v int); define stream R (k string); {key}define table T (k string, v int);"
        "from S update or insert into T set T.v = v on T.k == k; from R delete T on T.k == k;"
    )
    feed: list[Any] = [["S", 1, ["null", 1]], ["S", 2, ["a", 2]], ["S", 3, ["null", 3]], ["R", 4, [None]]]
    got = run_case({"app": app, "feed": [*feed, {"query": "from T select k, v"}]})
    assert sorted(got["results"][0]["rows"]) == [["a", 2], ["null", 3]]
