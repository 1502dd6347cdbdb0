"""The part of a plan that some outputs depend on."""

from __future__ import annotations

import pytest

from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.upstream import upstream_of

TEXT = """
@OnError(action='stream') define stream S (k string, v int);
define stream A (k string, v int);
define table T (k string, v int);
define window W (k string, v int) length(3);
define aggregation G from A select k, sum(v) as t group by k aggregate every sec;
define aggregation H from S select k, sum(v) as t group by k aggregate every sec;
@info(name='a') from S[v > 1] select k, v insert into A;
@info(name='b') from S select k, v insert into T;
@info(name='c') from A[T.k == k in T] select k insert into C;
@info(name='w') from S select k, v insert into W;
@info(name='d') from A as x join W as y on x.k == y.k select x.k insert into D;
@info(name='e') from A as x join G as g on x.k == g.k within 0L, 10L per 'sec' select g.t insert into E;
partition with (k of A) begin
@info(name='p') from A select k, v insert into #I;
@info(name='q') from #I select k insert into P;
end;
@info(name='f') from !S select k insert into F;
@info(name='z') from S select k insert into C;
"""


@pytest.mark.parametrize(
    ("streams", "queries", "aggregations"),
    [
        (["A"], "a", ""),
        (["C"], "a b c z", ""),
        (["D"], "a w d", ""),
        (["E"], "a e", "G"),
        (["P"], "a p q", ""),
        (["A", "P"], "a p q", ""),
        ([], "", ""),
        (["F"], "a b c w d e p q f z", "G H"),
    ],
)
def test_queries_and_aggregations_that_streams_come_from(streams: list[str], queries: str, aggregations: str) -> None:
    plan = upstream_of(compile_app(TEXT), streams)
    assert [q.name for q in plan.queries] == queries.split()
    assert list(plan.aggregations) == aggregations.split()
