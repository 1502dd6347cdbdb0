"""A text under many settings of its names: counts against the app's own text, and scores by labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from sparkstream_nb.app import App, Labels
from sparkstream_nb.app.results.rule_sweep import settings_of
from sparkstream_nb.errors import Misuse, SparkStreamError
from sparkstream_nb.lab.compared_shown import comparison_json, comparison_page
from sparkstream_nb.lab.display import text

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
