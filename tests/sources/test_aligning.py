"""Partitions in the order of their event times, whatever order they are read in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkstream_nb.mapping.decoding import Decoded, RejectedMessage
from sparkstream_nb.sources.aligning import NO_TIME, PATIENCE, Aligned, Alignment, PartitionPortion, times_of

Message = tuple[int, list[int]]
"""Its offset, and the times of its events; without one it is rejected."""


def portion(part: str, messages: list[Message]) -> PartitionPortion:
    number = [i for i, (_, times) in enumerate(messages) for _ in times]
    columns: list[Any] = [
        pa.array([t for _, times in messages for t in times], pa.int64()),
        [f"{part}:{offset}" for offset, times in messages for _ in times],
    ]
    rejected = tuple(
        RejectedMessage(i, "no", f"{part}:{offset}") for i, (offset, times) in enumerate(messages) if not times
    )
    decoded = Decoded(columns, np.array(number, np.int64), rejected)
    offsets = np.array([offset for offset, _ in messages], np.int64)
    return PartitionPortion(part, decoded, offsets, times_of(decoded, len(messages), 0))


def names(found: Aligned) -> list[str]:
    """The messages in their order, with those that were rejected."""
    decoded, out = found.events, [""] * found.messages
    for i, name in zip(decoded.message.tolist(), decoded.columns[1], strict=True):
        out[i] = name
    for r in decoded.rejected:
        out[r.message] = r.text
    assert (np.diff(decoded.message) >= 0).all()
    return out


def in_order(parts: dict[str, list[Message]]) -> list[str]:
    """All messages by time, partition and offset; one that is older than one before it counts as that one."""
    keyed = []
    for part, messages in parts.items():
        time = NO_TIME
        for offset, times in messages:
            time = max([time, *times])
            keyed.append((time, part, offset))
    return [f"{part}:{offset}" for _, part, offset in sorted(keyed)]


PARTS = st.dictionaries(
    st.sampled_from("abc"), st.lists(st.lists(st.integers(0, 9), max_size=2), max_size=12), min_size=1
).map(lambda parts: {p: list(enumerate(messages, 5)) for p, messages in parts.items()})


@settings(deadline=None)
@given(PARTS, st.booleans(), st.data())
def test_the_order_does_not_depend_on_the_reading(parts: dict[str, list[Message]], stops: bool, data: Any) -> None:
    if stops:  # a start does not know what was before: partitions are in order
        parts = {p: [(o, [i // 2]) for i, (o, _) in enumerate(messages)] for p, messages in parts.items()}
    alignment = Alignment(parts, lambda: None)
    left = {part: list(messages) for part, messages in parts.items()}
    alignment.set_backlogs({part: len(messages) for part, messages in left.items()})
    seen: list[str] = []
    reached: dict[str, int] = {}
    while any(left.values()):
        part = data.draw(st.sampled_from([p for p, messages in left.items() if messages]))
        count = data.draw(st.integers(1, len(left[part])))
        alignment.put(portion(part, left[part][:count]))
        left[part] = left[part][count:]
        alignment.set_backlogs({part: len(left[part])})
        if (found := alignment.take()) is not None:
            seen += names(found)
            reached |= found.next_offsets
        there = [*alignment.waiting_by_partition().values(), len(seen), *map(len, left.values())]
        assert sum(there) == sum(map(len, parts.values()))
        if stops and data.draw(st.booleans()):  # another goes on where this one was
            alignment = Alignment(parts, lambda: None)
            left = {p: [m for m in messages if m[0] >= reached.get(p, 0)] for p, messages in parts.items()}
            alignment.set_backlogs({p: len(messages) for p, messages in left.items()})
    assert seen == in_order(parts)


@settings(deadline=None)
@given(PARTS)
def test_all_at_once(parts: dict[str, list[Message]]) -> None:
    alignment = Alignment(parts, lambda: None)
    for part, messages in parts.items():
        alignment.put(portion(part, messages))
    alignment.set_backlogs(dict.fromkeys(parts, 0))
    found = alignment.take()
    assert ([] if found is None else names(found)) == in_order(parts)
    assert alignment.take() is None


def test_a_time_that_is_refused_holds_up_nothing() -> None:
    alignment = Alignment("ab", lambda: 100)
    alignment.put(portion("a", [(0, [10]), (1, [2**62]), (2, [11])]))
    alignment.put(portion("b", [(0, [20])]))
    found = alignment.take()
    assert found is not None
    assert names(found) == ["a:0", "a:1", "a:2"]
    assert found.next_offsets == {"a": 3}


def test_a_partition_that_brings_nothing_is_given_up() -> None:
    alignment = Alignment("ab", lambda: None)
    alignment.set_backlogs({"a": 0})
    alignment.put(portion("a", [(0, [10])]))
    alignment.note_wait(10 * PATIENCE)  # what reads it is not there yet
    assert alignment.take() is None
    alignment.set_backlogs({"b": 3})
    alignment.note_wait(PATIENCE / 2)
    assert alignment.take() is None
    alignment.note_wait(PATIENCE / 2)
    found = alignment.take()
    assert found is not None
    assert names(found) == ["a:0"]
    alignment.put(portion("b", [(0, [5])]))  # it comes after all, and counts again
    alignment.set_backlogs({"a": 1, "b": 2})
    alignment.put(portion("a", [(1, [11])]))
    found = alignment.take()
    assert found is not None
    assert names(found) == ["b:0"]


def test_a_partition_that_is_far_ahead_is_held() -> None:
    alignment = Alignment([f"p{i:03}" for i in range(100)], lambda: None)
    assert alignment.paused_partitions() == frozenset()
    alignment.put(portion("p001", [(i, [i]) for i in range(20_000)]))
    assert alignment.paused_partitions() == {"p001"}
    alignment.set_backlogs({f"p{i:03}": 0 for i in range(100) if i != 50} | {"p050": 1})
    alignment.put(portion("p050", [(0, [9_999])]))
    found = alignment.take()
    assert found is not None
    assert found.messages == 10_001
    assert alignment.paused_partitions() == frozenset()
    assert alignment.waiting_by_partition()["p001"] == 10_000


def test_times_of_messages() -> None:
    columns: list[Any] = [pa.array(["2026-01-01T00:00:00Z", None, "x", "1970-01-01T00:00:01Z", "1970-01-01T00:00:03Z"])]
    decoded = Decoded(columns, np.array([0, 1, 2, 4, 4], np.int64), ())
    assert times_of(decoded, 5, 0).tolist() == [1767225600000, NO_TIME, NO_TIME, NO_TIME, 3000]
