"""`sparkstream divergence`, `study` and `failover`: an operator's app as it is written, on a log."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

from sparkstream_nb import cli
from sparkstream_nb.app import deploy
from sparkstream_nb.lab.drawings.text_tables import Grid, fit_columns
from sparkstream_nb.replay.replay_progress import follow_replays

APP = """@app:name('Rules')
@source(type='kafka', topic.list='t', bootstrap.servers='${BROKER}', group.id='g', @map(type='json'))
define stream S (k string, v int, at long);
@sink(type='kafka', topic='o', bootstrap.servers='${BROKER}', @map(type='json'))
define stream O (k string, v int);
@store(type='rdbms', datasource='DB') @primaryKey('k') define table T (k string, v int);
@info(name='rise') from every e1=S -> e2=S[k == e1.k] select e1.k as k, e2.v as v insert into O;
@info(name='same') from every e1=S -> e2=S[v == e1.v] select e1.k as k, e2.v as v insert into O;
@info(name='keep') from S select k, v update or insert into T on T.k == k;
"""


def words_of(folder: Path, command: str) -> list[str]:
    """The words of a command over four events: a1, a2, b1, b2, one a second."""
    (folder / "app.siddhi").write_text(APP)
    (folder / "in.csv").write_text("k,v,at\n<a>,1,1000\n<a>,2,2000\nb,1,3000\nb,2,4000\n")
    return [command, str(folder / "app.siddhi"), "--feed", f"S={folder / 'in.csv'}", "--time", "at"]


def test_divergence_lists_the_alerts_of_each_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert cli.main([*words_of(tmp_path, "divergence"), "--limit", "1", "--html", str(page)]) == 0
    told = capsys.readouterr()
    assert "Rules on 2 nodes, under round_robin, against one node" in told.out
    assert re.search(r"rise +O +0 +2 +0 +0 +0 +hash:k", told.out)
    assert "showing 1 of 2 differences" in told.out
    assert "split the app into rise, keep under hash:k; same under hash:v." in told.out
    assert "S: 4 events" in told.err
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "&lt;a&gt;" in text
    assert "<a>" not in text


def test_divergence_under_a_key_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*words_of(tmp_path, "divergence"), "--nodes", "3", "--routing", "hash:v", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {c["query"]: (c["same"], c["lost"]) for c in told["counts"]} == {"rise": (0, 2), "same": (2, 0)}
    assert told["repairs"] == {"rise": "hash:k"}
    assert [(r["query"], r["verdict"], r["timestamp"]) for r in told["first"]] == [
        ("rise", "lost", 2000), ("rise", "lost", 4000),
    ]  # fmt: skip


def test_a_study_names_a_routing_for_each_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ways = ["--nodes", "2,3", "--routing", "hash:k", "--routing", "hash:v", "--json"]
    assert cli.main([*words_of(tmp_path, "study"), *ways]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["repairs"] == {"rise": "hash:k", "same": "hash:v"}
    assert len(told["combinations"]) == 4


def test_a_failover_is_counted_by_query(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*words_of(tmp_path, "failover"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(c["query"], c["stream"]) for c in told["counts"]] == [("rise", "O"), ("same", "O")]
    assert "of 4 events" in told["result"]


@pytest.mark.parametrize("command", ["divergence", "study", "failover"])
def test_mistakes_are_one_line(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = words_of(tmp_path, command)
    assert cli.main(words[:2]) == 2
    assert "--feed STREAM=FILE" in capsys.readouterr().err
    assert cli.main([*words[:2], "--feed", f"R={tmp_path / 'in.csv'}"]) != 0
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_failover_takes_the_deployment_files_of_two_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "deployment.yaml").write_text("wso2.carbon:\n  id: one\n")
    assert cli.main([*words_of(tmp_path, "failover"), "--conf", str(tmp_path / "deployment.yaml")]) == 2
    message = "--conf: a failover has two nodes: name the deployment files of both, or leave --conf out"
    assert capsys.readouterr().err == f"sparkstream: {message}\n"


def test_tables_fit_a_terminal() -> None:
    grid = Grid(["line", "cause"], [[1, "many words " * 5], [2, "few"]])
    assert max(map(len, grid.text(footer=False).splitlines())) > 40
    with fit_columns(30):
        lines = grid.text(footer=False).splitlines()
    assert max(map(len, lines)) <= 30
    assert " ".join(" ".join(lines[2:-1]).split()).removeprefix("1 ") == ("many words " * 5).strip()
    assert lines[-1] == "   2  few"


SLOW = """@app:name('Slow')
define stream P (k string, v double, at long);
define stream A (k string, v double);
@primaryKey('k') define table B (k string, n long);
@info(name='large') from P[v > 9.0] select k, v insert into A;
@info(name='block') from A select k, 1L as n update or insert into B set B.n = n on B.k == k;
@info(name='known') from P[v <= 9.0] as p join B as b on p.k == b.k select p.k as k, p.v as v insert into A;
"""


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["divergence", "study", "failover", "audit"])
def test_progress_is_told_and_an_interrupt_ends_all(command: str, tmp_path: Path) -> None:
    """With one line and exit code 130, once the replays are under way: no process and no folder is left."""
    (tmp_path / "slow.siddhi").write_text(SLOW)
    rows = "".join(f"c{i * 7 % 31},{i * 13 % 11}.5,{1000 * i}\n" for i in range(20_000))
    (tmp_path / "in.csv").write_text("k,v,at\n" + rows)
    code = (
        "import sys; from sparkstream_nb import cli; from sparkstream_nb.app.results import feed_progress; "
        "from sparkstream_nb.cli import replays_shown; "
        "replays_shown._TICK_SECONDS = feed_progress._LINE_SECONDS = 0.05; sys.exit(cli.main(sys.argv[1:]))"
    )
    words = [command, str(tmp_path / "slow.siddhi"), "--feed", f"P={tmp_path / 'in.csv'}", "--time", "at"]
    folder = tmp_path / "temporary"
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", code, *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True, env={**os.environ, "TMPDIR": str(folder)},
    ) as process:  # fmt: skip
        assert process.stderr is not None
        for line in process.stderr:
            if re.search(r"Ctrl-C ends it · \d+ % · \d+ s · .* left$", line.rstrip()):
                break
        else:
            pytest.fail("no progress was printed")
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert out == ""
    assert [line for line in err.splitlines() if "Ctrl-C ends it" not in line] == ["sparkstream: interrupted"]
    assert not any(folder.glob("sparkstream-compared-*"))
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_the_share_of_replays_grows_to_the_whole(tmp_path: Path) -> None:
    """Each step of a node is expected, and counted once."""
    text = APP.replace("${BROKER}", "b:1")
    app = deploy(text, offline=True, master="inline", home=tmp_path / "home", mode=None)
    try:
        app.feed("S", pd.DataFrame({"k": list("abab") * 50, "v": range(200), "at": range(200)}), time="at")
        for replay in (
            lambda: app.divergence(nodes=3, routing="hash:k"),
            lambda: app.divergence(nodes=2, routing="hash:v"),  # the truth is known
            lambda: app.study(nodes=[2, 5], routings=["hash:k", "hash:v"]),
            lambda: app.compare(text),  # the texts are equal: one is run
            lambda: app.compare(text.replace("e2.v as v", "e1.v as v"), nodes=2, routing="hash:v"),
            lambda: app.sweep(text.replace("e2.v as v", "e2.v + ${N} as v"), {"N": [0, 1, 2]}),
        ):
            with follow_replays() as progress:
                assert progress.share is None
                replay()
                assert progress._step_count.count == progress._total_steps > 0
    finally:
        app.stop()
        app.close()


def test_progress_does_not_fall_when_more_replays_are_needed() -> None:
    with follow_replays() as progress:
        progress.expect(10)
        progress._step_count.count = 5
        assert progress.share == 0.5
        progress.expect(30)
        assert progress.share == 0.5
        progress._step_count.count = 30
        assert progress.share == 0.75


def test_two_texts_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, page, new = words_of(tmp_path, "compare"), tmp_path / "page.html", tmp_path / "new.siddhi"
    new.write_text(APP.replace("e2=S[v == e1.v]", "e2=S[v != e1.v]"))
    words.insert(2, str(new))
    assert cli.main([*words, "--html", str(page)]) == 0
    assert "Rules: two texts over 4 events" in capsys.readouterr().out
    assert "<a>" not in page.read_text(encoding="utf-8")
    assert cli.main([*words, "--at-most", "different=0", "--at-most", "new=500%"]) == 1
    shown = capsys.readouterr()
    assert re.search(r"^\d+ outputs are different, and at most 0 may be$", shown.err, re.MULTILINE)
    assert cli.main([*words, "--json", "--limit", "1"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (len(data["changes"]), len(data["first"]), data["events"]) == (1, 1, 4)


def test_reports_of_two_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, new = words_of(tmp_path, "compare"), tmp_path / "new.siddhi"
    junit, sarif = tmp_path / "junit.xml", tmp_path / "new.sarif"
    new.write_text(APP.replace("e2=S[v == e1.v]", "\ne2=S[v != e1.v]"))
    words.insert(2, str(new))
    reports = ["--junit", str(junit), "--sarif", str(sarif)]
    assert cli.main([*words, *reports, "--at-most", "different=0", "--at-most", "new=500%"]) == 1
    capsys.readouterr()
    suites = ElementTree.fromstring(junit.read_text(encoding="utf-8"))
    assert (suites.get("tests"), suites.get("failures")) == ("2", "1")
    assert [c.get("name") for c in suites.iter("testcase") if c.find("failure") is not None] == [
        "at most 0 different"
    ]
    (result,) = json.loads(sarif.read_text())["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    line = 1 + new.read_text()[: new.read_text().index("e2=S[v !=")].count("\n")
    assert (result["level"], place["region"], place["artifactLocation"]["uri"]) == (
        "error", {"startLine": line}, new.as_uri()
    )  # fmt: skip
    assert re.search(r"pattern|filter .* became .*: \d+ (gone|new)", result["message"]["text"])
    assert cli.main([*words, "--at-most", "different=1000", "--sarif", str(sarif), "--warm-up", "1 day"]) == 0
    assert json.loads(sarif.read_text())["runs"][0]["results"][0]["level"] == "note"
    assert "not judged" in capsys.readouterr().out
    for mistake, message in (
        (["--junit", str(junit)], "--junit has a test for each --at-most"),
        (["--ignore", "none"], "no output has an attribute 'none'"),
        (["--rename", "S.w=S.x"], "stream S of the old text has no attribute 'w'"),
        (["--warm-up", "soon"], "warm_up is a duration"),
    ):  # fmt: skip
        assert cli.main([*words, *mistake]) == 2
        assert message in capsys.readouterr().err


def test_chance_is_frozen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = words_of(tmp_path, "compare")
    words.insert(2, words[1])
    (tmp_path / "app.siddhi").write_text(APP.replace("select e1.k as k", "select str:concat(e1.k, UUID()) as k"))
    for options, count in ([], 1), (["--freeze"], 0):
        assert cli.main([*words, "--at-most", "different=0", *options]) == 0
        assert capsys.readouterr().out.count("UUID") == count
    words[2] = str(tmp_path / "new.siddhi")
    text = (tmp_path / "app.siddhi").read_text()
    (tmp_path / "new.siddhi").write_text(text.replace("from S select", "from S[v > 0] select"))
    assert cli.main([*words, "--at-most", "different=0"]) == 1
    assert cli.main([*words, "--at-most", "different=0", "--freeze"]) == 0


@pytest.mark.parametrize("bound", ["gone", "gone=", "gone=-1", "went=0", "new=x%", "gone=nan"])
def test_a_bound_that_is_none(bound: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = words_of(tmp_path, "compare")
    words.insert(2, words[1])
    assert cli.main([*words, "--at-most", bound]) == 2
    assert "--at-most" in capsys.readouterr().err


def test_a_text_under_many_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, new, labels = words_of(tmp_path, "compare"), tmp_path / "new.siddhi", tmp_path / "labels.csv"
    new.write_text(APP.replace("e2=S[v == e1.v]", "e2=S[v == ${V}]"))
    labels.write_text("time,k\n3000,b\n")
    words.insert(2, str(new))
    assert cli.main([*words, "--vary", "V=1..3:1", "--labels", str(labels), "--tolerance", "1 sec", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [s["V"] for s in data["settings"]] == ["1", "2", "3"]
    assert all({"outputs", "precision", "recall"} <= s.keys() for s in data["settings"])
    assert {e["kind"] for e in data["examples"]} <= {"true positive", "false positive", "missed"}
    assert cli.main([*words, "--vary", "V=1..3:1", "--warm-up", "1 day"]) == 0
    assert "outputs of the first 1 day are not judged" in capsys.readouterr().out
    for mistake, message in (
        (["--vary", "V=1..0:1"], "is no range"), (["--vary", "V"], "is not NAME=VALUES"),
        (["--labels", str(labels)], "--labels is for --vary"), (["--vary", "W=1"], "the text has no ${W}"),
        (["--vary", "V=1", "--labels", str(tmp_path / "none.csv")], "cannot be read as CSV"),
        (["--vary", "V=1", "--at-most", "gone=0"], "leave out --at-most"),
    ):  # fmt: skip
        assert cli.main([*words, *mistake]) == 2
        assert message in capsys.readouterr().err


def test_a_moment_of_the_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, page = words_of(tmp_path, "at"), tmp_path / "page.html"
    assert cli.main([*words, "--event", "2", "--html", str(page)]) == 0
    shown = capsys.readouterr().out
    assert "Rules at 1970-01-01 00:00:02, step 2 of 4" in shown
    assert "event 2: S (<a>, 2, 2000) to node-1" in shown
    assert "<a>" not in page.read_text(encoding="utf-8")
    words.insert(2, "1970-01-01 00:00:03")
    assert cli.main([*words, "--query", "same", "--json", "--nodes", "2"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {(m["node"], m["e1.k"]) for m in data["partial_matches"]} == {("node-2", "<a>"), ("node-1", "b")}
    assert cli.main([*words, "--query", "sane"]) == 2
    assert "Did you mean 'same'" in capsys.readouterr().err
    assert cli.main([*words_of(tmp_path, "at"), "--output", "O=1", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["step"], data["outputs"][0]["values"]) == (2, ["<a>", 2])
    assert data["tables"]["T"] == [{"node": "node-1", "k": "<a>", "v": 2}]
