"""A Kafka topic that takes each message as a record.

Records are sent by an idempotent producer that waits for every copy, so that a retry within one connection writes
nothing twice. Every record has the header `Idempotency-Key`, the same when it is sent again after a crash, by which a
consumer can recognize a repeat.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, codec
from kafka.errors import KafkaError, KafkaTimeoutError

from ..errors import has_surrogate, printable, shown
from ..mapping import Message
from ..masking import mask_passwords
from ..plan.query_parts import template_attributes
from .kafka_sink_place import KEY_HEADER, TIMEOUTS, TOPIC, KafkaSinkPlace
from .target import OutputPlace, Target, TargetUnavailable, Undeliverable

BOOTSTRAP, BLOCK = 5_000, 3_000
"""ms: to find the servers, and to find a topic."""
_KNOWN_FOR = 30.0
"""Seconds in which a topic that does not exist is not asked for again."""
_POLL = 0.1
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(frozen=True)
class _KafkaMessage:
    """A message with its templates filled in. `id` is its Idempotency-Key; `headers` are the others."""

    id: str
    topic: str
    partition: int | None
    key: bytes | None
    body: bytes
    headers: tuple[tuple[str, bytes], ...] = ()


class KafkaTarget(Target):
    """Sends records in batches, and waits until Kafka has all of one. `clock` is in seconds, and monotonic."""

    at_once = 500

    def __init__(self, place: KafkaSinkPlace, clock: Callable[[], float] = time.monotonic) -> None:
        self.place, self._clock = place, clock
        options = {"topic": place.topic, "partition": place.partition, "key": place.record_key}
        self.templates: Mapping[str, str] = {k: v for k, v in options.items() if v and template_attributes(v)} | {
            f"header {name}": value for name, value in place.templates
        }
        self._producer: Any = None
        self._cancel_event = threading.Event()
        self._missing: dict[str, float] = {}
        self._delivered_ids: set[str] = set()  # records after one that was not taken

    def open(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        self._cancel_event.clear()
        return {}

    def send(self, messages: Sequence[Message], places: Sequence[OutputPlace]) -> int:
        records: list[_KafkaMessage] = []
        for message, place in zip(messages, places, strict=True):
            try:
                record = self._record(message, f"{self.place.key}-{place.batch}-{place.row}")
                if record.id not in self._delivered_ids:
                    self._check(record)
            except (Undeliverable, TargetUnavailable):
                if not records:
                    raise
                break  # records before it are sent first
            records.append(record)
        return self._count_delivered(records)

    def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(Exception):
                # Its pending records were not delivered for the sink: they must not be sent beside the next try.
                producer._sender.force_close()
            with contextlib.suppress(Exception):
                producer.close(timeout=0)

    def cancel(self) -> None:
        self._cancel_event.set()

    # ---------------------------------------------------------------------------------------------------- one record

    def _record(self, message: Message, id: str) -> _KafkaMessage:
        """Raises Undeliverable if the filled-in topic or partition is not valid."""
        properties = message.properties
        topic = properties.get("topic", self.place.topic)
        if not TOPIC.fullmatch(topic):
            raise Undeliverable(f"'{printable(topic[:60])}' is not the name of a topic")
        partition = properties.get("partition", self.place.partition)
        if partition is not None and not _NUMBER.fullmatch(partition):
            raise Undeliverable(f"'{printable(partition[:20])}' is not the number of a partition")
        key = properties.get("key", self.place.record_key)
        number = None if partition is None else int(partition)
        headers = [*self.place.headers, *((name, properties[f"header {name}"]) for name, _ in self.place.templates)]
        return _KafkaMessage(
            id, topic, number, None if key is None else _bytes(key), message.body,
            tuple((name, _bytes(value)) for name, value in headers),
        )  # fmt: skip

    def _check(self, record: _KafkaMessage) -> None:
        """Raises Undeliverable if Kafka has no such topic or partition, and TargetUnavailable if it does not say.
        """
        if self._missing.get(record.topic, 0.0) > self._clock():
            raise Undeliverable(f"there is no topic '{record.topic}'")
        partitions = self._partitions(record.topic)
        if record.partition is not None and record.partition not in partitions:
            raise Undeliverable(f"topic '{record.topic}' has no partition {record.partition}: it has {len(partitions)}")

    def _partitions(self, topic: str) -> set[int]:
        producer = self._open_producer()
        try:
            return set(producer.partitions_for(topic))
        except KafkaTimeoutError as error:
            # It means both: no server answers, and no server knows the topic.
            if self._exists(topic):
                raise self._away(error) from None
            self._missing = {topic: self._clock() + _KNOWN_FOR}
            raise Undeliverable(f"there is no topic '{topic}'") from None
        except KafkaError as error:
            raise self._classify_error(error) from None

    def _exists(self, topic: str) -> bool:
        """True if Kafka has a topic. Raises TargetUnavailable if it does not answer."""
        shared = {k: v for k, v in self.place.settings.items() if k.startswith(("sasl_", "security_"))}
        try:
            consumer = KafkaConsumer(
                bootstrap_servers=list(self.place.servers), bootstrap_timeout_ms=BOOTSTRAP,
                allow_auto_create_topics=False, enable_auto_commit=False, **shared,
            )  # fmt: skip
            try:
                return topic in consumer.topics()
            finally:
                consumer.close(autocommit=False)
        except (KafkaError, OSError, ValueError) as error:
            raise self._away(error) from None

    # -------------------------------------------------------------------------------------------------------- sending

    def _count_delivered(self, records: Sequence[_KafkaMessage]) -> int:
        """Number of the records that Kafka has, counted from the first. Raises Undeliverable or TargetUnavailable if it
        has not accepted the next one.
        """
        errors = self._send_records([r for r in records if r.id not in self._delivered_ids])
        too_large = [i for i, e in errors.items() if _is_too_large(e)]
        if len(records) > 1 and too_large:
            # Kafka refuses the batch that a large record is in: the others in it are taken when they come alone.
            for record in records:
                if record.id in too_large:
                    del errors[record.id]
                    errors |= self._send_records([record])
                if record.id in errors:
                    break
        for count, record in enumerate(records):
            if record.id not in self._delivered_ids:
                if count:
                    return count
                raise self._classify_error(errors[record.id])
        self._delivered_ids.clear()
        return len(records)

    def _send_records(self, records: Sequence[_KafkaMessage]) -> dict[str, Exception]:
        """Send records and wait for them; returns the errors, by id. The others are noted in `_taken`."""
        producer = self._open_producer()
        waiting: dict[str, Any] = {}
        errors: dict[str, Exception] = {}
        for r in records:
            headers = [*r.headers, (KEY_HEADER, r.id.encode())]
            try:
                waiting[r.id] = producer.send(r.topic, r.body, key=r.key, headers=headers, partition=r.partition)
            except (KafkaError, ValueError) as error:
                errors[r.id] = error
        for id, future in waiting.items():
            outcome = self._outcome(future)
            if outcome is None:
                self._delivered_ids.add(id)
            else:
                errors[id] = outcome
        if any(id in waiting for id in errors):
            self.close()  # an idempotent producer of kafka-python does not go on after one of its records has failed
        return errors

    def _outcome(self, future: Any) -> Exception | None:
        """Error of a record; None if Kafka has it. Raises TargetUnavailable if the app stops meanwhile."""
        while True:
            try:
                future.get(timeout=_POLL)
                return None
            except KafkaError as error:
                if future.is_done:
                    return error
                if self._cancel_event.is_set():
                    self.close()
                    raise TargetUnavailable("the app stops") from None

    def _open_producer(self) -> Any:
        """The producer. Raises TargetUnavailable if no server can be reached."""
        if self._producer is None:
            try:
                self._producer = KafkaProducer(
                    bootstrap_servers=list(self.place.servers), enable_idempotence=True, acks="all",
                    bootstrap_timeout_ms=BOOTSTRAP, max_block_ms=BLOCK, **(TIMEOUTS | dict(self.place.settings)),
                )  # fmt: skip
            except Exception as error:
                raise self._away(error) from None
        return self._producer

    def _classify_error(self, error: Exception) -> TargetUnavailable | Undeliverable:
        """Translate an error for the delivery. A producer that has given a record up is not used again."""
        if _is_too_large(error) or type(error).__name__ in _FOR_GOOD:
            return Undeliverable(f"Kafka does not take it: {_describe_error(error)}")
        return self._away(error)

    def _away(self, error: Exception) -> TargetUnavailable:
        self.close()
        return TargetUnavailable(f"{', '.join(self.place.servers)}: {_describe_error(error)}")


def _bytes(text: str) -> bytes:
    """Raises Undeliverable for a text that UTF-8 does not have."""
    if has_surrogate(text):
        raise Undeliverable(f"{shown(text)} has half of a surrogate pair in it, which is no character")
    return text.encode()


def compresses(name: str) -> bool:
    """True if kafka-python can compress by gzip, snappy, lz4 or zstd here: all but gzip need a package of their own."""
    return bool(getattr(codec, f"has_{name}")())


_FOR_GOOD = frozenset(
    {
        "InvalidRecordError", "InvalidTimestampError", "InvalidTopicError", "PolicyViolationError",
        "TopicAuthorizationFailedError", "ClusterAuthorizationFailedError", "UnsupportedForMessageFormatError",
        "UnsupportedCompressionTypeError",
    }
)  # fmt: skip
"""kafka-python's errors that do not end by waiting."""


def _is_too_large(error: Exception) -> bool:
    return type(error).__name__ in ("MessageSizeTooLargeError", "RecordListTooLargeError")


def _describe_error(error: Exception) -> str:
    """An error of kafka-python in one line, without secrets."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__.removesuffix("Error")).lower()
    text = mask_passwords(printable(" ".join(str(error).split())))[:160]
    return f"{name}: {text}" if text and text != type(error).__name__ else name
