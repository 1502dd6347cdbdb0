"""`min` and `max` of events that come and go, against a plain list of candidates."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkstream_nb.engine.aggregators import aggregator_base
from sparkstream_nb.engine.aggregators.aggregator_base import AggregateInput
from sparkstream_nb.engine.aggregators.deviations import StdDev
from sparkstream_nb.engine.aggregators.distinct import DistinctCount
from sparkstream_nb.engine.aggregators.extremes import make_max, make_min
from sparkstream_nb.engine.columnar.column_data import Column, StringPool
from sparkstream_nb.engine.columnar.rows import CURRENT, EXPIRED, RESET
from sparkstream_nb.types import Type

GROUPS = 3
VALUES = st.integers(0, 6) | st.integers(-1000, 1000)
OP = st.tuples(st.sampled_from([CURRENT] * 4 + [EXPIRED] * 3), st.integers(0, GROUPS - 1), VALUES)
# Falling and rising runs make short and long queues.
RUN = st.tuples(st.integers(0, GROUPS - 1), st.integers(-50, 50), st.integers(1, 40), st.sampled_from([1, -1])).map(
    lambda r: [(k, r[0], r[1] + r[3] * i) for k, n in ((CURRENT, r[2]), (EXPIRED, r[2] // 2)) for i in range(n)]
)
OPS = st.lists(st.lists(OP, max_size=6) | RUN, max_size=8).map(lambda parts: [op for part in parts for op in part])
WAYS = ["plain"] * 3 + ["nulls", "reset", "load"]


class Candidates:
    """`MinAttributeAggregatorExecutor`: what is larger leaves when a value comes; an expired one leaves where it is."""

    def __init__(self, sign: int) -> None:
        self.sign = sign
        self.queues: dict[int, list[float]] = {}

    def after(self, kind: int, group: int, value: float | None) -> float | None:
        if kind == RESET:
            self.queues.clear()
            return None
        queue = self.queues.setdefault(group, [])
        if value is not None and kind == CURRENT:
            while queue and self.sign * queue[-1] > self.sign * value:
                queue.pop()
            queue.append(value)
        elif value in queue:
            queue.remove(value)
        return queue[0] if queue else None


@pytest.mark.thorough
@pytest.mark.parametrize("type", [Type.DOUBLE, Type.LONG, Type.INT])
@settings(deadline=None)
@given(st.lists(st.tuples(OPS, st.sampled_from(WAYS)), max_size=4), st.booleans(), st.booleans(), st.booleans())
def test_as_a_list_of_candidates(type: Type, batches: list[Any], most: bool, expired: bool, far: bool) -> None:
    with patch.object(aggregator_base, "FAR", 0 if far else aggregator_base.FAR):
        _compare(type, batches, most, expired)


def _compare(type: Type, batches: list[Any], most: bool, expired: bool) -> None:
    kind_of = make_max if most else make_min
    aggregator, plain = kind_of((type,), True), Candidates(-1 if most else 1)
    shown = 1 << CURRENT | expired << EXPIRED
    for ops, way in batches:
        if way == "load":
            state = aggregator.state()
            aggregator = kind_of((type,), True)
            aggregator.load(state)
        if way == "reset":
            ops = [*ops, (RESET, 0, 0)]
        kind, group, values = (np.array([o[i] for o in ops], np.int64) for i in range(3))
        null = np.arange(len(ops)) % 3 == 0 if way == "nulls" and ops else None
        feed = AggregateInput(
            len(ops), kind.astype(np.int8), group.astype(np.int32), GROUPS, np.zeros(len(ops), np.int32), 1, None,
            shown, None, int(((shown >> kind) & 1).sum()),
        )  # fmt: skip
        given = [None if null is not None and null[i] else v for i, v in enumerate(values.tolist())]
        out = aggregator.over((Column.of(type, given, StringPool()),), feed).to_list(StringPool())
        expected = [plain.after(*op) for op in zip(kind.tolist(), group.tolist(), given, strict=True)]
        assert out == [e for e, k in zip(expected, kind.tolist(), strict=True) if shown >> k & 1]


def test_what_is_no_number_stays_until_it_is_passed() -> None:
    """A NaN is neither more nor less than another value: nothing that came before it leaves for what comes after."""
    values = np.array([3.0, np.nan, 1.0, 2.0, 3.0, 1.0])
    kind = np.array([0, 0, 0, 0, 1, 1], np.int8)
    feed = AggregateInput(6, kind, np.zeros(6, np.int32), 1, None, 1, None, 3, None, 6)
    out = make_min((Type.DOUBLE,), True).over((Column(Type.DOUBLE, values),), feed).values
    assert out[:4].tolist() == [3.0, 3.0, 3.0, 3.0]
    assert np.isnan(out[4])
    assert np.isnan(out[5])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("aggregator", [make_min, make_max, StdDev, DistinctCount])
def test_what_lies_in_the_room_of_a_log_is_nobodys_business(aggregator: Any) -> None:
    """The bits of a signalling NaN, of which numpy warns when it makes another type of them."""
    values = np.array([0x7F800001, 0, 0x40000000], np.uint32).view(np.float32)
    ops = AggregateInput(2, None, np.zeros(3, np.int32), 1, None, 1, np.array([2, 1]), size=2)
    out = aggregator((Type.FLOAT,), True).over((Column(Type.FLOAT, values),), ops)
    expected = {make_min: [2.0, 0.0], make_max: [2.0, 2.0], StdDev: [0.0, 1.0], DistinctCount: [1, 2]}
    assert out.values.tolist() == expected[aggregator]


@pytest.mark.parametrize("aggregator", [make_min, make_max, StdDev, DistinctCount])
def test_as_many_groups_as_come(aggregator: Any) -> None:
    """What is held for a group lies in several words, however much room there is for all of them."""
    held = aggregator((Type.LONG,), True)
    for groups in (3, 16_385, 24_579, 24_580, 50_000, 120_000):
        events = np.arange(groups, dtype=np.int32)
        out = held.over((Column(Type.LONG, events.astype(np.int64)),), AggregateInput.of(None, events, groups))
        again = aggregator((Type.LONG,), True)
        again.load(held.state())
        held = again if groups == 24_580 else held
    expected = {make_min: events, make_max: events, StdDev: 0 * events, DistinctCount: 0 * events + 1}
    assert np.array_equal(out.values, expected[aggregator])
