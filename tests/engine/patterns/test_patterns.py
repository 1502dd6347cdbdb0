"""Patterns beyond the cases: cuts and restarts change nothing, a naive reference agrees, and Python's filters agree
with programs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiles import a_third_of_pairs, examples
from reference.engine_cases import run_case
from sparkstream_nb.engine.columnar.column_data import ARROW
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.runtime.operators import QueryOperator
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.plan import compile_app
from sparkstream_nb.types import Type

SCHEMA = "".join(f"define stream {s} (k string, v int, w double); " for s in "ABC")
QUERIES = [
    "from every a=A -> b=B[k == a.k and v > a.v] within 400 milliseconds select a.v as x, b.v as y",
    "from every (a=A -> b=A[w > a.w * 1.1]) -> c=B select a.w as x, b.w as y, c.v as z",
    "from every a=A<2:3> -> b=B[v > a[0].v] within 700 milliseconds "
    "select a[0].v as x, a[last].v as y, b.v as z, a.v as l",
    "from every a=A -> b=B<0:2> -> c=C select a.v as x, b[0].v as y, c.v as z",
    "from every (a=A and b=B) -> c=C[v != a.v] select a.v as x, b.v as y, c.v as z",
    "from every a=A or b=B -> c=A select a.v as x, b.v as y, c.v as z",
    "from every a=A -> not B[k == a.k] for 200 milliseconds select a.v as x",
    "from every not A for 150 milliseconds -> b=B select b.v as x",
    "from every a=A -> not B and c=C select a.v as x, c.v as z",
    "from every a=A, b=A[v > a.v]+, c=A[v < b[last].v] select a.v as x, b.v as l, c.v as z",
    "from every a=A*, b=B? , c=C within 900 milliseconds select a[0].v as x, b[0].v as y, c.v as z",
    "from every a=A[v > 2] -> b=B[ifThenElse(v > a.v, v - a.v, 0) > 1] select a.v as x, b.v as y",
]
VALUES = st.tuples(
    st.sampled_from(["x", "y", None]),
    st.one_of(st.none(), st.integers(0, 6)),
    st.one_of(st.none(), st.sampled_from([0.5, 1.0, 2.5, 7.0])),
).map(list)
STEP = st.one_of(
    st.tuples(st.sampled_from("AABC"), st.integers(-20, 250), VALUES),
    st.tuples(st.just("tick"), st.integers(0, 400), st.none()),
    st.tuples(st.sampled_from("AB"), st.integers(0, 100), st.lists(VALUES, min_size=2, max_size=3)),
)


@st.composite
def feeds(draw: st.DrawFn) -> list[Any]:
    """A feed of single events, chunks of several and ticks; now and then an event is late."""
    out: list[Any] = []
    now = 1000
    for kind, gap, data in draw(st.lists(STEP, min_size=4, max_size=30)):
        at = now + gap
        now = max(now, at)
        if kind == "tick":
            out.append({"tick": now})
        elif data and isinstance(data[0], list):
            out.append({"stream": kind, "batch": [[now, d] for d in data]})
        else:
            out.append([kind, at, data])
    return out


def app(query: str, partitioned: bool = False) -> str:
    inner = f"@info(name='q') {query} insert into Out;"
    if partitioned:
        inner = f"partition with (k of A, k of B, k of C) begin {inner} end;"
    return SCHEMA + inner


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.parametrize(("query", "over"), a_third_of_pairs(QUERIES, ["whole", "partitioned"]))
@given(feed=feeds(), data=st.data())
def test_cuts_and_restarts_change_nothing(query: str, over: str, feed: list[Any], data: st.DataObject) -> None:
    case = {"app": app(query, over == "partitioned"), "feed": feed}
    whole = run_case(case)
    marks = data.draw(st.lists(st.integers(1, len(feed)), max_size=6))
    assert run_case(case, cuts=marks) == whole
    assert run_case(case, by_chunk=True) == whole
    restarted: list[Any] = []
    for i, step in enumerate(feed):
        restarted += [{"restart": True}] if i in marks else []
        restarted.append(step)
    assert run_case({**case, "feed": restarted}) == whole


def naive(feed: list[Any], within: int) -> list[list[Any]]:
    """`every a=A -> b=B[k == a.k and v > a.v] within ...`, event by event."""
    waiting: list[tuple[int, Any, Any]] = []
    out = []
    for stream, ts, (k, v, _) in feed:
        waiting = [p for p in waiting if abs(p[0] - ts) <= within]
        if stream == "B":
            matched = [p for p in waiting if None not in (k, v, p[1], p[2]) and p[1] == k and v > p[2]]
            out += [[ts, [p[2], v]] for p in matched]
            waiting = [p for p in waiting if p not in matched]
        elif stream == "A":
            waiting.append((ts, k, v))
    return out


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sampled_from("AB"), st.integers(0, 120), VALUES), min_size=3, max_size=40))
def test_a_naive_reference_agrees(steps: list[Any]) -> None:
    now, feed = 1000, []
    for stream, gap, data in steps:
        now += gap + 1
        feed.append([stream, now, data])
    got = run_case({"app": app(QUERIES[0]), "feed": feed})["streams"].get("Out", [])
    assert got == naive(feed, 400)


SAME = [
    ("v > a.v", "ifThenElse(v > a.v, 1, 0) == 1"),
    ("k == a.k and w > a.w * 2.0", "k == a.k and ifThenElse(w > a.w * 2.0, true, false)"),
    ("(v + a.v) % 3 == 1", "ifThenElse((v + a.v) % 3 == 1, 1, 0) == 1"),
    ("v / 2 - a.v < 0 or a.w is null", "ifThenElse(v / 2 - a.v < 0 or a.w is null, 1, 0) == 1"),
    ("not (v == a.v) and w - a.w >= 0.5", "ifThenElse(not (v == a.v) and w - a.w >= 0.5, 1, 0) == 1"),
]


@settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.parametrize(("program", "python"), SAME)
@given(feed=feeds())
def test_programs_agree_with_python(program: str, python: str, feed: list[Any]) -> None:
    text = "from every a=A -> b=B[{}] select a.v as x, a.w as y, b.v as z"
    assert run_case({"app": app(text.format(program)), "feed": feed}) == run_case(
        {"app": app(text.format(python)), "feed": feed}
    )


def batch(base: int, n: int, keys: int) -> InputBatch:
    """`n` rising events of stream A, one a ms, over `keys` keys."""
    import pyarrow as pa

    at = np.arange(base, base + n)
    columns = [
        pa.array([f"k{i % keys}" for i in range(base, base + n)]),
        pa.array((at % 1000).astype(np.int32)),
        pa.array(at.astype(float), ARROW[Type.DOUBLE]),
    ]
    return InputBatch(at + 1_600_000_000_000, {"A": StreamRows(np.arange(n), at + 1_600_000_000_000, columns)})


def test_memory_grows_and_is_given_back() -> None:
    """20,000 partials wait at once, in 2,000 instances; when they have run out, next to nothing is held."""
    plan = compile_app(app("from every a=A -> b=A[v > a.v + 2000] within 30 sec select a.v as x, b.v as y", True))
    node = NodeEngine(plan)
    for i in range(4):
        assert not node.step(batch(5000 * i, 5000, 2000)).streams
    full = sum(node.stats()["state_bytes"].values())
    twin = NodeEngine(plan)
    twin.restore(node.snapshot())
    assert twin.snapshot() == node.snapshot()
    for n in (node, twin):
        n.step(batch(200_000, 5000, 2000))
    assert node.snapshot() == twin.snapshot()
    assert sum(node.stats()["state_bytes"].values()) < full


def test_forgotten_instances_begin_anew() -> None:
    """What an instance held is gone, its memory too, and its next row finds it as new."""
    plan = compile_app(app("from every a=A -> not B for 30 sec select a.v as x", True))
    node = NodeEngine(plan)
    node.step(batch(0, 100, 10))
    (pattern,) = (op.query.pattern for op in node.operators if isinstance(op, QueryOperator))
    assert pattern is not None
    before = pattern.bytes
    pattern.forget(np.arange(10))
    assert pattern.bytes < before
    out = node.step(InputBatch(np.array([1_600_000_100_000])))
    assert "Out" not in out.streams
    node.step(batch(200_000, 10, 10))
    out = node.step(InputBatch(np.array([1_600_000_300_000])))
    assert len(out.streams["Out"]) == 10
