"""An app that is stopped and started again and again holds no more than before."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from sparkstream_nb.cluster import App

CYCLES = 12
OF_SPARK = 7
"""Descriptors of the JVM that Spark loses for each query: two listening sockets of Python runners, with the selectors
that they wait in, and its end of a connection to the driver. Nothing refers to them any more, so nothing can close
them."""


def name_of(process: int, thread: int) -> str:
    """The name of a thread; empty where it has ended meanwhile."""
    try:
        return (Path("/proc") / str(process) / "task" / str(thread) / "comm").read_text()
    except OSError:
        return ""


def held(jvm: psutil.Process) -> Counter[str]:
    """What the JVM and this process hold."""
    own = psutil.Process()
    return Counter(
        {
            "JVM's descriptors": jvm.num_fds(),
            "JVM's threads that look after Python": sum(
                name_of(jvm.pid, t.id).startswith("Idle Worker") for t in jvm.threads()
            ),
            "descriptors": own.num_fds(),
            "threads": threading.active_count(),
            "processes": len(own.children(recursive=True)),
        }
    )


@pytest.mark.timeout(180)
def test_stopping_and_starting_leaves_nothing_behind(run: Callable[..., App]) -> None:
    app = run("define stream S (v int); from S#window.length(2) select sum(v) as s insert into O;", nodes=2)
    jvm = psutil.Process(app._session._jvm.java.lang.ProcessHandle.current().pid())

    def cycle(value: int) -> None:
        app.stop()
        app.send("S", [value])
        app.flush()

    for i in range(3):
        cycle(i)
    before = held(jvm)
    for i in range(CYCLES):
        cycle(i)
    most = dict.fromkeys(("JVM's threads that look after Python", "descriptors", "threads", "processes"), CYCLES // 3)
    most |= {"JVM's descriptors": OF_SPARK * CYCLES + 10}
    end = time.monotonic() + 20  # threads that were told to end may take a while, on a busy machine
    grown = held(jvm) - before
    while any(grown[what] > n for what, n in most.items()) and time.monotonic() < end:
        time.sleep(0.2)
        grown = held(jvm) - before
    for what, n in most.items():
        assert grown[what] <= n, grown
    assert len(app.output("O")) == 3 + CYCLES
