"""Which attributes of what comes in a plan reads: what may be left out, and what shows whole events."""

from __future__ import annotations

import pytest

from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.distributed.placement import split
from sparkstream_nb.plan.needed import needed_attributes

STREAMS = """
define stream S (a string, b int, c double, d long, e bool, f string);
define stream T (a string, b int, f string);
"""
CASES = {
    "nothing": ("", "", ""),
    "a filter": ("from S[b > 3] select a insert into O;", "ab", ""),
    "a constant": ("from S select 1 as one insert into O;", "", ""),
    "everything selected": ("from S select * insert into O;", "abcdef", ""),
    "two queries": ("from S[b > 3] select a insert into O; from S select e insert into P;", "abe", ""),
    "an output that is read": ("from S select a, b insert into O; from O select a insert into P;", "ab", ""),
    "a window": ("from S#window.length(5) select avg(c) as m group by f having m > 1.0 insert into O;", "cf", ""),
    "a window's argument": ("from S#window.externalTime(d, 5 sec) select sum(b) as s insert into O;", "bd", ""),
    "order by": ("from S#window.lengthBatch(5) select a, b order by b insert into O;", "ab", ""),
    "a window that holds what is selected": ("from S#window.frequent(2) select a insert into O;", "abcdef", ""),
    "a window with a text": ("from S#window.expression('count() < 3') select a insert into O;", "abcdef", ""),
    "a function that may fail": ("from S select cast(a, 'int') as n insert into O;", "abcdef", ""),
    "a filter that may fail": ("from S[str:length(a) > 3] select b insert into O;", "abcdef", ""),
    "functions that answer": ("from S select coalesce(a, f) as g, convert(b, 'int') as i insert into O;", "abf", ""),
    "a log": ("from S#log('x') select a insert into O;", "abcdef", ""),
    "a stream function": ("from S#pol2Cart(c, c) select x insert into O;", "abcdef", ""),
    "late events": ("from S#reorder:kslack(d) select a insert into O;", "ad", ""),
    "a join": (
        "from S#window.length(3) as x join T#window.length(3) as y on x.a == y.a select x.b, y.b as z insert into O;",
        "ab", "ab",
    ),
    "a join with itself": (
        "from S#window.length(3) as x join S#window.length(3) as y on x.a == y.f select x.b insert into O;", "abf", "",
    ),
    "a side's filter": (
        "from S#window.length(3) as x join T[f == 'x']#window.length(3) as y on x.b == y.b select x.a insert into O;",
        "ab", "bf",
    ),
    "a pattern": ("from every x=S[b > 3] -> y=T[b == x.d] select x.a, y.f as g insert into O;", "abd", "bf"),
    "a count": ("from every x=S[b > 3]<2:> -> y=T select x[0].a as i, x[last].c as j insert into O;", "abc", ""),
    "a state that is null": ("from every x=S or y=T select x.a, y is null as n insert into O;", "a", ""),
    "a partition": ("partition with (a of S) begin from S select b insert into O; end;", "ab", ""),
    "a partition by ranges": (
        "partition with (b < 3 as 'l' or c > 2.0 as 'h' of S) begin from S select e insert into O; end;", "bce", "",
    ),
    "a key that fails": ("partition with (str:trim(a) of S) begin from S select b insert into O; end;", "abcdef", ""),
    "inner streams": (
        "partition with (a of S) begin from S select b, c insert into #I; from #I select b insert into O; end;",
        "abc", "",
    ),
    "an aggregation": (
        "define aggregation A from S[e == true] select f, sum(b) as s group by f aggregate every sec;", "bef", "",
    ),
    "an aggregation by a time": (
        "define aggregation A from S select f, sum(b) as s group by f aggregate by d every sec;", "abcdef", "",
    ),
    "a table": ("define table X (a string, b int); from S select a, b insert into X;", "ab", ""),
    "a table that is joined": (
        "define table X (a string, b int); from S join X on S.a == X.a select S.c, X.b insert into O;", "ac", "",
    ),
    "a table that is changed": (
        "define table X (a string, b int); from S select a, b update X set X.b = b on X.a == a;", "ab", "",
    ),
    "a look into a table": (
        "define table X (a string, b int); from S[X.a == a in X] select b insert into O;", "abcdef", "",
    ),
    "a named window": (
        "define window W (a string) length(3); from S select a insert into W; from W select a insert into O;", "a", "",
    ),
    "a rate": ("from S select a, b output last every 3 events insert into O;", "ab", ""),
}  # fmt: skip


def names(app: str) -> tuple[str, str]:
    plan = compile_app(app)
    found = needed_attributes(plan)
    s, t = ("".join(plan.schema(x).names[i] for i in sorted(found[x])) for x in ("S", "T"))
    return s, t


@pytest.mark.parametrize("case", CASES)
def test_needed(case: str) -> None:
    queries, of_s, of_t = CASES[case]
    assert names(STREAMS + queries) == (of_s, of_t)


@pytest.mark.parametrize(
    "annotation",
    ["@sink(type='log')", "@sink(type='inMemory', topic='x')", "@OnError(action='STREAM')", "@OnError(action='LOG')"],
)
def test_what_shows_events_needs_all(annotation: str) -> None:
    assert names(annotation + STREAMS + "from S select a insert into O;") == ("abcdef", "")


def test_each_part_of_a_plan_has_its_own() -> None:
    queries = "from S[b > 1] select a insert into O; from S#window.length(2) select c insert into P;"
    plan = compile_app(STREAMS + queries)
    ahead, rest = split(plan)
    assert ahead is not None
    assert (needed_attributes(ahead)["S"], needed_attributes(rest)["S"]) == ({0, 1}, {2})
