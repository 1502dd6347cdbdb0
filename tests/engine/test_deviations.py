"""`stdDev` is that of the values that are there, whatever was there before."""

from __future__ import annotations

import math
from statistics import pstdev
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import examples
from reference.engine_cases import run_case
from sparkstream_nb.engine.aggregators.deviations import FAR_AWAY, StdDev
from sparkstream_nb.engine.columnar.column_data import Column
from sparkstream_nb.types import Type

VALUES = st.sampled_from([0.1, 0.1, 0.3, 3.3, -7.0, 1e6 + 0.1, 1e9, 1e15, 1e-9, 0.0])
ODD = st.sampled_from([math.nan, math.inf, -math.inf])


def deviations(window: str, values: list[float], **more: Any) -> list[Any]:
    """What the query puts out for each value, 10 ms apart."""
    app = f"define stream S (v double); from S#window.{window} select stdDev(v) as s insert into O;"
    feed = [["S", 1000 + 10 * i, [v]] for i, v in enumerate(values)]
    return [row[0] for _, row in run_case({"app": app, "feed": feed}, **more)["streams"]["O"]]


def right(found: float, values: list[float]) -> bool:
    exact = pstdev(values)
    return math.isclose(found, exact, rel_tol=1e-8) if exact else found == 0


@settings(max_examples=examples(60), deadline=None)
@given(values=st.lists(VALUES, min_size=1, max_size=60), size=st.integers(1, 7))
def test_is_that_of_the_window(values: list[float], size: int) -> None:
    for i, found in enumerate(deviations(f"length({size})", values)):
        assert right(found, values[max(0, i - size + 1) : i + 1])


@settings(max_examples=examples(30), deadline=None)
@given(values=st.lists(VALUES, min_size=1, max_size=40), size=st.integers(1, 5))
def test_is_that_of_what_a_sort_window_keeps(values: list[float], size: int) -> None:
    kept: list[float] = []
    for v, found in zip(values, deviations(f"sort({size}, v)", values), strict=True):
        assert right(found, [*kept, v])  # what is too much leaves after the event
        kept = sorted([*kept, v])[:size]


@settings(max_examples=examples(30), deadline=None)
@given(
    values=st.lists(st.one_of(VALUES, ODD), min_size=1, max_size=40),
    size=st.integers(1, 5),
    cut=st.integers(0, 40),
)
def test_what_is_no_number_leaves_with_its_event(values: list[float], size: int, cut: int) -> None:
    found = deviations(f"length({size})", values, cuts=[cut])
    for i, one in enumerate(found):
        there = values[max(0, i - size + 1) : i + 1]
        if all(map(math.isfinite, there)):
            assert right(one, there)
        else:
            assert one == ("NaN" if len(there) > 1 else 0)


def test_a_restart_keeps_what_may_leave() -> None:
    app = "define stream S (v double); from S#window.length(3) select stdDev(v) as s insert into O;"
    events = [["S", 1000 + i, [v]] for i, v in enumerate([1e15, 2e15, 0.1, 0.2, 0.3])]
    got = run_case({"app": app, "feed": [*events[:3], {"restart": True}, *events[3:]]})
    assert got["streams"]["O"][-1][1][0] == pytest.approx(pstdev([0.1, 0.2, 0.3]), rel=1e-12)


def test_values_that_leave_in_another_order_are_kept_up_to_a_bound() -> None:
    """From then on the deviation is what is left of the sums, and never NaN."""
    n = FAR_AWAY + 10
    values = np.arange(2.0 * n)
    kind = np.zeros(2 * n, np.int8)
    kind[n:] = 1
    values[n:] = np.arange(n)[::-1]
    aggregate = StdDev((Type.DOUBLE,), True)
    column = aggregate.run((Column(Type.DOUBLE, values, None),), kind, np.zeros(2 * n, np.int32), 1)
    for i in (n - 1, n, n + n // 2):
        there = list(range(min(i + 1, 2 * n - i - 1)))
        assert column.values[i] == pytest.approx(pstdev(there), rel=1e-6)
    assert not np.isnan(column.values[:-1]).any()
