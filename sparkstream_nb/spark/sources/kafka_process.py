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
from typing import IO, Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from ...mapping.decoding import Decoded, Decoder, Rejected, decoder
from .kafka import consumer_options, part_of
from .kafka_frames import Begin, Failed, Kept, Read, read_frame, write_frame
from .kafka_records import count_of, messages_of, read_batches

MESSAGES = 50_000
"""Messages that are decoded at once, at most."""
GATHER_SECONDS = 0.05
"""How long a message waits for others, at most."""
CHECK_SECONDS = 3.0
"""How often a silent broker is asked whether it is there, and whether there are more partitions."""
COMMIT_SECONDS = 1.0
_FETCH = {
    "max_poll_records": MESSAGES, "fetch_max_bytes": 1 << 26, "max_partition_fetch_bytes": 1 << 23,
    "receive_buffer_bytes": 1 << 20,
}  # fmt: skip


class Process:
    """Reads what `begin` names, and writes what it read to `out`. `orders` has what the app keeps."""

    def __init__(self, begin: Begin, out: IO[bytes], orders: queue.SimpleQueue[Kept]) -> None:
        self.begin, self._out, self._orders = begin, out, orders
        self._decoder: Decoder = decoder(begin.mapping, begin.schema)
        self._headers = [h for h in begin.mapping.headers if h is not None]
        self._consumer = KafkaConsumer(**{**_FETCH, **consumer_options(begin.options, begin.group)})
        if not self._headers:  # else keys, headers and times of single records are asked for
            read_batches(self._consumer)
        self._places = {TopicPartition(*p): offset for p, offset in begin.places.items()}
        self._consumer.assign(list(self._places))
        for place, offset in self._places.items():
            self._consumer.seek(place, offset)
        self._checked = self._committed = time.monotonic()
        self._kept: dict[str, int] = {}

    def run(self) -> None:
        """Reads until the pipe is closed or the broker fails. Raises KafkaError and OSError."""
        self._tell_of_silence()
        while True:
            found = self._consumer.poll(200, max_records=MESSAGES)
            if found:
                self._gather(found)
                self._tell(found)
            self._commit()
            if time.monotonic() - self._checked > CHECK_SECONDS:
                self._check(silent=not found)

    def _gather(self, found: dict[TopicPartition, list[Any]]) -> None:
        """Waits a little for more messages, where few came."""
        end = time.monotonic() + GATHER_SECONDS
        while sum(map(count_of, found.values())) < MESSAGES and (left := end - time.monotonic()) > 0:
            for place, records in self._consumer.poll(int(1000 * left), max_records=MESSAGES).items():
                found.setdefault(place, []).extend(records)

    def _tell(self, found: Mapping[TopicPartition, Sequence[Any]]) -> None:
        at = time.monotonic()
        records = [r for place in sorted(found) for r in found[place]]
        reached = {part_of(*place): rs[-1].offset + 1 for place, rs in found.items() if rs}
        behind = {}
        for place in self._places:
            high = self._consumer.highwater(place)
            if high is not None:
                behind[part_of(*place)] = max(0, high - self._consumer.position(place))
        messages = messages_of(records)
        headers = [self._properties(r) for r in records] if self._headers else None
        write_frame(self._out, Read(self._decoded(messages, headers), len(messages), reached, behind, at))

    def _decoded(self, messages: Sequence[bytes | None], headers: Sequence[dict[str, str]] | None) -> Decoded:
        """The events of messages; one without a value is rejected."""
        full = [(i, m) for i, m in enumerate(messages) if m is not None]
        own = None if headers is None else [headers[i] for i, _ in full]
        found = self._decoder.decode([m for _, m in full], own)
        if len(full) == len(messages):
            return found
        empty = [Rejected(i, "it has no value (a tombstone)", "") for i, m in enumerate(messages) if m is None]
        return Decoded(found.columns, found.message, (*found.rejected, *empty))

    def _properties(self, record: Any) -> dict[str, str]:
        """The transport properties of siddhi-io-kafka that the mapping names, and the message's headers."""
        out = {k: (v or b"").decode("utf-8", "replace") for k, v in record.headers or ()}
        out |= {"topic": record.topic, "partition": str(record.partition), "offSet": str(record.offset)}
        out |= {"record.timestamp": str(record.timestamp), "timestamp": str(record.timestamp)}
        if record.key is not None:
            out["key"] = record.key.decode("utf-8", "replace")
        return out

    def _commit(self) -> None:
        """Tells the broker how far the group is, now and then. That is for its tools: the inbox has the truth."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._kept.update(self._orders.get_nowait().reached)
        if not self._kept or time.monotonic() - self._committed < COMMIT_SECONDS:
            return
        self._committed = time.monotonic()
        offsets = {p: OffsetAndMetadata(self._kept[part_of(*p)], "", -1)
                   for p in self._places if part_of(*p) in self._kept}  # fmt: skip
        self._kept = {}
        with contextlib.suppress(KafkaError):
            self._consumer.commit_async(offsets)

    def _tell_of_silence(self) -> None:
        """Says how much is there, with no message. Raises KafkaError where the broker does not answer."""
        at = time.monotonic()
        ends = self._consumer.end_offsets(list(self._places))
        behind = {part_of(*p): max(0, ends[p] - self._consumer.position(p)) for p in self._places}
        write_frame(self._out, Read(self._decoder.decode([]), 0, {}, behind, at))

    def _check(self, *, silent: bool) -> None:
        """Raises KafkaError where the broker is gone or has further partitions."""
        self._checked = time.monotonic()
        if silent:
            self._tell_of_silence()
        for topic, count in (self.begin.known or {}).items():
            if len(self._consumer.partitions_for_topic(topic) or ()) != count:
                raise KafkaError(f"topic '{topic}' has other partitions than before")


def main() -> None:
    """The process: what to read comes as the first frame."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what others print must not get into the pipe
    pipe = os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
    begin = read_frame(pipe)
    assert isinstance(begin, Begin)
    orders: queue.SimpleQueue[Kept] = queue.SimpleQueue()

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
            write_frame(out, Failed(f"{type(error).__name__}: {error}"))
    except Exception as error:
        with contextlib.suppress(OSError):
            write_frame(out, Failed(f"the process that reads it failed: {type(error).__name__}: {error}"))
    os._exit(0)


if __name__ == "__main__":
    main()
