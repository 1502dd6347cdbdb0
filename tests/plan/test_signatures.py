"""Result types of functions against what the reference engine infers, from a file of its answers."""

# ruff: noqa: E501  (an app reads best on one line)

from __future__ import annotations

from pathlib import Path

import pytest

from sparkstream_nb.errors import SiddhiBindError
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.functions import AGGREGATORS, SCALARS, STREAM_FUNCTIONS, WINDOWS
from sparkstream_nb.plan.signatures.help import help_lines
from sparkstream_nb.plan.signatures.rules import cron_problem

FACTS = Path(__file__).parent / "function_types.txt"
"""Lines `call -> type`; attributes s string, i int, l long, f float, d double, b bool, o object."""
STREAM = "define stream S (s string, i int, l long, f float, d double, b bool, o object);"


def result_type(call: str) -> str:
    try:
        return str(compile_app(f"{STREAM} from S select {call} as x insert into O;").schema("O")[0].type)
    except SiddhiBindError:
        return "refused"


def test_result_types() -> None:
    lines = FACTS.read_text().splitlines()
    assert len(lines) > 300
    found = [f"{call} -> {result_type(call)}" for call, _ in (line.split(" -> ") for line in lines)]
    wrong = [f"{f}, not {line.split(' -> ')[1]}" for f, line in zip(found, lines, strict=True) if f != line]
    assert not wrong, "\n".join(wrong)


def test_tables_are_complete() -> None:
    """Every built-in of the language's manual has a row."""
    built_in = (
        "cast coalesce convert createSet currentTimeMillis default eventTimestamp ifThenElse instanceOfBoolean instanceOfDouble "
        "instanceOfFloat instanceOfInteger instanceOfLong instanceOfString maximum minimum sizeOfSet UUID"
    )
    assert set(built_in.split()) == {k for k in SCALARS if ":" not in k}
    aggregators = "sum avg count distinctCount min max minForever maxForever stdDev and or unionSet"
    assert set(aggregators.split()) == {k for k in AGGREGATORS if ":" not in k}
    windows = (
        "time timeBatch length lengthBatch timeLength externalTime externalTimeBatch session batch delay cron sort expression "
        "expressionBatch frequent lossyFrequent"
    )
    assert set(windows.split()) == {k for k in WINDOWS if ":" not in k}
    unique = "ever first length time lengthBatch timeBatch timeLengthBatch externalTimeBatch firstLengthBatch firstTimeBatch"
    assert {f"unique:{w}" for w in unique.split()} == {k for k in WINDOWS if ":" in k}


@pytest.mark.parametrize(
    "text", ["*/5 * * * * ?", "0 0 12 ? * MON-FRI", "0 15 10 L * ?", "0 0 0 1 1 ? 2030", "0 0/5 14 * * ?"]
)
def test_cron_texts(text: str) -> None:
    assert cron_problem(text) is None


@pytest.mark.parametrize(
    "text", ["", "* * * * *", "61 * * * * ?", "* * * * * *", "0 0 25 * * ?", "0 0 12 ? * FOO", "x"]
)
def test_bad_cron_texts(text: str) -> None:
    assert cron_problem(text) is not None


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ("length(-1)", "cannot be negative"),
        ("cron('every day')", "cron expression"),
        ("sort(2, 'asc')", "takes attributes"),
        ("session(1 sec, s, 2 sec)", "cannot exceed its gap"),
        ("expression('i >')", "in the window's expression"),
        ("expression('zz > 3')", "no attribute 'zz'"),
        ("timeBatch(1 sec, s)", "does not take"),
    ],
)
def test_window_constants(window: str, message: str) -> None:
    with pytest.raises(SiddhiBindError, match=message):
        compile_app(f"{STREAM} from S#window.{window} select s insert into O;")


def test_each_has_a_line_of_help() -> None:
    lines = help_lines()
    listed = {
        "windows": set(WINDOWS), "stream_functions": set(STREAM_FUNCTIONS), "aggregators": set(AGGREGATORS),
        "functions": set(SCALARS),
    }  # fmt: skip
    assert {kind: set(texts) for kind, texts in lines.items()} == listed, "see plan/signatures/help.toml"
    for texts in lines.values():
        assert all(t.endswith(".") and len(t) <= 110 for t in texts.values())
