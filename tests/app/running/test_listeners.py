"""`App.on_commit`: callbacks after micro-batches."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import Queue
from typing import Any

import pytest

from sparkstream_nb.app import App
from sparkstream_nb.app.results.listeners import CommitListeners
from sparkstream_nb.outputs.commit import Progress

Run = Callable[..., App]
SECONDS = 30
APP = """define stream S (a int);
define aggregation Total from S select sum(a) as total aggregate every sec;
"""


def commit(progress: Progress) -> None:
    """What `Commit` does at the end of a micro-batch."""
    with progress.changed:
        progress.batch += 1
        progress.changed.notify_all()


def test_a_callback_may_ask_the_app(run: Run) -> None:
    app = run(APP)
    told: Queue[tuple[int, Any]] = Queue()
    end = app.on_commit(lambda n: told.put((n, app.aggregation("Total")[0]["total"].tolist())))
    app.send("S", [3], at=1000)
    app.flush()
    n, totals = told.get(timeout=SECONDS)
    assert n == app.stats().micro_batches == 1
    assert totals == [3]
    end()
    end()
    app.send("S", [4], at=1001)
    app.flush()
    assert app.stats().micro_batches == 2
    assert told.empty()


def test_a_slow_callback_holds_up_no_commit_and_hears_of_the_last() -> None:
    progress, told, go_on = Progress(), Queue[int](), threading.Event()

    def slow(n: int) -> None:
        told.put(n)
        assert go_on.wait(SECONDS)

    listeners = CommitListeners("app", progress)
    listeners.add(slow)
    commit(progress)
    assert told.get(timeout=SECONDS) == 1
    for _ in range(3):
        commit(progress)
    go_on.set()
    assert told.get(timeout=SECONDS) == 4
    listeners.clear()


def test_an_exception_in_a_callback_is_logged_and_others_are_told(caplog: pytest.LogCaptureFixture) -> None:
    progress, told = Progress(), Queue[int]()

    def fail(n: int) -> None:
        raise RuntimeError("no chart")

    listeners = CommitListeners("Trades", progress)
    listeners.add(fail)
    listeners.add(told.put)
    with caplog.at_level(logging.ERROR):
        for n in (1, 2):
            commit(progress)
            assert told.get(timeout=SECONDS) == n
    listeners.clear()
    assert [r.exc_info[1].args for r in caplog.records if r.exc_info and r.exc_info[1]] == [("no chart",)] * 2
    assert "Trades" in caplog.text


def test_the_thread_ends_with_the_last_callback() -> None:
    listeners = CommitListeners("app", Progress())
    ends = [listeners.add(print), listeners.add(print)]
    thread = listeners._thread
    assert thread is not None
    ends[0]()
    assert listeners._thread is thread
    ends[1]()
    thread.join(SECONDS)
    assert not thread.is_alive()
