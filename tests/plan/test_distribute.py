"""Apps split into execution groups: the manual's example, the manager's rules, and what it refuses."""

from __future__ import annotations

import pytest

from sparkstream_nb.errors import SiddhiBindError
from sparkstream_nb.plan import compile_app, explain
from sparkstream_nb.plan.distributed.distribute import Split, Strategy, Subscription, Topic, distribute, shares
from sparkstream_nb.plan.reports.split_graph import split_graph

# WSO2 Stream Processor 4.3.0, Fully Distributed Deployment; the quotes are straight here, and group-1 is written out.
ROOMS = """
@app:name('Rooms')
define stream TempStream (deviceID long, roomNo int, temp double);
@info(name = 'query-1') @dist(execGroup='group-1')
from TempStream#window.time(2 min)
select avg(temp) as avgTemp, roomNo, deviceID insert all events into AvgTempStream;
@info(name = 'query-2') @dist(execGroup='group-1')
from every( e1=TempStream ) -> e2=TempStream[e1.roomNo==roomNo and (e1.temp + 5) <= temp ] within 10 min
select e1.roomNo, e1.temp as initialTemp, e2.temp as finalTemp insert into AlertStream;
@info(name = 'query-3') @dist(execGroup='group-2' ,parallel ='2')
from TempStream [(roomNo >= 100 and roomNo < 110) and temp > 40 ]
select roomNo, temp insert into HighTempStream;
"""
S = "define stream S (k string, v long); define stream T (k string, v long);"


def split_of(text: str) -> Split:
    """The parts of an app, which is called A unless it has a name."""
    plan = compile_app(text)
    return distribute(plan, plan.name or "A")


def test_the_manuals_example_is_three_apps() -> None:
    split = split_of(ROOMS)
    assert [i for g in split.groups for i in g.instances] == ["Rooms-group-1-1", "Rooms-group-2-1", "Rooms-group-2-2"]
    assert [g.elements for g in split.groups] == [("query-1", "query-2"), ("query-3",)]
    assert [g.reads for g in split.groups] == [
        (Subscription("TempStream", Strategy.ALL),),
        (Subscription("TempStream", Strategy.ROUND_ROBIN),),
    ]
    assert split.topics == (Topic("Rooms.TempStream", "TempStream", None, 1, (), ("Rooms-group-1", "Rooms-group-2")),)
    assert split.notes == (
        "the instances of 'Rooms-group-2' take turns with 'TempStream', whose topic has one partition: Kafka gives all "
        "of it to one of them",
    )


def test_explain_shows_the_split_or_why_there_is_none() -> None:
    assert """
  distributed: 2 execution groups, 3 apps
    Rooms-group-1-1: query-1, query-2
      reads TempStream: all
    Rooms-group-2-1, Rooms-group-2-2: query-3
      reads TempStream: round robin
    topic Rooms.TempStream, 1 partition: outside → Rooms-group-1, Rooms-group-2
    ! the instances of 'Rooms-group-2' take turns with""" in explain(compile_app(ROOMS))
    refused = ROOMS.replace("group-1'", "group-1', parallel='2'")
    assert "distributed: refused by its manager, a window cannot run in 2 instances" in explain(compile_app(refused))
    assert "distributed" not in explain(compile_app(S + "from S select k insert into O;"))


def test_keys_have_a_partition_for_each_instance_of_the_largest_reader() -> None:
    split = split_of(
        S
        + "@dist(execGroup='make') from S[v > 1] select k, v insert into Big;"
        + "@dist(execGroup='two', parallel='2') partition with (k of Big) begin"
        + " from Big#window.length(3) select k, sum(v) as s insert into Two; end;"
        + "@dist(execGroup='three', parallel='3') partition with (k of Big) begin"
        + " from Big#window.length(3) select k, max(v) as s insert into Three; end;"
    )
    assert [(t.name, t.partitions, t.writers, t.readers) for t in split.topics] == [
        ("A.S", 1, (), ("A-make",)),
        ("A.Big.k", 3, ("A-make",), ("A-two", "A-three")),
    ]
    assert [g.writes for g in split.groups] == [("Big",), (), ()]


@pytest.mark.parametrize(
    ("partitions", "instances", "expected"),
    [(3, 3, [[0], [1], [2]]), (5, 2, [[0, 1], [2, 3, 4]]), (7, 3, [[0, 1], [2, 3], [4, 5, 6]]), (1, 2, [[], [0]])],
)
def test_what_is_left_over_goes_to_the_last_instance(
    partitions: int, instances: int, expected: list[list[int]]
) -> None:
    assert shares(partitions, instances) == expected


def test_what_has_no_group_is_in_one_of_the_app() -> None:
    split = split_of(S + "from S select k insert into O; from T select k insert into P;")
    assert [(g.name, g.elements, g.writes) for g in split.groups] == [("A-default", ("query1", "query2"), ())]


def test_a_source_that_several_groups_read_has_a_group_of_its_own() -> None:
    split = split_of(
        "@source(type='http', @map(type='json'), @dist(parallel='2')) define stream S (v int);"
        "@source(type='http', @map(type='json')) define stream R (v int);"
        "@dist(execGroup='x') from S select v insert into O; @dist(execGroup='y') from S select v insert into P;"
        "@dist(execGroup='z') from R select v insert into Q;"
    )
    assert [(g.name, g.parallel, g.receiver, g.writes) for g in split.groups] == [
        ("A-passthrough-S", 2, True, ("S",)),
        ("A-x", 1, False, ()),
        ("A-y", 1, False, ()),
        ("A-z", 1, True, ()),
    ]
    assert [(t.name, t.writers, t.readers) for t in split.topics] == [("A.S", ("A-passthrough-S",), ("A-x", "A-y"))]


def test_queries_that_join_an_aggregation_run_beside_it() -> None:
    split = split_of(
        S + "@dist(parallel='1') define aggregation G from S select k, sum(v) as s group by k aggregate every sec;"
        "@info(name='j') from T join G on T.k == G.k within 0L, 9L per 'sec' select G.k as k, G.s as s insert into O;"
        "@dist(execGroup='o') from O select k insert into P;"
    )
    assert [(g.name, g.elements, g.writes) for g in split.groups] == [
        ("A-o", ("query2",), ()),
        ("A-aggregation-G", ("G", "j"), ("O",)),
    ]
    (note,) = split.notes
    assert note == "group 'A-o' reads 'O' before the group that makes it: under WSO2's manager it gets nothing"


def two(parallel: int, rest: str) -> str:
    return S + f"@dist(execGroup='g', parallel='{parallel}') {rest}"


PARTITION = "partition with (k of S) begin from S#window.length(2) select k, v insert into O; end;"
WINDOW = "define window W (k string, v long) length(3);"
TABLE = "define table D (k string, v long);"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            two(2, "from S select k insert into O; @dist(execGroup='g', parallel='3') from S select v insert into P;"),
            "execGroup 'g' has parallel 2 before, and 3 here",
        ),
        (two(2, "from S#window.length(2) select k insert into O;"), "a window cannot run in 2 instances outside of"),
        (
            two(2, "from S#window.time(1 sec) join T#window.time(1 sec) on S.k == T.k select S.k as k insert into O;"),
            "a join cannot run in 2 instances",
        ),
        (two(2, "from every a=S -> b=S select a.k as k insert into O;"), "a pattern cannot run in 2 instances"),
        (two(2, "from every a=S, b=S select a.k as k insert into O;"), "a sequence cannot run in 2 instances"),
        (TABLE + S + "@dist(execGroup='g', parallel='2') from S insert into D;",
         "table 'D' is in memory, and its group has 2 instances"),
        (WINDOW + S + "@dist(execGroup='g', parallel='2') from S insert into W;",
         "window 'W' is in memory, and its group has 2 instances"),
        (TABLE + S + "@dist(execGroup='g') from S insert into D;"
         "@dist(execGroup='h') from T insert into D;", "table 'D' is in memory, and used by groups 'A-g' and 'A-h'"),
        (WINDOW + S + "@dist(execGroup='g') from S insert into W;"
         "@dist(execGroup='h') from W select k insert into O;", "window 'W' is in memory, and used by groups"),
        (TABLE + S + "@dist(execGroup='g') from S insert into D;"
         "@dist(execGroup='h') from T[k == D.k in D] select k insert into O;", "table 'D' is in memory, and used by"),
        (two(2, "partition with (v > 1 as 'a' or v <= 1 as 'b' of S) begin from S select k insert into O; end;"),
         "partitions by ranges cannot be distributed"),
        (two(2, PARTITION + "@dist(execGroup='g', parallel='2') " + PARTITION.replace("into O", "into P")),
         "has two partitions of 'S' by 'k'"),
        (two(1, PARTITION.replace("begin", "begin @dist(execGroup='h')")), "a query in a partition has no @dist"),
        (two(2, "from S select k, v insert into M; @dist(execGroup='g', parallel='2') "
             + PARTITION.replace("of S", "of M").replace("from S", "from M")),
         "a partition reads 'M', which its own group makes, in 2 instances"),
        (two(2, "partition with (k of S) begin from T select k insert into O; end;"
             " @dist(execGroup='g', parallel='2') from T select v insert into P;"),
         "cannot share 'T' by all and by round robin at once"),
        (two(2, "from S select k insert into #I;"), "'#I' outside of a partition cannot be distributed"),
        (S + "from S select k insert into #I; @dist(execGroup='g') from #I select k insert into O;", "'#I' outside of"),
        (two(0, "from S select k insert into O;"), "parallel is a whole number from 1 to 100, not '0'"),
        (S + "@dist(parallel='x') from S select k insert into O;", "not 'x'"),
        (S + "@dist(parallel='2') define aggregation G from S select sum(v) as s aggregate every sec;"
         "@dist(parallel='2') from T join G within 0L, 9L per 'sec' select s insert into O;",
         "aggregation 'G' is in memory, and is joined in 2 instances"),
        (S + "define aggregation G from S select sum(v) as s aggregate every sec;"
         "@dist(parallel='2') from T join G within 0L, 9L per 'sec' select s insert into O;",
         "has parallel 2, and aggregation 'G', which it joins, 1"),
    ],
)  # fmt: skip
def test_what_the_manager_refuses(text: str, message: str) -> None:
    plan = compile_app(text)
    with pytest.raises(SiddhiBindError, match=message) as raised:
        distribute(plan, "A")
    assert raised.value.span is not None
    assert raised.value.hint


def test_the_split_as_a_graph() -> None:
    """Groups around their elements; topics between them, and within a group no topic."""
    plan = compile_app(
        "@source(type='http', @map(type='json'))" + S + """
        @dist(execGroup='a') from S select k, v insert into M;
        @dist(execGroup='b', parallel='2')
        partition with (k of M) begin from M select k, sum(v) as v insert into P; end;
        @dist(execGroup='c') @info(name='c1') from P select k insert into Own;
        @dist(execGroup='c') @info(name='c2') from Own select k insert into O;
        """
    )
    graph = split_graph(plan, distribute(plan, "A"))
    assert [(n.kind, n.label) for n in graph.nodes] == [
        ("source", "outside"),
        ("group", "A-a"), ("query", "query1"),
        ("group", "A-b × 2"), ("query", "partition0"),
        ("group", "A-c"), ("query", "c1"), ("query", "c2"),
        ("topic", "M"), ("topic", "P"),
    ]  # fmt: skip
    assert {(e.start, e.end, e.label) for e in graph.edges} == {
        ("source:outside", "group:A-a/query1", ""),
        ("group:A-a/query1", "topic:A.M.k", ""),
        ("topic:A.M.k", "group:A-b/partition0", "by k"),
        ("group:A-b/partition0", "topic:A.P", ""),
        ("topic:A.P", "group:A-c/c1", ""),
        ("group:A-c/c1", "group:A-c/c2", ""),
    }


def test_errors_of_a_stream_are_those_of_a_groups_own_queries() -> None:
    split = split_of(
        "@OnError(action='STREAM') " + S + "@dist(execGroup='a') from S select convert(k, 'int') as n insert into O;"
        "@dist(execGroup='a') from !S select k insert into Own;"
        "@dist(execGroup='b') from !S select k insert into Faults;"
    )
    assert split.notes == (
        "group 'A-b' reads '!S', and not 'S': errors are those of a group's own queries, so it gets none",
    )
    assert [t.stream for t in split.topics] == ["S"]
