"""The command `sparkstream`, in a process of its own and as a function."""

from __future__ import annotations

import argparse
import io
import os
import re
import shlex
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

from sparkstream_nb import cli
from sparkstream_nb.cli.registry import COMMANDS, Command
from sparkstream_nb.options import WIDTH, HelpAsked
from sparkstream_nb.runners.choice import INLINE
from tests.masters import EACH_RUNNER

APP = """@app:name('Big')
define stream S (a string, b int);
@info(name='big')
from S[b > ${LEAST}] select a, b insert into Big;
"""
@pytest.fixture
def app(tmp_path: Path) -> str:
    path = tmp_path / "big.siddhi"
    path.write_text(APP)
    return str(path)


def test_check_and_explain(app: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", app, "--param", "LEAST=3"]) == 0
    assert "no mistakes found (1 query, 0 aggregations)" in capsys.readouterr().out
    assert cli.main(["explain", app, "--param", "LEAST=3"]) == 0
    assert "query 'big'" in capsys.readouterr().out


def test_check_says_what_cannot_run(app: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = "\n@store(type='mongodb')\ndefine table T (a string);\n@sink(type='jms')\ndefine stream H (a string);\n"
    Path(app).write_text(f"define stream S (a string);{table}from S insert into T;")
    assert cli.main(["check", app]) == 0
    shown = capsys.readouterr().out
    owner = "it belongs to WSO2's extension siddhi-{}, which is not included)"
    table = f"table 'T' in a store of type 'mongodb' (line 2; {owner.format('store-mongodb')}"
    sink = f"a sink of type 'jms' (line 4; {owner.format('io-jms')}"
    assert shown.endswith(f", but this build cannot run {table} and {sink}\n")


REF = """@source(ref='feed', @map(type='json'))
define stream S (a string, v int);
@store(type='rdbms', ref='shop') define table T (a string, v int);
@store(type='rdbms', datasource='SHOP') define table U (a string, v int);
from S[v > ${LEAST} and a == '${WORD}'] select a, v insert into T;
from S[v > ${LEAST}] select a, v insert into U;
"""
CONF = """wso2.carbon: {id: '${NODE}'}
siddhi: {refs: [{ref: {name: shop, type: rdbms, properties: {datasource: SHOP}}},
                {ref: {name: feed, type: kafka, properties: {topic.list: t, bootstrap.servers: b}}}]}
wso2.datasources: {dataSources: [{name: SHOP, definition: {configuration: {jdbcUrl: 'jdbc:sqlite:x.db'}}}]}
"""
NOTES = [
    "ref 'feed' (line 1) is of a deployment file, and none is given: --conf FILE",
    "ref 'shop' (line 3) is of a deployment file, and none is given: --conf FILE",
    "data source 'SHOP' (line 4) is of a deployment file, and none is given: --conf FILE",
    "${LEAST} (line 5) has no value and is taken as 1: --param LEAST=VALUE",
    "${WORD} (line 5) has no value and is taken as 1: --param WORD=VALUE",
]


@pytest.mark.parametrize("command", ["check", "explain", "explain --repair", "graph", "audit"])
def test_without_a_deployment_file_what_it_would_say_is_a_note(
    app: str, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    Path(app).write_text(REF)
    assert cli.main([*command.split(), app]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert [line.partition("note: ")[2] for line in shown.out.splitlines() if "note: " in line] == NOTES


@pytest.mark.parametrize("command", ["check", "explain", "explain --repair", "graph", "audit"])
def test_a_deployment_file_says_it(app: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    Path(app).write_text(REF)
    other = tmp_path / "other.siddhi"
    other.write_text(REF.replace("datasource='SHOP'", "datasource='SHOPP'"))
    third = tmp_path / "third.siddhi"
    third.write_text(REF.replace("ref='feed'", "ref='fead'"))
    conf = tmp_path / "node.yaml"
    conf.write_text(CONF)
    given = ["--conf", str(conf), "--param", "NODE=n1", "--param", "LEAST=3", "--param", "WORD=x"]
    assert cli.main([*command.split(), app, *given]) == 0
    assert "note: " not in capsys.readouterr().out
    assert cli.main([*command.split(), app, str(other), str(third), *given]) == (2 if command == "audit" else 1)
    shown = capsys.readouterr()
    said = shown.out + shown.err
    assert "no data source 'SHOPP'. Did you mean 'SHOP'?" in said
    assert "no configuration defines the source 'fead'" in said
    assert f"{app}:" in shown.out
    assert cli.main([*command.split(), app, *given[:-4]]) == (2 if command == "audit" else 1)
    assert "no value is given for '${LEAST}'" in "".join(capsys.readouterr())


def test_apps_run_and_are_asked_with_what_a_deployment_file_defines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app, feed, conf = tmp_path / "app.siddhi", tmp_path / "s.csv", tmp_path / "node.yaml"
    app.write_text("""@app:name('Shop')
define stream S (a string, v long);
@store(ref='shop') define table T (a string, v long);
@store(ref='shop') define aggregation Sums from S select a, sum(v) as total group by a aggregate by v every hour;
from S select a, v insert into T;
""")
    feed.write_text("a,v\nx,5\n")
    node = CONF.replace("siddhi: {refs", "siddhi: {properties: {partitionById: true}, refs")
    conf.write_text(node.replace("x.db", str(tmp_path / "x.db")))
    given = ["--conf", str(conf), "--param", "NODE=n1", "--home", str(tmp_path / "home")]
    asked = "from T select a, v"
    assert cli.main(["run", str(app), "--master", INLINE, "--feed", f"S={feed}", "--query", asked, *given]) == 0
    assert "1 row" in capsys.readouterr().out
    assert cli.main(["query", str(app), "from Sums within 0L, 9L per 'hours' select a, total", *given]) == 0
    assert "1 row" in capsys.readouterr().out
    hours = "from Sums within 0L, 9L per 'hours' select a, total"
    assert cli.main(["query", str(app), hours, "--as-node", "n1", *given]) == 0  # its one bucket is open
    assert "0 rows" in capsys.readouterr().out
    assert cli.main(["query", str(app), hours, "--as-node", "alive", *given]) == 0
    assert "1 row" in capsys.readouterr().out
    assert cli.main(["query", str(app), hours, "--as-node", "n2", *given]) == 2
    assert "there is no shard 'n2'. Did you mean 'n1'?" in capsys.readouterr().err
    assert cli.main(["store", "shards", str(app), *given]) == 0
    assert "shard 'n1', 1 row" in capsys.readouterr().out
    assert cli.main(["run", str(app), "--master", INLINE]) == 1
    assert f"{app}:3:8: no configuration defines the store 'shop'" in capsys.readouterr().err


def test_a_variable_that_decides_whether_an_app_is_right_needs_a_value(
    app: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(app).write_text("define stream S (a string);\nfrom ${WHERE} select a insert into O;")
    assert cli.main(["check", app]) == 1
    assert f"{app}:2:6: no value is given for '${{WHERE}}'" in capsys.readouterr().err


def test_check_goes_up_to_what_an_extension_has(app: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(app).write_text("define stream S (a double);\nfrom S select geo:within(a, a, a) as d insert into O;")
    assert cli.main(["check", app]) == 0
    owner = "belongs to WSO2's extension siddhi-gpl-execution-geo, which is not included"
    assert capsys.readouterr().out == (
        f"{app}: no mistakes found before line 2, where function 'geo:within' {owner}; what follows was not checked\n"
    )


@pytest.mark.parametrize(
    ("connector", "option", "meant"),
    [("@sink(type='http', publisher.ulr='http://x', @map(type='json'))", "publisher.ulr", "publisher.url"),
     ("@source(type='http', recver.url='http://x', @map(type='json'))", "recver.url", "receiver.url"),
     ("@source(type='kafka', topic.list='t', bootstrap.server='b', group.id='g', threading.option='single.thread', "
      "@map(type='json'))", "bootstrap.server", "bootstrap.servers"),
     ("@source(type='http', receiver.url='http://localhost:8006/S', event.tim='a', @map(type='json'))", "event.tim",
      "event.time")],
)  # fmt: skip
def test_a_misspelt_option_that_is_needed_is_an_error(
    app: str, capsys: pytest.CaptureFixture[str], connector: str, option: str, meant: str
) -> None:
    Path(app).write_text(f"{connector} define stream S (a int);\nfrom S select a insert into O;")
    assert cli.main(["check", app]) == 1
    shown = capsys.readouterr().err
    assert f"'{option}' is no option of @" in shown
    assert shown.endswith(f"Did you mean '{meant}'?\n")


def test_an_option_that_no_connector_has_is_a_note(app: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(app).write_text("@sink(type='kafka', topic='t', bootstrap.servers='b', colour='red', @map(type='json'))\n"
                         "define stream S (a int);\nfrom S select a insert into O;")  # fmt: skip
    assert cli.main(["check", app]) == 0
    note = "note: option 'colour' of @sink(type='kafka') of stream 'S' (line 1) has no effect, as WSO2 ignores it"
    assert f"{note}: leave it out\n" in capsys.readouterr().out


def test_fmt(tmp_path: Path, app: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    neat = APP.replace(";\n@info", ";\n\n@info").replace("] select a, b ", "]\nselect a, b\n")
    neat = neat.replace("')\ndefine", "')\n\ndefine")
    wrong = tmp_path / "wrong.siddhi"
    wrong.write_text("define stream S (a integr);")
    assert cli.main(["fmt", "--check", app]) == 1
    assert capsys.readouterr().out == f"{app}: would change\n"
    assert Path(app).read_text() == APP
    assert cli.main(["fmt", str(wrong), str(tmp_path / "none.siddhi"), app]) == 1
    shown = capsys.readouterr()
    assert shown.out == f"{app}: formatted\n"
    assert f"{wrong}:1:20: " in shown.err
    assert f"sparkstream: file not found: {tmp_path / 'none.siddhi'}" in shown.err
    assert Path(app).read_text() == neat
    assert cli.main(["fmt", app]) == cli.main(["fmt", "--check", app]) == 0
    assert capsys.readouterr().out == ""
    monkeypatch.setattr("sys.stdin", io.StringIO(APP))
    assert cli.main(["fmt", "-"]) == 0
    assert capsys.readouterr().out == neat


def test_a_wrong_app_is_one_message_with_a_caret(app: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(app).write_text(APP.replace("select a, b", "select a, bb").replace("${LEAST}", "3"))
    assert cli.main(["check", app]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.match(rf"{re.escape(app)}:4:\d+: ", shown.err)
    assert "^^" in shown.err
    assert "Did you mean 'b'?" in shown.err


def test_what_is_missing(tmp_path: Path, app: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", str(tmp_path / "none.siddhi")]) == 1
    assert "file not found" in capsys.readouterr().err
    assert cli.main(["run", app, "--param", "LEAST=3", "--feed", f"S={tmp_path / 'none.csv'}"]) == 1
    assert "file not found" in capsys.readouterr().err


def test_as_a_module(app: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sparkstream_nb", "check", app, "--param", "LEAST=1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_scripts_are_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "define stream S (a int); define function f[javascript] return int { return 1; };"
    (tmp_path / "s.siddhi").write_text(text + " from S select f(a) as b insert into Out;")
    assert cli.main(["run", str(tmp_path / "s.siddhi")]) == 1
    assert "--allow-scripts" in capsys.readouterr().err


@pytest.mark.parametrize("master", EACH_RUNNER)
def test_run(tmp_path: Path, app: str, master: str) -> None:
    feed = tmp_path / "s.csv"
    feed.write_text("a,b,at\nx,1,1000\ny,5,2000\nz,many,3000\nw,9,4000\n")
    done = subprocess.run(
        [sys.executable, "-m", "sparkstream_nb", "run", app, "--param", "LEAST=3", "--nodes", "2",
         "--feed", f"S={feed}", "--time", "at", "--master", master],
        capture_output=True, text=True, check=False, env={**os.environ, "HOME": str(tmp_path)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert done.stdout.startswith("S: 3 events in ")
    assert ["node-2", "1970-01-01", "00:00:02", "y", "5"] in lines
    assert "2 events · times in UTC" in done.stdout
    assert any(line[3:] == ["w", "9"] for line in lines)
    assert "1 row rejected" in done.stdout


def test_run_warns_as_the_card_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rise.siddhi").write_text(
        "@app:name('Rise') define stream S (v int); @info(name='rise') from every a=S -> b=S[v > a.v] "
        "select a.v as a, b.v as b insert into O;"
    )
    (tmp_path / "s.csv").write_text("v\n1\n2\n")
    words = ["run", str(tmp_path / "rise.siddhi"), "--master", INLINE, "--home", str(tmp_path / "home")]
    feed = ["--feed", f"S={tmp_path / 's.csv'}"]
    assert cli.main([*words, *feed, "--nodes", "2"]) == 0
    assert capsys.readouterr().err == "Rise: The outputs of rise depend on which node sees which event.\n"
    assert cli.main([*words, *feed, "--fresh"]) == 0
    assert capsys.readouterr().err == ""


def test_several_feeds_are_merged_by_time_or_it_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "two.siddhi").write_text(
        "@app:name('TwoFeeds') define stream Lamp (id string, at long); define stream Key (id string, at long);\n"
        "from every a=Lamp -> b=Key select a.id as lamp, b.id as key insert into Pairs;\n"
    )
    (tmp_path / "key.csv").write_text("id,at\nK1,2000\nK2,4000\n")
    (tmp_path / "lamp.csv").write_text("id,at\nL1,1000\nL2,3000\n")
    words = ["run", str(tmp_path / "two.siddhi"), "--master", INLINE, "--home", str(tmp_path / "home")]
    feeds = [f"Key={tmp_path / 'key.csv'}", f"Lamp={tmp_path / 'lamp.csv'}"]
    for timed in (["--time", "at"], ["--time", "Key=at", "--time", "Lamp=at"]):
        assert cli.main([*words, "--fresh", *timed, "--feed", feeds[0], "--feed", feeds[1]]) == 0
        told = capsys.readouterr()
        assert [line.split()[-2:] for line in told.out.splitlines() if line.startswith("node-1")] == [
            ["L1", "K1"], ["L2", "K2"],
        ]  # fmt: skip
        assert told.err == ""
    assert cli.main([*words, "--fresh", "--feed", feeds[0], "--feed", feeds[1]]) == 0
    told = capsys.readouterr()
    assert "Pairs has put out nothing yet." in told.out
    assert told.err.startswith("TwoFeeds: the feeds are not merged by time: Key from ")
    assert cli.main([*words, "--fresh", "--time", "at", "--feed", feeds[0]]) == 0
    assert capsys.readouterr().err == ""


def test_run_from_a_source_to_a_sink(tmp_path: Path) -> None:
    """An app with a source runs until it is told to end; without the grants nothing starts."""
    folder, out, app = tmp_path / "in", tmp_path / "out", tmp_path / "app.siddhi"
    folder.mkdir()
    app.write_text(
        f"@source(type='file', dir.uri='{folder}', mode='line', @map(type='csv'))\n"
        f"define stream S (a string, b int);\n@sink(type='file', file.uri='{out}/o.csv', @map(type='csv'))\n"
        "define stream O (a string, b int);\nfrom S[b > 1] select a, b insert into O;\n"
    )
    (folder / "s.csv").write_text("x,1\ny,5\nz,many\nw,9\n")
    words = [sys.executable, "-m", "sparkstream_nb", "run", str(app), "--master", INLINE, "--allow", f"file={folder}"]
    env = {**os.environ, "SPARKSTREAM_HOME": str(tmp_path / "apps")}
    refused = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    assert refused.returncode == 1
    assert f"--allow file={out}" in refused.stderr
    running = subprocess.Popen(
        [*words, "--allow", f"file={out}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    )
    assert running.stderr is not None
    assert "runs; it waits for Ctrl-C" in running.stderr.readline()
    while not ((out / "o.csv").exists() and (out / "o.csv").read_text() == "y,5\nw,9\n"):
        assert running.poll() is None
        time.sleep(0.1)
    running.terminate()
    said, _ = running.communicate(timeout=60)
    assert running.returncode == 0
    assert f"source S-file-1 ({folder}/): 4 messages, 1 rejected\n" in said
    assert f"sink O-file-1 ({out}/o.csv): 2 sent\n" in said
    assert "z,many" in said


def test_a_feed_in_local_times_with_other_column_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app, feed = tmp_path / "app.siddhi", tmp_path / "in.csv"
    app.write_text("define stream S (station string, n double); from S select station, n insert into O;")
    feed.write_text("Zeit;Station Name;n\n03.06.2024 05:00:03;A;1.234,5\n03.06.2024 05:00:04;A;n/a\n")
    words = ["run", str(app), "--feed", f"S={feed}", "--master", "inline", "--home", str(tmp_path / "home")]
    reading = ["--time", "Zeit", "--time-format", "%d.%m.%Y %H:%M:%S", "--time-zone", "Europe/Berlin"]
    reading += ["--decimal", ",", "--missing", "n/a,-"]
    assert cli.main([*words, *reading, "--map", "station=Station Name"]) == 0
    out = capsys.readouterr().out
    assert "2024-06-03 03:00:03  A        1234.5" in out
    assert "rejected" not in out
    assert cli.main([*words, *reading, "--map", "statoin=Station Name"]) == 2
    said = "--map: no stream that is fed has an attribute 'statoin'. Did you mean 'station'?"
    assert said in capsys.readouterr().err
    assert cli.main(["audit", str(app), "--feed", f"S={feed}", *reading, "--map", "station=Station Name"]) in (0, 1)
    assert "rows of the feeds do not fit" not in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_each_command_has_a_module_that_carries_it_out(command: Command) -> None:
    """They are imported only when a command runs: one that is missing would show nowhere else."""
    assert callable(import_module(f"sparkstream_nb.cli.commands.command_{command.name}").run)


def test_each_help_has_an_example_that_is_right() -> None:
    for words in (shlex.split(line) for line in _examples()):
        assert words[0] == "sparkstream"
        cli.parser().parse(words[1:])


def _examples() -> list[str]:
    found = []
    subparsers = next(a for a in cli.parser()._actions if isinstance(a, argparse._SubParsersAction))
    for command in subparsers.choices:
        with pytest.raises(HelpAsked) as help_:
            cli.parser().parse([command, "--help"])
        lines = str(help_.value).splitlines()
        found.append(lines[lines.index("example:") + 1])
        assert len(found[-1]) <= WIDTH
    return found


def test_pipes_are_utf8_in_every_language(tmp_path: Path) -> None:
    text = "define stream S (k string); from S[k == 'Größe →'] select k insert into O;"
    language = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "sparkstream_nb", "explain", "-"],
        input=text.encode(), env={**os.environ, **language}, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "'Größe →'" in done.stdout.decode()
