"""What is left of an app that is stopped and started again and again, in the JVM and in this process.

python -m tests.chaos.cycles [CYCLES] [--anew]
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

APP = "define stream S (v int); from S#window.length(2) select sum(v) as s insert into O;"
SHOWN = (10, 50, 100, 200)
BOUNDED = "block-manager-"
"""Threads of Spark's block manager: as many as there was work for at once, 128 and 200 at most. They end after a minute
without work."""


def name_of(process: int, thread: int) -> str:
    """The name of a thread; empty where it has ended meanwhile."""
    try:
        return (Path("/proc") / str(process) / "task" / str(thread) / "comm").read_text().strip()
    except OSError:
        return ""


def threads(process: psutil.Process) -> int:
    """How many threads a process has, without those that Spark bounds."""
    names = (name_of(process.pid, thread.id) for thread in process.threads())
    return sum(bool(name) and not name.startswith(BOUNDED) for name in names)


def descriptors(process: psutil.Process) -> Counter[str]:
    """Descriptors of a process by kind; files count as one kind."""
    found: Counter[str] = Counter()
    for file in (Path("/proc") / str(process.pid) / "fd").iterdir():
        try:
            place = os.readlink(file)
        except OSError:
            continue
        kind, _, rest = place.partition(":")
        found["file" if place.startswith("/") else rest if kind == "anon_inode" else kind] += 1
    return found


def held(jvm: psutil.Process) -> Counter[str]:
    """What the JVM and this process hold."""
    own = psutil.Process()
    of_jvm, of_driver = descriptors(jvm), descriptors(own)
    return Counter(
        {
            "JVM's descriptors": of_jvm.total(),
            "JVM's sockets": of_jvm["socket"],
            "JVM's selectors": of_jvm["[eventpoll]"],
            "JVM's threads": threads(jvm),
            "descriptors": of_driver.total(),
            "threads": threads(own),
            "processes": len(own.children(recursive=True)),
        }
    )


def jvm_of(app: Any) -> psutil.Process:
    """The process of Spark's JVM."""
    return psutil.Process(app.runtime.session.spark._jvm.java.lang.ProcessHandle.current().pid())


def heap(app: Any) -> float:
    """MB in use in the JVM after a collection of garbage."""
    lang = app.runtime.session.spark._jvm.java.lang
    lang.System.gc()
    return float(lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()) / 1e6


def settled(jvm: psutil.Process, seconds: float = 5) -> Counter[str]:
    """What is held when nothing has ended for a second, or after some seconds."""
    end, last = time.monotonic() + seconds, held(jvm)
    since = time.monotonic()
    while time.monotonic() < min(end, since + 1):
        time.sleep(0.2)
        now = held(jvm)
        if any(now[what] < n for what, n in last.items()):
            last, since = now, time.monotonic()
    return last


def main() -> None:
    """Prints what is held at some of the cycles."""
    from sparkstream_nb.app import deploy

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cycles", nargs="?", type=int, default=SHOWN[-1])
    parser.add_argument("--anew", action="store_true", help="deploy the app anew in each cycle")
    arguments = parser.parse_args()
    home = Path(tempfile.mkdtemp())

    def deployed() -> Any:
        return deploy(APP, name="cycles", home=home, nodes=2, master="local[2]")

    app = deployed()
    jvm = jvm_of(app)
    began = time.monotonic()
    for cycle in range(1, arguments.cycles + 1):
        app.stop()
        if arguments.resets_per_chunk:
            app = deployed()
        app.send("S", [cycle])
        app.flush()
        if cycle in SHOWN or cycle == arguments.cycles:
            seconds = (time.monotonic() - began) / cycle
            used = heap(app)
            print(f"{cycle}: heap {used:.1f} MB, driver {psutil.Process().memory_info().rss / 1e6:.0f} MB", end=", ")
            print(", ".join(f"{n} {what}" for what, n in settled(jvm).items()), end="")
            print(f"; {seconds:.2f} s a cycle", flush=True)
    app.stop()
    shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
