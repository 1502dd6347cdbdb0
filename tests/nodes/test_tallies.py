"""Bags of outputs that are counted against each other, doubles up to the order in which they were added."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from sparkstream_nb.nodes.tallies import Tally, tally, tally_close

Rows = list[tuple[int, str | None, float | None]]
rows = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["a", None]),
        st.sampled_from([None, 0.0, 1.0, 9.999999999999, 123456789.5, -0.3, 1e-300, 5e-324, 1.7e308, float("inf")]),
    ),
    max_size=12,
)


def table(found: Rows) -> pa.Table:
    ts, key, value = ([r[i] for r in found] for i in range(3))
    return pa.table(
        {"ts": pa.array(ts, pa.int64()), "v0": pa.array(key, pa.string()), "v1": pa.array(value, pa.float64())}
    )


def noisy(found: Rows, by: float) -> Rows:
    return [(ts, k, None if v is None else v * (1 + by)) for ts, k, v in found]


@settings(deadline=None, max_examples=examples(300))
@given(rows, rows, st.sampled_from([0.0, 1e-15, -3e-13]))
def test_noise_of_additions_changes_nothing(truth: Rows, found: Rows, by: float) -> None:
    assert tally_close(table(truth), table(noisy(found, by))) == tally(table(truth), table(found))


@settings(deadline=None, max_examples=examples(300))
@given(rows)
def test_what_differs_by_more_is_another_value(truth: Rows) -> None:
    finite = [r for r in truth if r[2] not in (None, 0.0, 5e-324, 1.7e308, float("inf"))]
    assert tally_close(table(finite), table(noisy(finite, 1e-7))) == Tally(lost=len(finite), spurious=len(finite))


@settings(deadline=None, max_examples=examples(300))
@given(rows)
def test_all_and_nothing(found: Rows) -> None:
    assert tally_close(None, table(found)) == Tally(spurious=len(found))
    assert tally_close(table(found), None) == Tally(lost=len(found))
    assert tally_close(table(found), table(found)) == Tally(same=len(found))
