"""Decodes the messages of a Kafka batch at once; kafka-python makes an object of each record, which is most of a
consumer's time.

kafka-python does everything else: it fetches, checks checksums, leaves out aborted transactions and control batches,
uncompresses. Only the records of a batch of format 2 (`DefaultRecordBatch`; KIP-98) are read here: their lengths one
after the other, and then the fields of all of them as arrays. The consumer gets one record for a batch, whose value is
the `Messages`, and whose offset is the last one's.

This hooks into a class of kafka-python's that is not part of its API. If that differs from the expected form, nothing
is hooked in, and records come one by one.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from kafka.consumer import fetcher
from kafka.errors import CorruptRecordError
from kafka.record.util import decode_varint

from ..engine.columnar.column_data import Array

_NONE = np.zeros(0, np.int64)
_MOST_BYTES = 10
"""Maximum bytes of a number in Kafka's encoding: seven bits in each byte, and a bit that says that there are more."""
_UNPACKED = ["self", "tp", "records", "key_deserializer", "value_deserializer"]


Properties = tuple[bytes | None, Sequence[tuple[str, bytes | None]]]
"""A message's key, and its headers."""


@dataclass(frozen=True, eq=False)
class Messages:
    """Messages of a partition, in order: their offsets and timestamps (int64 ms; -1: none), and values, bytes or None.
    `properties`: their keys and headers; None if they were not asked for."""

    offsets: Array
    timestamps: Array
    values: list[bytes | None]
    properties: list[Properties] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def since(self, offset: int) -> Messages:
        """The messages from an offset on."""
        skip = int(np.searchsorted(self.offsets, offset))
        properties = None if self.properties is None else self.properties[skip:]
        return Messages(self.offsets[skip:], self.timestamps[skip:], self.values[skip:], properties)


def read_batches(consumer: Any, *, properties: bool = False) -> bool:
    """Makes a consumer return a record for each batch, if its kafka-python is as it should be; whether it does.
    `properties`: with keys and headers."""
    try:
        records_class = consumer._fetcher.PartitionRecords
        parameters = list(inspect.signature(records_class._unpack_records).parameters)
    except (AttributeError, TypeError, ValueError):
        return False
    if records_class is not fetcher.Fetcher.PartitionRecords or parameters != _UNPACKED:
        return False
    consumer._fetcher.PartitionRecords = _BatchesWithProperties if properties else _Batches
    return True


def unpark(consumer: Any) -> None:
    """Let a consumer continue with partitions that were paused, before it is polled.

    A consumer puts its fetched records of a paused partition aside, and takes them back if no other partition is in
    their place (kafka-python 3.0, `Fetcher.fetched_records`). One that was read to its end stays there, so that nothing
    more came of partitions that were resumed after the others had ended.
    """
    fetching = consumer._fetcher
    if not getattr(fetching, "_next_partition_records", True):
        fetching._next_partition_records = None


def messages_of(records: Sequence[Any]) -> Messages:
    """Records that a consumer returned for a partition, with properties if it was asked for them."""
    parts = [r.value if isinstance(r.value, Messages) else _alone(r) for r in records]
    if len(parts) == 1:
        return parts[0]
    properties = [p for part in parts for p in part.properties or ()]
    return Messages(
        np.concatenate([_NONE, *(p.offsets for p in parts)]),
        np.concatenate([_NONE, *(p.timestamps for p in parts)]),
        [v for part in parts for v in part.values],
        properties if parts and all(p.properties is not None for p in parts) else None,
    )


def count_of(records: Iterable[Any]) -> int:
    """Number of messages that a consumer returned."""
    return sum(len(r.value) if isinstance(r.value, Messages) else 1 for r in records)


def _alone(record: Any) -> Messages:
    """A record of kafka-python's own."""
    offset, at = np.array([record.offset], np.int64), np.array([record.timestamp], np.int64)
    return Messages(offset, at, [record.value], [(record.key, record.headers or ())])


class _TakenRecords(list[Any]):
    """Records of batches. Its length is how many messages they have: by that the consumer knows when it has enough."""

    def __len__(self) -> int:
        return count_of(self)


class _Batches(fetcher.Fetcher.PartitionRecords):
    """Records of a fetch for a partition, batch by batch."""

    properties = False

    def _unpack_records(self, tp: Any, records: Any, key_deserializer: Any, value_deserializer: Any) -> Iterator[Any]:
        batches = _FetchedBatches(records, self.fetch_offset, self.properties)
        return super()._unpack_records(tp, batches, key_deserializer, value_deserializer)

    def take(self, n: int | None = None) -> list[Any]:
        """Batches with `n` messages, or as many more as are in the last of them."""
        out = _TakenRecords()
        while (n is None or len(out) < n) and self.record_iterator is not None:
            try:
                records = super().take(1)
            except Exception as error:  # told with the next call, as kafka-python does
                if not out:
                    raise
                self._next_inline_exception = error
                break
            if not records:
                break
            out.extend(records)
        return out


class _BatchesWithProperties(_Batches):
    properties = True


@dataclass
class _FetchedBatches:
    """The batches of a fetch; batches of format 2 as `_Batch`."""

    records: Any
    begin: int
    properties: bool

    def next_batch(self) -> Any:
        batch = self.records.next_batch()
        if batch is None or batch.magic != 2 or batch.is_control_batch:
            return batch
        return _Batch(batch, self.begin, self.properties)


class _Batch:
    """A batch that has one record, of the messages from offset `begin` on."""

    def __init__(self, batch: Any, begin: int, properties: bool) -> None:
        self._batch, self._begin, self._properties = batch, begin, properties

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __iter__(self) -> Iterator[_ConsumerRecord]:
        batch = self._batch
        batch._maybe_uncompress()
        count = batch._num_records
        if not count:
            return
        data = bytes(memoryview(batch._buffer)[batch._pos :])
        messages = records_of(data, count, properties=self._properties)
        has_append_time = batch.timestamp_type == batch.LOG_APPEND_TIME  # then the broker's clock applies to all
        times = np.full(count, batch.max_timestamp) if has_append_time else messages.timestamps + batch.first_timestamp
        messages = Messages(messages.offsets + batch.base_offset, times, messages.values, messages.properties)
        last = int(messages.offsets[-1])
        yield _ConsumerRecord(messages.since(self._begin), last, batch.max_timestamp, batch.timestamp_type, len(data))


@dataclass
class _ConsumerRecord:
    """A record as kafka-python's consumer takes it."""

    value: Messages
    offset: int
    timestamp: int
    timestamp_type: int
    size_in_bytes: int
    key: None = None
    headers: tuple[()] = ()
    checksum: None = None

    def validate_crc(self) -> bool:
        return True


def records_of(data: bytes, count: int, *, properties: bool = False) -> Messages:
    """The `count` records in an uncompressed batch; offsets and timestamps are those beyond the batch's own.

    A record is its length, attributes (a byte), the deltas of time and offset, key, value and headers. Raises
    CorruptRecordError if the bytes are not that.
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
    padded_bytes = np.frombuffer(data + bytes(_MOST_BYTES * 8), np.uint8)
    place = np.array(starts, np.int64) + 1
    timestamps, place = _numbers(padded_bytes, place)
    offsets, place = _numbers(padded_bytes, place)
    lengths, place = _numbers(padded_bytes, place)
    keys = place, lengths
    sizes, place = _numbers(padded_bytes, _within(place + np.maximum(lengths, 0), data))
    end = np.array(ends, np.int64)
    if (place + np.maximum(sizes, 0) >= end + 1).any():
        raise CorruptRecordError("Found invalid record structure")
    values = _cut(data, place, sizes)
    if not properties:
        return Messages(offsets, timestamps, values)
    headers = _headers(data, padded_bytes, place + np.maximum(sizes, 0), end)
    return Messages(offsets, timestamps, values, list(zip(_cut(data, *keys), headers, strict=True)))


def _cut(data: bytes, place: Array, sizes: Array) -> list[bytes | None]:
    """The bytes from places on, of sizes; None for one below 0."""
    out: list[bytes | None] = [data[a:b] for a, b in zip(place.tolist(), (place + sizes).tolist(), strict=True)]
    for i in np.flatnonzero(sizes < 0).tolist():
        out[i] = None
    return out


def _headers(data: bytes, padded_bytes: Array, place: Array, ends: Array) -> list[Sequence[tuple[str, bytes | None]]]:
    """The headers of records, which begin at places and end where the records do."""
    counts, place = _numbers(padded_bytes, place)
    out: list[Sequence[tuple[str, bytes | None]]] = [()] * len(place)
    for i in np.flatnonzero(counts).tolist():
        out[i] = _headers_of(data, int(counts[i]), int(place[i]), int(ends[i]))
    return out


def _headers_of(data: bytes, count: int, at: int, end: int) -> list[tuple[str, bytes | None]]:
    headers: list[tuple[str, bytes | None]] = []
    try:
        for _ in range(count):
            size, at = decode_varint(data, at)
            name, at = data[at : at + size].decode(), at + size
            size, at = decode_varint(data, at)
            headers.append((name, data[at : at + size] if size >= 0 else None))
            at += max(size, 0)
            if at > end:
                break
    except (IndexError, ValueError):
        at = -1
    if at != end or len(headers) != count:
        raise CorruptRecordError("Found invalid record structure")
    return headers


def _within(place: Array, data: bytes) -> Array:
    if (place > len(data)).any():
        raise CorruptRecordError("Found invalid record structure")
    return place


def _numbers(data: Array, place: Array) -> tuple[Array, Array]:
    """The numbers (int64) that begin at places, and the places after them: zigzag and base 128."""
    numbers = np.zeros(len(place), np.uint64)
    going = np.ones(len(place), np.bool_)
    for i in range(_MOST_BYTES):
        byte = data[place]
        numbers |= np.where(going, byte & np.uint8(0x7F), np.uint8(0)).astype(np.uint64) << np.uint64(7 * i)
        place = place + going
        going = going & (byte >= 0x80)
        if not going.any():
            break
    signed_numbers = (numbers >> np.uint64(1)).astype(np.int64) ^ -(numbers & np.uint64(1)).astype(np.int64)
    return signed_numbers, place
