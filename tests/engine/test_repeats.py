"""Queries that look up by a key what they then change: repeated over whole batches, they answer as event by event."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.compare import difference
from sparkstream_nb.engine.cases import run_case
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.plan import compile_app

STREAMS = "define stream S (k string, g int, v long, p double); define stream N (k string, g int, v long, p double); " \
    "define stream R (k string, v long); "
SETS = ("", "", " set T.v = v", " set T.v = T.v + v, T.p = p", " set T.v = maximum(T.v, v)")


def composed(r: Random) -> dict[str, Any]:
    """An app in which a join reads what its output changes, and a feed of few keys."""
    key = r.choice(["@PrimaryKey('k') ", ""])
    sides = r.choice(["S join T", "S left outer join T", "T right outer join S"])
    where = r.choice(["", "[v > 1]", "[g == 1]"])
    first, last = sides.replace("S", "S" + where, 1) if sides.startswith("S") else sides + where, r.choice(SETS)
    row = r.choice([
        "S.k as k, S.g as g, coalesce(T.v, 0L) + S.v as v, S.p as p",
        "S.k as k, S.g as g, T.v + 1L as v, T.p + S.p as p",
        "S.k as k, S.g as g, S.v as v, ifThenElse(T.p > S.p, T.p, S.p) as p",
    ])  # fmt: skip
    change = f"{r.choice(['update or insert into', 'update'])} T{last} on T.k == k;"
    on = r.choice(["T.k == S.k", "T.k == S.k", "T.k == S.k and T.v < S.v"])
    if r.random() < 0.5:
        queries = [f"from {first} on {on} select {row} {change}"]
    else:
        queries = [f"from {first} on {on} select {row} insert into N;", f"from N{where} select k, g, v, p {change}"]
    queries.append(r.choice([
        "from R[v > 2] select k, 1 as g, v, 0.5 as p update or insert into T on T.k == k;",
        "from R select k, 1 as g, v, 0.5 as p update or insert into T on T.k == k;",
        "from R select k delete T on T.k == k;",
        "from R select k, v update T set T.v = T.v - v on T.k == k;",
    ]))  # fmt: skip
    queries.append(r.choice([
        "from R join T on T.k == R.k select R.k as k, T.v as v, T.p as p insert into O;",
        "from S join T on T.k == S.k select S.k as k, T.v as v insert into O;",
        "from N#window.length(3) select k, sum(v) as s insert into O;",
        "from S[(T.k == k and T.v > 3L) in T] select k insert into O;",
    ]))  # fmt: skip
    r.shuffle(queries)
    feed: list[Any] = []
    t = 1000
    for _ in range(r.randint(5, 40)):
        t += r.choice([0, 1, 5])
        s = "S" if r.random() < 0.75 else "R"
        row_ = [r.choice("abc"), r.randint(1, 2), r.randint(0, 6), r.randint(0, 9) / 2]
        row_ = row_ if s == "S" else [row_[0], row_[2]]
        feed.append({"stream": s, "batch": [[t, row_], [t, row_]]} if r.random() < 0.02 else [s, t, row_])
        if r.random() < 0.05:
            feed.append(r.choice([{"query": "from T select k, g, v, p"}, {"restart": True}]))
    feed.append({"query": "from T select k, g, v, p"})
    table = f"{key}define table T (k string, g int, v long, p double); "
    return {"id": "repeats", "app": STREAMS + table + " ".join(queries), "feed": feed}


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9))
def test_repeated_circles_answer_as_events_one_by_one(seed: int) -> None:
    case = composed(Random(seed))
    one_by_one, repeated = run_case(case, by_chunk=True), run_case(case)
    assert difference({**case, "expect": one_by_one, "got": repeated}) is None, case["app"]
    assert repeated.get("results") == one_by_one.get("results"), case["app"]


@pytest.mark.parametrize(
    ("queries", "repeats"),
    [
        ("from S join T on T.k == S.k select T.k as k, T.v + 1L as v update T set T.v = v on T.k == k;", True),
        ("from S left outer join T on T.k == S.k select S.k as k, coalesce(T.v, 0L) + 1L as v insert into M; "
         "from M update or insert into T on T.k == k;", True),
        # Another query changes part of a row, in a way that cannot be done twice.
        ("from S join T on T.k == S.k select T.k as k, T.v + 1L as v update T set T.v = v on T.k == k; "
         "from R select k, v update T set T.v = T.v + v on T.k == k;", False),
        # What is counted would be counted again.
        ("from S join T on T.k == S.k select T.k as k, count() as v update T set T.v = v on T.k == k;", False),
        ("from S join T on T.v < S.v select T.k as k, T.v + 1L as v update T set T.v = v on T.k == k;", False),
    ],
)  # fmt: skip
def test_which_circles_repeat(queries: str, repeats: bool) -> None:
    app = STREAMS + "@PrimaryKey('k') define table T (k string, v long); define stream M (k string, v long); " + queries
    node = NodeEngine(compile_app(app))
    assert bool(node.graph.repeats) == repeats
