"""Event values with control characters: spelt out in every form of every result, and well-formed where that is XML."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest

import sparkstream_nb
from sparkstream_nb import cli
from sparkstream_nb.app import App
from sparkstream_nb.errors import Misuse, escape_controls
from sparkstream_nb.lab import display

Run = Callable[..., App]
EVIL = "a\x1b[2J\x00\x07\x01b\u202ec\u2066\x9bd\x7f"
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
APP = """
define stream S (k string, v int);
define table T (k string, v int);
define aggregation A from S select k, sum(v) as total group by k aggregate every sec;
@info(name = 'pairs') from every e1=S -> e2=S[k == e1.k] select e1.k as k, e2.v as v insert into O;
@info(name = 'fails') from S select cast(k, 'int') as n insert into N;
@info(name = 'logged') from S#log('seen') select k insert into L;
from S select k, v insert into T;
"""
FRAME = pd.DataFrame({"k": [EVIL, EVIL, "b", "b"], "v": [1, 2, 3, 4], "at": [1_000, 1_001, 1_002, 1_003]})


def test_every_form_of_every_result(run: Run) -> None:
    app = run(APP, nodes=2, routing="hash:k")
    app.feed("S", FRAME, time="at")
    app.flush()
    results: list[Any] = [
        app,
        app.output("O"),
        app.tail("O"),
        app.errors,
        app.stats(),
        app.query("from T select k, v"),
        app.query("from A within 0L, 10000L per 'sec' select k, total"),
        app.chart("O", y=["v"], by="k"),
        app.divergence(),
        sparkstream_nb.trace(APP, "pairs", {"S": FRAME}, time="at"),
    ]
    for result in results:
        forms = [display.text(result), display.html(result), repr(result)]
        for form in forms:
            found = HIDDEN.search(form)
            assert found is None, (type(result).__name__, form[max(0, found.start() - 60) : found.end() + 20])
        for picture in re.findall(r"<svg.*?</svg>", forms[1], re.DOTALL):
            ElementTree.fromstring(picture)
    assert "\\u001b" in display.html(app.output("O"))
    figure = app.chart("O", y=["v"], by="k").figure.to_json()
    assert HIDDEN.search(json.loads(json.dumps(figure))) is None


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.siddhi").write_text(APP.replace("@info(name = 'fails')", "@info(name = 'f')"), encoding="utf-8")
    FRAME.to_parquet(tmp_path / "s.parquet")
    options = ["--home", str(tmp_path / "app"), "--master", "inline", "--time", "at"]
    cli.main(["run", str(tmp_path / "a.siddhi"), "--feed", f"S={tmp_path / 's.parquet'}", *options])
    printed = capsys.readouterr()
    assert "\\u001b[2J" in printed.out
    assert HIDDEN.search(printed.out) is None
    assert HIDDEN.search(printed.err.replace("\r", "")) is None


def test_a_formatted_text_is_printed_as_it_is(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    text = "from S[k == '\u202e'] select k insert into O;"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert cli.main(["fmt", "-"]) == 0
    assert "'\u202e'" in capsys.readouterr().out


def test_json_means_the_same() -> None:
    text = json.dumps({"k": EVIL}, ensure_ascii=False)
    assert json.loads(escape_controls(text)) == {"k": EVIL}


@pytest.mark.parametrize("name", ["a\x1b[2J", "a\x00", "a\u202eb"])
def test_names_of_apps_can_be_printed(run: Run, name: str) -> None:
    with pytest.raises(Misuse, match="characters that cannot be printed"):
        run("define stream S (k string); from S select k insert into O;", name=name)


def test_names_in_texts_can_be_printed() -> None:
    with pytest.raises(Misuse, match="the app's name has characters that cannot be printed"):
        sparkstream_nb.deploy("@app:name('a\u202eb') define stream S (k string);", master="inline")
