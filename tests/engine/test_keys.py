"""Ids of composite keys: equal where all columns are, whatever their types, over batches and snapshots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkstream_nb.engine.columnar.column_data import Column, StringPool
from sparkstream_nb.engine.columnar.key_ids import IdTable, Keys
from sparkstream_nb.types import Type

VALUES: dict[Type, Any] = {
    Type.STRING: st.sampled_from(["", "a", "b", "null"]) | st.none(),
    Type.INT: st.sampled_from([0, 1, -1, 2**31 - 1, -(2**31)]) | st.none(),
    Type.LONG: st.sampled_from([0, 1, -1, 2**31, 2**33, 2**63 - 1]) | st.none(),
    Type.DOUBLE: st.sampled_from([0.5, 1.0, 2.0, -1e300, float("inf")]) | st.none(),
    Type.BOOL: st.booleans() | st.none(),
}


@settings(deadline=None)
@given(st.data())
def test_one_id_for_each_key(data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4))
    instances = data.draw(st.booleans())
    row = st.tuples(*([st.integers(0, 3)] if instances else []), *(VALUES[t] for t in types))
    types = [Type.INT, *types] if instances else types
    strings = StringPool()
    keys, known = Keys(types, strings, instances=instances), dict[Any, int]()
    for rows in data.draw(st.lists(st.lists(row, max_size=12), max_size=4)):
        columns = [Column.of(t, [r[i] for r in rows], strings) for i, t in enumerate(types)]
        # A null text is the text 'null' (`GroupByKeyGenerator`).
        named = [["null" if t is Type.STRING and v is None else v for t, v in zip(types, r, strict=True)] for r in rows]
        assert keys.ids(columns).tolist() == [known.setdefault(tuple(r), len(known)) for r in named]
        assert keys.size == len(known)
        other = Keys(types, strings, instances=instances)
        other.load(keys.state())
        keys = other
    assert np.array_equal(keys.ids(keys.columns()), np.arange(len(known)))


def test_ids_of_many_numbers() -> None:
    """The table grows several times, and is asked ahead of what comes when it is large."""
    values = np.random.default_rng(5).integers(-40_000, 40_000, 150_000)
    keys, known = Keys([Type.LONG], StringPool()), dict[int, int]()
    for batch in np.split(values, [10, 1_000, 70_000]):
        expected = [known.setdefault(v, len(known)) for v in batch.tolist()]
        assert keys.ids([Column(Type.LONG, batch)]).tolist() == expected
        assert keys.size == len(known)


@pytest.mark.parametrize(
    "keys",
    [
        np.arange(50_000),
        np.arange(50_000) * 1_000 + 1_600_000_000_000,
        np.arange(50_000) << 33,
        (np.arange(50_000) % 300) << 33 | np.arange(50_000) // 300,
        np.arange(50_000).astype(np.float64).view(np.int64),
        (np.arange(50_000) / 100).view(np.int64),
    ],
    ids=["numbers", "times", "left halves", "pairs", "whole doubles", "prices"],
)
def test_nearly_all_keys_lie_in_the_line_where_they_belong(keys: np.ndarray[Any, Any]) -> None:
    table = IdTable()
    assert np.array_equal(table.assign(keys)[0], np.arange(len(keys)))
    assert np.array_equal(table.assign(keys[::-1])[0], np.arange(len(keys))[::-1])
    lines = table.table.slots.reshape(-1, 8)
    line, slot = np.nonzero(table.table.numbers.reshape(-1, 16)[:, 10:])
    belongs = table.table.line_of(lines[line, slot]) // 8
    assert len(line) == len(keys)
    assert np.mean(line != belongs) < 0.05


def test_ids_of_texts_are_not_always_codes() -> None:
    """As long as the texts of keys are all that come, and then no more."""
    strings = StringPool()
    keys = Keys([Type.STRING], strings)

    def ids(*texts: str) -> list[int]:
        out: list[int] = keys.ids([Column.of(Type.STRING, list(texts), strings)]).tolist()
        return out

    assert ids("a", "b", "a", "c") == [0, 1, 0, 2]
    strings.encode(["other"])
    assert ids("c", "a") == [2, 0]
    assert ids("d", "b", "other", "d") == [3, 1, 4, 3]
    assert ids("e", "c", "a", "d") == [5, 2, 0, 3]


@pytest.mark.parametrize("gap", [None, 70, 199])
def test_ids_of_many_texts_come_in_their_order(gap: int | None) -> None:
    """In batches of several blocks, of which some bring new texts; at `gap` one comes that is no key before."""
    strings, known, rng = StringPool(), dict[int, int](), np.random.default_rng(1)
    keys = Keys([Type.STRING], strings)
    for batch in range(6):
        texts = rng.integers(0, 100 + 40 * batch, 200)
        if gap is not None and batch == 3:
            strings.encode(["none of them"])
            texts[gap] = 1_000
        columns = [Column.of(Type.STRING, [f"t{t}" for t in texts.tolist()], strings)]
        assert keys.ids(columns).tolist() == [known.setdefault(t, len(known)) for t in texts.tolist()]
        assert keys.columns()[0].to_list(strings) == [f"t{t}" for t in known]
