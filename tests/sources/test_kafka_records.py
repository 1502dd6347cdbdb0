"""The messages of a batch as one: the same as kafka-python's own records, one by one."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import TopicPartition
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.util import calc_crc32c

from sparkstream_nb.sources.kafka_records import (
    Messages,
    _Batches,
    _BatchesWithProperties,
    messages_of,
    read_batches,
    records_of,
)

PLACE = TopicPartition("t", 0)
KEYS = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=5)), max_size=2)
RECORDS = st.lists(st.tuples(st.integers(0, 2**40), KEYS, st.none() | st.binary(max_size=300), HEADERS), min_size=1)
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def batch_of(records: list[Any], base: int = 0, codec: int = 0, apart: int = 1, appended: int | None = None) -> bytes:
    """A batch whose first record has offset `base`, and each a further one `apart`; `appended`: the broker's time."""
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 30)
    for i, (at, key, value, headers) in enumerate(records):
        assert builder.append(i * apart, at, key, value, headers) is not None
    out = bytearray(builder.build())
    out[0:8] = base.to_bytes(8, "big")
    if appended is not None:  # as a broker does it: a bit of the attributes, and the last of the batch's times
        out[22] |= 8
        out[35:43] = appended.to_bytes(8, "big")
        out[17:21] = calc_crc32c(memoryview(out)[21:]).to_bytes(4, "big")
    return bytes(out)


def taken(kind: Any, data: bytes, begin: int, most: int | None = None) -> tuple[list[Any], int]:
    """The messages that a fetch from `begin` on gave, and the offset after them."""
    part = kind(begin, PLACE, MemoryRecords(data))
    out: list[Any] = []
    while part:
        found = part.take(most)
        if not found:
            break
        m = messages_of(found)
        own = m.properties if m.properties is not None else [None] * len(m)
        own = [None if p is None else (p[0], list(p[1])) for p in own]
        out += zip(m.offsets.tolist(), m.timestamps.tolist(), m.values, own, strict=True)
    return out, part.next_fetch_offset


@given(
    st.lists(st.tuples(RECORDS, st.none() | st.integers(0, 2**40)), min_size=1, max_size=3),
    st.integers(0, 30),
    st.sampled_from(sorted(CODECS)),
    st.booleans(),
)
def test_as_one_by_one(batches: list[Any], begin: int, codec: str, compacted: bool) -> None:
    data, base = b"", 0
    apart = 3 if compacted else 1
    for records, appended in batches:
        data += batch_of(records, base, CODECS[codec], apart, appended)
        base += len(records) * apart
    theirs = taken(Fetcher.PartitionRecords, data, begin)
    assert taken(_BatchesWithProperties, data, begin) == theirs
    assert taken(_Batches, data, begin) == ([(*m[:3], None) for m in theirs[0]], theirs[1])


def test_no_more_are_taken_than_asked_for_but_of_one_batch() -> None:
    records = [(0, None, b"%d" % i, []) for i in range(10)]
    part = _Batches(0, PLACE, MemoryRecords(b"".join(batch_of(records, 10 * i) for i in range(4))))
    taken = part.take(15)
    assert [len(r.value) for r in taken] == [10, 10]
    assert len(taken) == 20  # the consumer counts messages
    assert part.next_fetch_offset == 20
    assert [r.offset for r in part.take(1000)] == [29, 39]


@pytest.mark.parametrize("cut", [1, 7, 30])
@pytest.mark.parametrize("properties", [False, True])
def test_what_is_no_batch(cut: int, properties: bool) -> None:
    records = [(0, b"key", b"value", [("h", b"1")])] * 3
    whole = batch_of(records)[61:]  # after the head of the batch
    assert records_of(whole, 3, properties=properties).values == [b"value"] * 3
    with pytest.raises(CorruptRecordError):
        records_of(whole[:-cut], 3, properties=properties)
    with pytest.raises(CorruptRecordError):
        records_of(whole, 2, properties=properties)
    for i in range(len(whole)):  # any byte may be wrong: an error or other values, and no other exception
        for wrong in (0xFF, 0x01, 0x80):
            damaged = bytearray(whole)
            damaged[i] ^= wrong
            with contextlib.suppress(CorruptRecordError):
                assert len(records_of(bytes(damaged), 3, properties=properties)) == 3


def test_another_kafka_python_is_left_alone() -> None:
    class Other:
        class _fetcher:
            class PartitionRecords:
                def _unpack_records(self, tp: Any, records: Any) -> None: ...

    assert not read_batches(Other())
    assert not read_batches(object())


def test_records_one_by_one_and_batches_together() -> None:
    """As of a topic whose first messages are of an old format."""
    alone = SimpleNamespace(offset=4, timestamp=7, value=b"1", key=b"k", headers=[("h", b"x")])
    batch = Messages(np.array([5, 6]), np.array([8, 9]), [b"2", None], [(None, ()), (b"l", ())])
    found = messages_of([alone, SimpleNamespace(value=batch)])
    assert (found.offsets.tolist(), found.timestamps.tolist()) == ([4, 5, 6], [7, 8, 9])
    assert found.values == [b"1", b"2", None]
    assert found.properties == [(b"k", [("h", b"x")]), (None, ()), (b"l", ())]
