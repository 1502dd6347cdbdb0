"""Halves of surrogate pairs, which no encoding has: an error row or a `Misuse`, and the app goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import sparkstream_nb
from sparkstream_nb.app import App
from sparkstream_nb.app.deployment.app_folder import default_home
from sparkstream_nb.cli import main
from sparkstream_nb.errors import Misuse

HALF = "\ud800"
APP = """
define stream S (k string, o object);
@info(name='q') from S select k, cast(o, 'string') as text insert into O;
"""
WINDOW = "define stream S (k string, v int); @info(name='q') from S#window.length(2) select k insert into O;"


@pytest.mark.parametrize("value", [[HALF], {"a": HALF}, {HALF: 1}], ids=["list", "value", "key"])
@pytest.mark.parametrize("store", ["duckdb", "sqlite"])
def test_an_object_that_cannot_be_cast_is_an_error_of_its_event(
    run: Callable[..., App], tmp_path: Path, store: str, value: Any
) -> None:
    """The reason has the value in it."""
    app = run(APP, nodes=2, routing="hash:k", store=tmp_path / f"s.{store}")
    for key, sent in (("a", "good"), ("b", value), ("a", "good as well")):
        app.send("S", [key, sent])
    app.flush()
    assert app.state == "running"
    assert app.output("O").frame["text"].tolist() == ["good", "good as well"]
    (reason,) = app.errors.frame["reason"]
    assert "cannot cast" in reason
    assert "\\ud800" in reason


@pytest.mark.contract
def test_an_object_that_has_one_comes_out_with_a_question_mark(run: Callable[..., App], tmp_path: Path) -> None:
    """As a string does: else the user's own program could neither print nor write it."""
    text = f"""define stream S (k string, o object);
    @sink(type='file', file.uri='{tmp_path}/o.jsonl', @map(type='json')) define stream F (k string, o object);
    @primaryKey('k') define table T (k string, o object);
    from S insert into T;
    from S select str:substr('\U0001f600', 0, 1) as k, o insert into F;
    from S select k, cast(o, 'int') as o insert into Failed;
    """
    app = run(text, allow=[f"file={tmp_path}"])
    for number, sent in enumerate([[HALF], {"a": HALF}, {HALF: [1, {"\udfff": "\U0001f600"}]}]):
        app.send("S", [str(number), sent])
    app.flush()
    whole = [["?"], {"a": "?"}, {"?": [1, {"?": "\U0001f600"}]}]
    assert app.output("F").frame["k"].tolist() == ["?"] * 3
    assert app.output("F").frame["o"].tolist() == whole
    assert app.query("from T select o").frame["o"].tolist() == whole
    lines = (tmp_path / "o.jsonl").read_text().splitlines()
    assert lines[1] == '{"event":{"k":"?","o":{"a":"?"}}}'
    assert [values[1] for values in app.errors.frame["values"]] == whole
    for frame in (app.output("F").frame, app.query("from T select *").frame, app.errors.frame):
        frame.to_html().encode()


def test_branches_and_traces_refuse_them(run: Callable[..., App]) -> None:
    app = run(WINDOW, nodes=2, routing="hash:k")
    app.send("S", ["a", 1])
    app.flush()
    moment = app.at(event=1)
    for work in (
        lambda: moment.branch(change={1: {"k": HALF}}),
        lambda: moment.branch(insert=[("S", [HALF, 1])]),
        lambda: moment.branch(insert=[("S", ["a", 10**20])]),
    ):
        with pytest.raises(Misuse, match=r" is none$"):
            work()
    frame = pd.DataFrame({"k": pd.Series(["a", HALF], dtype=object), "v": [1, 2]})
    with pytest.raises(Misuse, match=r"S: 1 of 2 rows do not fit: k: '\\ud800' is no value"):
        sparkstream_nb.trace(WINDOW, "q", {"S": frame})


def test_arguments_of_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name of a file that is no UTF-8 comes as this."""
    monkeypatch.chdir(tmp_path)
    Path("a.siddhi").write_text(WINDOW)
    Path("S\udcff.csv").write_text("k,v\na,1\n")
    for arguments, message in (
        (["run", "a.siddhi", "--feed", "S=S\udcff.csv", "--home", "h"], "the feed has half of a surrogate pair"),
        (["trace", "a.siddhi", "--feed", "S=S\udcff.csv"], "the feed has half of a surrogate pair"),
        (["store", "verify", "\udcff"], "name has half of a surrogate pair"),
    ):
        assert main(arguments) != 0
        assert message in capsys.readouterr().err
    with pytest.raises(Misuse, match="name has half of a surrogate pair"):
        default_home(HALF)
