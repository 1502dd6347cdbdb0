"""Where a Kafka source begins, and what it does without a leader, by a cluster that a test describes."""

from __future__ import annotations

import io
import queue
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.errors import KafkaError, StaleMetadata

from sparkstream_nb.lang.parser import parse
from sparkstream_nb.plan.connectors.mappings import source_mapping
from sparkstream_nb.sources import kafka_process, kafka_source
from sparkstream_nb.sources.aligning import PATIENCE
from sparkstream_nb.sources.kafka_frames import Begin, Hold, JournaledOffsets, Read, ReadPart, read_frame
from sparkstream_nb.sources.kafka_process import Process
from sparkstream_nb.sources.kafka_source import EventTime, KafkaReader
from sparkstream_nb.sources.kafka_source_place import KafkaSourcePlace
from sparkstream_nb.sources.reader import PLACE, SourceUnavailable
from sparkstream_nb.types import Attribute, Schema, Type
from tests.broker import Broker
from tests.sources.test_aligning import portion

SCHEMA = Schema((Attribute("v", Type.LONG), Attribute("k", Type.STRING)))
ENDS = {0: (0, 10), 1: (5, 20), 2: (0, 0)}


@dataclass
class Cluster:
    """A cluster with topic `t`: by partition its first and its next offset. Those that are `led` have a leader."""

    id: str | None = "one"
    ends: dict[int, tuple[int, int]] = field(default_factory=lambda: dict(ENDS))
    led: set[int] = field(default_factory=lambda: {0, 1, 2})
    committed: dict[int, int] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)

    def topic_id(self, name: str) -> str | None:
        return self.ids.get(name)

    @property
    def cluster_id(self) -> str | None:
        return self.id

    def leader_for_partition(self, place: TopicPartition) -> int | None:
        return (7 if place.partition in self.led else -1) if place.partition in self.ends else None


class Consumer:
    """As kafka-python's, whose offsets lack a partition without a leader."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._at: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()

    def partitions_for_topic(self, topic: str) -> set[int]:
        return set(self._cluster.ends)

    def topics(self) -> set[str]:
        return {"t"}

    def _offsets(self, places: Iterable[TopicPartition], which: int) -> dict[TopicPartition, int]:
        found = {p: self._cluster.ends[p.partition][which] for p in places if p.partition in self._cluster.led}
        if not found:
            raise StaleMetadata  # in truth it asks again, without end
        return {p: found[p] for p in places}

    def beginning_offsets(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        return self._offsets(places, 0)

    def end_offsets(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        return self._offsets(places, 1)

    def committed(self, place: TopicPartition) -> int | None:
        return self._cluster.committed.get(place.partition)

    def assign(self, places: list[TopicPartition]) -> None: ...

    def seek(self, place: TopicPartition, offset: int) -> None:
        self._at[place] = offset

    def position(self, place: TopicPartition) -> int:
        return self._at[place]

    def highwater(self, place: TopicPartition) -> int:
        return self._cluster.ends[place.partition][1]

    def paused(self) -> set[TopicPartition]:
        return self._paused

    def pause(self, *places: TopicPartition) -> None:
        self._paused |= set(places)

    def resume(self, *places: TopicPartition) -> None:
        self._paused -= set(places)

    def close(self) -> None: ...


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    found = Cluster()
    for module in (kafka_source, kafka_process):
        monkeypatch.setattr(module, "KafkaConsumer", lambda **options: Consumer(found))
    return found


class Reader(KafkaReader):
    """Starts no process, and notes what it would have read."""

    def __init__(self, time: EventTime | None = None, *, latest: bool = False) -> None:
        app = parse("@source(type='kafka', @map(type='csv')) define stream S (v long, k string);")
        mapping = source_mapping(app.definitions[0].annotations[0].nested[0], SCHEMA)
        super().__init__(KafkaSourcePlace(("t",), None, "g", {}, latest, True, {}), mapping, SCHEMA, time)
        self.begins: list[Begin] = []

    def _start(self, begin: Begin) -> None:
        self.begins.append(begin)

    def places(self) -> dict[int, int]:
        """By partition the offset from which it is read."""
        return {p: offset for begin in self.begins for (_, p), offset in begin.places.items()}

    def moved(self) -> Mapping[str, Any]:
        """What changed of the position as it was opened."""
        taken = self.read(0.0)
        if taken is None:
            return {}
        assert taken.lasting
        return taken.reached


FORMER = {"t:0": 4, "t:1": 9, "t:2": 0}
POSITIONS: list[tuple[str | None, dict[str, Any], dict[int, int], dict[str, Any], str | None]] = [
    # the cluster's id, the position, where partitions begin, what changes of the position, what is said
    ("one", {}, {0: 0, 1: 5, 2: 0}, {"t:0": 0, "t:1": 5, "t:2": 0, PLACE: "one"}, None),
    ("one", {**FORMER, PLACE: "one"}, {0: 4, 1: 9, 2: 0}, {}, None),
    ("one", FORMER, {0: 4, 1: 9, 2: 0}, {PLACE: "one"}, None),  # of an app that knew no clusters
    ("one", {**FORMER, "old:0": 7, PLACE: "two"}, {0: 0, 1: 5, 2: 0},
     {"t:0": 0, "t:1": 5, "t:2": 0, "old:0": None, PLACE: "one"},
     "it has read from another Kafka cluster until now (two), and begins anew at this one (one)"),
    (None, {**FORMER, PLACE: "two"}, {0: 4, 1: 9, 2: 0}, {}, None),  # its brokers do not say
    (None, {}, {0: 0, 1: 5, 2: 0}, {"t:0": 0, "t:1": 5, "t:2": 0}, None),
    ("one", {**FORMER, "t:1": 2, PLACE: "one"}, {0: 4, 1: 5, 2: 0}, {"t:1": 5},
     "3 messages of t:1 are gone: the broker removed them unread"),
    ("one", {"t:0": 4, "t:1": 9, PLACE: "one"}, {0: 4, 1: 9, 2: 0}, {"t:2": 0}, None),
]  # fmt: skip


@pytest.mark.parametrize(("id", "reached", "begins", "moved", "said"), POSITIONS)
def test_a_position_is_of_one_cluster(
    cluster: Cluster, id: str | None, reached: dict[str, Any], begins: dict[int, int], moved: dict[str, Any],
    said: str | None,
) -> None:  # fmt: skip
    cluster.id = id
    reader = Reader()
    assert reader.open(reached) == said
    assert reader.places() == begins
    assert reader.moved() == moved
    assert {b.cluster for b in reader.begins} == {id}


def test_another_cluster_is_begun_with_as_a_new_source(cluster: Cluster) -> None:
    """Where the group is, else at the end with `auto.offset.reset:latest`."""
    cluster.committed = {1: 12}
    reader = Reader(latest=True)
    reader.open({**FORMER, PLACE: "two"})
    assert reader.places() == {0: 10, 1: 12, 2: 0}


def test_a_topic_that_was_made_again_is_read_from_its_beginning(cluster: Cluster) -> None:
    """Also where it has more messages than were read of the former one, and where the group has an offset."""
    position: dict[str, Any] = {**FORMER, PLACE: "one"}
    cluster.ids, cluster.committed = {"t": "first"}, {1: 12}
    before = Reader()
    assert before.open(position) is None  # of an app that knew no ids of topics
    assert before.moved() == {"@topic t": "first"}
    position["@topic t"], cluster.ids = "first", {"t": "second"}
    reader = Reader(latest=True)
    assert reader.open(position) == "topic 't' was deleted and made again, and is read from its beginning"
    assert reader.places() == {0: 0, 1: 5, 2: 0}
    assert reader.moved() == {"t:0": 0, "t:1": 5, "t:2": 0, "@topic t": "second"}
    cluster.led = {0}
    away = Reader()
    away.open(position)
    assert away.moved() == {"t:0": 0, "t:1": 0, "t:2": 0, "@topic t": "second"}
    cluster.led, cluster.ids = {0, 1, 2}, {}  # its brokers do not say
    assert Reader().open(position) is None


def test_a_topic_beside_one_that_was_made_again_is_a_later_one(cluster: Cluster) -> None:
    """So what is in it is read."""
    cluster.ids = {"t": "second", "u": "other"}
    reader = Reader(latest=True)
    reader.place = replace(reader.place, topics=("t", "u"))
    reader.open({**FORMER, PLACE: "one", "@topic t": "first", "@topic u": "one before it was named"})
    assert {p: offset for b in reader.begins for p, offset in b.places.items() if p[0] == "u"} == {
        ("u", 0): 0, ("u", 1): 5, ("u", 2): 0,
    }  # fmt: skip


def test_a_partition_without_a_leader_is_left_out(cluster: Cluster) -> None:
    cluster.led = {0}
    reader = Reader()
    said = reader.open({"t:0": 4, "t:1": 9, PLACE: "one"})
    assert said == "without a leader, and not read until there is one: t:1, t:2"
    assert reader.places() == {0: 4}
    assert reader.moved() == {}
    assert {b.leaderless for b in reader.begins} == {frozenset({("t", 1), ("t", 2)})}
    reader._frames.put(Read(reader._nothing, 0, {}, {"t:0": 0}, 1.0))
    assert reader.read(0.0) is None
    assert reader.behind() is None  # what the others have is not known
    cluster.led = {0, 1, 2}
    again = Reader(latest=True)
    assert again.open({"t:0": 4, "t:1": 9, PLACE: "one"}) is None
    assert again.places() == {0: 4, 1: 9, 2: 0}


def test_no_partition_has_a_leader(cluster: Cluster) -> None:
    cluster.led = set()
    with pytest.raises(SourceUnavailable, match=r"^no partition of t has a leader$"):
        Reader().open({})


def test_others_wait_a_while_for_one_without_a_leader(cluster: Cluster) -> None:
    cluster.led = {0}
    reader = Reader(EventTime(0, lambda: None))
    reader.open({**FORMER, PLACE: "one"})
    reader._frames.put(ReadPart(portion("t:0", [(4, [1]), (5, [2])]), {"t:0": 0}, 1.0))
    waited, found = 0.0, None
    while found is None and waited < 2 * PATIENCE:
        found, waited = reader.read(0.0), waited + 1.0
        assert reader._alignment is not None
        reader._alignment.note_wait(1.0)
    assert found is not None
    assert found.reached == {"t:0": 6}
    assert PATIENCE <= waited < PATIENCE + 3


def process(begin: Begin) -> tuple[Process, io.BytesIO]:
    out = io.BytesIO()
    return Process(begin, out, queue.SimpleQueue()), out


def test_a_partition_that_was_held_goes_on_after_the_others_have_ended(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_process, "MESSAGES", 10)
    topic = broker.topic(partitions=3)
    producer = broker.producer(linger_ms=0, batch_size=0)
    for v in range(300):
        producer.send(topic, f"{v},k".encode(), partition=v % 3)
    producer.flush()
    producer.close()
    reader = Reader()
    places = {(topic, p): 0 for p in range(3)}
    out, orders = io.BytesIO(), queue.SimpleQueue[JournaledOffsets | Hold]()
    options = {"bootstrap_servers": broker.address}
    begin = Begin(options, "g", False, places, reader._mapping, reader._schema, None, None)
    reads = Process(begin, out, orders)
    got = dict.fromkeys(range(3), 0)
    began = time.monotonic()

    def read() -> None:
        begin = out.tell()
        reads.read()
        out.seek(begin)
        while (frame := read_frame(out)) is not None:
            got.update({int(part.rsplit(":")[1]): offset for part, offset in frame.next_offsets.items()})

    while not any(got.values()):
        read()
    held = max(got, key=lambda p: got[p])  # the consumer has more of it
    orders.put(Hold(frozenset({f"{topic}:{held}"})))
    while any(got[p] < 100 for p in got if p != held):
        read()
    assert got[held] < 100
    orders.put(Hold(frozenset()))
    while got[held] < 100 and time.monotonic() - began < 60:
        read()
    assert got[held] == 100


@pytest.fixture
def begin(cluster: Cluster) -> Begin:
    reader = Reader()
    reader.open({**FORMER, PLACE: "one"})
    return replace(reader.begins[0], places={("t", p): FORMER[f"t:{p}"] for p in range(3)})


def test_a_process_whose_partition_loses_its_leader_says_so(cluster: Cluster, begin: Begin) -> None:
    reads, out = process(begin)
    reads._check(silent=True)
    out.seek(0)
    assert read_frame(out).backlogs == {"t:0": 6, "t:1": 11, "t:2": 0}
    cluster.led = {0, 2}
    with pytest.raises(KafkaError, match="no leader for t:1"):
        reads._check(silent=True)
    with pytest.raises(KafkaError, match="lost its leader"):  # between the two
        reads._tell_of_silence()


def test_a_process_says_that_a_partition_has_a_leader_again(cluster: Cluster, begin: Begin) -> None:
    cluster.led = {0}
    reads, _ = process(replace(begin, places={("t", 0): 4}, leaderless=frozenset({("t", 1), ("t", 2)})))
    reads._check(silent=True)
    cluster.led = {0, 2}
    with pytest.raises(KafkaError, match="a leader again for t:2"):
        reads._check(silent=True)


def test_a_process_says_that_nothing_comes(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever keeps the consumer from it. What is held back, and what is read to its end, may stand."""
    monkeypatch.setattr(kafka_process, "MOST_IN_VAIN", 0)
    reads, _ = process(begin)

    def check_after_a_poll() -> None:
        reads._polls += 1
        reads._check(silent=False)

    for offset in range(5, 9):
        reads._consumer.seek(TopicPartition("t", 0), offset)
        reads._consumer.seek(TopicPartition("t", 1), offset)
        check_after_a_poll()
    reads._consumer.seek(TopicPartition("t", 0), 10)
    reads._orders.put(Hold(frozenset({"t:1"})))
    reads._obey()
    for _ in range(2):
        check_after_a_poll()
    reads._orders.put(Hold(frozenset()))
    reads._obey()
    check_after_a_poll()
    with pytest.raises(KafkaError, match="nothing comes of t:1, where 12 messages are"):
        check_after_a_poll()


def test_a_process_reads_of_one_cluster(cluster: Cluster, begin: Begin) -> None:
    reads, _ = process(begin)
    reads._tell_of_silence()
    cluster.id = "two"
    for call in (reads._tell_of_silence, lambda: reads._tell({})):
        with pytest.raises(KafkaError, match="another Kafka cluster"):
            call()


def test_a_process_reads_of_one_topic(cluster: Cluster, begin: Begin) -> None:
    cluster.ids = {"t": "first"}
    reads, _ = process(replace(begin, ids={"t": "first"}))
    reads._tell_of_silence()
    cluster.ids = {"t": "second"}
    with pytest.raises(KafkaError, match="topic 't' was deleted and made again"):
        reads._tell_of_silence()
