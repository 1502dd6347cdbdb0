"""A text under many settings of its names: counts against the app's own text, and scores by labels."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from sparkstream_nb.app import App, Labels
from sparkstream_nb.app.pictures.sweep_picture import sweep_picture
from sparkstream_nb.app.results.rule_sweep import settings_of
from sparkstream_nb.errors import Misuse, SparkStreamError
from sparkstream_nb.lab.compared_shown import comparison_json, comparison_page
from sparkstream_nb.lab.display import html, text

OWN = "define stream S (card string, v int); @info(name='q') from S[v > 3] select card, v insert into O;"
VARIED = OWN.replace("v > 3", "v > ${LIMIT}")
EVENTS = [("a", 2), ("b", 4), ("a", 6), ("<c>", 8)]
"""One a second."""


@pytest.fixture
def app(run: Callable[..., App]) -> App:
    app = run(OWN)
    for i, event in enumerate(EVENTS, 1):
        app.send("S", list(event), at=1000 * i)
    return app


def test_counts_against_the_own_text(app: App) -> None:
    sweep = app.sweep(VARIED, {"LIMIT": [1, 3, 5, 9]})
    assert sweep.frame.values.tolist() == [
        ["1", 4, 3, 0, 1], ["3", 3, 3, 0, 0], ["5", 2, 2, 1, 0], ["9", 0, 0, 3, 0],
    ]  # fmt: skip
    assert sweep.best is None
    assert sweep.text_with({"LIMIT": "5"}) == OWN.replace("v > 3", "v > 5")
    assert "app: 4 settings over 4 events" in text(sweep)


def test_a_stream_with_another_name_is_the_same_one(app: App) -> None:
    sweep = app.sweep(VARIED.replace("into O", "into Large"), {"LIMIT": 5})
    assert sweep.frame.values.tolist() == [["5", 2, 2, 1, 0]]


def test_each_combination_of_several_names(app: App) -> None:
    sweep = app.sweep(
        VARIED.replace("select", "[card != '${CARD}'] select"), {"LIMIT": range(3, 6, 2), "CARD": ["a", "b"]}
    )
    rows = sweep.frame[["LIMIT", "CARD", "outputs"]].values.tolist()
    assert rows == [["3", "a", 2], ["3", "b", 2], ["5", "a", 1], ["5", "b", 2]]


def test_scores_by_labels(app: App) -> None:
    cases = pd.DataFrame({"at": [2500, 3000, 9000], "card": ["b", "a", "a"]})
    labels = Labels.of(cases, "at", "1 sec")
    sweep = app.sweep(VARIED, {"LIMIT": [1, 3, 5]}, labels=labels)
    scores = sweep.frame[["precision", "recall", "f1", "delay"]].round(3).values.tolist()
    # b at 2 s, a at 3 s are detected; an output of a card is for one case.
    assert scores == [[0.5, 0.667, 0.571, -250.0], [0.667, 0.667, 0.667, -250.0], [0.5, 0.333, 0.4, 0.0]]
    assert sweep.best == {"LIMIT": "3"}
    assert "the best f1 has LIMIT=3" in text(sweep)
    data = comparison_json(sweep, 10)
    assert (data["best"], data["settings"][2]["recall"]) == ({"LIMIT": "3"}, 1 / 3)
    assert "<!DOCTYPE html>" in comparison_page(sweep, 10)


def test_examples_of_what_is_detected(app: App) -> None:
    cases = pd.DataFrame({"at": [2500, 3000, 9000], "card": ["b", "a", "a"]})
    sweep = app.sweep(VARIED, {"LIMIT": [1, 3]}, labels=Labels.of(cases, "at", "1 sec"))
    detected = [("true positive", "O", 2000, ["b", 4], -500), ("true positive", "O", 3000, ["a", 6], 0)]
    rest = [("false positive", "O", 4000, ["<c>", 8], None), ("missed", "", 9000, ["a"], None)]
    assert rows_of(sweep.examples()) == [*detected, *rest]
    assert rows_of(sweep.examples({"LIMIT": 1})) == [*detected, ("false positive", "O", 1000, ["a", 2], None), *rest]
    assert re.search(r"false positive  O +1970-01-01 00:00:04  <c>, 8", text(sweep))
    assert "&lt;c&gt;, 8" in html(sweep)
    assert "<c>" not in comparison_page(sweep, 10)
    assert comparison_json(sweep, 10)["examples"][0] == {
        "kind": "true positive", "stream": "O", "timestamp": 2000, "values": ["b", 4], "delay": -500,
    }  # fmt: skip
    with pytest.raises(Misuse, match=r"\{'LIMIT': '7'\} is none of the 2 settings that were tried"):
        sweep.examples({"LIMIT": 7})
    assert not len(app.sweep(VARIED, {"LIMIT": 3}).examples())


def test_the_first_examples_of_each_kind(run: Callable[..., App]) -> None:
    """Outputs of a stream that lacks the labels' attributes detect nothing."""
    app = run(OWN + "from S select v insert into Values;")
    for i in range(20):
        app.send("S", ["b" if i % 2 else "a", 9], at=1000 * i)
    cases = pd.DataFrame({"at": range(1000, 40_000, 2000), "card": "b"})
    text = VARIED + "from S select v insert into Values;"
    sweep = app.sweep(text, {"LIMIT": 3}, labels=Labels.of(cases, "at"))
    assert [(k, s, t) for k, s, t, _, _ in rows_of(sweep.examples())] == [
        *(("true positive", "O", t) for t in range(1000, 10_000, 2000)),
        ("false positive", "O", 0), ("false positive", "Values", 0), ("false positive", "Values", 1000),
        ("false positive", "O", 2000), ("false positive", "Values", 2000),
        *(("missed", "", t) for t in range(21_000, 30_000, 2000)),
    ]  # fmt: skip


def rows_of(examples: pd.DataFrame) -> list[tuple[Any, ...]]:
    rows = examples.astype(object).where(examples.notna(), None)
    return list(rows.itertuples(index=False, name=None))


def test_what_comes_while_it_warms_up_is_not_judged(app: App) -> None:
    cases = pd.DataFrame({"at": [2000, 3000], "card": ["b", "a"]})
    sweep = app.sweep(VARIED, {"LIMIT": [1, 3, 5]}, labels=Labels.of(cases, "at"), warm_up="2 sec")
    columns = ["LIMIT", "outputs", "same", "gone", "new", "not judged", "recall"]
    assert sweep.frame[columns].values.tolist() == [
        ["1", 2, 2, 0, 0, 2, 1.0], ["3", 2, 2, 0, 0, 1, 1.0], ["5", 2, 2, 0, 0, 0, 1.0],
    ]  # fmt: skip
    for setting, (_, outputs, same, gone, new, *_) in zip(sweep.settings, sweep.frame.values.tolist(), strict=True):
        totals = app.compare(sweep.text_with(setting), warm_up="2 sec").totals
        assert (totals["same"], totals["gone"], totals["new"]) == (same, gone, new)
        assert outputs == same + new
    assert "0 to 2 outputs of the first 2 sec are not judged" in text(sweep)
    assert sweep_picture(sweep).notes == list(sweep.notes)
    assert app.sweep(VARIED, {"LIMIT": 1}, warm_up="1 hour").notes == ("4 outputs of the first 1 hour are not judged",)
    assert "not judged" not in app.sweep(VARIED, {"LIMIT": 1}).frame
    with pytest.raises(Misuse, match="warm_up is a duration"):
        app.sweep(VARIED, {"LIMIT": 1}, warm_up="soon")


def test_nothing_to_score(app: App) -> None:
    sweep = app.sweep(VARIED, {"LIMIT": 9}, labels=Labels.of(pd.DataFrame({"at": [1], "card": ["a"]}), "at"))
    (row,) = sweep.frame.to_dict("records")
    assert (row["recall"], row["f1"], math.isnan(row["precision"]), math.isnan(row["delay"])) == (0, 0, True, True)


def test_an_output_detects_one_case() -> None:
    labels = Labels.of(pd.DataFrame({"at": [1000, 1000], "card": ["a", "a"]}), "at", 500)
    assert labels.tolerance == 500
    assert len(labels.cases) == 2


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"LIMIT": []}, "LIMIT has no values to try"),
        ({"LIMIT": range(101), "CARD": range(100)}, "these are 10,100 settings"),
        ({"LIMT": [1]}, r"the text has no \$\{LIMT\}"),
        ({}, r"no values are given for \$\{LIMIT\}"),
    ],
)
def test_values_that_are_none(app: App, values: dict[str, Any], words: str) -> None:
    with pytest.raises(Misuse, match=words):
        app.sweep(VARIED, values)


@pytest.mark.parametrize(
    ("frame", "time", "tolerance", "words"),
    [
        (pd.DataFrame({"when": [1]}), "wen", 0, "no column 'wen'. Did you mean 'when'?"),
        (pd.DataFrame({"when": ["soon"]}), "when", 0, "'soon' is not a time"),
        (pd.DataFrame({"when": [1]}), "when", "soon", "the tolerance is a duration"),
    ],
)
def test_labels_that_are_none(frame: pd.DataFrame, time: str, tolerance: Any, words: str) -> None:
    with pytest.raises(SparkStreamError, match=words):
        Labels.of(frame, time, tolerance)


def test_combinations() -> None:
    assert settings_of({"A": [1, 2], "B": "x"}) == [{"A": "1", "B": "x"}, {"A": "2", "B": "x"}]
