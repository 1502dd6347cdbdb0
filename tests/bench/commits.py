"""What a micro-batch costs by the number of nodes: a feed, and then events one by one, in CPU of all processes.

    python -m tests.bench.commits [--nodes 1 4 16 64] [--events 1000000] [--singles 40] [--master local[2]]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from sparkstream_nb.app import App, deploy

TEXT = """
define stream T (k string, v double, at long);
@info(name='recent') from T#window.time(1 sec) select k, avg(v) as a, count() as n group by k insert into Recent;
@info(name='rises') from every a=T[v > 150.0] -> b=T[k == a.k and v > a.v] within 1 sec
select a.k as k, a.v as x, b.v as y insert into Rises;
"""
KEYS = 1_000
START = 1_700_000_000_000


@dataclass(frozen=True)
class Cost:
    """`start`, `feed`: CPU seconds; `single`: the same of one event's micro-batch; `p50`, `p99`: seconds from `send` to
    `flush`; `rows`: what came out."""

    nodes: int
    start: float
    feed: float
    feed_wall: float
    single: float
    p50: float
    p99: float
    rows: int


def cpu() -> float:
    """Seconds of this process and of all that it started, those that ended too."""
    total = 0.0
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def events(folder: Path, count: int, first: int = START) -> Path:
    """A parquet file of so many events, one a millisecond from `first` on."""
    r = np.random.default_rng(5)
    names = pa.array([f"k{i:04d}" for i in range(KEYS)])
    table = pa.table(
        {
            "k": names.take(pa.array(r.integers(0, KEYS, count))),
            "v": np.round(100 + 20 * r.normal(size=count), 3),
            "at": first + np.arange(count),
        }
    )
    file = folder / f"{count}-{first}.parquet"
    pq.write_table(table, file, row_group_size=250_000)
    return file


def singles(app: App, first: int, count: int) -> tuple[float, list[float]]:
    """CPU of an event's micro-batch, and how long each took."""
    took: list[float] = []
    before = cpu()
    for i in range(count):
        began = time.perf_counter()
        app.send("T", [f"k{i % KEYS:04d}", 100.0 + i, START + first + i], at=START + first + i)
        app.flush()
        took.append(time.perf_counter() - began)
    return (cpu() - before) / count, took


def measured(nodes: int, count: int, single: int, master: str) -> Cost:
    """What an app on so many nodes costs."""
    with tempfile.TemporaryDirectory() as folder:
        before = cpu()
        app = deploy(
            TEXT, name=f"n{nodes}", nodes=nodes, routing="hash:k", master=master, home=Path(folder) / "home"
        )
        singles(app, -100, 10)
        started, began = cpu(), time.perf_counter()
        app.feed("T", events(Path(folder), count), time="at")
        app.flush()
        fed, wall = cpu(), time.perf_counter() - began
        each, took = singles(app, count + 10, single)
        rows = len(app.output("Recent")) + len(app.output("Rises"))
        app.stop()
        return Cost(
            nodes, round(started - before, 2), round(fed - started, 2), round(wall, 2), round(each, 3),
            round(float(np.median(took)), 3), round(sorted(took)[int(0.99 * len(took))], 3), rows,
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--singles", type=int, default=40)
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}")
    for nodes in given.nodes:
        print(json.dumps(asdict(measured(nodes, given.events, given.singles, given.master))), flush=True)


if __name__ == "__main__":
    main()
