"""Frames of the pipes between the app's process and one that reads from Kafka: pickles with their lengths.

Both ends are this package's own: the pipe is of one process that the other has started.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from ..mapping.decoding import Decoded
from ..plan.connectors.mapping import SourceMapping
from ..types import Schema
from .aligning import PartitionPortion

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Begin:
    """Order to read: partitions (topic, number) from their offsets, with the `options` of the consumer.
    `partition_counts`: number of partitions of each topic of the source; with more, it is opened again. None: it reads
    those that it names. `time`: the attribute by whose times partitions are aligned; None: they are not. `cluster`: the
    id of the offsets' cluster; None: not known. `ids`: ids of the topics, if known. `leaderless`: partitions of the
    source that have no leader, and are not read; when one has a leader again, the source is opened again.
    """

    options: dict[str, Any] = field(repr=False)
    group: str
    commits: bool
    places: Mapping[tuple[str, int], int]
    mapping: SourceMapping
    schema: Schema
    partition_counts: Mapping[str, int] | None
    time: int | None
    cluster: str | None = None
    ids: Mapping[str, str] = field(default_factory=dict)
    leaderless: frozenset[tuple[str, int]] = frozenset()


@dataclass(frozen=True)
class Read:
    """Messages that were read and decoded; by partition the next offset, and how many were there beyond it `at` a time
    (s of the monotonic clock, which all processes of a machine share)."""

    events: Decoded
    message_count: int
    next_offsets: Mapping[str, int]
    backlogs: Mapping[str, int]
    at: float


@dataclass(frozen=True)
class ReadPart:
    """Messages of one partition, where they are aligned with others; None: none. `backlogs` and `at` as in `Read`."""

    portion: PartitionPortion | None
    backlogs: Mapping[str, int]
    at: float


@dataclass(frozen=True)
class ReaderFailed:
    """The process cannot continue."""

    reason: str


@dataclass(frozen=True)
class JournaledOffsets:
    """The app has all before these offsets."""

    next_offsets: Mapping[str, int]


@dataclass(frozen=True)
class Hold:
    """These partitions, and no others, are not to be read now."""

    parts: frozenset[str]


def write_frame(pipe: IO[bytes], frame: Any) -> None:
    """Raises OSError if the other end is gone."""
    blob = pickle.dumps(frame, 5)
    left = memoryview(_LENGTH.pack(len(blob)) + blob)
    while left:
        left = left[pipe.write(left) :]
    pipe.flush()


def read_frame(pipe: IO[bytes]) -> Any | None:
    """The next frame; None if the other end is closed. Raises EOFError within a frame."""
    head = _read(pipe, _LENGTH.size)
    if not head:
        return None
    if len(head) < _LENGTH.size:
        raise EOFError
    (size,) = _LENGTH.unpack(head)
    blob = _read(pipe, size)
    if len(blob) < size:
        raise EOFError
    return pickle.loads(blob)


def _read(pipe: IO[bytes], size: int) -> bytes:
    """Read `size` bytes; fewer at the end."""
    parts, left = [], size
    while left and (part := pipe.read(left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
