"""`sparkstream audit`: exit codes, what it prints and writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparkstream_nb import cli

SAFE = "define stream S (k string, v int);\nfrom S[v > 3] select k insert into O;\n"
SUM = "define stream S (k string, v int);\n{}from S#window.length(3) select sum(v) as s insert into O;\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    texts = {
        "safe": SAFE,
        "sum": SUM.format(""),
        "accepted": SUM.format("@info(name='q', scale.out='accepted: a rough figure')\n"),
        "wrong": "define stream S (k string);\nfrom S select v insert into O;\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.siddhi").write_text(text)
    (tmp_path / "s.csv").write_text("k,v\na,1\na,4\nb,5\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("safe.siddhi", 0, "1 app: 0 parts node-dependent"),
        ("accepted.siddhi safe.siddhi", 0, "2 apps: 1 part node-dependent, 1 of them accepted"),
        ("safe.siddhi sum.siddhi", 1, "sum.siddhi:2: ✗ node-dependent: query 'query1'"),
        ("wrong.siddhi sum.siddhi", 2, "sum.siddhi:2: ✗ node-dependent: query 'query1'"),
        ("wrong.siddhi safe.siddhi", 2, "sparkstream: wrong.siddhi: line 2, column 15"),
        ("none.siddhi", 2, "file not found: none.siddhi"),
        ("", 2, "APP.siddhi is missing"),
        ("safe.siddhi --json --sarif x.sarif", 2, "not allowed with argument --json"),
        ("safe.siddhi --deployment none", 2, "there is no deployment file none"),
        ("safe.siddhi --feed T=s.csv", 2, "no app has a stream 'T'"),
        ("safe.siddhi --feed S=none.csv", 2, "file not found: none.csv"),
        ("safe.siddhi --feed S=s.csv --time at", 2, "s.csv has no column 'at'"),
        ("safe.siddhi --sarif none/x.sarif", 2, "none/x.sarif cannot be written"),
        ("safe.siddhi --html none/x.html", 2, "none/x.html cannot be written"),
        ("sum.siddhi --feed S=s.csv", 1, "2 nodes, round_robin: 4 differ from one node's (query1: 2 lost, 2 spurious)"),
        ("safe.siddhi --feed S=s.csv", 0, "safe.siddhi: 4 nodes, round_robin: all 2 outputs as one node's"),
    ],
)
def test_exit_codes(words: str, code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["audit", *words.split()]) == code
    out, err = capsys.readouterr()
    assert said in out + err
    assert "Traceback" not in err


def test_json_is_all_that_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["audit", "sum.siddhi", "wrong.siddhi", "--json", "--feed", "S=s.csv"]) == 2
    right, wrong = json.loads(capsys.readouterr().out)["apps"]
    assert [(f["kind"], f["line"], f["level"]) for f in right["findings"]] == [("query", 2, "node-dependent")]
    assert [m["nodes"] for m in right["measured"]] == [2, 3, 4]
    assert (wrong["error"]["line"], wrong["error"]["column"]) == (2, 15)


def test_reports_are_written_too(folder: Path) -> None:
    assert cli.main(["audit", "sum.siddhi", "--sarif", "r.sarif", "--html", "r.html"]) == 1
    (run,) = json.loads((folder / "r.sarif").read_text())["runs"]
    assert [r["ruleId"] for r in run["results"]] == ["node-dependent"]
    assert "sum.siddhi" in (folder / "r.html").read_text()
