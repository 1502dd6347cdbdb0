"""`clock="wall"` without Spark: the clock itself, and which tick an app waits for."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkstream_nb.app import deploy
from sparkstream_nb.app.running.wall import Tick, TickSink, WallClock, WallTicker, next_tick
from sparkstream_nb.errors import Misuse
from sparkstream_nb.journal.result_rows import NodeReport
from sparkstream_nb.outputs.commit import Progress
from sparkstream_nb.plan.nodes import BatchClock

MS = 1_000_000


class Times:
    """A machine's clock and its monotonic one, in ns, and the `clock` over both, which is made at 1 s."""

    def __init__(self) -> None:
        self.machine, self.monotonic = 1_000 * MS, 77
        self.clock = WallClock(lambda: self.machine, lambda: self.monotonic)

    def go_on(self, ns: int) -> None:
        self.machine += ns
        self.monotonic += ns

    def move(self, kind: str, by: int) -> None:
        """What a move of `MOVES` does to the machine."""
        if kind == "go on":
            self.go_on(by)
        elif kind == "set":
            self.machine += by


NS = st.integers(0, 10_000 * MS)
MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("go on"), NS),
        st.tuples(st.just("set"), st.integers(-(10**13), 10**13)),
        st.tuples(st.just("reached"), st.integers(-1_000, 20_000)),
    ),
    max_size=30,
)


@given(moves=MOVES)
def test_it_never_goes_back_and_never_stands_still(moves: list[tuple[str, int]]) -> None:
    times = Times()
    before, since = times.clock.now(), times.monotonic
    for kind, by in moves:
        times.move(kind, by)
        reached = before + by if kind == "reached" else None
        now = times.clock.now(reached)
        assert now >= before + (times.monotonic - since) // MS
        assert now >= times.machine // MS, "it follows where the machine's clock is set forward"
        assert reached is None or now >= reached
        before, since = now, times.monotonic


@given(moves=MOVES)
def test_it_is_ahead_only_for_a_reason(moves: list[tuple[str, int]]) -> None:
    """It is the highest of: the machine's time now, and any it stood at before, with what has passed since."""
    times = Times()
    marks = [(times.machine, times.monotonic)]
    for kind, by in moves:
        times.move(kind, by)
        reached = None
        if kind == "reached":
            reached = times.machine // MS + by
            marks.append((reached * MS, times.monotonic))
        now = times.clock.now(reached)
        marks.append((times.machine, times.monotonic))
        assert now == max(at + times.monotonic - when for at, when in marks) // MS


def test_set_back_it_goes_on_at_the_pace_of_the_monotonic_clock() -> None:
    times = Times()
    times.machine -= 600 * MS
    assert times.clock.now() == 1_000
    times.go_on(50 * MS)
    assert times.clock.now() == 1_050
    times.go_on(5_000 * MS)
    assert times.clock.now() == 6_050, "it stays ahead"
    times.machine += 700 * MS
    assert times.clock.now() == 6_150, "until the machine's is"


def test_a_monotonic_clock_that_does_not_move_does_no_harm() -> None:
    times = Times()
    times.monotonic -= 5
    assert times.clock.now() == 1_000
    times.go_on(10 * MS)
    assert times.clock.now() == 1_010


def report(due: int | None, clock: int) -> NodeReport:
    """That of a node whose clock stands at `clock`."""
    return NodeReport("a", 1.0, False, 0, {}, BatchClock(0, 0, clock), 0, due)


def test_which_tick_comes_next() -> None:
    assert next_tick(None, []) == Tick(None), "the clock is to begin"
    assert next_tick(1_000, [report(None, 1_000)]) is None
    assert next_tick(1_000, [report(1_500, 1_000), report(1_300, 1_000)]) == Tick(1_300)
    assert next_tick(1_400, [report(1_500, 1_000), report(1_300, 1_000)]) == Tick(1_500), "1300 is on its way"
    assert next_tick(1_300, [report(1_300, 1_000)]) is None
    assert next_tick(1_300, [report(1_300, 1_300)]) == Tick(1_300, overdue=True), "one of equal times is left"


def test_the_steps_of_a_tick() -> None:
    assert Tick(None).clocks(5_000) == [5_000]
    assert Tick(5_000).clocks(5_000) == [5_000]
    assert Tick(4_990).clocks(5_000) == [4_990, 5_000], "what comes out has the time that was due"
    assert set(Tick(4_990, overdue=True).clocks(5_000)) == {5_000}


def test_a_ticker_sends_what_is_due_and_waits_for_reports() -> None:
    times, progress, sent = Times(), Progress(), []
    come, reached = threading.Semaphore(0), [None]

    def append(clocks: list[int]) -> None:
        sent.append(list(clocks))
        reached[0] = clocks[-1]
        come.release()

    inlet = TickSink(threading.RLock(), lambda: True, append, lambda: reached[0], (0,))
    ticker = WallTicker(times.clock, progress, inlet)

    def committed(due: int | None) -> None:
        with progress.changed:
            progress.nodes[0] = report(due, reached[0])
            progress.batch += 1
            progress.changed.notify_all()

    try:
        ticker.start()
        ticker.start()
        assert sent == [[1_000]], "the first tick is sent by then"
        assert come.acquire(timeout=1)
        committed(1_500)
        assert not come.acquire(timeout=0.05)
        times.go_on(502 * MS)
        ticker.wake()
        assert come.acquire(timeout=10)
        assert sent[1:] == [[1_500, 1_502]]
        ticker.wake()
        assert not come.acquire(timeout=0.05), "the report is still to come"
        reached[0] = 1_800  # an event came
        committed(None)
        assert not come.acquire(timeout=0.05), "nothing is due"
    finally:
        ticker.stop()


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("", {"mode": "ha"}, "mode ha"),
        ("", {"start": 0}, "leave start out"),
        ("@app:playback ", {}, "contradicts @app:playback"),
        ("", {"clock": "wal"}, "neither 'virtual' nor 'wall'. Did you mean 'wall'?"),
        ("", {"clock": None}, "clock"),
    ],
)
def test_what_contradicts_it_is_refused(text: str, arguments: dict[str, object], said: str, tmp_path: Path) -> None:
    app = text + "define stream S (v int); from S select v insert into O;"
    with pytest.raises(Misuse) as refused:
        deploy(app, home=tmp_path / "home", **{"clock": "wall", **arguments})  # type: ignore[arg-type]
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
