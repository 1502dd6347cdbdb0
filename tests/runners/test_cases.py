"""Cases of the reference format on Spark answer as they do on the engine alone, on one node and on three."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reference.engine_cases import run_case
from reference.spark_cases import run_case_on_spark, run_cases_on_spark
from sparkstream_nb.errors import SparkStreamError

HERE = Path(__file__).parent


def chosen() -> list[dict[str, Any]]:
    ids = [line for line in (HERE / "cases.txt").read_text().splitlines() if line and not line.startswith("#")]
    known = {}
    for file in (HERE.parent / "cases" / "siddhi").glob("*.jsonl"):
        for line in file.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            known[case["id"]] = case
    return [known[i] for i in ids]


def in_any_order(got: dict[str, Any]) -> dict[str, Any]:
    """What came out, without the order of what came out at one time: nodes have none among them."""

    def bag(events: list[Any]) -> list[str]:
        return sorted(json.dumps(e) for e in events)

    return {
        "streams": {s: bag(e) for s, e in got["streams"].items() if e},
        "queries": {q: {k: bag(v) for k, v in e.items()} for q, e in got["queries"].items()},
        "results": [bag(r.get("rows", [])) for r in got.get("results", [])],
    }


def ordered(got: dict[str, Any]) -> list[Any]:
    """What came out, in order, without streams that put out nothing."""
    return [{s: e for s, e in got["streams"].items() if e}, got["queries"]]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("nodes", [1, 3])
def test_cases(spark: Any, nodes: int) -> None:
    cases = chosen()
    different, answered = [], 0
    for case, got in zip(cases, run_cases_on_spark(cases, spark, nodes), strict=True):
        if isinstance(got, SparkStreamError) and nodes > 1:
            assert "No routing" in str(got) or "different attributes" in str(got)
            continue
        answered += 1
        expected = run_case(case)
        if isinstance(got, Exception):
            different.append(f"{case['id']}: {got}")
        elif in_any_order(got) != in_any_order(expected) or (nodes == 1 and ordered(got) != ordered(expected)):
            different.append(case["id"])
    assert different == []
    assert answered == len(cases) if nodes == 1 else answered > 20


def test_cases_of_one_worker_have_limits_of_their_own(spark: Any) -> None:
    """All run in the same tasks; a query that needs no state, and one that does."""
    case = {
        "app": "define stream S (s string); from S select str:repeat(s, 101) as r insert into O;"
        "from S#window.length(2) select str:repeat(s, 101) as r insert into P;",
        "feed": [["S", 1, ["x"]], ["S", 2, ["y"]]],
    }
    low = {**case, "limits": "characters=100"}
    found = run_cases_on_spark([low, case, low, case], spark)
    counts = [[len(r["streams"].get(s, [])) for s in "OP"] for r in found if isinstance(r, dict)]
    assert counts == [[0, 0], [2, 2], [0, 0], [2, 2]]


def test_a_case_that_fails_does_not_hurt_the_others(spark: Any) -> None:
    good = {"id": "g", "app": "define stream S (a int); from S select a insert into Out;", "feed": [["S", 1, [1]]]}
    wrong = {"id": "w", "app": "define stream S (a int); from S select b insert into Out;", "feed": []}
    lost = {**good, "feed": [["T", 1, [1]]]}
    first, second, third = run_cases_on_spark([wrong, lost, good], spark)
    assert isinstance(first, dict)
    assert first["error"] == "SiddhiBindError"
    assert isinstance(second, KeyError)
    assert third == {"streams": {"Out": [[1, [1]]]}, "queries": {}}


def test_one_case(spark: Any) -> None:
    case = {
        "app": "define stream S (a int); @info(name = 'q') from S#window.length(2) select sum(a) as t insert into Out;",
        "feed": [["S", 1, [1]], ["S", 2, [2]], {"restart": True}, ["S", 3, [3]]],
    }
    got = run_case_on_spark(case, spark)
    assert got["streams"]["Out"] == [[1, [1]], [2, [3]], [3, [5]]]
    assert len(got["queries"]["q"]["in"]) == 3
