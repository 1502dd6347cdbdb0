"""Odd arguments of public functions and methods: an error of ours that says what the argument is, never Python's or a
library's."""

from __future__ import annotations

import contextlib
import datetime as dt
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sparkstream_nb
from sparkstream_nb import columns
from sparkstream_nb.app import App, deploy
from sparkstream_nb.argument_types import explain_arguments
from sparkstream_nb.errors import Misuse, SparkStreamError

APP = """
define stream S (k string, v long);
define aggregation G from S select k, sum(v) as t group by k aggregate every sec ... hour;
@info(name='w') from S#window.length(5) select k, sum(v) as t group by k insert into O;
"""
ODD = [
    None, True, -1, 0, 2**63, 10**400, 1.5, float("nan"), "", "\ud800", "a\0b", "\x1b[31m", b"\xff", [], [None], {},
    {1: 2}, {"a": 1}, object(), dt.datetime.max, dt.timedelta(days=10**8), np.int64(3), pd.NaT, pd.DataFrame(),
    pa.table({}), range(3), ("a", 2), repr, "hash:zz", "10 weeks 3",
]  # fmt: skip
USUAL: dict[str, Any] = {
    "stream": "S", "query": "w", "aggregation": "G", "text": APP, "output": "O", "values": ["a", 1], "shard_ids": ["a"],
    "source": pd.DataFrame({"k": ["a"], "v": [1]}), "ms": 10**12, "name": "w",
}  # fmt: skip
SLOW = {"stop", "close", "failover_study", "study", "start", "finish", "remove", "scale"}
"""Methods that end the app, or whose odd arguments mean much work."""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    folder = tmp_path_factory.mktemp("odd")
    with contextlib.chdir(folder):  # for what an odd path names
        app = deploy(APP, name="odd", home=folder / "app", master="inline")
        app.send("S", ["a", 1])
        app.flush()
        yield app
        app.stop()
        app.close()


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p for p in inspect.signature(function).parameters.values() if p.kind in kinds]


def call_oddly(function: Callable[..., Any], *, values: list[Any], without: tuple[str, ...] = ()) -> list[str]:
    """Calls with one odd argument each; returns those that raised another error than ours, with it."""
    wrong = []
    names = {p.name: p.default is p.empty for p in parameters(function)}
    needed = {name: USUAL.get(name, "S") for name, is_needed in names.items() if is_needed or name == "source"}
    for parameter in parameters(function):
        for value in values if parameter.name not in without else ():
            try:
                function(**{**needed, parameter.name: value})
            except SparkStreamError as error:
                if "\x1b" in str(error) or "\0" in str(error):
                    wrong.append(f"{parameter.name}={value!r:.40}: its message has control characters")
            except Exception as error:
                wrong.append(f"{parameter.name}={value!r:.40}: {type(error).__name__} {error}")
    return wrong


METHODS = [
    n for n in vars(App) if inspect.isfunction(getattr(App, n)) and not n.startswith("_") and n not in SLOW
]


@pytest.mark.parametrize("method", METHODS)
def test_methods_of_an_app(app: App, method: str) -> None:
    assert call_oddly(getattr(app, method), values=ODD) == []


TEXTS = ["check", "explain", "split", "changes", "generate"]


@pytest.mark.parametrize("function", TEXTS)
def test_functions_on_texts(function: str, tmp_path: Path) -> None:
    without = ("master", "home")
    with contextlib.chdir(tmp_path):
        assert call_oddly(getattr(sparkstream_nb, function), values=ODD, without=without) == []


def test_deploy(tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path):
        for name in ("nodes", "mode", "routing", "shard_ids", "name", "start", "limits", "retention", "variables"):
            for value in ODD:
                with contextlib.suppress(SparkStreamError):
                    made = deploy(APP, master="inline", fresh=True, **{name: value})
                    made.stop()
                    made.close()


@pytest.mark.parametrize("generator", [n for n in columns.__all__ if inspect.isfunction(getattr(columns, n))])
def test_generators_of_columns(generator: str, tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path):
        assert call_oddly(getattr(columns, generator), values=ODD) == []


class Options(TypedDict, total=False):
    speed: float


@explain_arguments
def example(
    name: str, count: int | None = None, kind: Literal["a", "b"] = "a", many: list[str] | None = None,
    path: Path | str = "", told: Callable[[int], None] | None = None, **options: Unpack[Options],
) -> int:  # fmt: skip
    raise TypeError("raw")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": 3}, "name is a text, not 3"),
        ({"name": "x", "count": True}, "count is a whole number or None, not True"),
        ({"name": "x", "kind": "c"}, "kind is 'a' or 'b', not 'c'"),
        ({"name": "x", "many": ["a", 3]}, "many is several, each a text or None, not ['a', 3]"),
        ({"name": "x", "path": 3}, "path is a path or a text, not 3"),
        ({"name": "x", "told": 3}, "told is a function or None, not 3"),
        ({"name": "x", "speed": "fast"}, "speed is a number, not 'fast'"),
    ],
)
def test_the_words(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(Misuse) as caught:
        example(**arguments)
    assert str(caught.value) == message


def test_an_error_with_fitting_arguments_is_ours() -> None:
    with pytest.raises(TypeError, match=r"^raw$"):
        example("x", 3, told=os.close, speed=1)
