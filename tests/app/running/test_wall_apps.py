"""Apps with `clock="wall"` on Spark. But for one test, the machine's clock is the test's, and nothing sleeps."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import pandas as pd
import pytest

from sparkstream_nb.app import App
from sparkstream_nb.app.running.wall import WallClock, WallTicker

Run = Callable[..., App]
BEGIN = 1_700_000_000_000
"""A whole ten seconds."""
SECONDS = 60


class Machine:
    """A machine's clock, in ms, that only a test moves on."""

    def __init__(self) -> None:
        self.time, self.monotonic = BEGIN, 0

    def clock(self) -> WallClock:
        return WallClock(lambda: self.time * 1_000_000, lambda: self.monotonic * 1_000_000)

    def go_on(self, app: App, ms: int) -> None:
        """So much time passes, and the app notices."""
        self.time += ms
        self.monotonic += ms
        assert isinstance(app.runtime.clock.ticker, WallTicker)
        app.runtime.clock.ticker.wake()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The machine's clock of apps that are deployed."""
    found = Machine()
    monkeypatch.setattr("sparkstream_nb.app.running.app_clock.WallClock", found.clock)
    return found


def until(app: App, stream: str, n: int) -> pd.DataFrame:
    """The first `n` events that `stream` puts out, when they are committed."""
    progress = app.runtime.progress
    with progress.changed:
        assert progress.changed.wait_for(lambda: progress.rows.get(stream, 0) >= n, SECONDS), stream
    frame: pd.DataFrame = app.output(stream).frame
    return frame


def times(frame: pd.DataFrame) -> list[int]:
    """The events' times, as ms after the beginning."""
    return [t - BEGIN for t in frame["timestamp"].tolist()]


APP = """
define stream A (v int);
define trigger Started at 'start';
define trigger EachMinute at every 1 min;
define trigger OnTheMinute at '0 * * * * ?';
@info(name = 'absent') from not A for 5 sec select 1 as one insert into Absent;
@info(name = 'gone') from A#window.time(2 sec) select v insert expired events into Gone;
@info(name = 'batch') from A#window.timeBatch(3 sec) select sum(v) as total insert into Batch;
@info(name = 'over') from A#window.session(4 sec) select v insert expired events into Over;
@info(name = 'last') from A select v output last every 7 sec insert into Last;
"""


@pytest.mark.contract
def test_timers_fire_though_no_event_comes(run: Run, machine: Machine) -> None:
    app = run(APP, clock="wall")
    assert times(until(app, "Started", 1)) == [0], "the clock starts with the deployment"
    app.send("A", [5])
    app.flush()
    machine.go_on(app, 1_999)
    machine.go_on(app, 2)
    assert times(until(app, "Gone", 1)) == [2_000]
    machine.go_on(app, 1_100)
    assert times(until(app, "Batch", 1)) == [0], "an event of a batch keeps its time"
    machine.go_on(app, 900)
    assert times(until(app, "Over", 1)) == [0]
    machine.go_on(app, 6_000)
    until(app, "Last", 1)
    app.flush()
    batches = app.stats().micro_batches
    for _ in range(45):
        machine.go_on(app, 1_000)
    app.flush()
    assert app.stats().micro_batches <= batches + 2, "the absent state alone is due before the minute"
    machine.go_on(app, 30_000)
    assert times(until(app, "EachMinute", 1)) == [60_000]
    assert [(BEGIN + t) % 60_000 for t in times(until(app, "OnTheMinute", 1))][:1] == [0]
    assert app.stats().clock_kind == "wall"
    assert str(app.explain()).startswith("clock: this machine's")


def test_times_of_events(run: Run, machine: Machine) -> None:
    app = run("define stream A (v int); from A select v insert into O;", clock="wall")
    machine.go_on(app, 700)
    app.send("A", [1])
    app.send("A", [2], at=BEGIN + 100)
    machine.time -= 600  # the machine's clock is set back
    app.send("A", [3])
    machine.go_on(app, 50)
    app.send("A", [4])
    app.feed("A", pd.DataFrame({"v": [5, 6, 7]}))
    machine.go_on(app, 1_000)
    app.send("A", [8])
    app.flush()
    found = app.output("O").frame
    assert dict(zip(found["v"], times(found), strict=True)) == {
        1: 700, 2: 100, 3: 700, 4: 750, 5: 750, 6: 750, 7: 750, 8: 1_750,
    }  # fmt: skip
    assert app.stats().clock == BEGIN + 1_750


KEYED = """
define stream A (k string, v int);
partition with (k of A) begin
  @info(name = 'gone') from A#window.time(10 sec) select k, v insert expired events into Gone;
end;
@info(name = 'total') from A#window.time(1 hour) select sum(v) as total insert into Total;
"""


@pytest.mark.contract(thorough=True)
def test_overdue_timers_fire_when_the_app_is_there_again(run: Run, machine: Machine) -> None:
    app = run(KEYED, clock="wall", nodes=2)
    app.send("A", [[k, 1] for k in "abcdef"])
    app.flush()
    app.stop()
    machine.go_on(app, 60_000)
    app = run(KEYED, clock="wall", nodes=2)
    assert app.redeployed is not None
    assert "kept" in app.redeployed
    gone = until(app, "Gone", 6)
    assert sorted(gone["k"]) == list("abcdef"), "of equal times one fires with each movement of the clock"
    assert set(times(gone)) <= set(range(60_000, 61_000))
    app.flush()
    clocks = {n.clock for n in app.stats().nodes.values()}
    assert clocks == {BEGIN + 60_000}, "a tick goes to all nodes"


def test_the_clock_of_a_deployment_may_change(run: Run, machine: Machine) -> None:
    app = run(KEYED, start=5)
    app.send("A", ["a", 1], at=1_000)
    app.flush()
    for clock, start in (("wall", None), ("virtual", 5), ("wall", None)):
        app = run(KEYED, clock=clock, **({} if start is None else {"start": start}))
        assert app.redeployed is not None
        assert "kept" in app.redeployed, clock
        app.flush()
    assert times(until_stored(app, "Gone", 1)) == [0], "it was due in 1970, and left with the first tick"
    app.send("A", ["b", 2])
    app.flush()
    assert app.output("Total").frame["total"].tolist()[-1] == 2
    counts = app.divergence().counts.set_index("stream")
    assert counts.loc["Total", "same"] == 2
    assert counts.drop(columns=["query", "same"]).to_numpy().sum() == 0, "a replay of the journal makes the same"


def until_stored(app: App, stream: str, n: int) -> pd.DataFrame:
    """As `until`, of events that an earlier deployment may have put out."""
    app.flush()
    frame: pd.DataFrame = app.output(stream).frame
    assert len(frame) == n
    return frame


def test_in_real_time_a_pattern_fires_soon_after_it_is_due(run: Run) -> None:
    app = run("define stream A (v int); from every not A for 1 sec select 1 as one insert into O;", clock="wall")
    app.flush()
    began = app.stats().clock
    assert began is not None
    late = []
    for n in itertools.count(1):
        due = until(app, "O", n)["timestamp"].tolist()[n - 1]
        late.append(time.time() * 1000 - due)
        if n == 2:
            break
    assert until(app, "O", 1)["timestamp"].tolist()[0] >= began + 1_000
    assert 0 <= min(late) < 15_000, "seconds, even where the machine is busy"

