"""How many events `App.send` takes in a second, from one loop and from threads: each is on the disk when it returns.

    python -m tests.bench.sending [--threads 1 10 100] [--seconds 3] [--master local[2]]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from pathlib import Path

from sparkstream_nb.app import App, deploy

TEXT = "define stream T (k string, v double); from T[v > 1e9] select k, v insert into High;"
START = 1_700_000_000_000


def disk_ms(folder: Path) -> float:
    """How long this disk takes for an appended line (ms)."""
    with (folder / "probe").open("ab", buffering=0) as file:
        began = time.perf_counter()
        for _ in range(200):
            file.write(b"x" * 200)
            os.fsync(file.fileno())
    return 1000 * (time.perf_counter() - began) / 200


def sent(app: App, threads: int, seconds: float) -> tuple[int, float]:
    """Events that so many threads send in so many seconds, and the CPU of this process for each (s)."""
    counts = [0] * threads
    before, end = time.process_time(), time.monotonic() + seconds

    def loop(own: int) -> None:
        while time.monotonic() < end:
            app.send("T", [f"k{own}", 1.0], at=START)
            counts[own] += 1

    each = [threading.Thread(target=loop, args=(i,)) for i in range(threads)]
    for thread in each:
        thread.start()
    for thread in each:
        thread.join()
    return sum(counts), (time.process_time() - before) / sum(counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        app = deploy(TEXT, name="sending", master=given.master, home=Path(folder) / "home")
        sent(app, 1, 1.0)
        for threads in given.threads:
            app.flush()
            ms = disk_ms(Path(folder))
            events, cpu = sent(app, threads, given.seconds)
            figures = {"threads": threads, "fsync_ms": round(ms, 3), "per_second": round(events / given.seconds)}
            print(json.dumps({**figures, "cpu_us": round(1e6 * cpu), "load": os.getloadavg()[0]}), flush=True)
        app.flush()
        app.stop()


if __name__ == "__main__":
    main()
