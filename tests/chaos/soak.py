"""An app at work for long: what it holds must not grow.

    python -m tests.chaos.soak --seconds 3600 --out docs/soak.csv [--kafka 50000]

Three batches a second, or so many events a second through a topic of a real broker; a line each ten seconds with the
memory of driver, JVM and workers, descriptors, threads, files and bytes of the app's folder, and the time from sending
a batch to its commit.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from tests.bench.streams import producing
from tests.broker import kafka

APP = """
define stream S (k string, v int);
@PrimaryKey('k') define table T (k string, v int);
define aggregation A from S select k, sum(v) as total, count() as n group by k aggregate every sec, min, hour;
@info(name = 'window') from S#window.time(10 sec) select k, sum(v) as total group by k insert into Sums;
@info(name = 'pattern') from every e1=S[v > 80] -> e2=S[k == e1.k and v < 20] within 3 sec
select e1.k as k, e1.v as high, e2.v as low insert into Falls;
@info(name = 'table') from S select k, v update or insert into T set T.v = v on T.k == k;
"""
KAFKA_APP = """
@source(type='kafka', bootstrap.servers='{broker}', topic.list='{topic}', group.id='soak',
        threading.option='partition.wise', event.time='at', @map(type='json'))
define stream S (k string, v long, at long);
@PrimaryKey('k') define table T (k string, v long);
define aggregation A from S select k, sum(v) as total, count() as n group by k aggregate every sec, min, hour;
@info(name = 'window') from S#window.time(10 sec) select k, sum(v) as total group by k insert into Sums;
@info(name = 'high') from Sums[total > 30000000] select k, total insert into High;
@info(name = 'pattern') from every e1=S[v > 9990] -> e2=S[k == e1.k and v < 10] within 3 sec
select e1.k as k, e1.v as high, e2.v as low insert into Falls;
@info(name = 'table') from S[v > 9000] select k, v update or insert into T set T.v = v on T.k == k;
"""
PARTITIONS = 2
BATCHES_A_SECOND = 3
EVENTS = 200
SETTINGS = {"retention": "recording=20MB,outputs=20MB"}


@dataclass(frozen=True)
class Sample:
    """What there is `at` so many seconds: MB of resident memory, MB of disk, ms of latency (median of ten seconds), how
    many events a second were committed since the last sample."""

    at: float
    driver_mb: float
    jvm_mb: float
    workers_mb: float
    descriptors: int
    threads: int
    processes: int
    files: int
    disk_mb: float
    latency_ms: float
    events_per_s: float


def soak(app: Any, seconds: float, every: float, tell: Callable[[Sample], None]) -> None:
    """Sends batches to `app` for so long, in real time."""
    rng = np.random.default_rng(1)
    jvm = psutil.Process(app.runtime.session.spark._jvm.java.lang.ProcessHandle.current().pid())
    began = time.monotonic()
    told, latencies, number, counted = 0.0, [], 0, 0
    while (now := time.monotonic() - began) < seconds:
        events = [
            [f"k{k}", int(v)] for k, v in zip(rng.integers(0, 50, EVENTS), rng.integers(0, 100, EVENTS), strict=True)
        ]
        sent = time.monotonic()
        app.send("S", events)
        app.flush()
        latencies.append(1000 * (time.monotonic() - sent))
        number += 1
        if now - told >= every:
            tell(sample(app, jvm, now, latencies, (number - counted) * EVENTS / (now - told)))
            told, latencies, counted = now, [], number
        time.sleep(max(0.0, began + number / BATCHES_A_SECOND - time.monotonic()))


def soak_kafka(app: Any, seconds: float, tell: Callable[[Sample], None], others: Collection[int]) -> None:
    """Watches `app` take what comes from its source for so long; `others` are processes that are not the app's. The
    latency of a micro-batch is that of its first event: from the time that this has, to the commit."""
    jvm = psutil.Process(app.runtime.session.spark._jvm.java.lang.ProcessHandle.current().pid())
    progress, latencies = app.runtime.progress, []
    ending = threading.Event()

    def watch() -> None:
        batch = progress.batch
        while not ending.is_set():
            with progress.changed:
                progress.changed.wait(0.5)
                if progress.batch == batch:
                    continue
                batch, report = progress.batch, progress.nodes.get(0)
            if report is not None and report.clock is not None:
                latencies.append(1000 * time.time() - report.clock.before)

    thread = threading.Thread(target=watch)
    thread.start()
    began, committed, told = time.monotonic(), sum(progress.taken.values()), 0.0
    while time.monotonic() - began < seconds:
        time.sleep(10.0)
        found, latencies = latencies, []
        taken, at = sum(progress.taken.values()), time.monotonic() - began
        tell(sample(app, jvm, at, found or [float("nan")], (taken - committed) / (at - told), others))
        committed, told = taken, at
    ending.set()
    thread.join()


def sample(
    app: Any, jvm: psutil.Process, at: float, latencies: list[float], rate: float, others: Collection[int] = ()
) -> Sample:
    """What there is now."""
    own = psutil.Process()
    children = [p for p in own.children(recursive=True) if p.pid not in {jvm.pid, *others}]
    files = [Path(root, name) for root, _, names in os.walk(app.home) for name in names]
    return Sample(
        round(at, 1),
        _mb(own),
        _mb(jvm),
        round(sum(_mb(p) for p in children), 1),
        own.num_fds() + jvm.num_fds(),
        own.num_threads() + jvm.num_threads(),
        len(children),
        len(files),
        round(sum(_size(f) for f in files) / 1e6, 2),
        round(float(np.median(latencies)), 1),
        round(rate),
    )


def _mb(process: psutil.Process) -> float:
    try:
        return round(process.memory_info().rss / 1e6, 1)
    except psutil.NoSuchProcess:
        return 0.0


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def main() -> None:
    """The command."""
    from sparkstream_nb.app import deploy

    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--kafka", type=int, default=0, metavar="RATE")
    options = parser.parse_args()
    sink = options.out.open("w", newline="") if options.out else sys.stdout
    writer = csv.DictWriter(sink, [f.name for f in fields(Sample)])
    writer.writeheader()

    def tell(found: Sample) -> None:
        writer.writerow(asdict(found))
        sink.flush()

    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        home = Path(folder) / "home"
        if options.kafka:
            with kafka() as broker:
                topic = broker.topic(partitions=PARTITIONS, **{"retention.ms": "600000", "segment.ms": "60000"})
                text = KAFKA_APP.format(broker=broker.address, topic=topic)
                app = deploy(text, name="soak", home=home, nodes=1, allow=[f"kafka={broker.address}"], **SETTINGS)
                events = round(options.kafka * options.seconds)
                producer = producing(broker, topic, PARTITIONS, events, options.kafka)
                assert broker.process is not None
                try:
                    soak_kafka(app, options.seconds, tell, {broker.process.pid, producer.pid})
                finally:
                    producer.kill()
                    producer.wait()
                app.stop()
            return
        app = deploy(APP, name="soak", home=home, nodes=2, **SETTINGS)
        soak(app, options.seconds, 10.0, tell)
        app.stop()


if __name__ == "__main__":
    main()
