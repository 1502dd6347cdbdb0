"""How long an app is away: its start, a killed worker, and commits with much state.

python -m tests.chaos.recovery [LENGTH ...]
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

from tests.bench.commits import cpu

ROOT = Path(__file__).parents[2]
APP = """
define stream S (k string, v long, p double);
@info(name = 'w') from S#window.length({length}) select k, sum(v) as total insert into O;
"""
LENGTHS = (10, 4_000_000)
"""Events in the window, where none are given; four million take some 100 MB."""
FED = 2_000_000


def deployed(home: Path, length: int) -> Any:
    """The app with a window of so many events."""
    from sparkstream_nb.app import deploy

    return deploy(APP.format(length=length), name="recovery", home=home, master="local[2]")


def fill(app: Any, events: int) -> None:
    """Feeds so many events."""
    rng = np.random.default_rng(1)
    names = pa.array([f"k{i}" for i in range(1000)])
    for first in range(0, events, FED):
        n = min(FED, events - first)
        keys = names.take(pa.array(rng.integers(0, 1000, n)))
        app.feed("S", pa.table({"k": keys, "v": rng.integers(0, 1 << 40, n), "p": rng.random(n)}))


def commit_seconds(app: Any) -> float:
    """From sending an event to its commit."""
    began = time.perf_counter()
    app.send("S", ["a", 1, 1.0])
    app.flush()
    return time.perf_counter() - began


def restarted(home: Path, length: int) -> float:
    """From the start of a new process to its first commit."""
    code = (
        "import sys; from pathlib import Path; from tests.chaos.recovery import *; "
        f"commit_seconds(deployed(Path(sys.argv[1]), {length})); print('done', flush=True); import os; os._exit(0)"
    )
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(home)], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == b"done"
    seconds = time.perf_counter() - began
    process.wait()
    return seconds


def gap(app: Any) -> float:
    """From the kill of a worker to the next commit, an event being there."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "sparkstream_nb.runners.spark.forks" in " ".join(process.cmdline()) and not process.children():
                process.kill()
    return commit_seconds(app)


def main(lengths: Sequence[int]) -> None:
    """The command."""
    for length in lengths:
        with tempfile.TemporaryDirectory(prefix="recovery-") as folder:
            home = Path(folder) / "home"
            app = deployed(home, length)
            fill(app, length + 1000)
            for _ in range(2):
                commit_seconds(app)
            before = cpu()
            commits = [commit_seconds(app) for _ in range(10)]
            took = (cpu() - before) / len(commits)
            size = sum(n.state_bytes for n in app.stats().nodes.values()) / 1e6
            name = f"{length:,} events, {size:.1f} MB"
            print(f"{name}: commit {statistics.median(commits):.2f} s, {max(commits):.2f} at most, {took:.2f} s of CPU")
            gaps = [gap(app) for _ in range(3)]
            print(f"{name}: all workers killed, next commit after {', '.join(f'{g:.2f}' for g in gaps)} s")
            app.stop()
            app.close()
            starts = [restarted(home, length) for _ in range(3)]
            print(f"{name}: process start to first commit {', '.join(f'{s:.1f}' for s in starts)} s", flush=True)


if __name__ == "__main__":
    main([int(float(n)) for n in sys.argv[1:]] or LENGTHS)
