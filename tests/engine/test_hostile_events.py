"""Events that ask too much: each is an error of its own, and those around it come out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, Outputs, StreamRows
from sparkstream_nb.limits import Limits
from sparkstream_nb.plan import compile_app

S = "define stream S (s string, n int);\n"
DEEP_LIST, DEEP_MAP = "[" * 50_000 + "]" * 50_000, '{"a":' * 50_000 + "1" + "}" * 50_000


def sent(
    app: str, events: list[tuple[int, str, int]], *, allow_scripts: bool = False, limits: Limits | None = None
) -> Outputs:
    """What an app puts out for events (time, s, n), each a step. Its state can be kept."""
    engine = NodeEngine(compile_app(S + app), allow_scripts=allow_scripts, limits=limits)
    at = np.array([e[0] for e in events], np.int64)
    columns = [pa.array([e[1] for e in events]), pa.array([e[2] for e in events], pa.int32())]
    out = engine.step(InputBatch(at, {"S": StreamRows(np.arange(len(at)), at, columns)}))
    assert engine.snapshot()
    return out


@pytest.mark.parametrize(
    ("call", "value", "n", "said"),
    [
        ("str:repeat(s, n)", "ab", 2_000_000_000, "a text of 4,000,000,000 characters is too long"),
        ("str:repeat(str:repeat(s, n), n)", "ab", 60_000, "characters is too long"),
        ("json:getString(s, '$.a')", DEEP_LIST, 1, "nested too deep"),
        ("json:toObject(s)", DEEP_MAP, 1, "nested too deep"),
        ("json:toObject(s)", "[" * 300 + "]" * 300, 1, "an object is nested deeper than 200 levels"),
        ("json:setElement(s, '$.b', 'x')", DEEP_MAP, 1, "nested too deep"),
        ("json:isExists(s, '$..a')", DEEP_MAP, 1, "nested too deep"),
        ("regex:matches(s, 'a')", "(" * 20_000 + ")" * 20_000, 1, "nested too deep"),
        ("regex:matches('(a|aa)+b', s)", "a" * 60, 1, ""),
        ("math:parseLong(s)", "9" * 5_000, 1, "'999"),
        ("convert(s, 'int')", "9" * 5_000, 1, ""),
        ("time:dateFormat(s, 'yyyy', 'yyyy-MM-dd')", "x" * 1_000_000, 1, "'xxx"),
    ],
)
def test_a_function_that_fails(call: str, value: str, n: int, said: str) -> None:
    right: dict[str, str] = {"regex": "a", "time": "2024-01-01", "math": "7", "convert": "7"}
    plain = right.get(call.split(":")[0].split("(")[0], '{"a": 1}')
    out = sent(f"from S select n, {call} as r insert into O;", [(0, plain, 1), (1, value, n), (2, plain, 1)])
    assert [v[0] for _, v in out.streams["O"].rows()][:: len(out.streams["O"]) - 1] == [1, 1]
    if said:
        (error,) = out.errors
        assert (error.ts, error.message[: len(said)] == said or said in error.message) == (1, True)
        assert len(error.message) <= 300


def test_a_pair_that_fails_in_the_condition_of_a_join_says_so() -> None:
    app = (
        "from S[n == 1]#window.length(3) as a join S[n == 2]#window.length(3) as b "
        "on a.n + 1 == b.n and math:parseLong(a.s) > 0 select a.s as s, b.s as t insert into O;"
    )
    out = sent(app, [(0, "7", 1), (1, "x", 1), (2, "b", 2), (3, "9", 1)])
    assert [v for _, v in out.streams["O"].rows()] == [["7", "b"], ["9", "b"]]
    (error,) = out.errors
    assert "'x'" in error.message


@pytest.mark.parametrize("definition", ["every 1 sec", "'* * * * * ?'"])
def test_a_trigger_whose_clock_jumps_leaves_times_out_and_says_so(definition: str) -> None:
    app = f"define trigger T at {definition}; from S select s insert into O;"
    events = [(0, "a", 1), (5_000, "b", 1), (1_700_000_000_000, "c", 1), (1_700_000_002_000, "d", 1)]
    out = sent(app, events, limits=Limits(firings=100))
    times = out.streams["T"].ts.tolist()
    assert times[:5] == [1_000, 2_000, 3_000, 4_000, 5_000]
    assert times[5:] == list(range(1_699_999_900_000 + 1000 * (len(times) == 107), 1_700_000_002_001, 1000))
    (error,) = out.errors
    assert error.query == "T"
    assert error.message.startswith("it did not fire from 6000 to before 1699999")
    assert error.message.endswith("as the clock jumped to 1700000000000")
    assert len(out.streams["O"]) == 4


def test_a_long_feed_without_jumps_leaves_nothing_out() -> None:
    events: list[Any] = [(2_000 * i, "a", 1) for i in range(50)]
    out = sent("define trigger T at every 1 sec; from S select s insert into O;", events, limits=Limits(firings=3))
    assert (len(out.streams["T"]), out.errors) == (98, [])


@pytest.mark.parametrize("definition", ["every 1 sec", "every 100000 hours"])
def test_the_highest_limit_of_firings_is_none_of_time(definition: str) -> None:
    events: list[Any] = [(2_000 * i, "a", 1) for i in range(50)]
    app = f"define trigger T at {definition}; from S select s insert into O;"
    out = sent(app, events, limits=Limits(firings=1_000_000_000))
    assert (len(out.streams.get("T", ())), out.errors) == (98 if definition == "every 1 sec" else 0, [])


SMALL = Limits(characters=100, nesting=3)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("str:repeat(s, n)", "a text of 101 characters is too long: 100 are the most"),
        ("str:concat(s, str:repeat(s, n - 1))", "a text of 101 characters is too long: 100 are the most"),
        ("str:replaceAll(str:repeat(s, 26), 'x', str:repeat('y', n - 97))", "a text of 104 characters is too long"),
        ("f(s, n)", "a text of 101 characters is too long: 100 are the most"),
        ("convert(json:toObject(str:repeat('1', n)), 'string')", "a text of 101 characters is too long"),
        ("json:toObject(str:concat(str:repeat('[', n - 97), str:repeat(']', n - 97)))", "deeper than 3 levels"),
    ],
)
@pytest.mark.parametrize("rows", [1, 300])
def test_a_smaller_limit_refuses_what_the_default_takes(call: str, said: str, rows: int) -> None:
    """Alone, and among so many that a function has them all at once; the events beside it come out."""
    app = "define function f[javascript] return string { return data[0].repeat(data[1]); };\n"
    app += f"from S select n, {call} as r insert into O;"
    events = [(i, "x", 100) for i in range(rows)] + [(rows, "x", 101), (rows + 1, "x", 100)]
    whole = sent(app, events, allow_scripts=True)
    assert (len(whole.streams["O"]), whole.errors) == (rows + 2, [])
    out = sent(app, events, allow_scripts=True, limits=SMALL)
    assert [v[0] for _, v in out.streams["O"].rows()] == [100] * (rows + 1)
    (error,) = out.errors
    assert (error.ts, said in error.message) == (rows, True)


def test_columns_of_different_texts_are_checked_as_well() -> None:
    """Whole columns of texts without codes: each that is too long is an error with its own length."""
    app = "from S select str:concat(s, s) as a, str:upper(s) as b, str:concat(s, '!') as c insert into O;"
    events = [(i, f"{i:0{40 + i % 20}d}", 1) for i in range(5_000)]
    out = sent(app, events, limits=SMALL)
    assert len(out.streams["O"]) == sum(len(s) <= 50 for _, s, _ in events)
    assert {e.message.split(" characters")[0] for e in out.errors} == {f"a text of {2 * n}" for n in range(51, 60)}
    assert not sent(app, events).errors


ROPE = "var x = data[0]; for (var i = 0; i < 5000; i++) x = x + 'y'; return x;"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("while (true) {}", "interrupted"),
        ("var a = []; while (true) a.push('x'.repeat(1000000) + a.length);", "out of memory"),
        ("return f(data);", "Maximum call stack size exceeded"),
        ("throw 'no';", "no"),
    ],
)
def test_a_script_that_asks_for_too_much_fails_for_its_event_alone(body: str, said: str) -> None:
    app = f"define function f[javascript] return string {{ if (data[0] == 'bad') {{ {body} }} {ROPE} }};\n"
    app += "from S select n, str:length(f(s)) as r insert into O;"
    out = sent(app, [(0, "a", 1), (1, "bad", 2), (2, "bb", 3)], allow_scripts=True)
    assert [v for _, v in out.streams["O"].rows()] == [[1, 5_001], [3, 5_002]]
    (error,) = out.errors
    assert (error.ts, said in error.message) == (1, True)


def test_halves_of_surrogate_pairs_are_question_marks() -> None:
    app = "from S select json:getString(s, '$.a') as a, map:get(map:createFromJSON(s), 'a') as o insert into O;"
    out = sent(app, [(0, '{"a": "\\ud800x"}', 1)])
    assert out.streams["O"].rows()[0][1][0] == "?x"
    assert out.errors == []


@pytest.mark.parametrize(
    "app",
    [
        "from S#window.timeBatch(1 milliseconds) select s, count() as c insert all events into O;",
        "from S#window.timeBatch(1 milliseconds) select s, count() as c insert into O;",
        "from S#window.timeBatch(1 milliseconds, 0) select s, count() as c insert into O;",
        "from S#window.timeBatch(1 milliseconds, true) select s, count() as c insert all events into O;",
        "partition with (s of S) begin from S#window.timeBatch(1 milliseconds) select s, count() as c "
        "insert all events into O; end;",
        "define window W (s string) timeBatch(1 milliseconds) output all events; from S select s insert into W; "
        "from W select s, count() as c insert all events into O;",
    ],
)
def test_batches_that_are_empty_for_long_take_no_time(app: str) -> None:
    near, far = (
        sent(app, [(at, s, 1) for at, s in [(0, "a"), (5, "b"), (9, "b"), (9 + jump, "a"), (20 + jump, "b")]])
        for jump in (1_000, 2**60)
    )
    expected = [(at if at < 1_000 else at - 1_000 + 2**60, values) for at, values in near.streams["O"].rows()]
    assert far.streams["O"].rows() == expected
    assert len(expected) >= 4
