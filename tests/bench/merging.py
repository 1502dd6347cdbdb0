"""Feeds two parquet files that are merged by event time, in turn with one file that has the same rows.

    python -m tests.bench.merging [--events 10000000] [--rounds 3] [--master local[2]] [--nodes 1]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sparkstream_nb.app import App, deploy

from .commits import cpu

TEXT = """
define stream T (k string, v double);
define stream U (k string, v double);
from T[v > 150.0] select k, v insert into High;
from U[v > 150.0] select k, v insert into High;
from T#window.time(1 sec) select k, avg(v) as a group by k insert into Recent;
"""
START = 1_700_000_000_000


def write(folder: Path, events: int) -> dict[str, Path]:
    """A file of all events, and one each of every second one."""
    r = np.random.default_rng(3)
    table = pa.table(
        {
            "k": pa.array([f"k{i}" for i in range(1000)]).take(pa.array(r.integers(0, 1000, events))),
            "v": r.normal(100, 20, events),
            "at": START + np.arange(events) // 10,
        }
    )
    even, odd = (table.take(pa.array(np.arange(first, events, 2))) for first in (0, 1))
    out = {"all": table, "even": even, "odd": odd}
    for name, part in out.items():
        pq.write_table(part, folder / f"{name}.parquet", row_group_size=1_000_000)
    return {name: folder / f"{name}.parquet" for name in out}


def measure(app: App, sources: object) -> tuple[float, float]:
    """Seconds on the clock, and of CPU, of a feed."""
    began, before = time.perf_counter(), cpu()
    app.feed(sources, time="at")  # type: ignore[call-overload]
    return time.perf_counter() - began, cpu() - before


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.merging")
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--nodes", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = write(Path(folder), given.events)
        ways = {
            "one file, one stream": {"T": files["all"]},
            "two files, one stream": {"T": [files["even"], files["odd"]]},
            "two files, two streams": {"T": files["even"], "U": files["odd"]},
        }
        for number in range(given.rounds + 1):
            for name, sources in ways.items():
                home = str(Path(folder) / "home")
                app = deploy(TEXT, name="merging", master=given.master, nodes=given.nodes, home=home, fresh=True)
                wall, used = measure(app, sources)
                app.stop()
                if number:  # the first round warms up
                    print(f"{name}: {wall:.2f} s, {used:.2f} s of CPU", flush=True)


if __name__ == "__main__":
    main()
