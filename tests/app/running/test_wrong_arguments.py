"""Arguments and values of wrong kinds, beside those of `test_wrong_inputs`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sparkstream_nb.app import App, deploy
from sparkstream_nb.errors import SparkStreamError, printable

APP = "define stream S (o object, d double); from S select d insert into O;"
TWICE: list[Any] = []
TWICE += [TWICE, TWICE]


def test_messages_can_be_printed() -> None:
    assert str(SparkStreamError("a\x1b[31m\ud800" + "x" * 1_000)) == "a\\x1b[31m\\ud800" + "x" * (100 - 15) + "…"


@pytest.mark.parametrize(
    "argument",
    [
        {"routing": 5}, {"routing": None}, {"nodes": 10**9}, {"nodes": 10**5_000}, {"alerts": None}, {"alerts": ["on"]},
        {"timezone": None}, {"timezone": "../../etc/passwd"}, {"store": "a\0"},
    ],
    ids=lambda a: next(iter(a)),
)  # fmt: skip
def test_deploy(argument: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(SparkStreamError) as wrong:
        deploy(APP, home=tmp_path / "home", **argument)
    assert str(wrong.value) == printable(str(wrong.value))
    assert not (tmp_path / "home").exists()


def test_calls(run: Callable[..., App]) -> None:
    app = run(APP)
    frame = pd.DataFrame({"o": ["a"], "d": [1.0]})
    for call, said in [
        (lambda: app.send("S", {"o": TWICE, "d": 1.0}), "nested deeper than 200 levels, or in itself"),
        (lambda: app.send("S", [None, b"1"]), "is not a double"),
        (lambda: app.feed("S", frame, route=5), "the routing is a text, not 5"),  # type: ignore[call-overload]
        (lambda: app.feed("S", frame, progress=5), "progress is a function, not 5"),  # type: ignore[call-overload]
        (lambda: app.divergence(1, 5), "the routing is a text, not 5"),  # type: ignore[arg-type]
    ]:
        with pytest.raises(SparkStreamError, match=said):
            call()
