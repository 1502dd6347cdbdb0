"""An app at work for long: what it holds must not grow.

    python -m tests.chaos.soak --seconds 3600 --out docs/soak.csv

Three batches a second; a line each ten seconds with the memory of driver, JVM and workers, descriptors, threads, files
and bytes of the app's folder, and the time from sending a batch to its commit.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import psutil

APP = """
define stream S (k string, v int);
@PrimaryKey('k') define table T (k string, v int);
define aggregation A from S select k, sum(v) as total, count() as n group by k aggregate every sec, min, hour;
@info(name = 'window') from S#window.time(10 sec) select k, sum(v) as total group by k insert into Sums;
@info(name = 'pattern') from every e1=S[v > 80] -> e2=S[k == e1.k and v < 20] within 3 sec
select e1.k as k, e1.v as high, e2.v as low insert into Falls;
@info(name = 'table') from S select k, v update or insert into T set T.v = v on T.k == k;
"""
BATCHES_A_SECOND = 3
EVENTS = 200
SETTINGS = {"retention": "recording=20MB,outputs=20MB"}


@dataclass(frozen=True)
class Sample:
    """What there is `at` so many seconds: MB of resident memory, MB of disk, ms of latency (median of ten seconds)."""

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


def soak(app: Any, seconds: float, every: float, tell: Callable[[Sample], None]) -> None:
    """Sends batches to `app` for so long, in real time."""
    rng = np.random.default_rng(1)
    jvm = psutil.Process(app._session._jvm.java.lang.ProcessHandle.current().pid())
    began = time.monotonic()
    told, latencies, number = 0.0, [], 0
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
            told = now
            tell(sample(app, jvm, now, latencies))
            latencies = []
        time.sleep(max(0.0, began + number / BATCHES_A_SECOND - time.monotonic()))


def sample(app: Any, jvm: psutil.Process, at: float, latencies: list[float]) -> Sample:
    """What there is now."""
    own = psutil.Process()
    children = [p for p in own.children(recursive=True) if p.pid != jvm.pid]
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
    from sparkstream_nb.cluster import deploy

    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    sink = options.out.open("w", newline="") if options.out else sys.stdout
    writer = csv.DictWriter(sink, [f.name for f in fields(Sample)])
    writer.writeheader()

    def tell(found: Sample) -> None:
        writer.writerow(asdict(found))
        sink.flush()

    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        app = deploy(APP, name="soak", home=Path(folder) / "home", nodes=2, **SETTINGS)
        soak(app, options.seconds, 10.0, tell)
        app.stop()


if __name__ == "__main__":
    main()
