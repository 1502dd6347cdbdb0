"""Aggregates that go through the ops together come to what each comes to by itself, one op after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import a_third, examples
from sparkstream_nb.engine.aggregators import over_all, settle, share
from sparkstream_nb.engine.aggregators.aggregator_base import EVERY, AggregateInput
from sparkstream_nb.engine.aggregators.extremes import make_max, make_min
from sparkstream_nb.engine.aggregators.running_totals import RunningAggregate
from sparkstream_nb.engine.aggregators.sums import Avg, CountAggregate, Sum
from sparkstream_nb.engine.columnar.column_data import DTYPES, Column
from sparkstream_nb.engine.columnar.rows import CURRENT, EXPIRED, RESET, FixedLagOps
from sparkstream_nb.types import Type

GROUPS = 3
# Small ones, and such as are no doubles any more when they are added up.
LONGS = st.integers(-5, 5) | st.sampled_from([2**51, 2**52, 2**53 + 1, -(2**62) - 1, 2**63 - 1, -(2**63)])
KINDS: tuple[tuple[Any, Type], ...] = (
    (Sum, Type.INT), (Sum, Type.LONG), (Sum, Type.DOUBLE), (Avg, Type.DOUBLE), (Avg, Type.LONG),
    (CountAggregate, Type.LONG),
)  # fmt: skip
# Of these, as each makes loops of its own that take a second to compile.
SELECTS = ([0], [3], [5], [1, 3], [3, 5, 1], [4, 2], [1, 3, 4, 0, 5])
# One op: (kind, group, value as a long).
OP = st.tuples(st.sampled_from([CURRENT, CURRENT, EXPIRED]), st.integers(0, GROUPS - 1), LONGS)
BATCH = st.tuples(st.lists(OP, max_size=8), st.sampled_from(["plain"] * 4 + ["nulls", "reset", "load", "slots"]))


def column(type: Type, values: list[int], nulls: int | None) -> Column:
    """Every other one from place `nulls` on is null."""
    numbers = np.array(values, np.int64)
    if type is Type.INT:
        numbers = numbers % 1000
    null = None if nulls is None else (np.arange(len(values)) + nulls) % 2 == 0
    return Column(type, numbers.astype(DTYPES[type]), null)


def feed(kind: Any, group: Any, shown: int, slot: Any = None) -> AggregateInput:
    pos = np.arange(len(kind))[::-1].copy()  # events lie in another order than the ops about them
    kinds = np.array(kind, np.int8)
    size = int(((shown >> kinds.astype(np.int64)) & 1).sum()) if slot is None else slot[1]
    return AggregateInput(len(kind), kinds, np.array(group, np.int32)[::-1].copy(), GROUPS, None, 1, pos, shown,
                None if slot is None else slot[0], size)  # fmt: skip


def made(which: list[int]) -> list[RunningAggregate]:
    return [KINDS[k][0]((KINDS[k][1],), True) for k in which]


def same(a: Column, b: Column) -> bool:
    """What lies under a null is nothing."""
    null = np.array_equal(a.nulls(), b.nulls())
    live = ~a.nulls()
    return null and a.type is b.type and np.array_equal(a.values[live], b.values[live], equal_nan=a.type is Type.DOUBLE)


@pytest.mark.thorough
@pytest.mark.timeout(400)  # it compiles a loop for each combination of aggregates
@settings(deadline=None, max_examples=examples(300))
@given(st.lists(st.integers(0, len(KINDS) - 1), min_size=1, max_size=6), st.lists(BATCH, max_size=6), st.booleans())
def test_together_as_alone(which: list[int], batches: list[Any], expired: bool) -> None:
    together, apart = made(which), made(which)
    share(together)
    shown = 1 << CURRENT | 1 << EXPIRED if expired else 1 << CURRENT
    for ops, way in batches:
        if way == "load":
            states = [{k: np.array(v) for k, v in a.state().items()} for a in together]
            together = made(which)
            share(together)
            for a, state in zip(together, states, strict=True):
                a.load(state)
            settle(together)
        kind, group, values = ([o[i] for o in ops] for i in range(3))
        if way == "reset" and ops:
            kind[-1] = RESET
        columns = [column(KINDS[k][1], values[::-1], i % 2 if way == "nulls" else None) for i, k in enumerate(which)]
        args = [() if KINDS[k][0] is CountAggregate else (c,) for k, c in zip(which, columns, strict=True)]
        slot, places = None, list(dict.fromkeys(g for k, g in zip(kind, group, strict=True) if (shown >> k) & 1))
        if way == "slots":  # what the last op of each group comes to
            which_place = [places.index(g) for k, g in zip(kind, group, strict=True) if (shown >> k) & 1]
            slot = (np.array(which_place, np.int64), len(places))
        found = over_all(together, args, feed(kind, group, shown, slot))
        for a, arg, out in zip(apart, args, found, strict=True):
            a.cells.grow(GROUPS)
            one_by_one = [
                a.alone(tuple(c.slice(i, i + 1) for c in arg), feed([k], [g], shown))
                for k, g, i in zip(kind, group, range(len(ops) - 1, -1, -1), strict=True)
            ]
            expected = [c for c in one_by_one if len(c)]
            if slot is not None:
                last = dict(zip(slot[0].tolist(), expected, strict=True))
                expected = [last[place] for place in range(len(places))]
            assert len(out) == len(expected)
            assert all(same(out.slice(i, i + 1), c) for i, c in enumerate(expected)), (a, out.values, expected)


@pytest.mark.thorough
@pytest.mark.parametrize("which", a_third(SELECTS), ids=str)
@settings(deadline=None, max_examples=examples(40))
@given(
    lag=st.integers(1, 4), grouped=st.booleans(),
    batches=st.lists(st.lists(st.tuples(st.integers(0, GROUPS - 1), LONGS), max_size=6), max_size=5),
)  # fmt: skip
def test_pushed_as_laid_out(which: list[int], lag: int, grouped: bool, batches: list[list[tuple[int, int]]]) -> None:
    pushed, laid_out = made(which), made(which)
    share(pushed)
    share(laid_out)
    groups, values = list[int](), list[int]()
    for batch in batches:
        first, n = len(values), len(batch)
        groups += [g for g, _ in batch]
        values += [v for _, v in batch]
        ops = FixedLagOps(first, n, min(n, max(lag - first, 0)), lag)
        args = [() if KINDS[k][0] is CountAggregate else (column(KINDS[k][1], values, None),) for k in which]
        feeds = []
        for _ in range(2):
            group, many = (np.array(groups, np.int32), GROUPS) if grouped else (np.zeros(0, np.int32), 1)
            feeds.append(AggregateInput(ops.ops, None, group, many, None, 1, None, 1 << CURRENT, None, n, ops))
        feeds[1].lay_out()
        assert feeds[1].pos is not None
        assert len(feeds[1].pos) == feeds[1].n
        for a, b in zip(over_all(pushed, args, feeds[0]), over_all(laid_out, args, feeds[1]), strict=True):
            assert len(a) == n
            assert same(a, b), (a.values, b.values)
        for x, y in zip(pushed, laid_out, strict=True):
            assert all(np.array_equal(x.state()[k], y.state()[k], equal_nan=True) for k in x.state())


@pytest.mark.thorough
@settings(deadline=None, max_examples=examples(200))
@given(
    st.sampled_from([make_min, make_max]), st.sampled_from([Type.LONG, Type.DOUBLE]), st.integers(1, 40),
    st.sampled_from([0, 3, 1000]), st.integers(0, 9),
    st.lists(st.lists(st.tuples(st.integers(0, GROUPS - 1), st.integers(0, 9)), max_size=60), max_size=5),
)  # fmt: skip
def test_pushed_extremes_as_laid_out(
    kind: Any, type: Type, lag: int, groups: int, rise: int, batches: list[list[tuple[int, int]]]
) -> None:
    """`rise`: how much later values are above earlier ones, which makes queues of a minimum long. From 1,000 groups on
    what is ahead is asked for."""
    pushed, laid_out = kind((type,), True), kind((type,), True)
    group, values = list[int](), list[int]()
    for batch in batches:
        first, n = len(values), len(batch)
        group += [g for g, _ in batch]
        values += [v + rise * (first + i) // 4 for i, (_, v) in enumerate(batch)]
        ops = FixedLagOps(first, n, min(n, max(lag - first, 0)), lag)
        ids = np.array(group if groups else [], np.int32)
        results = []
        for a, told in ((pushed, True), (laid_out, False)):
            feed = AggregateInput(ops.ops, None, ids, max(groups, 1), None, 1, None, 1 << CURRENT, None, n, ops)
            if not told:
                feed.lay_out()
            results.append(over_all([a], [(column(type, values, None),)], feed)[0])
        assert same(*results), results
        for k, v in pushed.state().items():
            assert np.array_equal(v, laid_out.state()[k])


def test_what_a_full_window_does() -> None:
    kind, pos = FixedLagOps(5, 3, 1, 4).laid_out()
    assert list(zip(kind.tolist(), pos.tolist(), strict=True)) == [
        (CURRENT, 5), (EXPIRED, 2), (CURRENT, 6), (EXPIRED, 3), (CURRENT, 7),
    ]  # fmt: skip


def test_longs_that_are_no_doubles_are_taken_away_as_doubles() -> None:
    """`AggregatorStateLong`: 2^53 + 1 comes, 2^53 + 1 goes, and what is left went through a double."""
    sums = made([1, 3])
    share(sums)
    big = 2**53 + 1
    values = np.array([big, 3, big], np.int64)
    ops = AggregateInput(3, np.array([0, 0, 1], np.int8), np.zeros(3, np.int32), 1, None, 1, None, EVERY, None, 3)
    total, mean = over_all(sums, [(Column(Type.LONG, values),), (Column(Type.DOUBLE, values.astype(float)),)], ops)
    assert total.values.tolist() == [big, big + 3, int(float(big + 3) - float(big))]
    assert mean.values[1] == (float(big) + 3.0) / 2
    assert not sums[0].exact
