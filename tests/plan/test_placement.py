"""Which part of a plan needs no state, and what is left for the node."""

# ruff: noqa: E501  (an app reads best on one line)

from __future__ import annotations

import pytest

from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.distributed.placement import idle, split, stateless

S = "define stream S (k string, v int, d double, u int);\n"
AGGREGATION = "define aggregation A from S[v > 0] select k, sum(v) as s group by k aggregate every sec;"


def _queries(text: str) -> set[str]:
    return set(stateless(compile_app(S + text))[0])


def _aggregations(text: str) -> set[str]:
    return set(stateless(compile_app(S + text))[1])


def test_a_chain_that_nobody_else_reads() -> None:
    text = "from S[v > 3] select k, v insert into A; from A[v > 5] select k insert into B;"
    assert _queries(text) == {"query1", "query2"}
    first, rest = split(compile_app(S + text))
    assert first is not None
    assert [q.name for q in first.queries] == ["query1", "query2"]
    assert rest.queries == ()
    assert idle(rest)


def test_the_rest_stays_in_the_node() -> None:
    first, rest = split(
        compile_app(
            S + "from S[v > 3] select k insert into A; from S#window.length(2) select sum(v) as s insert into B;"
        )
    )
    assert first is not None
    assert [q.name for q in first.queries] == ["query1"]
    assert [q.name for q in rest.queries] == ["query2"]
    assert not idle(rest)


@pytest.mark.parametrize(
    "text",
    [
        "from S[v > 3] select k, v insert into A; from A#window.length(2) select sum(v) as s insert into B;",
        "from S select k, v insert into L; from L[v > 1] select k, v insert into L;",
        "from S select v insert into O; from S#window.length(1) select sum(u) as s, v insert into P; from P select v insert into O;",
        "define table T (k string); from S select k insert into T;",
        "from S select sum(v) as s insert into O;",
        "from S select k order by k insert into O;",
        "from S select k output every 2 events insert into O;",
        "from S select UUID() as k insert into O;",
        "define stream T (triggered_time long); define trigger T at every 1 sec; from T select triggered_time as t insert into O;",
        "@sink(type = 'log') define stream O (k string); from S select k insert into O;",
        "@OnError(action = 'STREAM') define stream E (k string); from E select cast(k, 'int') as n insert into O; from !E select k insert into P;",
    ],
)  # fmt: skip
def test_what_stays(text: str) -> None:
    assert _queries(text) == set()
    plan = compile_app(S + text)
    assert split(plan) == (None, plan)


def test_aggregations_that_nobody_reads() -> None:
    assert _aggregations(AGGREGATION) == {"A"}
    join = "from S join A on S.k == A.k within '2024-**-** **:**:**' per 'seconds' select A.s insert into O;"
    assert _aggregations(AGGREGATION + join) == set()
    fed = "define stream M (k string, v int, d double, u int); " + AGGREGATION.replace("S[", "M[")
    assert _aggregations(fed) == {"A"}
    assert _aggregations(fed + "from S select k, v, d, u insert into M;") == set()
