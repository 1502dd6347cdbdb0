"""A process that reads partitions of Kafka topics and decodes their messages, until its pipe is closed."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, cast

import numpy as np
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError, LeaderNotAvailableError
from kafka.structs import OffsetAndMetadata

from ..mapping.decoding import Decoded, Decoder, RejectedMessage, decoder, is_utf8, why_not_utf8
from .aligning import PartitionPortion, times_of
from .kafka_cluster import cluster_id, offsets_of, topic_ids, without_leader
from .kafka_frames import Begin, Hold, JournaledOffsets, Read, ReaderFailed, ReadPart, read_frame, write_frame
from .kafka_records import Messages, count_of, messages_of, read_batches, unpark
from .kafka_source import consumer_options, part_of

MESSAGES = 50_000
"""Messages that are decoded at once, at most."""
GATHER_SECONDS = 0.05
"""Longest wait of a message for others."""
CHECK_SECONDS = 3.0
"""Interval at which a silent broker is asked whether it is there, and whether there are more partitions."""
MOST_IN_VAIN = 100
"""Maximum number of polls without a message of a partition that has some and is to be read. If no partition yields
any, these are 20 s, less than others wait for it (`aligning.PATIENCE`); while the app is busy, the consumer is not
polled.
"""
COMMIT_SECONDS = 1.0
_TIMES = frozenset({"record.timestamp", "timestamp"})
_FETCH = {
    "max_poll_records": MESSAGES, "fetch_max_bytes": 1 << 26, "max_partition_fetch_bytes": 1 << 23,
    "receive_buffer_bytes": 1 << 20,
}  # fmt: skip


@dataclass(frozen=True)
class _UnreadProperty:
    """Why a transport property of a message is no text, and the message's other properties."""

    reason: str
    others: Mapping[str, str]

    @staticmethod
    def of(raw: Mapping[str, bytes], others: Mapping[str, str]) -> _UnreadProperty:
        """The first of `raw` that is not UTF-8. Raises StopIteration if all are."""
        spoilt = next(name for name, value in raw.items() if not is_utf8(value))
        texts = {name: value.decode() for name, value in raw.items() if is_utf8(value)}
        why = f"its transport property '{spoilt}' is {why_not_utf8(raw[spoilt])}"
        return _UnreadProperty(why, {**texts, **others})


class Process:
    """Reads the partitions that `begin` names, and writes their messages to `out`. `orders` has the offsets that the
    app has journaled, and the partitions to hold back.
    """

    def __init__(self, begin: Begin, out: IO[bytes], orders: queue.SimpleQueue[JournaledOffsets | Hold]) -> None:
        self.begin, self._out, self._orders = begin, out, orders
        self._decoder: Decoder = decoder(begin.mapping, begin.schema)
        self._properties = frozenset(h for h in begin.mapping.headers if h is not None)
        self._consumer = KafkaConsumer(**{**_FETCH, **consumer_options(begin.options, begin.group)})
        read_batches(self._consumer, properties=bool(self._properties))
        self._places = {TopicPartition(*p): offset for p, offset in begin.places.items()}
        self._consumer.assign(list(self._places))
        for place, offset in self._places.items():
            self._consumer.seek(place, offset)
        self._last_check = self._last_commit = time.monotonic()
        self._journaled_offsets: dict[str, int] = {}
        self._stands: dict[TopicPartition, tuple[int, int]] = {}
        self._polls, self._last_poll = 0, self._last_check

    def run(self) -> None:
        """Reads until the pipe is closed or the broker fails. Raises KafkaError and OSError."""
        self._tell_of_silence()
        while True:
            read_any = self.read()
            self._commit()
            if time.monotonic() - self._last_check > CHECK_SECONDS:
                self._check(silent=not read_any)

    def read(self) -> bool:
        """Pass on messages that come within a moment, and then carry out the orders; true if any message came."""
        records = self._poll(200)
        if records:
            self._gather(records)
            self._tell(records)
        self._obey()
        return bool(records)

    def _poll(self, milliseconds: int) -> dict[TopicPartition, list[Any]]:
        if self.begin.ids and time.monotonic() - self._last_poll > CHECK_SECONDS:
            # While the app takes its time nothing is asked, and a topic is fetched by its name.
            self._consumer.topics()
            self._check_cluster()
        self._last_poll = time.monotonic()
        unpark(self._consumer)
        self._polls += 1
        records: dict[TopicPartition, list[Any]] = self._consumer.poll(milliseconds, max_records=MESSAGES)
        return records

    def _gather(self, records_by_partition: dict[TopicPartition, list[Any]]) -> None:
        """Waits a little for more messages, where few came."""
        end = time.monotonic() + GATHER_SECONDS
        while sum(map(count_of, records_by_partition.values())) < MESSAGES and (seconds := end - time.monotonic()) > 0:
            for place, records in self._poll(int(1000 * seconds)).items():
                records_by_partition.setdefault(place, []).extend(records)

    def _tell(self, records_by_partition: Mapping[TopicPartition, Sequence[Any]]) -> None:
        at = time.monotonic()
        self._check_cluster()
        backlogs = {}
        for place in self._places:
            high = self._consumer.highwater(place)
            if high is not None:
                backlogs[part_of(*place)] = max(0, high - self._consumer.position(place))
        parts = [(place, messages_of(records)) for place, records in sorted(records_by_partition.items()) if records]
        if self.begin.time is not None:
            self._tell_parts(parts, backlogs, at)
            return
        events = self._decode_messages(parts)
        next_offsets = {part_of(*place): int(messages.offsets[-1]) + 1 for place, messages in parts}
        write_frame(self._out, Read(events, sum(len(m) for _, m in parts), next_offsets, backlogs, at))

    def _tell_parts(self, parts: list[tuple[TopicPartition, Messages]], backlogs: dict[str, int], at: float) -> None:
        """Writes partition by partition. How much is behind one is said with its messages: no sooner."""
        assert self.begin.time is not None
        idle = {part: n for part, n in backlogs.items() if part not in {part_of(*place) for place, _ in parts}}
        for place, messages in parts:
            part = part_of(*place)
            events = self._decode_messages([(place, messages)])
            times = times_of(events, len(messages), self.begin.time)
            known_backlogs = idle | {part: backlogs[part]} if part in backlogs else idle
            portion = PartitionPortion(part, events, messages.offsets, times)
            write_frame(self._out, ReadPart(portion, known_backlogs, at))
            idle = {}

    def _find_unread(
        self, messages: Sequence[bytes | None], all_properties: Sequence[Mapping[str, str] | _UnreadProperty] | None
    ) -> dict[int, RejectedMessage]:
        """The messages without a value, or with a property that is not UTF-8, by number."""
        unread: dict[int, RejectedMessage] = {}
        for i, message in enumerate(messages):
            properties = None if all_properties is None else all_properties[i]
            if message is None:
                unread[i] = RejectedMessage(i, "it has no value (a tombstone)", "")
            elif isinstance(properties, _UnreadProperty):
                unread[i] = replace(self._decoder.reject(i, properties.reason, message), properties=properties.others)
        return unread

    def _decode_messages(self, parts: Sequence[tuple[TopicPartition, Messages]]) -> Decoded:
        """The events of messages; one without a value, or with a property that is not UTF-8, is rejected."""
        messages = [v for _, m in parts for v in m.values]
        all_properties = [p for place, m in parts for p in self._properties_of(place, m)] if self._properties else None
        if all_properties is None and None not in messages:
            return self._decoder.decode(cast(list[bytes], messages))
        unread = self._find_unread(messages, all_properties)
        full = [i for i in range(len(messages)) if i not in unread]
        headers = None
        if all_properties is not None:
            headers = [p for i in full if not isinstance(p := all_properties[i], _UnreadProperty)]
        events = self._decoder.decode([m for i in full if (m := messages[i]) is not None], headers)
        if not unread:
            return events
        number = np.array(full, np.int64)
        rejects = [*unread.values(), *(replace(r, message=full[r.message]) for r in events.rejected)]
        return Decoded(events.columns, number[events.message], tuple(sorted(rejects, key=lambda r: r.message)))

    def _properties_of(self, place: TopicPartition, messages: Messages) -> list[dict[str, str] | _UnreadProperty]:
        """By message the transport properties of siddhi-io-kafka that the mapping names, and such headers."""
        names = self._properties
        out: list[dict[str, str] | _UnreadProperty] = []
        same = {"topic": place.topic, "partition": str(place.partition)}
        same = {name: value for name, value in same.items() if name in names}
        keys_and_headers = messages.properties or [(None, ())] * len(messages)
        for (key, headers), offset, at in zip(
            keys_and_headers, messages.offsets.tolist(), messages.timestamps.tolist(), strict=True
        ):
            raw = {k: v or b"" for k, v in headers if k in names and k not in same}
            if key is not None and "key" in names:
                raw["key"] = key
            try:
                properties = {k: v.decode() for k, v in raw.items()} | same
            except UnicodeDecodeError:
                out.append(_UnreadProperty.of(raw, same))
                continue
            if "offSet" in names:
                properties["offSet"] = str(offset)
            for name in _TIMES & names:
                properties[name] = str(at)
            out.append(properties)
        return out

    def _obey(self) -> None:
        """Carry out the app's orders."""
        with contextlib.suppress(queue.Empty):
            while True:
                order = self._orders.get_nowait()
                if isinstance(order, JournaledOffsets):
                    self._journaled_offsets.update(order.next_offsets)
                    continue
                partitions = [p for p in self._places if part_of(*p) in order.parts]
                self._consumer.resume(*(p for p in self._places if p not in partitions))
                self._consumer.pause(*partitions)

    def _commit(self) -> None:
        """Commit the group's offsets at the broker, now and then. They are for its tools: the inbox is authoritative.
        """
        if not self._journaled_offsets or time.monotonic() - self._last_commit < COMMIT_SECONDS:
            return
        self._last_commit = time.monotonic()
        offsets = {p: OffsetAndMetadata(self._journaled_offsets[part_of(*p)], "", -1)
                   for p in self._places if part_of(*p) in self._journaled_offsets}  # fmt: skip
        self._journaled_offsets = {}
        with contextlib.suppress(KafkaError):
            self._consumer.commit_async(offsets)

    def _tell_of_silence(self) -> None:
        """Says how much is there, with no message. Raises KafkaError if the broker does not answer."""
        at = time.monotonic()
        ends = offsets_of(self._consumer.end_offsets, self._places)
        self._check_cluster()
        backlogs = {part_of(*p): max(0, ends[p] - self._consumer.position(p)) for p in self._places}
        aligns = self.begin.time is not None
        nothing = ReadPart(None, backlogs, at) if aligns else Read(self._decoder.decode([]), 0, {}, backlogs, at)
        write_frame(self._out, nothing)

    def _check(self, *, silent: bool) -> None:
        """Raises KafkaError if the broker is gone or has further partitions, or some with a leader no more or
        again, and where nothing comes of one: the source is opened again then."""
        self._last_check = time.monotonic()
        self._check_leaders()
        self._check_movement()
        if silent:
            self._tell_of_silence()
        for topic, count in (self.begin.partition_counts or {}).items():
            if len(self._consumer.partitions_for_topic(topic) or ()) != count:
                raise KafkaError(f"topic '{topic}' has other partitions than before")

    def _check_leaders(self) -> None:
        if leaderless := without_leader(self._consumer, self._places):
            raise LeaderNotAvailableError(f"no leader for {', '.join(part_of(*p) for p in sorted(leaderless))}")
        if self.begin.leaderless:
            self._consumer.topics()  # metadata of an unread partition is not requested otherwise
            former_leaderless = {TopicPartition(*p) for p in self.begin.leaderless}
            if back := former_leaderless - without_leader(self._consumer, former_leaderless):
                raise KafkaError(f"there is a leader again for {', '.join(part_of(*p) for p in sorted(back))}")

    def _check_movement(self) -> None:
        paused_partitions = self._consumer.paused()
        for place in self._places:
            at, high = self._consumer.position(place), self._consumer.highwater(place)
            last_position, since = self._stands.get(place, (None, 0))
            if place in paused_partitions or not high or high <= at:
                self._stands.pop(place, None)
            elif at != last_position:
                self._stands[place] = at, self._polls
            elif self._polls - since > MOST_IN_VAIN:
                raise KafkaError(f"nothing comes of {part_of(*place)}, where {high - at:,} messages are")

    def _check_cluster(self) -> None:
        """Raise KafkaError if the brokers' cluster is not the offsets' cluster, or a topic is another
        one of the same name.
        """
        if self.begin.cluster is not None and cluster_id(self._consumer) not in (None, self.begin.cluster):
            raise KafkaError("another Kafka cluster answers at the same address")
        for topic, id in topic_ids(self._consumer, self.begin.ids).items():
            if id != self.begin.ids[topic]:
                raise KafkaError(f"topic '{topic}' was deleted and made again")


def main() -> None:
    """The process: its order to read comes as the first frame."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # output of other code must not get into the pipe
    pipe = os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
    begin = read_frame(pipe)
    assert isinstance(begin, Begin)
    orders: queue.SimpleQueue[JournaledOffsets | Hold] = queue.SimpleQueue()

    def listen() -> None:
        with contextlib.suppress(OSError, EOFError):
            while (order := read_frame(pipe)) is not None:
                orders.put(order)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    try:
        Process(begin, out, orders).run()
    except (KafkaError, OSError) as error:
        with contextlib.suppress(OSError):
            write_frame(out, ReaderFailed(f"{type(error).__name__}: {error}"))
    except Exception as error:
        with contextlib.suppress(OSError):
            write_frame(out, ReaderFailed(f"the process that reads it failed: {type(error).__name__}: {error}"))
    os._exit(0)


if __name__ == "__main__":
    main()
