"""Rows of outputs compared by hash: as Python compares their values one by one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb.app.results import output_blocks
from sparkstream_nb.app.results.output_blocks import EqualRows, OutputBlock, Place, SameCount, row_hashes, value_hashes
from sparkstream_nb.app.results.output_matching import frozen

LONGS = st.sampled_from([None, 0, 1, -1, 2**63 - 1, -(2**63), 2**53, 2**53 + 1])
DOUBLES = st.sampled_from([None, 0.0, -0.0, 1.0, 1.5, float("nan"), float("inf"), -float("inf"), 2.0**63, 2.0**53])
TEXTS = st.sampled_from([None, "", "a", "null", "nan", "ü", "\U0001f600", "1"])
OBJECTS = st.sampled_from([None, [1, 2], [1, float("nan")], {"a": 1}, {"a": 1.5}, 1])
COLUMNS: dict[str, tuple[st.SearchStrategy[Any], Any]] = {
    "long": (LONGS, pa.int64()),
    "double": (DOUBLES, pa.float64()),
    "bool": (st.sampled_from([None, True, False]), pa.bool_()),
    "text": (TEXTS, pa.string()),
    "dictionary": (TEXTS, pa.dictionary(pa.int32(), pa.string())),
    "object": (OBJECTS, None),
}


def column(values: list[Any], type_: Any) -> Any:
    return values if type_ is None else pa.array(values, type_)


@st.composite
def rows(draw: st.DrawFn, kinds: list[str]) -> list[tuple[Any, ...]]:
    return draw(st.lists(st.tuples(*(COLUMNS[kind][0] for kind in kinds)), max_size=12))


def block(values: list[tuple[Any, ...]], kinds: list[str]) -> OutputBlock:
    columns = [column([row[i] for row in values], COLUMNS[kind][1]) for i, kind in enumerate(kinds)]
    n = len(values)
    at = np.arange(n)
    return OutputBlock("q", None, Place(0, 0, "O"), n, at, np.zeros(n, np.int64), np.zeros(n, np.int64), columns)


def identities(values: list[tuple[Any, ...]]) -> list[Any]:
    return [tuple(map(frozen, row)) for row in values]


@given(st.data())
def test_equal_rows_are_those_that_python_finds_equal(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=3))
    ones, others = data.draw(rows(kinds)), data.draw(rows(kinds))
    one_hashes, other_hashes = (row_hashes(block(r, kinds)) for r in (ones, others))
    counts = Counter(identities(ones)), Counter(identities(others))
    masks = EqualRows.of(one_hashes, other_hashes).is_even()
    for side, mask in zip((ones, others), masks, strict=True):
        assert mask.tolist() == [counts[0][key] == counts[1][key] for key in identities(side)]
    same = SameCount()
    half = len(ones) // 2
    same.add(one_hashes[:half], other_hashes)
    same.add(one_hashes[half:], other_hashes[:0])
    assert same.total() == (counts[0] & counts[1]).total()


def test_numbers_of_different_types_are_equal_as_in_python() -> None:
    longs, doubles = value_hashes([pa.array([0, 1, -5, 2**53])], 4), value_hashes([pa.array([-0.0, 1, -5, 2**53])], 4)
    assert (longs == doubles).all()
    assert not (value_hashes([pa.array(["1"])], 1) == value_hashes([pa.array([1])], 1)).any()
    swapped = value_hashes([pa.array([1]), pa.array([2])], 1), value_hashes([pa.array([2]), pa.array([1])], 1)
    assert not (swapped[0] == swapped[1]).any()


def test_one_hash_for_different_rows_is_noticed() -> None:
    hashes = np.array([[7, 1], [7, 2]], np.uint64)
    assert [mask.tolist() for mask in EqualRows.of(hashes, hashes[1:]).is_even()] == [[False, True], [True]]


@pytest.mark.parametrize("clock", [True, False])
def test_clock_and_query_tell_rows_apart_if_wanted(clock: bool) -> None:
    one = block([("a",)], ["text"])
    other = OutputBlock("p", None, one.place, 1, one.index, one.clock + 1, one.ts, one.columns)
    assert (row_hashes(one, clock=clock) == row_hashes(other, clock=clock)).all() == (not clock)
    assert not (row_hashes(one, query=True) == row_hashes(other, query=True)).any()


def test_rows_by_mask() -> None:
    one, two = block([("a",), ("b",)], ["text"]), block([("c",)], ["text"])
    chosen, rest = output_blocks.split_blocks([one, two], np.array([False, True, True]))
    assert [[a.values for a in b.alerts()] for b in chosen] == [[("b",)], [("c",)]]
    assert [[a.values for a in b.alerts()] for b in rest] == [[("a",)]]
    assert chosen[0].index.tolist() == [1]
