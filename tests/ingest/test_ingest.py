"""Typing a feed's columns: what becomes what, and what is rejected with which reason."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.ingest.ingest import columns_of, convert, times
from sparkstream_nb.ingest.row_typing import RowReading, type_rows
from sparkstream_nb.limits import Limits
from sparkstream_nb.types import Schema, Type

SCHEMA = Schema.of(("symbol", Type.STRING), ("price", Type.DOUBLE), ("qty", Type.INT))


@pytest.mark.parametrize(
    ("values", "type", "expected"),
    [
        (["1", " 2 ", None], Type.INT, [1, 2, None]),
        (["1.5", "nan", "1e3"], Type.DOUBLE, [1.5, float("nan"), 1000.0]),
        ([1.0, 2.0, None], Type.LONG, [1, 2, None]),
        ([1, 2], Type.STRING, ["1", "2"]),
        (["true", "False", None], Type.BOOL, [True, False, None]),
        ([1, 2], Type.FLOAT, [1.0, 2.0]),
        ([None, None], Type.INT, [None, None]),
    ],
)
def test_values_that_fit(values: list[Any], type: Type, expected: list[Any]) -> None:
    typed, bad = convert(pa.array(values), type)
    assert bad is None
    assert str(typed.to_pylist()) == str(expected)


def test_a_time_as_a_long_is_in_milliseconds() -> None:
    for unit in ("s", "ms", "us", "ns"):
        typed, bad = convert(pa.array([dt.datetime(2013, 1, 1, 5, 17), None], pa.timestamp(unit)), Type.LONG)
        assert bad is None
        assert typed.to_pylist() == [1357017420000, None]


@pytest.mark.parametrize(
    ("values", "type", "bad"),
    [
        (["1", "x", "1_0", ""], Type.INT, [False, True, True, True]),
        (["1", "1.5"], Type.INT, [False, True]),
        ([1.0, 1.5], Type.INT, [False, True]),
        ([1, 2**31], Type.INT, [False, True]),
        (["1.5", "abc"], Type.DOUBLE, [False, True]),
        ([True, False], Type.INT, [True, True]),
        ([1, None], Type.BOOL, [True, False]),
        (["true", "yes"], Type.BOOL, [False, True]),
    ],
)
def test_values_that_do_not_fit(values: list[Any], type: Type, bad: list[bool]) -> None:
    typed, mask = convert(pa.array(values), type)
    assert mask is not None
    assert mask.tolist() == bad
    assert [v is None for v, b in zip(typed.to_pylist(), bad, strict=True) if b] == [True] * sum(bad)


def test_rows_are_split_with_the_faults_of_each() -> None:
    table = pa.table({"symbol": ["A", "B", "C"], "price": ["1", "x", "y"], "qty": ["1", "z", "3"]})
    typed = type_rows(table, SCHEMA)
    assert [c.to_pylist() for c in typed.columns] == [["A"], [1.0], [1]]
    assert typed.rejected == [
        (None, ["B", "x", "z"], "price: 'x' is not a double; qty: 'z' is not an int"),
        (None, ["C", "y", "3"], "price: 'y' is not a double"),
    ]


def test_a_missing_column_rejects_every_row_and_says_what_was_near() -> None:
    typed = type_rows(pa.table({"symbol": ["A"], "prize": [1.0], "qty": [1]}), SCHEMA)
    assert len(typed) == 0
    ((_, _, why),) = typed.rejected
    assert why == "no column 'price'. Did you mean 'prize'? Its columns: prize, symbol, qty."
    assert (
        len(
            type_rows(
                pa.table({"symbol": ["A"], "prize": [1.0], "qty": [1]}), SCHEMA, RowReading(columns={"price": "prize"})
            )
        )
        == 1
    )


@pytest.mark.parametrize(
    "source",
    [
        pa.array([1357017420000]),
        pa.array([1357017420000.0]),
        pa.array(["1357017420000"]),
        pa.array(["2013-01-01 05:17:00"]),
        pa.array(["2013-01-01T06:17:00+01:00", "x"])[:1],
        pa.array([dt.datetime(2013, 1, 1, 5, 17)]),
        pa.array([dt.datetime(2013, 1, 1, 5, 17, tzinfo=dt.UTC)]),
    ],
)
def test_times(source: pa.Array) -> None:
    found, bad = times(source)
    assert bad is None
    assert found.tolist() == [1357017420000]


def test_times_that_are_none() -> None:
    found, bad = times(pa.array(["2013-01-01", "2013-02-30", None, "soon", "17"]))
    assert bad is not None
    assert bad.tolist() == [False, True, True, True, False]
    assert found.tolist()[::4] == [1356998400000, 17]


def test_a_time_column_that_is_not_there() -> None:
    with pytest.raises(SparkStreamError, match="Did you mean 'symbol'"):
        type_rows(pa.table({"symbol": ["A"], "price": [1.0], "qty": [1]}), SCHEMA, RowReading("symbols"))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (["A", "x", 1], "S.price: 'x' is not a double"),
        (["A", 1.0], "takes 3 values"),
        (["A", 1.0, 1.5], "S.qty: 1.5 is not an int"),
        ([1, 1.0, 1], "not a string"),
    ],
)
def test_sent_values_that_do_not_fit(row: list[Any], said: str) -> None:
    with pytest.raises(SparkStreamError, match=said):
        columns_of(SCHEMA, [row], "S", Limits())
