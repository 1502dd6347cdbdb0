"""The grammar of test files, and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkstream_nb.durations import parse_duration
from sparkstream_nb.testing.cell_values import write_text
from sparkstream_nb.testing.model import AppTestFile, Expect, OfErrors, OfQuery, OfStream, OfTable, Run, Send, Wait
from sparkstream_nb.testing.siddhitest_errors import AppTestError
from sparkstream_nb.testing.siddhitest_parser import parse_test_file
from sparkstream_nb.testing.step_times import Origin, Time, parse_time


def parse(text: str) -> AppTestFile:
    return parse_test_file(Path("apps/x.siddhitest"), text)


def test_a_file_is_settings_and_steps() -> None:
    (test,) = parse("""# a comment
app: fraud.siddhi   # its path
start: 5 sec
timezone: Europe/Berlin
param LIMIT: "a # b"
run three: nodes: 3, routing: hash:card
run: mode: ha
send Payments together
at | card  # names
1  | "c|1"

2  | c#2
wait 1 min 5 sec
wait until +500
expect Sprees any order within 10 sec on three
card
x
expect "errors" nothing
expect table T
n
1
expect query "from T select \\"x\\""
expect errors
stream
S
""").tests
    settings = test.settings
    assert test.name == "x"
    assert test.app.path == Path("apps/fraud.siddhi")
    assert (settings.start, settings.timezone, dict(settings.variables)) == (5000, "Europe/Berlin", {"LIMIT": "a # b"})
    assert test.runs == (Run(), Run("three", 3, "hash:card"), Run("3", mode="ha"))
    send, wait, until, sprees, named, table, query, errors = test.steps
    assert isinstance(send, Send)
    assert send.together
    assert [[c.text for c in row.cells] for row in send.table.rows] == [["1", "c|1"], ["2", "c#2"]]
    assert isinstance(wait, Wait)
    assert wait.by == 65_000
    assert isinstance(until, Wait)
    assert until.until == Time(500, Origin.LAST)
    expects = [s for s in (sprees, named, table, query, errors) if isinstance(s, Expect)]
    assert [type(e.target) for e in expects] == [OfStream, OfStream, OfTable, OfQuery, OfErrors]
    assert (expects[0].any_order, expects[0].within, expects[0].runs) == (True, 10_000, ("three",))
    assert expects[1].nothing
    assert expects[3].title == 'expect query from T select "x"'
    assert expects[3].table is None


def test_an_app_is_an_indented_text_with_its_own_comments() -> None:
    first, second = parse("""app:
    define stream S (a int);

    from S[a > 0]#log() select a insert into O; -- 'test:' is no keyword here
test: one
expect O nothing
test: two
app: other.siddhi
expect O nothing
""").tests
    text = first.app.text or ""
    assert "from S[a > 0]#log() select a" in text
    assert text.count("\n") == 3
    assert first.app.lines_before == 1
    assert second.app.path == Path("apps/other.siddhi")


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("app: x\nsned S\na\n1", "2:1", "Did you mean 'send'?"),
        ("app: x\nsend S\nexpect O nothing", "2:1", "the events for S are missing"),
        ("app: x\nsend S\na | b\n1", "4:1", "the row has 1 cell, and the table 2 columns"),
        ("app: x\nsend S\na | b\n1 | ", "4:5", "an empty cell"),
        ("app: x\nsend S\na | a\n1 | 2", "3:5", "two columns are called 'a'"),
        ('app: x\nsend S\na\n"x', "4:1", "a quote is not closed"),
        ('app: x\nsend S\na\n"\\x"', "4:1", "an unknown escape"),
        ('app: x\nsend S\na\n"x" y', "4:5", "more text behind a quoted cell"),
        ("app: x\nexpect O soon", "2:10", "'soon' is unknown here"),
        ("app: x\nexpect O nothing\na\n1", "2:1", "rows below an expectation of nothing"),
        ("app: x\nexpect O within a while", "2:16", "'a while' is not a duration"),
        ("app: x\nexpect O nothing on two", "2:1", "the test has no run 'two'"),
        ("app: x\nsend S\na\n1", "1:1", "expects nothing"),
        ("expect O nothing", "1:1", "the test has no app"),
        ("app:\nexpect O nothing", "1:1", "an app is missing"),
        ("app: x\nrun a: nodes: many\nexpect O nothing", "2:8", "nodes is a number from 1 on"),
        ("app: x\nrun a: node: 3\nexpect O nothing", "2:8", "Did you mean 'nodes'?"),
        ("app: x\nrun one: nodes: 3\nexpect O nothing", "1:1", "two runs are called 'one'"),
        ("app: x\nexpect O nothing\ntest: t\nexpect O nothing", "3:1", "belong to no test"),
        ("app: x\nexpect O nothing\nstart: 0", "3:1", "a setting below a step"),
        ("app: x\ntest: t\nexpect O nothing\ntest: t\nexpect O nothing", "4:1", "two tests are called 't'"),
        ("app: x\nexpect query from T", "2:14", "a query is in double quotes"),
        ("app: x\nwait until noon\nexpect O nothing", "2:1", "'noon' is not a time"),
        ("app: x\na | b", "2:1", "a table row without a step"),
    ],
)
def test_a_mistake_has_a_place_and_a_way_out(text: str, place: str, said: str) -> None:
    with pytest.raises(AppTestError) as error:
        parse(text)
    assert str(error.value).startswith(f"apps/x.siddhitest:{place}: ".replace("apps/", str(Path("apps")) + "/"))
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "ms"),
    [("500 ms", 500), ("5 sec", 5000), ("1 min 30 sec", 90_000), ("2 hours", 7_200_000), ("1day", 86_400_000),
     ("1.5 min", 90_000), ("3S", 3000), ("2 mins", 120_000), ("2 mss", None),
     ("5", None), ("five sec", None), ("5 parsecs", None), ("", None)],
)  # fmt: skip
def test_durations(text: str, ms: int | None) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize(
    ("text", "time"),
    [("1000", Time(1000)), ("-1", Time(-1)), ("+500", Time(500, Origin.LAST)), ("+5 sec", Time(5000, Origin.LAST)),
     ("5 sec", Time(5000, Origin.START)), ("1970-01-01T00:00:01", Time(1000)), ("1970-01-01T01:00:00+01:00", Time(0)),
     ("soon", None), ("99999999999999999999", None)],
)  # fmt: skip
def test_times(text: str, time: object) -> None:
    assert parse_time(text) == time


@pytest.mark.parametrize(
    "text",
    ["", "null", " a", "a|b", "# a", "a # b", 'a"b', "a\nb", "a\\b", "send x", "\ud800", "é", "a\u2028b", "a\x85b"],
)
def test_a_written_text_is_read_as_itself(text: str) -> None:
    (test,) = parse(f"app: x\nexpect O\na | b\n{write_text(text, first=True)} | {write_text(text)}").tests
    (expect,) = test.steps
    assert isinstance(expect, Expect)
    assert expect.table is not None
    assert [c.text for c in expect.table.rows[0].cells] == [text, text]
