"""The engine's small parts, each by itself: inlining, key ids, Java's map order, snapshots, the graph."""

from __future__ import annotations

import random
import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from reference.engine_cases import run_case
from sparkstream_nb.engine.columnar.column_data import Column, StringPool
from sparkstream_nb.engine.columnar.javamap import string_hash, walk_order
from sparkstream_nb.engine.columnar.key_ids import Keys
from sparkstream_nb.engine.expressions.java_texts import text as text_of
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.notation.kernels import inlined, kernel
from sparkstream_nb.engine.runtime.operator_graph import OpNode, build
from sparkstream_nb.engine.state.key_hash import TextKeys
from sparkstream_nb.engine.state.snapshot import pack, unpack
from sparkstream_nb.plan import compile_app
from sparkstream_nb.types import Type


@inlined
def _add_one(values: np.ndarray, at: int) -> int:
    """Adds one, and says what is there then."""
    new = values[at] + 1
    values[at] = new
    return new


@kernel
def _twice(values: np.ndarray) -> int:
    total = 0
    for i in range(len(values)):
        _add_one(values, i)
        new = _add_one(values, i)
        total += new
    return total


def test_a_helper_is_written_into_the_loop() -> None:
    values = np.array([1, 10], np.int64)
    assert _twice(values) == 3 + 12
    assert values.tolist() == [3, 12]
    assert _add_one(values, 0) == 4, "it still runs as plain Python"


LOOP = """
from sparkstream_nb.engine.notation.kernels import inlined, kernel
STEP = {step}

@inlined
def helper(x):
    return {body}

@kernel
def callee(x):
    y = helper(x)
    return y + STEP

@kernel
def caller(x):
    return callee(x)
"""


def test_a_cached_loop_is_known_by_all_that_it_was_made_of(tmp_path: Path) -> None:
    def names(step: int, body: str) -> tuple[str, str]:
        file = tmp_path / f"loop{len(list(tmp_path.iterdir()))}.py"
        file.write_text(LOOP.format(step=step, body=body))
        module = runpy.run_path(str(file))
        return module["callee"].py_func.__qualname__, module["caller"].py_func.__qualname__

    as_it_was, other_constant, other_helper = names(1, "x"), names(2, "x"), names(1, "x * 2")
    assert names(1, "x") == as_it_was
    for changed in (other_constant, other_helper):
        assert changed[0] != as_it_was[0]
        assert changed[1] != as_it_was[1], "nor is the loop that calls it taken for the old one"


@inlined
def _early(x: int) -> int:
    if x:
        return 1
    return 2


def _calls_early(x: int) -> int:
    return _early(x)


def test_a_helper_that_returns_early_is_refused() -> None:
    with pytest.raises(TypeError, match="returns once"):
        kernel(_calls_early)


@given(st.lists(st.tuples(st.sampled_from(["a", "b", None, "null"]), st.sampled_from([1, 2, None])), max_size=30))
@settings(deadline=None)
def test_key_ids_are_equal_where_the_keys_texts_are(rows: list[tuple[str | None, int | None]]) -> None:
    strings = StringPool()
    keys = Keys([Type.STRING, Type.INT], strings)
    cut = len(rows) // 2
    ids = [
        i
        for part in (rows[:cut], rows[cut:])
        if part
        for i in keys.ids(
            [
                Column.of(Type.STRING, [r[0] for r in part], strings),
                Column.of(Type.INT, [r[1] for r in part], strings),
            ]
        ).tolist()
    ]
    seen: dict[tuple[str, int | None], int] = {}
    for (text, number), i in zip(rows, ids, strict=True):
        assert seen.setdefault(("null" if text is None else text, number), i) == i
    assert len(set(ids)) == len(seen)


def test_javas_hashes_and_map_order() -> None:
    assert string_hash("IBM") == 72276
    assert string_hash("polygenelubricants") == -(2**31)
    assert string_hash("") == 0
    names = ["banana", "apple", "cherry"]  # as java.util.HashMap prints them
    assert [names[i] for i in walk_order([string_hash(n) for n in names], 3)] == ["banana", "apple", "cherry"]


def test_a_snapshot_keeps_texts_not_codes() -> None:
    here, there = StringPool(), StringPool()
    there.encode(["something", "else"])
    state = {"c": Column.of(Type.STRING, ["b", None, "a", "b"], here), "n": np.arange(3), "x": [1, 2.5, None, {"k"}]}
    blob = pack(state, here)
    found = unpack(blob, there)
    assert found["c"].to_list(there) == ["b", None, "a", "b"]
    assert found["n"].tolist() == [0, 1, 2]
    assert found["x"] == [1, 2.5, None, {"k"}]
    assert pack(found, there) == blob, "equal states give equal bytes"


def test_a_snapshot_holds_plain_data_only() -> None:
    with pytest.raises(TypeError, match="no plain data"):
        pack({"f": object()}, StringPool())
    with pytest.raises(ValueError, match="not a node's state"):
        unpack(b"something else", StringPool())


@pytest.mark.parametrize(
    ("ops", "reason"),
    [
        ([OpNode(("S",), "A"), OpNode(("A",), "B")], ""),
        ([OpNode(("S",), "A"), OpNode(("T",), "A"), OpNode(("S",), "A")], ""),
        ([OpNode(("S",), "A"), OpNode(("A", "S"), "B")], ""),
        ([OpNode(("S",), "A", single=True), OpNode(("A",), "B"), OpNode(("A",), "B")], ""),
        ([OpNode(("S",), "A"), OpNode(("A",), "B"), OpNode(("A",), "B")], "paths after A fork"),
        ([OpNode((), "A", has_timers=True), OpNode(("A",), "B"), OpNode(("A",), "B")], "paths after A fork"),
        ([OpNode(("S",), "B"), OpNode(("S",), "A"), OpNode(("S",), "B"), OpNode(("A", "B"), "C")], "the paths to C"),
        ([OpNode(("A",), "B"), OpNode(("B",), "A")], "streams form a cycle"),
        ([OpNode(("S",), None, writes=("T",)), OpNode(("S",), "B", reads=("T",))], "read and changed by queries: T"),
    ],
)
def test_when_whole_batches_may_go_through(ops: list[OpNode], reason: str) -> None:
    graph = build(ops)
    assert (graph.order is None) == bool(reason)
    assert reason in graph.reason


KEYED = """
define stream S (k string, v int);
define stream D (k string);
@PrimaryKey('k') define table T (k string, v int);
@info(name='before') from S join T on S.k == T.k select S.k as k, S.v as v, T.v as held insert into Before;
from S[v % 3 != 0] select k, v update or insert into T on T.k == k;
from S[v % 3 == 0] insert into T;
from D delete T on T.k == k;
@info(name='after') from S left outer join T on S.k == T.k and T.v > 1 select S.k as k, T.v as held insert into After;
"""


@given(st.lists(st.tuples(st.sampled_from("SSSD"), st.sampled_from("xyz"), st.integers(0, 8)), max_size=25), st.data())
@settings(deadline=None, max_examples=examples(60))
def test_a_keyed_table_read_as_of_each_row_is_the_table_chunk_by_chunk(
    steps: list[tuple[str, str, int]], data: st.DataObject
) -> None:
    feed = [[s, i + 1, [k, v] if s == "S" else [k]] for i, (s, k, v) in enumerate(steps)]
    assert NodeEngine(compile_app(KEYED)).stats()["runs"] == "by operator"
    cuts = data.draw(st.lists(st.integers(0, max(0, len(feed))), max_size=3))
    case = {"app": KEYED, "feed": feed}
    assert run_case(case, cuts=cuts) == run_case(case, by_chunk=True)


def test_texts_of_values_are_hashed_without_being_made() -> None:
    """`TextKeys` over columns of all types: Java's hash of the texts end to end, and one number per text."""
    strings, r = StringPool(), random.Random(1)
    doubles = (0.0, -0.0, 1e-5, 0.001, 123456.789, 9999999.9, 1e7, 1e22, float("nan"), float("inf"), None)
    longs = (0, -1, 10**17, -(2**63), 2**63 - 1, None)
    texts = ("a", "", "é", "漢字", "😀x", "null", None)
    n = 2000
    values = [
        (Type.DOUBLE, [r.choice((*doubles, round(r.gauss(100, 50), r.randrange(6)), r.random())) for _ in range(n)]),
        (Type.LONG, [r.choice((*longs, r.randrange(-(10**6), 10**6))) for _ in range(n)]),
        (Type.STRING, [r.choice((*texts, f"S{r.randrange(99)}")) for _ in range(n)]),
        (Type.FLOAT, [r.choice((0.1, 1.5, 3e10, None)) for _ in range(n)]),
        (Type.BOOL, [r.choice((True, False, None)) for _ in range(n)]),
    ]
    columns = [Column.of(type, v, strings) for type, v in values]
    keys = TextKeys(strings)
    for chosen in ([0], [1], [2], [3], [4], [0, 1, 2, 3, 4], [2, 0]):
        numbers, hashes = keys.numbers([columns[i] for i in chosen], n)
        told = [(columns[i].type, columns[i].to_list(strings)) for i in chosen]
        whole = ["".join("null" if v[row] is None else text_of(t, v[row]) for t, v in told) for row in range(n)]
        assert hashes.tolist() == [string_hash(w) & 0xFFFFFFFF for w in whole]
        assert len(set(zip(whole, numbers.tolist(), strict=True))) == len(set(whole)) == len(set(numbers.tolist()))
