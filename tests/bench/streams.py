"""Events through a real broker: an app, a bare Spark job over the same topic that only counts, a bare consumer.

    python -m tests.bench.streams [--events 2000000] [--partitions 4]

The bare job is a Python data source over kafka-python that yields Arrow batches, its partitions in parallel.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from kafka import KafkaConsumer, TopicPartition
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from tests.broker import HOME, Broker, kafka

_FETCH = {"max_poll_records": 50_000, "fetch_max_bytes": 1 << 26, "max_partition_fetch_bytes": 1 << 23,
          "enable_auto_commit": False}  # fmt: skip
APPS = {
    "count": "from S select count() as n insert into O;",
    "window": "from S#window.time(1 sec) select k, avg(v) as average group by k insert into O;",
    "pattern": "from every e1=S[v > 9990] -> e2=S[k == e1.k and v < 10] within 10 sec "
    "select e1.k as k, e2.v as low insert into O;",
    "aggregation": "define aggregation A from S select k, sum(v) as total group by k aggregate every sec, min;",
}


def produce(broker: Broker, topic: str, partitions: int, events: int) -> None:
    """Fills a topic, with Kafka's own client."""
    process = producing(broker, topic, partitions, events)
    assert process.wait() == 0


def producing(
    broker: Broker, topic: str, partitions: int, events: int, rate: int | None = None
) -> subprocess.Popen[bytes]:
    """The process that fills a topic; with a rate, so many events a second, each with its own time."""
    java = shutil.which("java")
    assert java is not None
    program = Path(__file__).with_name("Produce.java")
    return subprocess.Popen(
        [java, "-Xmx512m", "-cp", f"{HOME / 'jars'}/*", str(program), broker.address, topic, str(partitions),
         str(events), *([] if rate is None else [str(rate)])],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def bare_consumer(broker: Broker, topic: str, partitions: int, events: int) -> float:
    """Seconds of one consumer that counts."""
    consumer = KafkaConsumer(bootstrap_servers=broker.address, **_FETCH)
    places = [TopicPartition(topic, p) for p in range(partitions)]
    consumer.assign(places)
    consumer.seek_to_beginning(*places)
    began, count = time.perf_counter(), 0
    while count < events:
        count += sum(map(len, consumer.poll(1000).values()))
    took = time.perf_counter() - began
    consumer.close()
    return took


class Share(InputPartition):
    def __init__(self, number: int, begin: int, end: int) -> None:
        self.number, self.begin, self.end = number, begin, end


class TopicReader(DataSourceStreamReader):
    def __init__(self, options: dict[str, str]) -> None:
        self.broker, self.topic, self.count = options["broker"], options["topic"], int(options["partitions"])

    def _places(self) -> list[TopicPartition]:
        return [TopicPartition(self.topic, p) for p in range(self.count)]

    def initialOffset(self) -> dict[str, int]:
        return {str(p): 0 for p in range(self.count)}

    def latestOffset(self) -> dict[str, int]:
        consumer = KafkaConsumer(bootstrap_servers=self.broker)
        ends = consumer.end_offsets(self._places())
        consumer.close()
        return {str(p.partition): offset for p, offset in ends.items()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Share]:
        return [Share(int(p), start[p], end[p]) for p in end if end[p] > start[p]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        consumer = KafkaConsumer(bootstrap_servers=self.broker, **_FETCH)
        place = TopicPartition(self.topic, partition.number)
        consumer.assign([place])
        consumer.seek(place, partition.begin)
        at = partition.begin
        while at < partition.end:
            for records in consumer.poll(1000).values():
                values = [r.value for r in records if r.offset < partition.end]
                at = records[-1].offset + 1
                yield pa.record_batch([pa.array(values, pa.binary())], ["value"])
        consumer.close()

    def commit(self, end: dict[str, int]) -> None:
        pass


class TopicSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "bench_topic"

    def schema(self) -> str:
        return "value binary"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return TopicReader(dict(self.options))


def bare_job(session: Any, broker: Broker, topic: str, partitions: int, events: int) -> float:
    """Seconds of a streaming query that only counts, from its start to the last event."""
    session.dataSource.register(TopicSource)
    counted = [0]

    def count(frame: Any, batch: int) -> None:
        counted[0] += frame.count()

    with tempfile.TemporaryDirectory() as folder:
        options = {"broker": broker.address, "topic": topic, "partitions": str(partitions)}
        stream = session.readStream.format("bench_topic").options(**options).load()
        began = time.perf_counter()
        query = stream.writeStream.foreachBatch(count).option("checkpointLocation", folder).start()
        while counted[0] < events and query.isActive:
            time.sleep(0.01)
        took = time.perf_counter() - began
        query.stop()
    assert counted[0] == events
    return took


def app_seconds(broker: Broker, topic: str, events: int, queries: str, folder: Path) -> tuple[float, list[list[int]]]:
    """Seconds of an app, from its deployment to the commit of the last event, and the lag of each partition (messages)
    when a quarter, a half and three quarters had been read."""
    from sparkstream_nb.app import deploy

    text = f"""
    @source(type='kafka', bootstrap.servers='{broker.address}', topic.list='{topic}', group.id='{folder.name}',
            threading.option='partition.wise', event.time='at', @map(type='json'))
    define stream S (k string, v long, at long);
    {queries}
    """
    began = time.perf_counter()
    app = deploy(text, name=folder.name, home=folder, allow=[f"kafka={broker.address}"])
    changed, lags = app.runtime.progress.changed, []
    with changed:
        while (source := app.stats().sources[0]).events < events:
            if source.behind is not None and source.events >= events * (len(lags) + 1) / 4:
                lags.append([n for _, n in sorted(source.behind.items())])
            changed.wait(0.05)
    app.flush()
    took = time.perf_counter() - began
    app.stop()
    return took, lags


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.streams")
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--partitions", type=int, default=4)
    options = parser.parse_args()
    from sparkstream_nb.runners.spark.shared_session import spark_session

    os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
    session = spark_session("local[2]")
    with kafka() as broker, tempfile.TemporaryDirectory() as folder:
        topic = broker.topic(partitions=options.partitions)
        produce(broker, topic, options.partitions, options.events)
        warm = broker.topic(partitions=options.partitions)
        produce(broker, warm, options.partitions, 20_000)
        bare_job(session, broker, warm, options.partitions, 20_000)

        def say(what: str, seconds: float) -> None:
            print(f"{what}: {options.events / seconds:,.0f} events/s ({seconds:.1f} s)", flush=True)

        say("bare kafka-python consumer", bare_consumer(broker, topic, options.partitions, options.events))
        say("bare Spark job that counts", bare_job(session, broker, topic, options.partitions, options.events))
        for name, queries in APPS.items():
            app_seconds(broker, warm, 20_000, queries, Path(folder) / f"warm-{name}")
            seconds, lags = app_seconds(broker, topic, options.events, queries, Path(folder) / name)
            say(f"app: {name}", seconds)
            for lag in lags:
                print(f"  lag by partition: {', '.join(f'{n:,}' for n in lag)}", flush=True)


if __name__ == "__main__":
    main()
