"""Stream functions: what they make of one event. Expected events are those of the reference engine (json: of
siddhi-execution-json 2.0.11)."""

from __future__ import annotations

from typing import Any

import pytest

from reference.engine_cases import input_batch
from sparkstream_nb.engine.expressions.objects import jsonable
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.plan import compile_app

STREAM = "define stream S (s string, o object, d double);\n"


def run(query: str, *rows: list[Any]) -> tuple[list[list[Any]], list[str], int]:
    """Events of Out as [timestamp, values...], log lines, and the number of failed events; row i comes at i + 1 ms."""
    plan = compile_app(f"{STREAM}from S{query} insert into Out;")
    out = NodeEngine(plan).step(input_batch(plan, [["S", i + 1, row] for i, row in enumerate(rows)]))
    events = [[ts, *(jsonable(v) for v in values)] for ts, values in out.streams["Out"].rows()]
    return events, out.logs, len(out.errors)


JSON = [
    ["{'a':[1,'x',{'b':2},null]}", None, None],
    ["{'a':'t'}", None, None],
    ["{'a':5}", None, None],
    ["{'a':{'q':1}}", None, None],
    ["{'b':1}", None, None],
    ["{'a':[]}", None, None],
    ["{'a':null}", None, None],
    [None, None, None],
]
TEXTS = [[1, "1"], [1, '"x"'], [1, '{"b":2}'], [1, "null"], [2, "t"], [4, '{"q":1}']]
OBJECTS = [[1, 1], [1, "x"], [1, {"b": 2}], [1, None], [2, "t"], [4, {"q": 1}]]
MISSING = [[5, None], [6, None], [7, None]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("#json:tokenize(s, '$.a') select jsonElement", TEXTS),
        ("#json:tokenize(s, '$.a', false) select jsonElement", TEXTS + MISSING),
        ("#json:tokenizeAsObject(s, '$.a') select jsonElement", OBJECTS),
        ("#json:tokenizeAsObject(s, '$.a', false) select jsonElement", OBJECTS + MISSING),
    ],
)
def test_json_tokens(query: str, expected: list[Any]) -> None:
    events, _, failed = run(query, *JSON)
    assert events == expected
    assert failed == 1  # the null


def test_words() -> None:
    rows = [["a,b,,a,", None, None], ["", None, None], [",", None, None], [None, None, None]]
    assert run("#str:tokenize(s, ',') select token", *rows) == (
        [[1, "a"], [1, "b"], [1, ""], [1, "a"], [2, ""]], [], 1,
    )  # fmt: skip
    assert run("#str:tokenize(s, '', true) select token", rows[0])[0] == [[1, "a"], [1, ","], [1, "b"]]


def test_maps_and_lists_come_apart_in_javas_order() -> None:
    made = "map:create('zebra', 1, 'apple', 2, 'mango', 3, 'kiwi', 4, 'fig', 5, 'banana', 6)"
    events, _, _ = run(f"#map:tokenize({made}) select key, value", ["x", None, None])
    assert [e[1:] for e in events] == [["zebra", 1], ["banana", 6], ["apple", 2], ["kiwi", 4], ["fig", 5], ["mango", 3]]
    assert run("#map:tokenize(o) select key, value", ["x", {"q": 1, "b": 2}, None])[0] == [[1, "q", 1], [1, "b", 2]]
    pairs = run("#list:tokenize(list:create(1, 2), list:create(3)) select index, value", ["x", None, None])[0]
    assert pairs == [[1, 0, [1, 3]], [1, 1, [2, None]]]


def test_polar_coordinates_fail_on_null() -> None:
    events, _, failed = run("#pol2Cart(d, d) select x, y", ["", None, None], ["", None, 1.0])
    assert events == [[2, pytest.approx(0.9998476951563913), pytest.approx(0.01745240643728351)]]
    assert failed == 1
    assert [e[3] for e in run("#pol2Cart(1.0, 2.0, d) select x, y, z", ["", None, None], ["", None, 1.0])[0]] == [
        None,
        1.0,
    ]


def test_log_lines_show_the_whole_event_whatever_the_query_selects() -> None:
    row = ["x", None, 1.5]
    assert run("#log() select d", row)[:2] == ([[1, 1.5]], ["INFO: Event{timestamp=1, data=[x, null, 1.5]}"])
    assert run("#log('warn', 'seen', false) select d", row)[1] == ["WARN: seen"]
    assert run("#log('OFF', 'seen') select d", row)[1] == []
    assert run("#log(false) select d", row)[1] == ["INFO: Event Arrived"]
    assert run("#log(s, 'by event') select d", row, ["ERROR", None, 2.5]) == (
        [[2, 2.5]], ["ERROR: by event, Event{timestamp=2, data=[ERROR, null, 2.5]}"], 1,
    )  # fmt: skip
