"""Queries that look up by a key what they then change: repeated over whole batches, they answer as event by event."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.table_apps import TABLE, Case, apps, cases, check, one_of, streams, text
from profiles import examples
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.plan import compile_app

STREAMS = streams("SN", "R")
SETS = one_of("", "", " set T.v = v", " set T.v = T.v + v, T.p = p", " set T.v = maximum(T.v, v)")
WHERE = one_of("", "[v > 1]", "[g == 1]")
CHANGE = text("{} T{} on T.k == k;", one_of("update or insert into", "update"), SETS)
OTHER = one_of(
    "from R[v > 2] select k, 1 as g, v, 0.5 as p update or insert into T on T.k == k;",
    "from R select k, 1 as g, v, 0.5 as p update or insert into T on T.k == k;",
    "from R select k delete T on T.k == k;",
    "from R select k, v update T set T.v = T.v - v on T.k == k;",
)
READER = one_of(
    "from R join T on T.k == R.k select R.k as k, T.v as v, T.p as p insert into O;",
    "from S join T on T.k == S.k select S.k as k, T.v as v insert into O;",
    "from N#window.length(3) select k, sum(v) as s insert into O;",
    "from S[(T.k == k and T.v > 3L) in T] select k insert into O;",
)
ROW = one_of(
    "S.k as k, S.g as g, coalesce(T.v, 0L) + S.v as v, S.p as p",
    "S.k as k, S.g as g, T.v + 1L as v, T.p + S.p as p",
    "S.k as k, S.g as g, S.v as v, ifThenElse(T.p > S.p, T.p, S.p) as p",
)
ON = one_of("T.k == S.k", "T.k == S.k", "T.k == S.k and T.v < S.v")
JOINED = text(
    "{} on {} select {}",
    WHERE.flatmap(lambda w: one_of(f"S{w} join T", f"S{w} left outer join T", f"T right outer join S{w}")), ON, ROW,
)  # fmt: skip
CIRCLE = st.one_of(
    text("from {} {}", JOINED, CHANGE).map(lambda query: [query]),
    st.tuples(text("from {} insert into N;", JOINED), text("from N{} select k, g, v, p {}", WHERE, CHANGE)).map(list),
)
APPS = apps(
    head=text(f"{STREAMS}{{}}{TABLE}", one_of("", "@PrimaryKey('k') ")),
    queries=st.builds(lambda circle, other, reader: [*circle, other, reader], CIRCLE, OTHER, READER),
)
"""A join reads what its output changes."""


@pytest.mark.thorough
@settings(max_examples=examples(150), deadline=None)
@given(cases(APPS, twice=2))
def test_repeated_circles_answer_as_events_one_by_one(case: Case) -> None:
    check(case)


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
    assert bool(node.graph.fixpoints) == repeats
