"""What may run in Catalyst, and what the node needs of its input."""

# ruff: noqa: E501  (an app reads best on one line)

from __future__ import annotations

from sparkstream_nb.plan import Placement, compile_app, place
from sparkstream_nb.plan.show import show

S = "define stream S (k string, v int, d double, u int);\n"


def _place(text: str) -> Placement:
    return place(compile_app(S + text))


def test_stateless_chain_that_nobody_else_reads_runs_outside() -> None:
    found = _place("from S[v > 3] select k, v insert into A; from A[v > 5] select k insert into B;")
    assert found.queries == ("query1", "query2")
    assert found.columns["S"] == ()


def test_what_a_stateful_query_reads_stays() -> None:
    found = _place("from S[v > 3] select k, v insert into A; from A#window.length(2) select sum(v) as s insert into B;")
    assert found.queries == ()
    condition = found.rows["S"]
    assert condition is not None
    assert show(condition) == "v > 3"
    assert found.columns["S"] == ("k", "v")


def test_rows_are_those_that_any_reader_wants() -> None:
    found = _place("""
        from S[v > 3]#window.length(2) select k, sum(v) as s insert into A;
        from S[d < 1.0 and v > 0]#window.length(2) select k, sum(v) as s insert into B;
    """)
    condition = found.rows["S"]
    assert condition is not None
    assert show(condition) == "v > 3 or d < 1.0 and v > 0"
    assert found.columns["S"] == ("k", "v", "d")
    assert _place("from S#window.length(2) select sum(v) as s insert into A;").rows["S"] is None


def test_loops_tables_and_shared_outputs_stay() -> None:
    assert _place("from S select k, v insert into L; from L[v > 1] select k, v insert into L;").queries == ()
    shared = "from S select v insert into O; from S#window.length(1) select sum(u) as s, v insert into P; from P select v insert into O;"
    assert _place(shared).queries == ()
    assert _place("define table T (k string); from S select k insert into T;").queries == ()


def test_functions_that_may_fail_stay() -> None:
    assert _place("from S select cast(k, 'int') as n insert into O;").queries == ()
    assert _place("from S select coalesce(k, 'none') as n insert into O;").queries == ("query1",)


def test_aggregations_that_nobody_reads_may_run_outside() -> None:
    aggregation = "define aggregation A from S[v > 0] select k, sum(v) as s group by k aggregate every sec;"
    assert _place(aggregation).aggregations == ("A",)
    join = "from S join A on S.k == A.k within '2024-**-** **:**:**' per 'seconds' select A.s insert into O;"
    assert _place(aggregation + join).aggregations == ()
    fed = "from S select k, v, d, u insert into M; "
    assert (
        _place(
            "define stream M (k string, v int, d double, u int); " + aggregation.replace("S[", "M[") + fed
        ).aggregations
        == ()
    )


def test_a_log_needs_the_whole_event() -> None:
    assert _place("from S#log('x')#window.length(1) select k insert into O;").columns["S"] == ("k", "v", "d", "u")
