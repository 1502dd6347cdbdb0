"""What was not taken can be looked at, edited, and sent again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from sparkstream_nb.app import App
from sparkstream_nb.errors import Misuse
from sparkstream_nb.lab.display import text

APP = """
define stream S (k string, v int);
define stream J (t string);
@info(name = 'q') from S select k, math:sqrt(convert(v, 'double')) as r insert into O;
from J select str:substr(t, 9) as o insert into P;
"""


@pytest.fixture
def app(run: Callable[..., App]) -> App:
    """An app with four errors: two rows of a feed, an event of a query, and one that is too far ahead."""
    app = run(APP)
    frame = pd.DataFrame({"k": list("abcd"), "v": ["1", "x", "2.5", "4"], "at": [10, 20, 30, 40]})
    app.feed("S", frame, time="at")
    app.send("J", ["{"], at=50)
    app.send("S", ["late", 9], at=2**62)
    app.flush()
    return app


@pytest.mark.contract
def test_errors_have_ids_and_go_when_they_are_sent_again(app: App) -> None:
    frame = app.errors.frame
    assert frame.index.name == "id"
    assert frame["values"].tolist()[:2] == [["b", "x"], ["c", "2.5"]]
    first, *_, late = frame.index.tolist()
    found = app.replay([first, late])
    assert (found.sent, list(found.left)) == (0, [first, late])
    assert "'x'" in found.left[first]
    assert "ahead" in found.left[late]
    assert app.errors.frame.equals(frame)
    edited = frame[frame["stream"] == "S"].copy()
    edited["values"] = [["b", 16], ["c", 25], ["late", 36]]
    edited.loc[late, "timestamp"] = 60
    assert app.replay(edited).sent == 3
    app.flush()
    out = app.output("O").frame
    assert sorted(out["r"].dropna().tolist()) == [1.0, 2.0, 4.0, 5.0, 6.0]
    assert out[out["k"] == "late"]["timestamp"].tolist() == [60]
    assert app.errors.frame.index.tolist() == [i for i in frame.index if i not in edited.index]


def test_an_event_that_fails_again_is_an_error_again(app: App) -> None:
    (event,) = app.errors.frame.index[app.errors.frame["stream"] == "J"].tolist()
    assert app.replay([event]).sent == 1
    app.flush()
    (again,) = app.errors.frame.index[app.errors.frame["stream"] == "J"].tolist()
    assert again > event


def test_one_that_cannot_be_sent_does_not_hold_up_the_others(app: App) -> None:
    frame = app.errors.frame
    wrong, right = frame.index[frame["stream"] == "S"].tolist()[:2]
    edited = frame.loc[[wrong, right]].copy()
    edited.at[right, "values"] = ["c", 25]
    found = app.replay(edited)
    assert repr(found).splitlines()[0] == (
        f"1 of the errors of {app.name} sent again, 1 cannot be and stays on the list:"
    )
    assert f"error {wrong}: " in repr(found)
    app.flush()
    assert 5.0 in app.output("O").frame["r"].tolist()
    assert wrong in app.errors.frame.index
    assert right not in app.errors.frame.index


def test_a_row_that_is_not_whole_keeps_its_text(run: Callable[..., App], tmp_path: Path) -> None:
    """It was [None, None], and --replay sent it as such."""
    app, file = run(APP), tmp_path / "s.csv"
    file.write_text(f"k;v\na;1;x;{'y' * 80}\nb\n")
    app.feed("S", file)
    first, last = app.errors.frame.index.tolist()
    assert app.errors.frame["values"].tolist() == [{"row": f"a;1;x;{'y' * 80}"}, {"row": "b"}]
    shown = text(app.errors)
    assert f"a;1;x;{'y' * 80}  not a whole row" in shown
    assert shown.splitlines()[0] == "count  reason"
    assert "mended rows of" in shown.splitlines()[-1]  # in words of Python, or of the magics where there are any
    assert app.replay().left == dict.fromkeys(
        (first, last), "it is the text of a row that is not whole: give its values as a list"
    )
    mended = app.errors.frame.loc[[last]]
    mended.at[last, "values"] = ["b", 4]
    assert app.replay(mended).sent == 1
    app.flush()
    assert app.output("O").frame["r"].tolist() == [2.0]


def test_what_cannot_be_sent_is_said(app: App) -> None:
    for wrong, said in {
        (999,): "there is no error 999",
        ("x",): "errors is a frame, or ids",
    }.items():
        with pytest.raises(Misuse, match=said):
            app.replay(wrong)  # type: ignore[arg-type]
    with pytest.raises(Misuse, match="errors lacks the column stream"):
        app.replay(app.errors.frame[["timestamp", "values"]])


def test_mended_rows_have_times_in_any_form_and_the_clock_stays(run: Callable[..., App]) -> None:
    app = run("define stream S (k string, v int); from S select k, v insert into O;")
    times = ["2024-06-03 10:00:00", "x", "2024-06-03 11:00:00"]
    app.feed("S", pd.DataFrame({"at": times, "k": ["a", "b", "c"], "v": ["1", "2", "no"]}), time="at")
    errors = app.errors.frame
    assert len(errors) == 2
    mended = errors.copy()
    mended["values"] = [["b", 2], ["c", 3]]
    mended["timestamp"] = mended["timestamp"].astype(object)
    mended.at[mended.index[1], "timestamp"] = "2024-06-03 09:00:00"
    said = repr(app.replay(mended))
    assert said.splitlines()[1:] == [
        "1 had no time, and has that of the app's clock, 2024-06-03 10:00:00 UTC: give a time in the column timestamp"
    ]
    app.flush()
    assert sorted(app.output("O").frame["timestamp"] // 1000) == [1717405200, 1717408800, 1717408800]
    assert len(app.errors) == 0


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("timestamp", "tomorrow", "the timestamp of error 1: 'tomorrow' is neither ms since 1970 nor a time"),
        ("values", "a;1", "the values of error 1 are a list, one for each attribute of S, not 'a;1'"),
    ],
)
def test_wrong_mends_are_one_line(run: Callable[..., App], column: str, value: str, said: str) -> None:
    app = run("define stream S (k string, v int); from S select k, v insert into O;")
    app.feed("S", pd.DataFrame({"k": ["a"], "v": ["no"]}))
    mended = app.errors.frame.astype(object)
    mended.at[1, column] = value
    with pytest.raises(Misuse, match=said):
        app.replay(mended)


def test_texts_of_mended_rows_are_read_as_by_the_feed(run: Callable[..., App]) -> None:
    app = run("define stream S (n int, p double); from S select n, p insert into O;")
    frame = pd.DataFrame({"n": ["12", "x", "n/a"], "p": ["1.234,5", "9,28", "x"]})
    app.feed("S", frame, decimal=",", missing=["n/a"])
    mended = app.errors.frame
    mended["values"] = [["13", "9,28"], ["n/a", "7"]]
    assert app.replay(mended).sent == 0
    assert app.replay(mended, decimal=",", missing=["n/a"]).sent == 2
    app.flush()
    assert app.output("O").frame[["n", "p"]].astype(object).where(lambda f: f.notna(), None).values.tolist() == [
        [12, 1234.5], [13, 9.28], [None, 7.0],
    ]  # fmt: skip
