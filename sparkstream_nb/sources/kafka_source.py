"""Reads topics of a Kafka broker, in processes of their own: one for each core, at most one for each partition.

kafka-python needs some 10 us for a message. In the process of the app it would take the notebook's time, and all
partitions would share one core. The processes decode as well; messages come through a pipe, which holds them back if
the app is behind.

The position of a source is in the inbox, partition by partition, with the id of the offsets' cluster: at another
cluster the source starts over. The offsets of its group at the broker follow it, so that Kafka's own tools see them; a
source without a position in the inbox begins at them.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from ..mapping.decoding import decoder
from ..plan.connectors.mapping import SourceMapping
from ..types import Schema
from .aligning import Alignment
from .kafka_cluster import cluster_id, offsets_of, topic_ids, without_leader
from .kafka_frames import Begin, Hold, JournaledOffsets, Read, ReaderFailed, ReadPart, read_frame, write_frame
from .kafka_source_place import KafkaSourcePlace
from .reader import PLACE, Behind, ReadMessages, SourceReader, SourceUnavailable

MOST_PROCESSES = 4
PATIENCE_MS = 10_000
"""Longest wait for a broker's answer."""
_FRAMES_AHEAD = 2
_PACKAGES = str(Path(__file__).parents[2])
"""Folder that contains this package."""


def _id_of(topic: str) -> str:
    """The part of a position that says which topic of a name it is; a position without one is taken as it is."""
    return f"@topic {topic}"


def part_of(topic: str, partition: int) -> str:
    """The name of a partition in positions."""
    return f"{topic}:{partition}"


@dataclass(frozen=True)
class EventTime:
    """The attribute with the time of an event, and the last time (ms; None: there is no such) that is taken now."""

    attribute: int
    latest: Callable[[], int | None]


@dataclass
class _Beginning:
    """Starting offsets of partitions (topic, number) of a `cluster` (None: its id is not known), and the partitions
    that are `leaderless`, as they have no leader. `ids`: ids of topics, if known. `changes`: changes of the
    position with that. `notes`: messages for the user.
    """

    cluster: str | None
    ids: dict[str, str]
    places: dict[tuple[str, int], int] = field(default_factory=dict)
    leaderless: frozenset[tuple[str, int]] = frozenset()
    changes: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def offsets_here(self, positions: Mapping[str, Any]) -> dict[str, int]:
        """The offsets of a position, if it is of this cluster; else none, and they are dropped."""
        offsets = {part: offset for part, offset in positions.items() if not part.startswith("@")}
        previous_cluster = positions.get(PLACE)
        if self.cluster is None or previous_cluster == self.cluster:
            return offsets
        self.changes[PLACE] = self.cluster
        if previous_cluster is None:
            return offsets
        self.notes.append(
            f"it has read from another Kafka cluster until now ({previous_cluster}), and begins anew at this one "
            f"({self.cluster})"
        )
        self.changes |= dict.fromkeys(offsets)
        return {}

    def made_again(self, positions: Mapping[str, Any], partitions: Iterable[str]) -> list[str]:
        """The topics of known `partitions` that were deleted since, and made again: their offsets go."""
        self.changes |= {_id_of(t): id for t, id in self.ids.items() if positions.get(_id_of(t)) != id}
        read = {part.rpartition(":")[0] for part in partitions}
        out = [t for t, id in self.ids.items() if t in read and positions.get(_id_of(t)) not in (None, id)]
        self.notes += [f"topic '{t}' was deleted and made again, and is read from its beginning" for t in out]
        self.changes |= {part: None for part in partitions if part.rpartition(":")[0] in out}
        return out


@dataclass
class _Child:
    """A process that reads some `parts`. `paused_parts`: partitions that it must not read now."""

    process: subprocess.Popen[bytes]
    parts: frozenset[str]
    paused_parts: frozenset[str] = frozenset()
    writing: threading.Lock = field(default_factory=threading.Lock)
    listener: threading.Thread | None = None

    @property
    def pipe(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    def tell(self, order: Begin | JournaledOffsets | Hold) -> None:
        """Writes to it, if it is there."""
        with self.writing, contextlib.suppress(OSError, ValueError):
            write_frame(self.pipe, order)


_Frame = Read | ReadPart | ReaderFailed


class KafkaReader(SourceReader):
    """A `Reader` of topics whose messages are of `schema`, by `mapping`. With the events' own `time` several partitions
    are read in the order of that."""

    def __init__(
        self, place: KafkaSourcePlace, mapping: SourceMapping, schema: Schema, time: EventTime | None = None
    ) -> None:
        self.place, self._mapping, self._schema, self._time = place, mapping, schema, time
        self._children: list[_Child] = []
        self._frames: queue.Queue[_Frame] = queue.Queue(_FRAMES_AHEAD)
        self._alignment: Alignment | None = None
        self._backlogs: dict[str, int] = {}
        self._partition_counts: dict[str, int] = {}
        self._first_messages: ReadMessages | None = None
        self._nothing = decoder(mapping, schema).decode([])
        self._parts: set[str] = set()
        self._backlog_times: dict[str, float] = {}
        self._lock = threading.Lock()

    def open(self, positions: Mapping[str, Any]) -> str | None:
        self.close()
        try:
            beginning = self._begins(positions)
        except (KafkaError, OSError) as error:
            raise SourceUnavailable(_reason(error)) from None
        shares: list[dict[tuple[str, int], int]] = [{} for _ in range(_processes(len(beginning.places)))]
        for i, (place, offset) in enumerate(sorted(beginning.places.items())):
            shares[i % len(shares)][place] = offset
        # Where it began is kept at once: without an event, another start would begin elsewhere.
        changes = beginning.changes
        self._first_messages = ReadMessages(self._nothing, 0, changes, lasting=True) if changes else None
        self._frames = queue.Queue(_FRAMES_AHEAD)
        self._backlogs, self._backlog_times = {}, {}
        leaderless = {part_of(*place) for place in beginning.leaderless}
        self._parts = {part_of(*place) for place in beginning.places} | leaderless
        event_time = self._time if len(self._parts) > 1 else None
        self._alignment = None if event_time is None else Alignment(self._parts, event_time.latest)
        if self._alignment is not None:
            self._alignment.mark_unavailable(leaderless)
        attribute = None if event_time is None else event_time.attribute
        for share in shares:
            options, commits = dict(self.place.options), self.place.commits
            partition_counts = None if self.place.partitions is not None else self._partition_counts
            self._start(
                Begin(options, self.place.group, commits, share, self._mapping, self._schema, partition_counts,
                      attribute, beginning.cluster, beginning.ids, beginning.leaderless)
            )  # fmt: skip
        return "; ".join(beginning.notes) or None

    def read(self, seconds: float) -> ReadMessages | None:
        if self._first_messages is not None:
            first, self._first_messages = self._first_messages, None
            return first
        try:
            frame = self._frames.get(timeout=seconds)
        except queue.Empty:
            if self._alignment is None:
                return None
            self._alignment.note_wait(seconds)
            return self._take_aligned(self._alignment)
        if isinstance(frame, ReaderFailed):
            raise SourceUnavailable(frame.reason)
        self._backlogs |= frame.backlogs
        self._backlog_times |= dict.fromkeys(frame.backlogs, frame.at)
        if isinstance(frame, ReadPart):
            assert self._alignment is not None
            if frame.portion is not None:
                self._alignment.put(frame.portion)
            self._alignment.set_backlogs(frame.backlogs)
            return self._take_aligned(self._alignment)
        return ReadMessages(frame.events, frame.message_count, frame.next_offsets) if frame.message_count else None

    def _take_aligned(self, alignment: Alignment) -> ReadMessages | None:
        """Messages that need not wait for other partitions any more. Partitions with many waiting messages are not read
        meanwhile.
        """
        portion = alignment.take()
        paused_parts = alignment.paused_partitions()
        for child in self._children:
            if child.paused_parts != paused_parts & child.parts:
                child.paused_parts = paused_parts & child.parts
                child.tell(Hold(child.paused_parts))
        return None if portion is None else ReadMessages(portion.events, portion.messages, portion.next_offsets)

    def confirm(self, messages: ReadMessages, refusals: Mapping[int, str]) -> None:
        if not self.place.commits:
            return
        for child in self._children:
            if offsets := {part: offset for part, offset in messages.reached.items() if part in child.parts}:
                child.tell(JournaledOffsets(offsets))

    def behind(self) -> Behind | None:
        if not self._parts or not self._parts <= self._backlog_times.keys():
            return None
        waiting = {} if self._alignment is None else self._alignment.waiting_by_partition()
        return Behind(min(self._backlog_times.values()), {p: n + waiting.get(p, 0) for p, n in self._backlogs.items()})

    def close(self) -> None:
        self.cancel()
        with self._lock:
            children, self._children = self._children, []
        for child in children:
            child.process.wait()
            if child.listener is not None:
                child.listener.join()
            for pipe in (child.process.stdin, child.process.stdout):
                if pipe is not None:
                    pipe.close()

    def cancel(self) -> None:
        with self._lock:
            children = list(self._children)
        for child in children:
            child.process.kill()

    def _begins(self, positions: Mapping[str, Any]) -> _Beginning:
        """Raises SourceUnavailable if a topic or partition is missing or all are without a leader, and KafkaError.
        """
        with _consumer(self.place) as consumer:
            partitions = [p for topic in self.place.topics for p in self._partitions(consumer, topic)]
            out = _Beginning(cluster_id(consumer), topic_ids(consumer, self.place.topics))
            offsets = out.offsets_here(positions)
            again = out.made_again(positions, offsets)
            leaderless = without_leader(consumer, partitions)
            out.leaderless = frozenset((p.topic, p.partition) for p in leaderless)
            out.changes |= {part_of(p.topic, p.partition): 0 for p in leaderless if p.topic in again}
            if len(leaderless) == len(partitions):
                raise SourceUnavailable(f"no partition of {', '.join(self.place.topics)} has a leader")
            if leaderless:
                names = ", ".join(part_of(*p) for p in sorted(leaderless))
                out.notes.append(f"without a leader, and not read until there is one: {names}")
            available = [p for p in partitions if p not in leaderless]
            first = offsets_of(consumer.beginning_offsets, available)
            last = offsets_of(consumer.end_offsets, available)
            for p in available:
                name = part_of(p.topic, p.partition)
                begin = offsets.get(name)
                if p.topic in again:
                    begin = first[p]
                elif begin is None:
                    begin = self._first(consumer, p, first[p], last[p], is_new=bool(offsets))
                elif begin < first[p]:
                    out.notes.append(
                        f"{first[p] - begin:,} messages of {name} are gone: the broker removed them unread"
                    )
                    begin = first[p]
                elif begin > last[p]:
                    out.notes.append(f"{name} was read up to {begin:,} and ends at {last[p]:,}: it was made again, and "
                                    "is read from its beginning")  # fmt: skip
                    begin = first[p]
                out.places[p.topic, p.partition] = begin
                if p.topic in again or offsets.get(name) != begin:
                    out.changes[name] = begin
        return out

    def _first(self, consumer: KafkaConsumer, p: TopicPartition, first: int, last: int, *, is_new: bool) -> int:
        """Starting offset of a partition that was never read. One that `is_new`, or had no leader when others
        began, is read from its beginning.
        """
        begin = self.place.starts.get((p.topic, p.partition))
        if begin is None:
            begin = consumer.committed(p)
        if begin is None:
            return last if self.place.latest and not is_new else first
        return begin if first <= begin <= last else first

    def _partitions(self, consumer: KafkaConsumer, topic: str) -> list[TopicPartition]:
        numbers = consumer.partitions_for_topic(topic)
        if not numbers:
            raise SourceUnavailable(f"the broker has no topic '{topic}'")
        self._partition_counts[topic] = len(numbers)
        chosen_numbers = self.place.partitions
        missing = sorted((chosen_numbers or frozenset()) - numbers)
        if missing:
            raise SourceUnavailable(f"topic '{topic}' has no partition {missing[0]}")
        return [TopicPartition(topic, p) for p in sorted(numbers if chosen_numbers is None else chosen_numbers)]

    def _start(self, begin: Begin) -> None:
        path = os.environ.get("PYTHONPATH", "")
        process = subprocess.Popen(
            # -P: so that a kafka.py beside the notebook is not imported.
            [sys.executable, "-P", "-m", "sparkstream_nb.sources.kafka_process"],
            # A thread in a buffered read aborts a Python that ends.
            # In a session of its own: a notebook's Stop button signals the kernel's group.
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True,
            env={**os.environ, "PYTHONPATH": f"{_PACKAGES}{os.pathsep}{path}".rstrip(os.pathsep)},
        )  # fmt: skip
        child = _Child(process, frozenset(part_of(*place) for place in begin.places))
        with self._lock:
            self._children.append(child)
        child.tell(begin)
        child.listener = threading.Thread(
            target=self._listen, args=(child, self._frames), name="sparkstream-kafka-pipe", daemon=True
        )
        child.listener.start()

    def _listen(self, child: _Child, frames: queue.Queue[_Frame]) -> None:
        """Pass on the frames of a process, until it ends."""
        pipe = child.process.stdout
        assert pipe is not None
        try:
            while (frame := read_frame(pipe)) is not None:
                self._put(child, frames, frame)
        except (OSError, EOFError, pickle.UnpicklingError):
            pass
        self._put(child, frames, ReaderFailed("the process that reads it has ended"))

    def _put(self, child: _Child, frames: queue.Queue[_Frame], frame: _Frame) -> None:
        while frames is self._frames and child in self._children:
            with contextlib.suppress(queue.Full):
                frames.put(frame, timeout=0.2)
                return


@contextlib.contextmanager
def _consumer(place: KafkaSourcePlace) -> Iterator[KafkaConsumer]:
    consumer = KafkaConsumer(**consumer_options(place.options, place.group))
    try:
        yield consumer
    finally:
        consumer.close()


def consumer_options(options: Mapping[str, Any], group: str) -> dict[str, Any]:
    """Arguments of every consumer here: without automatic commits or resets of offsets."""
    return {
        "bootstrap_timeout_ms": PATIENCE_MS, "request_timeout_ms": PATIENCE_MS, **options,
        "group_id": group, "enable_auto_commit": False, "auto_offset_reset": "none",
        "allow_auto_create_topics": False, "metrics_enabled": False,
    }  # fmt: skip


def _processes(partitions: int) -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(partitions, cores, MOST_PROCESSES))


def _reason(error: Exception) -> str:
    return f"the broker does not answer: {type(error).__name__}: {error}"
