"""A Kafka broker of a test's own, on loopback, in a folder that goes with it.

The jars come from Maven, once, and are kept in `$SPARKSTREAM_KAFKA_HOME`, or in the user's cache folder.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from .jars import fetch, home_of, java, skip_without, skip_without_java
from .processes import ending_with_this, free_port
from .servers import NOT_YOURS

POM = Path(__file__).with_name("broker.pom.xml")
HOME = home_of("kafka")
_PATIENCE = 60.0
_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/log
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


@dataclass
class Broker:
    """A running broker. `stop` and `start` kill it and start it again on its port, with its data."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return f"127.0.0.1:{self.port}"

    def words(self) -> dict[str, Any]:
        """All that another process needs to use it, as JSON has it."""
        return {"folder": str(self.folder), "port": self.port}

    def start(self) -> None:
        """Starts it, and waits until it takes connections."""
        with (self.folder / "broker.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*_java(), "kafka.Kafka", str(self.folder / "server.properties")],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder, preexec_fn=ending_with_this(),
            )  # fmt: skip
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            assert self.process.poll() is None, (self.folder / "broker.log").read_text(errors="replace")[-2000:]
            time.sleep(0.05)
        raise AssertionError("the broker does not answer")

    def stop(self) -> None:
        """Kills it, as a crash of its machine does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(30)
            self.process = None

    def topic(self, name: str | None = None, partitions: int = 1, **settings: str) -> str:
        """The name of a new topic."""
        name = name or f"t-{uuid.uuid4().hex[:12]}"
        admin = KafkaAdminClient(bootstrap_servers=self.address)
        try:
            admin.create_topics([NewTopic(name, partitions, 1, topic_configs=settings)])
        finally:
            admin.close()
        return name

    def producer(self, **options: object) -> KafkaProducer:
        """A producer, to be closed."""
        return KafkaProducer(bootstrap_servers=self.address, **options)

    def messages(self, topic: str) -> list[tuple[int, bytes | None, bytes]]:
        """(partition, key, value) of all messages that a topic has now, partition by partition."""
        return [(r.partition, r.key, r.value) for r in self.records(topic)]

    def records(self, topic: str) -> list[Any]:
        """The records that a topic has now, partition by partition, as kafka-python has them."""
        consumer = KafkaConsumer(bootstrap_servers=self.address, enable_auto_commit=False)
        try:
            places = [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic) or ())]
            consumer.assign(places)
            consumer.seek_to_beginning(*places)
            ends = consumer.end_offsets(places)
            found: list[Any] = []
            while any(consumer.position(p) < ends[p] for p in places):
                for records in consumer.poll(1000).values():
                    found += records
            return sorted(found, key=lambda r: r.partition)
        finally:
            consumer.close()


@dataclass
class RunBroker(Broker):
    """The broker that all tests share (`run_servers`)."""

    @staticmethod
    def of(words: Mapping[str, Any]) -> RunBroker:
        """The one of these `words`."""
        return RunBroker(Path(words["folder"]), words["port"])

    def start(self) -> None:
        """No test's to start."""
        raise AssertionError(NOT_YOURS)

    def stop(self) -> None:
        """No test's to stop."""
        raise AssertionError(NOT_YOURS)


@contextlib.contextmanager
def kafka(port: int = 0) -> Iterator[Broker]:
    """A broker with no topics. Port 0 is a free one."""
    folder = Path(tempfile.mkdtemp(prefix="sparkstream-kafka-"))
    broker = Broker(folder, port or free_port())
    text = _PROPERTIES.format(port=broker.port, controller=free_port(), folder=folder)
    (folder / "server.properties").write_text(text)
    try:
        subprocess.run(
            [*_java(), "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c",
             str(folder / "server.properties")],
            check=True, capture_output=True,
        )  # fmt: skip
        broker.start()
        yield broker
    finally:
        broker.stop()
        shutil.rmtree(folder, ignore_errors=True)


def skip_without_kafka() -> None:
    """Skips the test where there is no Java, or no Maven for the broker's jars."""
    skip_without_java("a Kafka broker")
    skip_without("a Kafka broker", HOME)


def _java() -> list[str]:
    return [java(), "-Xmx512m", "-XX:+UseSerialGC", "-cp", f"{fetch(POM, HOME)}/*"]
