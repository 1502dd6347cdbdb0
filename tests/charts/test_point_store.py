"""The store of a chart's points: thinning keeps what can be seen, and the store stays bounded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb.charts.point_store import Points, PointStore, SeriesName, looks_like_time, thin_points, thin_scatter

A, B = SeriesName("v", "a"), SeriesName("v", "b")


def points(*y: float) -> Points:
    return Points(np.arange(len(y), dtype=np.float64), np.array(y, np.float64))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300), st.integers(1, 40))
def test_thinning_keeps_the_extremes_of_each_cell(values: list[float], cells: int) -> None:
    whole = points(*values)
    end = len(values) - 1.0
    thin = thin_points(whole, cells, 0.0, end)
    assert len(thin) <= 2 * cells + 2
    if len(values) <= 2 * cells or not end:
        assert thin is whole
        return
    places = np.minimum((whole.x / end * cells).astype(int), cells - 1)
    kept = np.minimum((thin.x / end * cells).astype(int), cells - 1)
    assert (np.diff(thin.x) > 0).all()
    for cell in np.unique(places):
        own, left = whole.y[places == cell], thin.y[kept == cell]
        assert (left.min(), left.max()) == (own.min(), own.max())


def test_scattered_points_keep_the_inner_ones() -> None:
    random = np.random.default_rng(7)
    whole = Points(np.sort(random.uniform(0, 1, 50_000)), random.normal(size=50_000))
    thin = thin_scatter(whole, 100, 50, 2_000)
    assert 500 < len(thin) <= 2_000
    assert (np.diff(thin.x) >= 0).all()
    inner = np.abs(thin.y) < 1
    assert 0.2 < inner.mean() < 0.9, "not the extremes alone"
    assert thin_scatter(whole, 100, 50, 50_000) is not None
    assert len(thin_scatter(Points(np.zeros(50), np.zeros(50)), 10, 10, 5)) == 1
    same = Points(np.array([1.0]), np.array([2.0]))
    assert (len(thin_scatter(same, 10, 10, 5)), len(thin_scatter(points(), 10, 10, 5))) == (1, 0)


def test_points_between_have_a_neighbour_at_each_side() -> None:
    assert points(*range(10)).between(3.5, 6.0).x.tolist() == [3, 4, 5, 6, 7]
    assert points(*range(10)).between(20, 30).x.tolist() == [9]


def test_points_are_put_in_order_and_those_without_a_value_left_out() -> None:
    store = PointStore()
    store.add(A, np.array([3.0, 1.0]), np.array([30.0, 10.0]))
    store.add(A, np.array([2.0, 4.0, np.nan]), np.array([20.0, np.nan, 1.0]))
    assert store.series(A).x.tolist() == [1, 2, 3]
    assert store.series(A).y.tolist() == [10, 20, 30]
    assert (store.range, store.thinned) == ((1.0, 3.0), False)


def test_a_long_series_keeps_its_beginning_and_its_peak() -> None:
    store = PointStore(capacity=400)
    for start in range(0, 100_000, 1_000):
        x = np.arange(start, start + 1_000, dtype=np.float64)
        store.add(A, x, np.where(x == 41_234, 9.0, np.sin(x)))
    held = store.series(A)
    assert len(held) <= 400
    assert store.thinned
    assert store.range is not None
    assert store.range[0] < 1_000
    assert store.range[1] > 99_000
    assert held.x[held.y == 9.0].tolist() == [41_234], "the peak is there, at its place"


def test_a_store_of_scattered_points_is_bounded() -> None:
    store = PointStore(capacity=400, scatter=True)
    random = np.random.default_rng(7)
    for _ in range(50):
        store.add(A, random.uniform(size=300), random.normal(size=300))
    held = store.series(A)
    assert (len(held) <= 400, store.thinned) == (True, True)
    assert (np.abs(held.y) < 1).any()


def test_only_the_end_is_kept_where_a_span_is_given() -> None:
    store = PointStore(span=10)
    store.add(A, np.arange(100.0), np.zeros(100))
    store.add(B, np.array([50.0]), np.array([1.0]))
    store.forget_before()
    assert store.series(A).x.tolist() == list(range(89, 100))
    assert len(store.series(B)) == 0
    assert store.range == (89.0, 99.0)


def test_series_that_cannot_be_told_apart_are_counted() -> None:
    store = PointStore(most=3)
    for i in range(20):
        store.add(SeriesName("v", str(i)), np.zeros(1), np.zeros(1))
        store.add(SeriesName("v", str(i)), np.ones(1), np.zeros(1))
    assert (len(store.names), store.refused_count, store.points) == (3, 17, 6)


def test_many_points_of_one_x_are_bounded_too() -> None:
    store = PointStore(capacity=100)
    store.add(A, np.zeros(1_000), np.arange(1_000.0))
    assert (len(store.series(A)), store.thinned) == (100, True)


@pytest.mark.parametrize(("value", "time"), [(1_717_236_000_000, True), (12_345, False), (5e15, False)])
def test_times_are_told_from_other_numbers(value: float, time: bool) -> None:
    assert looks_like_time(np.array([value, value + 5])) is time
    assert not looks_like_time(np.zeros(0))
