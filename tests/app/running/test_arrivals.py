"""What came in on an input stream, and which node took it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from sparkstream_nb.app import App
from sparkstream_nb.app.results.answers import InputCounts
from sparkstream_nb.lab.display import text
from sparkstream_nb.retention import Retention

Run = Callable[..., App]
APP = """define stream S (k string, n int, o object);
define stream Both (k string);
from S select k insert into Both;
"""


def test_what_came_in_is_shown_with_its_node(run: Run) -> None:
    app = run(APP, nodes=2)
    assert text(app.output("S")) == "No events on S yet."
    app.send("S", ["a", 1, None], at=1)
    app.send("S", [["b", None, {"x": 1}], ["c", 3, None]], at=2)
    app.send("S", ["d", 4, None], at=3, node=1)
    app.tick(5)
    shown = app.output("S", limit=2)
    assert shown.frame["n"].dtype == pd.Int32Dtype()
    assert shown.frame.astype(object).where(shown.frame.notna(), None).to_dict("list") == {
        "node": ["node-1", "node-2", "node-2", "node-1"],
        "timestamp": [1, 2, 2, 3],
        "k": ["a", "b", "c", "d"],
        "n": [1, None, 3, 4],
        "o": [None, {"x": 1}, None, None],
    }
    assert shown.came == InputCounts(4, 0)
    assert [line.split()[-2] for line in text(shown).splitlines()[2:4]] == ["3", "4"]
    assert text(shown).splitlines()[-1] == "showing 2 of 4 events · times in UTC"
    assert app.output("S", last=3).frame["k"].tolist() == ["b", "c", "d"]
    app.flush()
    assert sorted(zip(*(app.output("Both").frame[c] for c in ("node", "k")), strict=True)) == [
        ("node-1", "a"), ("node-1", "d"), ("node-2", "b"), ("node-2", "c"),
    ]  # fmt: skip


@pytest.mark.contract(thorough=True)
def test_rows_of_a_feed_that_are_gone_are_counted(run: Run) -> None:
    one_feed = Retention(recording=2000)  # a file of forty rows has 1,682 bytes
    app = run("define stream S (k string, at long); from S select k insert into O;", nodes=2, retention=one_feed)
    for first in (0, 40):
        frame = pd.DataFrame({"k": [f"k{i}" for i in range(first, first + 40)], "at": range(first, first + 40)})
        app.feed("S", frame, time="at", route="hash:k")
    end: Any = app.output("S")
    assert 40 <= len(end) == 80 - end.came.gone
    put_out = app.output("O", last=len(end)).frame
    assert end.frame[["node", "timestamp", "k"]].values.tolist() == put_out.values.tolist()
    app.send("S", ["last", 7], at=100)
    app.flush()
    shown: Any = app.output("S")
    assert (shown.came.total, shown.came.gone, len(shown)) == (81, 40, 41)
    assert shown.frame["k"].tolist()[-1] == "last"
    assert f"{shown.came.gone} earlier events came in and cannot be shown" in text(shown)


@pytest.mark.contract
def test_nodes_of_then_took_what_came_in_then(run: Run) -> None:
    app = run("define stream S (k string); from S select k insert into O;", nodes=1, mode="active-active")
    app.send("S", ["a"], at=1)
    app.scale(2)
    app.send("S", [["b"]], at=2)
    app.send("S", [["c"]], at=3)
    assert app.output("S").frame["node"].tolist() == ["node-1", "node-2", "node-1"]
