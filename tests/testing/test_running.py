"""Tests of apps as they are run: steps, runs, outside connections, errors, reports and updates."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from sparkstream_nb import cli
from sparkstream_nb.app import apps
from sparkstream_nb.testing.reporting import ReportOptions, run_paths
from sparkstream_nb.testing.suite_results import AppTestReport, to_junit
from sparkstream_nb.testing.suite_runner import RunOptions

ECHO = """app:
  define stream S (name string, v int, x double);
  @info(name='echo') from S select name, v, x insert into O;
"""


def run(folder: Path, text: str, options: ReportOptions | None = None) -> AppTestReport:
    path = folder / "t.siddhitest"
    path.write_text(text, encoding="utf-8")
    return run_paths([path], options)


def details(report: AppTestReport) -> str:
    return "\n".join(report.lines())


def test_rows_are_compared_by_the_columns_that_are_written(tmp_path: Path) -> None:
    text = f"{ECHO}send S\nname | v\na | 1\nb | null\nexpect O\nv | at | name\n1 | 1 | a\nnull | 2 | b\n"
    before = set(apps())
    report = run(tmp_path, text)
    assert report.exit_code == 0, details(report)
    assert set(apps()) == before, "the app is closed"


def test_a_difference_is_a_table_with_signs(tmp_path: Path) -> None:
    report = run(tmp_path, f"{ECHO}send S\nname | v\na | 1\nb | 2\nexpect O\nname | v\na | 1\nb | 3\nc | 4\n")
    assert report.exit_code == 1
    assert [line.strip() for line in report.lines()[2:7]] == [
        f"{tmp_path}/t.siddhitest:8: expect O: 2 rows missing, 1 unexpected",
        "name | v",
        "a    | 1",
        "− b    | 3",
        "− c    | 4",
    ]
    assert "+ b    | 2" in details(report)


def test_outputs_count_from_the_last_expectation(tmp_path: Path) -> None:
    steps = "send S\nv\n1\nexpect O\nv\n1\nexpect O nothing\nsend S\nv\n2\nexpect O\nv\n2\n"
    assert run(tmp_path, ECHO + steps).exit_code == 0


@pytest.mark.parametrize(
    ("steps", "place", "said"),
    [
        ("send T\nv\n1\nexpect O nothing", "4:6", "the app defines no stream 'T'"),
        ("send S\nw\n1\nexpect O nothing", "5:1", "there is no column 'w'"),
        ("send S\nv\n1.5\nexpect O nothing", "6:1", "'1.5' is not an int"),
        ("send S\nv | at\n1 | noon\nexpect O nothing", "6:5", "'noon' is not a time"),
        ("send S\nv | node\n1 | node-7\nexpect O nothing", "4:1", "there is no node 'node-7'"),
        ("send S\nv\n1\nexpect P\nv\n1", "7:8", "the app has no stream 'P'"),
        ("send S\nv\n1\nexpect S\nv\n1", "7:8", "no query writes to the stream 'S'"),
        ("send S\nv\n1\nexpect O\nvw\n1", "8:1", "there is no column 'vw'"),
        ("send S\nv\n1\nexpect table T\nv\n1", "7:14", "the app has no table or window 'T'"),
        ('send S\nv\n1\nexpect query "from T select v"\nv\n1', "7:1", "'T'"),
        ("send S\nv\n1\nexpect O\nat\n+5", "9:1", "a time with + is for events that are sent"),
        ("send S\nv | at\n1 | 5000\nwait until 4000\nexpect O nothing", "7:1", "does not go back"),
    ],
)
def test_a_wrong_step_is_told_with_its_place(tmp_path: Path, steps: str, place: str, said: str) -> None:
    report = run(tmp_path, ECHO + steps)
    assert report.exit_code == 2
    assert f"t.siddhitest:{place}: " in details(report)
    assert said in details(report)


def test_a_wrong_app_is_told_with_its_place_in_its_file(tmp_path: Path) -> None:
    inline = run(tmp_path, "app:\n  define stream S (v int);\n\n  from S select w insert into O;\nexpect O nothing")
    assert "t.siddhitest:4:17: " in details(inline)
    (tmp_path / "a.siddhi").write_text("define stream S (v int);\nfrom S select w insert into O;", encoding="utf-8")
    outside = run(tmp_path, "app: a.siddhi\nexpect O nothing")
    assert f"{tmp_path}/a.siddhi:2:15: " in details(outside)
    missing = run(tmp_path, "app: b.siddhi\nexpect O nothing")
    assert "t.siddhitest:1:6: file not found" in details(missing)
    assert missing.exit_code == 2


def test_nothing_outside_is_reached(tmp_path: Path) -> None:
    """The addresses need grants and secrets, and the data source a deployment file: a deployment would refuse them."""
    report = run(
        tmp_path,
        """app:
  @app:playback(idle.time='100 millisec', increment='2 sec')
  @source(type='kafka', topic.list='t', bootstrap.servers='${HOST}', group.id='g', threading.option='single.thread',
    @map(type='json'))
  define stream S (k string, v int);
  @sink(type='http', publisher.url='http://localhost:1/x', @map(type='json'))
  define stream O (k string, v int);
  @sink(ref='mails', @map(type='text')) define stream M (k string);
  @store(type='rdbms', datasource='D') @primaryKey('k') @index('v') define table T (k string, v int);
  @store(type='rdbms', datasource='D') define aggregation A from S select k, sum(v) as v group by k aggregate every sec;
  from S select k, v insert into O;
  from S select k insert into M;
  from S select k, v update or insert into T on T.k == k;
run two: nodes: 2, routing: round_robin
send S
k | v | at
a | 1 | 1000
a | 2 | 1100
expect O
v
1
2
expect M any order
k
a
a
expect table T
k | v
a | 2
expect query "from A within '1970-**-** **:**:**' per 'seconds' select k, v"
k | v
a | 3
""",
    )
    assert report.exit_code == 0, details(report)
    assert [r.run for r in report.results] == ["one", "two"]


def test_a_parameter_without_a_value_is_asked_for_where_it_counts(tmp_path: Path) -> None:
    app = "app:\n  define stream S (v int);\n  from S[v > ${LIMIT}] select v insert into O;\n"
    steps = "send S\nv\n1\n2\nexpect O\nv\n2\n"
    wrong = run(tmp_path, app + steps)
    assert "3:14: ${LIMIT} has no value" in details(wrong)
    assert run(tmp_path, f"{app}param LIMIT: 1\n{steps}").exit_code == 0


def test_an_event_that_fails_unexpectedly_fails_the_test(tmp_path: Path) -> None:
    app = "app:\n  define stream S (t string);\n  from S select math:parseInt(t) as v insert into O;\n"
    wrong = run(tmp_path, f"{app}send S\nt\nx\nexpect O nothing")
    assert wrong.exit_code == 2
    assert "the app could not process an event of S: " in details(wrong)
    right = run(tmp_path, f'{app}send S\nt\nx\nexpect O nothing\nexpect errors\nstream | values\nS | "[\\"x\\"]"\n')
    assert right.exit_code == 0, details(right)


def test_fault_streams_and_triggers_are_expected_like_other_streams(tmp_path: Path) -> None:
    report = run(
        tmp_path,
        """app:
  @OnError(action='STREAM') define stream S (t string);
  define trigger T at every 5 sec;
  from S select math:parseInt(t) as v insert into O;
send S
t
x
expect !S
t
x
wait 10 sec
expect T
triggered_time
5001
10001
""",
    )
    assert report.exit_code == 0, details(report)


def test_runs_in_all_modes(tmp_path: Path) -> None:
    report = run(
        tmp_path,
        """app:
  define stream S (k string, v int);
  @store(type='rdbms', datasource='X') @primaryKey('k') define table T (k string, v int);
  @info(name='q') @dist(execGroup='g') from S#window.lengthBatch(2) select k, sum(v) as total insert into O;
  @info(name='t') @dist(execGroup='g') from S select k, v update or insert into T on T.k == k;
run ha: mode: ha
run scalable: mode: scalable, nodes: 4, routing: hash:k
run distributed: mode: distributed, nodes: 2
run active: nodes: 2, routing: hash:k
send S
k | v
a | 1
a | 2
expect O
k | total
a | 3
""",
    )
    assert [r.run for r in report.results] == ["one", "ha", "scalable", "distributed", "active"]
    assert report.exit_code == 0, details(report)


def test_expectations_are_limited_to_runs(tmp_path: Path) -> None:
    text = (
        "app:\n  define stream S (v int);\n  from S#window.lengthBatch(2) select count() as n insert into O;\n"
        "run two: nodes: 2, routing: round_robin\nsend S\nv\n1\n2\nexpect O on one\nn\n2\nexpect O nothing on two\n"
    )
    report = run(tmp_path, text)
    assert report.exit_code == 0, details(report)
    only_two = run(tmp_path, text.replace("expect O on one\nn\n2\n", ""))
    assert [r.run for r in only_two.results] == ["two"]


def test_names_choose_tests(tmp_path: Path) -> None:
    text = f"{ECHO}test: Alpha\nexpect O nothing\ntest: beta\nexpect O nothing\n"
    chosen = run(tmp_path, text, ReportOptions(RunOptions(only="alph")))
    assert [r.test for r in chosen.results] == ["Alpha"]


def test_an_update_keeps_comments_layout_and_right_rows(tmp_path: Path) -> None:
    text = (
        f"{ECHO}# head\nsend S\nname | v\na | 1\nb | 2\nc | 3\n\n"
        "expect O   # in order\n  name  | v\n  a     | 1   # kept\n  x     | 9\n  # between\n  c     | 3\n\n"
    )
    report = run(tmp_path, text, ReportOptions(update=True))
    assert report.exit_code == 0, details(report)
    assert report.updated == (tmp_path / "t.siddhitest",)
    written = (tmp_path / "t.siddhitest").read_text(encoding="utf-8")
    assert written == text.replace("  x     | 9\n", "  b     | 2\n")


def test_an_update_writes_new_tables_and_nothing(tmp_path: Path) -> None:
    text = f'{ECHO}send S\nname | v | x\n"a | b" | 1 | 0.5\nexpect O # new\nexpect O\nv\n7\n'
    assert run(tmp_path, text).exit_code == 1
    assert run(tmp_path, text, ReportOptions(update=True)).exit_code == 0
    written = (tmp_path / "t.siddhitest").read_text(encoding="utf-8")
    assert written.endswith('expect O # new\nname    | v | x\n"a | b" | 1 | 0.5\nexpect O nothing\n')
    again = run(tmp_path, written.replace("v\n7\n", ""), ReportOptions(update=True))
    assert again.updated == ()


def test_an_update_keeps_the_ends_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.siddhitest"
    path.write_bytes(f"{ECHO}send S\nv\n1\nexpect O\nv\n2\n".replace("\n", "\r\n").encode())
    assert run_paths([path], ReportOptions(update=True)).exit_code == 0
    assert path.read_bytes().endswith(b"expect O\r\nv\r\n1\r\n")


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.siddhitest"
    path.write_bytes(b"\xff\xfe")
    report = run_paths([path])
    assert report.exit_code == 2
    assert report.lines()[0] == f"{path} is not UTF-8 text (line 1): save it as UTF-8"


def test_an_update_turns_nothing_into_rows(tmp_path: Path) -> None:
    text = f"{ECHO}send S\nv\n1\nexpect O nothing within 5 sec\n"
    assert run(tmp_path, text, ReportOptions(update=True)).exit_code == 0
    assert "expect O within 5 sec\nname | v | x\nnull | 1 | null\n" in (tmp_path / "t.siddhitest").read_text()


def test_coverage_names_what_no_test_reached(tmp_path: Path) -> None:
    app = """app:
  define stream S (k string, v int);
  @info(name='high') from S[v > 10] select k insert into High;
  @info(name='pair') from every e1=S[k == 'a'] -> e2=S[k == 'b' and v > e1.v] select e2.k insert into Pairs;
  partition with (k of S) begin
    @info(name='inner') from S[v == 7] select k insert into Sevens;
  end;
"""
    report = run(tmp_path, f"{app}send S\nk | v\na | 1\nc | 2\nexpect High nothing\n", ReportOptions(coverage=True))
    assert report.exit_code == 0
    assert report.coverage is not None
    assert {(p.line, p.name) for p in report.coverage.unreached_parts} == {
        (3, "query high"), (3, "filter of S in query high, true"), (4, "query pair"), (4, "state e2 of query pair"),
        (6, "query inner"), (6, "filter of S in query inner, true"),
    }  # fmt: skip


def test_the_report_as_junit_xml_has_escaped_texts(tmp_path: Path) -> None:
    text = f'{ECHO}test: <a> & "b"\nsend S\nname\n"\\u0007<x>"\nexpect O\nname\ny\ntest: ok\nexpect O nothing\n'
    report = run(tmp_path, text)
    (tmp_path / "bad.siddhitest").write_text("sned", encoding="utf-8")
    both = run_paths([tmp_path])
    root = ElementTree.fromstring(to_junit(both))
    assert [root.attrib[name] for name in ("tests", "failures", "errors")] == ["3", "1", "1"]
    assert [c.attrib["name"] for c in root.iter("testcase")] == ['<a> & "b"', "ok", "file"]
    failure = root.find(".//failure")
    assert failure is not None
    assert "<x>" in (failure.text or "")
    assert report.exit_code == 1
    assert both.exit_code == 2


def test_the_command_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["test", str(tmp_path / "none")]) == 2
    assert cli.main(["test", str(tmp_path)]) == 2
    assert cli.main(["test"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("sparkstream: file not found: ")
    assert said[1].startswith("sparkstream: there is no .siddhitest file in ")
    assert "which tests?" in said[2]


def test_the_command_writes_examples_and_a_junit_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, junit = tmp_path / "examples", tmp_path / "junit.xml"
    assert cli.main(["test", "--examples", str(folder)]) == 0
    assert cli.main(["test", "--examples", str(folder)]) == 2
    assert cli.main(["test", str(folder), "-k", "payment comes too late", "--quiet", "--junit", str(junit)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("3 passed, in ")
    assert ElementTree.parse(junit).getroot().attrib["tests"] == "3"
    assert cli.main(["test", str(folder), "-k", "no such test"]) == 2


def test_an_attribute_that_is_called_as_the_time_of_an_event(tmp_path: Path) -> None:
    app = "app:\n  define stream S (v int, at long); from S select v, at insert into O;\n"
    report = run(tmp_path, f"{app}send S\nv | at\n1 | 1 sec\nexpect O\nv\n1\n")
    assert "'at' is an attribute of the stream: the time of an event is in the column '@at'" in details(report)
    assert run(tmp_path, f"{app}send S\nv | at | @at\n1 | 7 | 1 sec\nexpect O\nv | at\n1 | 7\n").exit_code == 0


RECURRING = {
    "trigger T": "define trigger T at every 1 sec; from T select triggered_time insert into X;",
    "trigger C": "define trigger C at '* * * * * ?'; from C select triggered_time insert into X;",
    "'output snapshot' of query shot": "@info(name='shot') from S select v output snapshot every 1 sec insert into X;",
    "'every not' of query silence": "@info(name='silence') from every not S for 1 sec select 'x' as x insert into X;",
    "'every not' of query gone": "@info(name='gone') from every (not S[v > 5] for 2 sec and not S[v < 0] for 1 sec) "
    "select 'x' as x insert into X;",
}


@pytest.mark.parametrize(
    "step", ["wait 3650 days", "send S\nv | at\n2 | 1000000000000000", "expect O nothing within 3650 days"]
)
@pytest.mark.parametrize("timer", RECURRING)
def test_a_movement_of_the_clock_with_a_million_firings_is_refused(tmp_path: Path, timer: str, step: str) -> None:
    steps = f"send S\nv\n1\n{step}\nexpect O nothing"
    report = run(tmp_path, ECHO.replace("  @info", f"  {RECURRING[timer]}\n  @info") + steps)
    assert report.exit_code == 2
    assert "timers fire more than 1,000,000 times" in details(report)
    assert f"{timer} fires every " in details(report)


def test_a_long_wait_without_a_timer_that_recurs(tmp_path: Path) -> None:
    """Nor with one that fires seldom, or only after an event."""
    seldom = (
        "define trigger T at every 1 day; define trigger C at '0 0 12 * * ?'; "
        "from every (S -> not S for 1 sec) select 'x' as x insert into X; "
        "from every (not S for 1 sec -> S) select 'x' as x insert into Y; "
        "from S#window.timeBatch(1 sec) select v output last every 1 sec insert into Z;"
    )
    steps = "send S\nv\n1\nexpect O\nv\n1\nwait 3650 days\nexpect O nothing"
    report = run(tmp_path, ECHO.replace("  @info", f"  {seldom}\n  @info") + steps)
    assert report.exit_code == 0, details(report)


def test_a_file_that_is_no_app_is_not_read(tmp_path: Path) -> None:
    """Nor one behind a link: a test file of others would show its first line."""
    (tmp_path / "secret").write_text("root:hash", encoding="utf-8")
    (tmp_path / "linked.siddhi").symlink_to(tmp_path / "secret")
    for name in ("secret", "linked.siddhi", "../" * 9 + "etc/hostname", "/dev/zero"):
        report = run(tmp_path, f"app: {name}\nexpect O nothing")
        assert report.exit_code == 2
        assert "t.siddhitest:1:6: " in details(report)
        assert "is not a .siddhi file, and is not read" in details(report)
        assert "hash" not in details(report)
