"""The values of a Kafka batch at once, where kafka-python makes an object of each record: most of a consumer's time.

kafka-python does everything else: it fetches, checks checksums, leaves out aborted transactions and control batches,
uncompresses. Only the records of a batch of format 2 (`DefaultRecordBatch`; KIP-98) are read here: their lengths one
after the other, and then the fields of all of them as arrays. What reaches the consumer for a batch is one record,
whose value is the `Values`, and whose offset is that of the last.

This hooks into a class of kafka-python's that is not part of its API. Where that is not as expected, nothing is hooked
in, and records come one by one.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from kafka.consumer import fetcher
from kafka.errors import CorruptRecordError

from ...engine.columns import Array

_MOST_BYTES = 10
"""Of a number in Kafka's encoding: seven bits in each byte, and a bit that says that there are more."""
_UNPACKED = ["self", "tp", "records", "key_deserializer", "value_deserializer"]


class Values(list[Any]):
    """The values of a batch's records, bytes or None."""


def read_batches(consumer: Any) -> bool:
    """Makes a consumer return a record for each batch, if its kafka-python is as it should be; whether it does."""
    try:
        found = consumer._fetcher.PartitionRecords
        known = list(inspect.signature(found._unpack_records).parameters)
    except (AttributeError, TypeError, ValueError):
        return False
    if found is not fetcher.Fetcher.PartitionRecords or known != _UNPACKED:
        return False
    consumer._fetcher.PartitionRecords = _Batches
    return True


def messages_of(records: list[Any]) -> list[bytes | None]:
    """The values of what a consumer returned, in order."""
    out: list[bytes | None] = []
    for record in records:
        if isinstance(record.value, Values):
            out += record.value
        else:
            out.append(record.value)
    return out


def count_of(records: Iterable[Any]) -> int:
    """How many messages a consumer returned."""
    return sum(len(r.value) if isinstance(r.value, Values) else 1 for r in records)


class _Taken(list[Any]):
    """Records of batches. Its length is how many messages they have: by that the consumer knows when it has enough."""

    def __len__(self) -> int:
        return count_of(self)


class _Batches(fetcher.Fetcher.PartitionRecords):
    """What a fetch brought of a partition, batch by batch."""

    def _unpack_records(self, tp: Any, records: Any, key_deserializer: Any, value_deserializer: Any) -> Iterator[Any]:
        whole = _Whole(records, self.fetch_offset)
        return super()._unpack_records(tp, whole, key_deserializer, value_deserializer)

    def take(self, n: int | None = None) -> list[Any]:
        """Batches with `n` messages, or as many more as are in the last of them."""
        out = _Taken()
        while (n is None or len(out) < n) and self.record_iterator is not None:
            try:
                found = super().take(1)
            except Exception as error:  # told with the next call, as kafka-python does
                if not out:
                    raise
                self._next_inline_exception = error
                break
            if not found:
                break
            out.extend(found)
        return out


@dataclass
class _Whole:
    """The batches of a fetch; those of format 2 as `_Batch`."""

    records: Any
    begin: int

    def next_batch(self) -> Any:
        batch = self.records.next_batch()
        return batch if batch is None or batch.magic != 2 or batch.is_control_batch else _Batch(batch, self.begin)


class _Batch:
    """A batch that has one record, of the values from offset `begin` on."""

    def __init__(self, batch: Any, begin: int) -> None:
        self._batch, self._begin = batch, begin

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __iter__(self) -> Iterator[_Record]:
        batch = self._batch
        batch._maybe_uncompress()
        count = batch._num_records
        if not count:
            return
        data = bytes(memoryview(batch._buffer)[batch._pos :])
        offsets, values = values_of(data, count)
        offsets += batch.base_offset
        last = int(offsets[-1])
        if offsets[0] < self._begin:
            values = Values(v for v, late in zip(values, (offsets >= self._begin).tolist(), strict=True) if late)
        yield _Record(values, last, batch.max_timestamp, batch.timestamp_type, len(data))


@dataclass
class _Record:
    """A record as kafka-python's consumer takes it."""

    value: Values
    offset: int
    timestamp: int
    timestamp_type: int
    size_in_bytes: int
    key: None = None
    headers: tuple[()] = ()
    checksum: None = None

    def validate_crc(self) -> bool:
        return True


def values_of(data: bytes, count: int) -> tuple[Array, Values]:
    """The offsets (int64, from the batch's first), and the values, of the `count` records in an uncompressed batch.

    A record is its length, attributes (a byte), the deltas of time and offset, key, value and headers. Raises
    CorruptRecordError where the bytes are not that.
    """
    starts, ends, at = [], [], 0
    try:
        for _ in range(count):
            byte = data[at]
            at += 1
            length = byte & 0x7F
            shift = 7
            while byte & 0x80:
                byte = data[at]
                at += 1
                length |= (byte & 0x7F) << shift
                shift += 7
            starts.append(at)
            at += length >> 1
            ends.append(at)
    except IndexError:
        raise CorruptRecordError("Found invalid record structure") from None
    if at != len(data):
        raise CorruptRecordError(f"{len(data) - at} unconsumed bytes after all records consumed")
    padded = np.frombuffer(data + bytes(_MOST_BYTES * 8), np.uint8)
    place = np.array(starts, np.int64) + 1
    _, place = _numbers(padded, place)
    offsets, place = _numbers(padded, place)
    keys, place = _numbers(padded, place)
    sizes, place = _numbers(padded, _within(place + np.maximum(keys, 0), data))
    end = np.array(ends, np.int64)
    if (place + np.maximum(sizes, 0) >= end + 1).any():
        raise CorruptRecordError("Found invalid record structure")
    last = (place + sizes).tolist()
    values = Values(data[a:b] for a, b in zip(place.tolist(), last, strict=True))
    for i in np.flatnonzero(sizes < 0).tolist():
        values[i] = None
    return offsets, values


def _within(place: Array, data: bytes) -> Array:
    if (place > len(data)).any():
        raise CorruptRecordError("Found invalid record structure")
    return place


def _numbers(data: Array, place: Array) -> tuple[Array, Array]:
    """The numbers (int64) that begin at places, and the places after them: zigzag and base 128."""
    found = np.zeros(len(place), np.uint64)
    going = np.ones(len(place), np.bool_)
    for i in range(_MOST_BYTES):
        byte = data[place]
        found |= np.where(going, byte & np.uint8(0x7F), np.uint8(0)).astype(np.uint64) << np.uint64(7 * i)
        place = place + going
        going = going & (byte >= 0x80)
        if not going.any():
            break
    signed = (found >> np.uint64(1)).astype(np.int64) ^ -(found & np.uint64(1)).astype(np.int64)
    return signed, place
