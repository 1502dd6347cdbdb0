"""Pauses between tries: how they grow, and in which bounds they are drawn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb.pauses import Pauses


@given(
    first=st.floats(min_value=0.001, max_value=10.0),
    factor=st.floats(min_value=1.0, max_value=1000.0),
    draws=st.lists(st.floats(min_value=0.0, max_value=1.0, exclude_max=True), min_size=1, max_size=20),
)
def test_pauses_double_from_the_first_to_the_longest_and_begin_again(
    first: float, factor: float, draws: list[float]
) -> None:
    longest = first * factor
    left = iter(draws + draws)
    pauses = Pauses(first, longest, lambda: next(left))
    lengths = [min(first * 2**i, longest) for i in range(len(draws))]
    for _ in range(2):
        drawn = [pauses.next() for _ in draws]
        assert all(length / 2 <= pause <= length for pause, length in zip(drawn, lengths, strict=True))
        pauses.reset()


def test_those_who_wait_for_the_same_do_not_try_at_once() -> None:
    assert len({Pauses(1.0, 8.0).next() for _ in range(20)}) > 1
    assert [Pauses(1.0, 8.0, lambda: 0.0).next(), Pauses(1.0, 8.0, lambda: 0.5).next()] == [0.5, 0.75]
