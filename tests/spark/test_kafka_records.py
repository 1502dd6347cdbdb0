"""The values of a batch as one: the same as kafka-python's own records, one by one."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import TopicPartition
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder

from sparkstream_nb.spark.sources.kafka_records import Values, _Batches, messages_of, read_batches, values_of

PLACE = TopicPartition("t", 0)
KEYS = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=5)), max_size=2)
RECORDS = st.lists(st.tuples(st.integers(0, 2**40), KEYS, st.none() | st.binary(max_size=300), HEADERS), min_size=1)
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def batch_of(records: list[Any], base: int = 0, codec: int = 0, apart: int = 1) -> bytes:
    """A batch whose first record has offset `base`, and each a further one `apart`."""
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 30)
    for i, (at, key, value, headers) in enumerate(records):
        assert builder.append(i * apart, at, key, value, headers) is not None
    out = bytearray(builder.build())
    out[0:8] = base.to_bytes(8, "big")
    return bytes(out)


def taken(kind: Any, data: bytes, begin: int, most: int | None = None) -> list[tuple[int, bytes | None]]:
    """(offset after it, messages) of what a fetch from `begin` on gave."""
    part = kind(begin, PLACE, MemoryRecords(data))
    out: list[Any] = []
    while part:
        found = part.take(most)
        out += [(part.next_fetch_offset, m) for m in messages_of(found)]
        if not found:
            break
    return out


@given(st.lists(RECORDS, min_size=1, max_size=3), st.integers(0, 30), st.sampled_from(sorted(CODECS)), st.booleans())
def test_as_one_by_one(batches: list[list[Any]], begin: int, codec: str, compacted: bool) -> None:
    data, base = b"", 0
    apart = 3 if compacted else 1
    for records in batches:
        data += batch_of(records, base, CODECS[codec], apart)
        base += len(records) * apart
    ours, theirs = taken(_Batches, data, begin), taken(Fetcher.PartitionRecords, data, begin)
    assert [m for _, m in ours] == [m for _, m in theirs]
    assert [at for at, _ in ours[-1:]] == [at for at, _ in theirs[-1:]]


def test_no_more_are_taken_than_asked_for_but_of_one_batch() -> None:
    records = [(0, None, b"%d" % i, []) for i in range(10)]
    part = _Batches(0, PLACE, MemoryRecords(b"".join(batch_of(records, 10 * i) for i in range(4))))
    taken = part.take(15)
    assert [len(r.value) for r in taken] == [10, 10]
    assert len(taken) == 20  # the consumer counts messages
    assert part.next_fetch_offset == 20
    assert [r.offset for r in part.take(1000)] == [29, 39]


@pytest.mark.parametrize("cut", [1, 7, 30])
def test_what_is_no_batch(cut: int) -> None:
    records = [(0, b"key", b"value", [("h", b"1")])] * 3
    whole = batch_of(records)[61:]  # after the head of the batch
    assert values_of(whole, 3)[1] == [b"value"] * 3
    with pytest.raises(CorruptRecordError):
        values_of(whole[:-cut], 3)
    with pytest.raises(CorruptRecordError):
        values_of(whole, 2)
    for i in range(len(whole)):  # any byte may be wrong: an error or other values, and no other exception
        wrong = bytearray(whole)
        wrong[i] ^= 0xFF
        with contextlib.suppress(CorruptRecordError):
            assert len(values_of(bytes(wrong), 3)[1]) == 3


def test_another_kafka_python_is_left_alone() -> None:
    class Other:
        class _fetcher:
            class PartitionRecords:
                def _unpack_records(self, tp: Any, records: Any) -> None: ...

    assert not read_batches(Other())
    assert not read_batches(object())
    assert messages_of([type("R", (), {"value": b"1"}), type("R", (), {"value": Values([b"2", None])})]) == [
        b"1", b"2", None
    ]  # fmt: skip
