"""`@app:playback(idle.time, increment)`: what moves an app's clock while no events come."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from sparkstream_nb.app import App
from sparkstream_nb.app.config.idle import IdleTicker
from sparkstream_nb.plan.nodes import IdleClock

Run = Callable[..., App]

APP = """
@app:playback(idle.time='1 millisecond', increment='2 sec')
define stream S (v int);
@info(name = 'q') from S#window.timeBatch(1 sec) select sum(v) as total insert into O;
"""


def test_the_clock_is_due_after_the_idle_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("sparkstream_nb.app.config.idle.time.monotonic", lambda: now[0])
    ticker = IdleTicker(IdleClock(idle=1500, increment=10), lambda ms: None)
    ticker.note_event()
    assert ticker.left(100.0) == 1.5
    assert ticker.left(101.0) == 0.5
    assert ticker.left(200.0) == 0.0
    now[0] = 101.0
    ticker.note_event()
    assert ticker.left(101.0) == 1.5


def test_it_goes_on_until_it_is_stopped() -> None:
    moved, enough = [], threading.Event()

    def advance(ms: int) -> None:
        moved.append(ms)
        if len(moved) == 3:
            enough.set()

    ticker = IdleTicker(IdleClock(idle=1, increment=7), advance)
    ticker.start()
    ticker.start()
    assert enough.wait(30)
    ticker.stop()
    assert moved[:3] == [7, 7, 7]


@pytest.mark.contract(thorough=True)
def test_a_batch_comes_out_though_nothing_else_is_sent(run: Run) -> None:
    app, first, moved = run(APP), 1_400_000_000_000, threading.Event()
    assert isinstance(app.runtime.clock.ticker, IdleTicker)
    advance = app.runtime.clock.ticker.advance

    def observed(ms: int) -> None:
        advance(ms)
        if (app.stats().clock or 0) > first:
            moved.set()

    app.runtime.clock.ticker.advance = observed
    app.send("S", [5], at=first)
    assert moved.wait(60)
    app.flush()
    assert app.output("O").frame["total"].tolist()[:1] == [5]
    app.stop()
    held = app.stats().clock
    assert held is not None
    assert held >= first + 2000
    advance(2000)
    assert app.stats().clock == held, "a stopped app's clock stands still"


def test_no_clock_moves_before_the_first_event(run: Run) -> None:
    app = run(APP)
    app.flush()
    assert app.stats().clock is None
