"""A tail of a fast stream: how often it is drawn, and what that costs the process that draws it.

`python -m tests.bench.tail [append|latest|number] [RATE]` feeds a local app in the background, for ten seconds, with so
many events a second (100,000).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sparkstream_nb import deploy
from sparkstream_nb.lab.widgets.following import INTERVAL, CommitFollower
from sparkstream_nb.lab.widgets.tail import TailView

_APP = "define stream S (k string, v long, x double); from S[v >= 0] select k, v, x insert into O;"
_SHAPES: dict[str, dict[str, str]] = {"append": {}, "latest": {"latest": "k"}, "number": {"number": "v"}}
_WARM = 20_000
_SECONDS, _FEEDS = 10, 4
"""How long is fed, and with how many feeds a second."""


class _Drawn:
    """Draws a tail as its view does, but for the page, and notes when and at what cost."""

    def __init__(self, view: TailView) -> None:
        self.view, self.at, self.cpu = view, list[float](), 0.0

    def __call__(self) -> None:
        began = time.thread_time()
        self.view.read()
        json.dumps(self.view.state())
        self.cpu += time.thread_time() - began
        self.at.append(time.monotonic())


def main(shape: str, rate: int) -> None:
    """Feeds so many events a second, and prints the figures."""
    events, each = rate * _SECONDS, rate // _FEEDS
    at = np.arange(events + _WARM)
    frame: Any = pd.DataFrame({"k": np.array([f"key{i}" for i in range(50)])[at % 50], "v": at, "x": at / 7, "at": at})
    with tempfile.TemporaryDirectory() as folder:
        app = deploy(_APP, name="Tail", home=Path(folder) / "home", fresh=True)
        app.feed("S", frame[:_WARM], time="at", progress=lambda p: None)
        drawn = _Drawn(TailView(app.tail("O", **_SHAPES[shape])))  # type: ignore[arg-type]
        follower = CommitFollower(drawn, lambda: None, INTERVAL)
        app.on_commit(lambda n: follower())
        batches, began, cpu = app.stats().micro_batches, time.monotonic(), time.process_time()
        for n in range(_SECONDS * _FEEDS):
            time.sleep(max(0.0, began + n / _FEEDS - time.monotonic()))
            app.feed("S", frame[_WARM + n * each : _WARM + (n + 1) * each], time="at", background=True)
        while any(f.active for f in app.feeds.values()):
            time.sleep(0.05)
        seconds, used = time.monotonic() - began, time.process_time() - cpu
        time.sleep(2 * INTERVAL)  # the last drawing
        stats = app.stats()
        commits = stats.micro_batches - batches
        app.stop()
    print(f"{shape}: {events:,} events in {seconds:.1f} s, {events / seconds:,.0f} a second, {commits} commits")
    many = len(drawn.at)
    print(f"drawn {many} times, {many / seconds:.1f} a second, {1000 * drawn.cpu / many:.1f} ms of CPU each")
    print(f"a micro-batch takes {stats.times.median_ms} ms in the median")
    print(f"this process used {used / seconds:.2f} cores, the drawing {drawn.cpu / seconds:.3f} of them")
    print(f"not shown: {drawn.view.snapshot.not_shown:,} of {drawn.view.snapshot.total:,}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "append", int(sys.argv[2]) if len(sys.argv) > 2 else 100_000)
    sys.stdout.flush()
    os._exit(0)  # Spark's JVM need not be waited for
