"""What scaling out does to each part of an app: by hand, and over the apps of all cases."""

from __future__ import annotations

import pytest

from reference import replay
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.audit import Finding, findings

S = "define stream S (k string, v double);\n"
SUM = "from S#window.length(9) select k, sum(v) as s insert into "
STORE = "@store(type='rdbms', jdbc.url='jdbc:sqlite:x.db')"
AGGREGATION = "define aggregation A from S select k, sum(v) as s group by k aggregate every sec...day;"
APPS = list({case["app"]: case["id"] for case in replay.siddhi_cases() if isinstance(case["app"], str)}.items())[::6]


def part(text: str, kind: str) -> Finding:
    (found,) = (f for f in findings(compile_app(text, {"shardId": "node-1"})) if f.kind == kind)
    return found


@pytest.mark.parametrize(
    ("text", "kind", "level", "effect", "repair"),
    [
        ("from S[v > 1.0] select k insert into O;", "query", "safe", "independently", ""),
        ("from every e1=S -> e2=S[k == e1.k] select e2.v insert into O;", "query", "routed", "", "hash:k"),
        (SUM + "O;", "query", "node-dependent", "window 'length'", "an aggregation"),
        ("define table T (k string, s double);\n" + SUM + "T;",
         "table", "node-dependent", "each node has its own", "@store"),
        ("define table T (k string);\nfrom S select k insert into T;\n"
         "from S join T on S.k == T.k select S.v insert into O;",
         "table", "routed", "each node has its own", "@store"),
        (STORE + "define table T (k string, s double);\nfrom S select k, v as s insert into T;",
         "table", "safe", "which all nodes share", ""),
        ("define table T (k string);", "table", "safe", "in memory", ""),
        ("define trigger T at every 1 sec;\nfrom T select triggered_time as t insert into O;",
         "trigger", "node-dependent", "fires on each node", "on one node"),
        ("define window W (k string, v double) length(3);\nfrom S insert into W;\n"
         "from W select sum(v) as s insert into O;",
         "window", "node-dependent", "each node has its own", "repair the queries"),
        ("@sink(type='log') define stream O (k string, s double);\n" + SUM + "O;",
         "sink", "node-dependent", "publishes", "repair the queries"),
        (AGGREGATION, "aggregation", "node-dependent", "no shard id", "@PartitionById(enable='true') and @store"),
        ("@PartitionById(enable='true')" + AGGREGATION, "aggregation", "node-dependent", "no @store", "write @store"),
        (STORE + "@PartitionById(enable='true')" + AGGREGATION, "aggregation", "safe", "merged", ""),
    ],
)  # fmt: skip
def test_by_hand(text: str, kind: str, level: str, effect: str, repair: str) -> None:
    found = part(S + text, kind)
    assert (found.level, found.accepted) == (level, None)
    assert found.line >= 2
    assert effect in found.effect
    assert repair in found.repair
    assert bool(repair) == bool(found.repair)


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        ("@info(name='q', scale.out='accepted: one node only')", "one node only"),
        ("@info(name='q', scale.out='accepted:')", None),
        ("@info(name='q', scale.out='yes')", None),
        ("@info(name='q')", None),
    ],
)
def test_what_is_accepted_has_a_reason(annotation: str, reason: str | None) -> None:
    text = f"{S}define table T (k string, s double);\n{annotation} {SUM}T;"
    for kind in ("query", "table"):
        found = part(text, kind)
        assert (found.accepted, found.counts) == (reason, reason is None)


def test_a_part_is_accepted_only_with_all_queries_that_make_it_node_dependent() -> None:
    text = f"{S}define table T (k string, s double);\n@info(scale.out='accepted: a') {SUM}T;\n{SUM}T;"
    assert part(text, "table").counts


def test_an_aggregation_is_accepted_by_its_own_annotation() -> None:
    assert part(f"{S}@info(scale.out='accepted: a day only') {AGGREGATION}", "aggregation").accepted == "a day only"


@pytest.mark.parametrize("app", [pytest.param(app, id=id_) for app, id_ in APPS])
def test_every_part_of_the_cases_has_its_place(app: str) -> None:
    try:
        plan = compile_app(app, {"shardId": "node-1"})
    except SparkStreamError:
        return  # the case is about this error
    found = findings(plan)
    assert [f.name for f in found if f.kind == "query"] == [q.name for q in plan.queries]
    lines = app.splitlines()
    for f in found:
        assert f.column <= len(lines[f.line - 1])
        if f.kind not in ("query", "sink"):
            assert f.name in app[sum(len(x) + 1 for x in lines[: f.line - 1]) :]
        assert f.repair or f.level == "safe"
