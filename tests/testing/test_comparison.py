"""Comparisons of rows and values."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from sparkstream_nb.errors import Span
from sparkstream_nb.testing.cell_values import is_equal, read_value, write_value
from sparkstream_nb.testing.comparison import compare_rows, count_signs
from sparkstream_nb.testing.model import Cell
from sparkstream_nb.testing.siddhitest_errors import AppTestError
from sparkstream_nb.testing.suite_results import DiffLine, Failure
from sparkstream_nb.types import Type


def signs(expected: str, actual: str, *, any_order: bool = False) -> str:
    rows = compare_rows(len(expected), len(actual), lambda i, j: expected[i] == actual[j], any_order=any_order)
    return " ".join(
        r.sign.strip() + (expected[r.expected] if r.expected is not None else actual[r.actual or 0]) for r in rows
    )


@pytest.mark.parametrize(
    ("expected", "actual", "found"),
    [("abc", "abc", "a b c"), ("abc", "axc", "a -b +x c"), ("abc", "ac", "a -b c"), ("ac", "abc", "a +b c"),
     ("", "a", "+a"), ("a", "", "-a"), ("abcd", "bcda", "-a b c d +a"), ("aab", "ab", "a -a b")],
)  # fmt: skip
def test_rows_in_order(expected: str, actual: str, found: str) -> None:
    assert signs(expected, actual) == found


def test_rows_in_any_order_count_each_row_once() -> None:
    assert signs("abc", "cab", any_order=True) == "a b c"
    assert signs("aab", "abb", any_order=True) == "a -a b +b"


def test_differences_are_counted() -> None:
    assert count_signs(compare_rows(2, 1, lambda i, j: False, any_order=True)) == "2 rows missing, 1 unexpected"
    assert count_signs(compare_rows(0, 2, lambda i, j: False, any_order=True)) == "2 unexpected rows"


@pytest.mark.parametrize(
    ("expected", "actual", "type", "equal"),
    [
        (0.3, 0.1 + 0.2, Type.DOUBLE, True),
        (0.3, 0.300001, Type.DOUBLE, False),
        (0.1, 0.10000000149011612, Type.FLOAT, True),
        (0.1, 0.10000000149011612, Type.DOUBLE, False),
        (math.nan, math.nan, Type.DOUBLE, True),
        (math.inf, math.inf, Type.DOUBLE, True),
        (0.0, 1e-13, Type.DOUBLE, True),
        (None, 0.0, Type.DOUBLE, False),
        (None, None, Type.STRING, True),
        (1, 2, Type.LONG, False),
        ([1, "a"], [1, "a"], Type.OBJECT, True),
    ],
)
def test_values_are_compared_within_the_tolerance_of_their_type(
    expected: object, actual: object, type: Type, equal: bool
) -> None:
    assert is_equal(expected, actual, type) is equal


@pytest.mark.parametrize(
    ("text", "type"),
    [("2147483648", Type.INT), ("1.0", Type.LONG), ("x", Type.DOUBLE), ("yes", Type.BOOL), ("1_000", Type.LONG)],
)
def test_a_text_that_is_no_value_of_its_type_is_refused(text: str, type: Type) -> None:
    with pytest.raises(AppTestError, match=f"'{text}' is not an? {type}"):
        read_value(Cell(text, False, Span(0, 1, 1, 0)), type)


@pytest.mark.parametrize(
    ("value", "type"),
    [(True, Type.BOOL), (-5, Type.INT), (0.1 + 0.2, Type.DOUBLE), (math.inf, Type.DOUBLE), (None, Type.STRING),
     ("null", Type.STRING), ({"a": [1]}, Type.OBJECT), (0.10000000149011612, Type.FLOAT)],
)  # fmt: skip
def test_a_written_value_is_read_as_an_equal_one(value: object, type: Type) -> None:
    text = write_value(value, type)
    quoted = text.startswith('"')
    cell = Cell(text if not quoted else json.loads(text), quoted, Span(0, 1, 1, 0))
    assert is_equal(read_value(cell, type), value, type)


def test_of_a_long_difference_the_first_part_is_shown() -> None:
    rows = [DiffLine(" " if i % 10 else "+", (str(i),)) for i in range(1, 1_000)]
    head, names, *table = Failure(Path("f"), 7, "expect O", "99 unexpected", ("v",), tuple(rows)).lines()
    assert (head, names) == ("f:7: expect O: 99 unexpected", "    v")
    assert [line for line in table if line.startswith("  +")] == [f"  + {i}" for i in range(10, 201, 10)]
    assert table[:2] == ["    … 6 equal rows", "    7"]
    assert table[-2:] == ["    203", "    … and 79 more differences"]


def test_a_short_difference_is_shown_whole() -> None:
    rows = tuple(DiffLine("+", (str(i),)) for i in range(50))
    assert len(Failure(Path("f"), 7, "expect O", "50 unexpected", ("v",), rows).lines()) == 52
