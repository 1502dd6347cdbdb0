"""Aggregators that the reference engine does not have: their manual's examples (siddhi-execution-map and -json)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reference.engine_cases import run_case


def outputs(schema: str, select: str, rows: list[list[Any]], window: str = "length(2)") -> list[list[Any]]:
    """What a query over a window puts out, values only."""
    app = f"define stream S ({schema}); from S#window.{window} select {select} insert into Out;"
    got = run_case({"app": app, "feed": [["S", 1000 + i, row] for i, row in enumerate(rows)]})
    return [values for _, values in got["streams"]["Out"]]


def test_map_collect() -> None:
    rows = [["a", 1], ["b", 2], ["a", 3], ["c", 4]]
    got = outputs("k string, v int", "map:collect(k, v) as m", rows)
    assert got == [[{"a": 1}], [{"a": 1, "b": 2}], [{"b": 2, "a": 3}], [{"a": 3, "c": 4}]]


def test_map_merge() -> None:
    app = (
        "define stream S (k string, v int); from S select map:create(k, v) as m insert into M;"
        "from M#window.lengthBatch(2) select map:merge(m) as all insert into Out;"
    )
    feed = [["S", 1000 + i, row] for i, row in enumerate([["a", 1], ["b", 2], ["a", 3], ["a", 4]])]
    got = run_case({"app": app, "feed": feed})
    assert [v for _, v in got["streams"]["Out"]] == [[{"a": 1, "b": 2}], [{"a": 4}]]


MORNING, NOON = '{"date":"2013-11-19","time":"10:30"}', '{"date":"2013-11-19","time":"12:20"}'


@pytest.mark.parametrize(
    ("arguments", "rows", "expected"),
    [
        ("json", [MORNING, NOON], f"[{MORNING},{NOON}]"),
        ("json, true", [MORNING, MORNING], f"[{MORNING}]"),
        ("json, 'result'", [MORNING, NOON], f'{{"result":[{MORNING},{NOON}]}}'),
        ("json, 'result', true", [MORNING, MORNING], f'{{"result":[{MORNING}]}}'),
        ("json, 'result', false", [MORNING, MORNING], f'{{"result":[{MORNING},{MORNING}]}}'),
    ],
)
def test_json_group(arguments: str, rows: list[str], expected: str) -> None:
    got = outputs("json string", f"json:group({arguments}) as g", [[r] for r in rows])
    assert got[-1] == [expected]
    as_object = outputs("json string", f"json:groupAsObject({arguments}) as g", [[r] for r in rows])
    assert as_object[-1] == [json.loads(expected)]


def test_json_group_lets_go() -> None:
    """An expired object leaves, whatever the order of its members."""
    rows = [['{"a":1,"b":2}'], ['{"b":2,"a":1}'], ['{"c":3}'], ['{"d":4}']]
    got = outputs("json string", "json:group(json) as g", rows)
    assert got[-1] == ['[{"c":3},{"d":4}]']


def test_json_group_refuses_what_is_no_object() -> None:
    app = "define stream S (json string); from S select json:group(json) as g insert into Out;"
    got = run_case({"app": app, "feed": [["S", 1, ["[1]"]], ["S", 2, ['{"a":"x/y"}']]]})
    assert got["fault"]
    assert [v for _, v in got["streams"]["Out"]] == [['[{"a":"x\\/y"}]']]


def test_functions_that_the_reference_does_not_have() -> None:
    """`str:locate` came to Siddhi's string extension later; `map:createFromXML` needs a library that it lacks."""
    app = (
        "define stream S (t string, u string); "
        "from S select str:locate(u, t) as a, str:locate(u, t, 2) as b insert into O;"
        "from S select map:createFromXML(t) as m insert into M; "
        "from M select map:get(m, 'symbol') as symbol, map:get(m, 'volume') as volume insert into X;"
    )
    xml = "<trade><symbol>IBM</symbol><volume>100</volume></trade>"
    got = run_case({"app": app, "feed": [["S", 1, ["siddhi", "d"]], ["S", 2, [xml, "IBM"]]]})
    assert got["streams"]["O"] == [[1, [2, 2]], [2, [15, 15]]]
    assert got["streams"]["X"] == [[2, ["IBM", 100]]]
