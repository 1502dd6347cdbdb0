"""Feeds that are watched, and feeds in the background: paused, stopped, waited for."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sparkstream_nb.app import App, Feed, FeedProgress, all_feeds, feed_of
from sparkstream_nb.errors import Misuse, SparkStreamError
from sparkstream_nb.ingest.time_formats import DoubtCounts
from sparkstream_nb.journal import batch_planning
from sparkstream_nb.journal.entries import Entry
from sparkstream_nb.journal.inbox import Inbox
from sparkstream_nb.journal.journal import entries_from
from sparkstream_nb.journal.marks import Marks, forget_tasks, mark_node, mark_task
from sparkstream_nb.lab.display import text
from sparkstream_nb.sources import feeds as reading

Run = Callable[..., App]
SECONDS = 60
SUMS = """define stream S (a int);
define stream Probe (a int);
from S#window.length(3) select sum(a) as total insert into Sums;
from Probe select a insert into Seen;
"""
CHUNK_ROWS = 1000
BIG = 4 * CHUNK_ROWS


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CHUNK_ROWS", CHUNK_ROWS)


def numbers(n: int, first: int = 0) -> pd.DataFrame:
    return pd.DataFrame({"a": np.arange(first, first + n) % 1000, "at": np.arange(first, first + n)})


class Gate:
    """Lets a feed's thread through when a slice of it is committed: a test decides what happens in between."""

    def __init__(self, app: App) -> None:
        self.reached, self.open = threading.Semaphore(0), threading.Semaphore(0)
        wait = app.runtime.stream.wait

        def held(seq: int, timeout: float | None = None, tell: Any = None) -> bool:
            done = wait(seq, timeout, tell)
            if threading.current_thread().name.startswith("sparkstream-feed"):
                self.reached.release()
                assert self.open.acquire(timeout=SECONDS)
            return done

        app.runtime.stream.wait = held  # type: ignore[method-assign]

    def slice_committed(self) -> None:
        assert self.reached.acquire(timeout=SECONDS)

    def go_on(self, times: int = 1) -> None:
        for _ in range(times):
            self.open.release()


@pytest.fixture
def held(run: Run) -> Iterator[tuple[App, Gate]]:
    app = run(SUMS)
    gate = Gate(app)
    yield app, gate
    gate.go_on(100)


@pytest.mark.contract(thorough=True)
def test_the_progress_of_a_feed_moves(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    # Marks of tasks go when a micro-batch is done, which is after the commit that the feed waits for.
    monkeypatch.setattr(batch_planning, "forget_tasks", lambda *_: None)
    app = run(SUMS)
    told: list[FeedProgress] = []
    app.feed("S", numbers(BIG), time="at", progress=told.append)
    done = [p.done for p in told]
    assert done == sorted(done)
    assert told[0].total is None
    # The node left a mark behind for what it is through with, without any commit.
    entries = [e for e, _ in entries_from(app.runtime.inbox.folder, {"seq": 0, "at": 0, "skip": 0})]
    assert [e.steps for e in entries] == [CHUNK_ROWS] * 4
    assert app.runtime.target.marks.steps(entries, -1) == BIG


def test_marks_count_nodes_and_tasks_alike(tmp_path: Path) -> None:
    Inbox(tmp_path).close()  # makes the folder
    entries = [Entry(seq=k, steps=100) for k in range(4)]
    marks = Marks(tmp_path, 3, tasks=True)
    assert marks.steps(entries, -1) == 0
    assert marks.steps(entries, 0) == 100
    mark_task(tmp_path, entries[1:3])
    assert marks.steps(entries, 0) == 150
    mark_node(tmp_path, 0, 1)
    mark_node(tmp_path, 2, 3)
    assert marks.steps(entries, 0) == 100 + 75 + 50 + 25
    (tmp_path / "marks" / "node-1").write_text("")  # it is just being written
    assert marks.steps(entries, 0) == 250
    marks.clear()
    assert marks.steps(entries, -1) == 0
    assert list((tmp_path / "marks").iterdir()) == []
    mark_task(tmp_path, entries[:2])
    mark_task(tmp_path, entries[2:])
    forget_tasks(tmp_path, 3)
    assert [f.name for f in (tmp_path / "marks").iterdir()] == ["task-2-3"]


@pytest.mark.contract(thorough=True)
def test_a_feed_in_the_background_equals_one_in_front(run: Run, tmp_path: Path) -> None:
    frame = numbers(2 * CHUNK_ROWS + 7).sample(frac=1.0, random_state=1)
    app = run(SUMS)
    app.feed("S", frame, time="at")
    want = app.output("Sums").frame
    again = run(SUMS, name="again", home=tmp_path / "again")
    feed = again.feed("S", frame, time="at", background=True)
    report = feed.wait(SECONDS)
    assert (report.rows, report.events, report.not_fed) == (len(frame), len(frame), 0)
    assert report.outputs == {"Sums": len(frame)}
    assert feed.state == "done"
    assert feed.progress.done == len(frame)
    pd.testing.assert_frame_equal(again.output("Sums").frame, want)


def test_without_times_slices_go_on_1_ms_apart(run: Run) -> None:
    app = run(SUMS)
    app.feed("S", numbers(CHUNK_ROWS + 5), background=True).wait(SECONDS)
    at = app.output("Sums").frame["timestamp"].to_numpy()
    assert (np.diff(at) == 1).all()


@pytest.mark.contract
def test_other_events_and_queries_come_in_between(held: tuple[App, Gate]) -> None:
    app, gate = held
    feed = app.feed("S", numbers(BIG), time="at", background=True)
    gate.slice_committed()
    app.send("Probe", [7])
    app.flush()
    assert app.output("Seen").frame["a"].tolist() == [7]
    assert feed.active
    assert feed.progress.done == CHUNK_ROWS
    gate.go_on(100)
    assert feed.wait(SECONDS).events == BIG


@pytest.mark.contract(thorough=True)
def test_a_paused_feed_begins_nothing_until_it_goes_on(held: tuple[App, Gate]) -> None:
    app, gate = held
    feed = app.feed("S", numbers(BIG), time="at", background=True)
    gate.slice_committed()
    feed.pause()
    assert feed.state == "paused"
    gate.go_on(100)
    app.send("Probe", [7])
    app.flush()
    assert feed.state == "paused"
    assert len(app.output("Sums")) == CHUNK_ROWS
    with pytest.raises(TimeoutError):
        feed.wait(0.01)
    feed.resume()
    assert feed.wait(SECONDS).not_fed == 0
    assert len(app.output("Sums")) == BIG


@pytest.mark.contract
def test_a_stopped_feed_says_what_it_did_not_feed(held: tuple[App, Gate]) -> None:
    app, gate = held
    feed = app.feed("S", numbers(BIG), time="at", background=True)
    gate.slice_committed()
    feed.stop()
    assert feed.state == "stopping"
    assert " left" not in feed.summary()
    gate.go_on(100)
    report = feed.wait(SECONDS)
    assert " left" not in feed.summary()
    assert (feed.state, report.events, report.not_fed) == ("stopped", CHUNK_ROWS, BIG - CHUNK_ROWS)
    assert f"stopped at {CHUNK_ROWS:,} of {BIG:,}" in text(report)
    app.flush()
    assert len(app.output("Sums")) == CHUNK_ROWS
    assert app.state == "running"
    files = {f.name[-6:] for f in app.runtime.inbox.folder.glob("feed-*")}
    assert files <= {"-00000"}, "files of what was not fed are gone"


@pytest.mark.contract(thorough=True)
@pytest.mark.parametrize("how", ["stop", "interrupt"])
def test_stopping_the_app_stops_its_feeds(held: tuple[App, Gate], how: str) -> None:
    app, gate = held
    feed = app.feed("S", numbers(BIG), time="at", background=True)
    gate.slice_committed()
    getattr(app, how)()
    gate.go_on(100)
    report = feed.wait(SECONDS)
    assert (app.state, feed.state, report.not_fed) == ("stopped", "stopped", BIG - CHUNK_ROWS)
    assert app.stats().state == "stopped"
    app.send("Probe", [7])
    app.flush()
    assert app.state == "running"
    assert len(app.output("Sums")) == CHUNK_ROWS


@pytest.mark.contract
def test_parquet_row_groups_enter_in_slices(run: Run, tmp_path: Path) -> None:
    app, path = run(SUMS), tmp_path / "numbers.parquet"
    frame = numbers(3 * CHUNK_ROWS).astype({"a": "int32"})
    frame.to_parquet(path, row_group_size=CHUNK_ROWS)
    assert app.feed("S", path, time="at", background=True).wait(SECONDS).events == len(frame)
    assert len(app.output("Sums")) == len(frame)


def test_a_feed_that_fails_says_why(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = run(SUMS)
    with pytest.raises(SparkStreamError, match=r"file not found: .*none\.csv"):
        app.feed("S", tmp_path / "none.csv", background=True)
    monkeypatch.setattr("sparkstream_nb.app.running.app_inputs.check_source", lambda source, shape: shape)  # gone later
    feed = app.feed("S", tmp_path / "gone.csv", background=True)
    with pytest.raises(SparkStreamError, match=r"gone\.csv"):
        feed.wait(SECONDS)
    assert (feed.state, feed.report) == ("failed", None)
    assert "gone.csv" in str(feed.error)
    with pytest.raises(Misuse, match="no stream 'T'"):
        app.feed("T", numbers(1), background=True)


def test_who_watches_is_told_to_the_end(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    app = run(SUMS)
    feed = app.feed("S", numbers(10), time="at", background=True)
    states: list[str] = []
    over = threading.Event()

    def watch() -> None:
        states.append(feed.state)
        if not feed.active:
            over.set()

    def fail() -> None:
        raise RuntimeError("no screen")

    feed.watch(fail)
    feed.watch(watch)
    assert over.wait(SECONDS)
    assert states[-1] == "done"
    feed.watch(watch)
    assert states[-1] == "done"
    assert "no screen" in caplog.text


def test_feeds_are_numbered(run: Run) -> None:
    app = run(SUMS)
    made: list[Feed] = [app.feed("S", numbers(5, 10 * i), time="at", background=True) for i in range(2)]
    for feed in made:
        feed.wait(SECONDS)
    assert list(app.feeds.values()) == made
    assert all_feeds()[made[1].id] is feed_of(made[1].id) is made[1]
    assert len(app.output("Sums")) == 10
    with pytest.raises(Misuse, match="no feed 0"):
        feed_of(0)


PROGRAM = f'''
import time
from pathlib import Path
import numpy as np, pandas as pd
from sparkstream_nb.app import deploy
app = deploy("""{SUMS}""", name="ends", home=Path("home"))
feed = app.feed("S", pd.DataFrame({{"a": np.zeros(3_000_000, int)}}), background=True)
while not feed.progress.done:
    time.sleep(0.02)
assert feed.active
'''


@pytest.mark.thorough
@pytest.mark.spark
def test_a_program_ends_while_a_feed_runs(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", PROGRAM]
    ended = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_feed_that_is_followed_is_committed_chunk_by_chunk(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs, batches = [], []
    for followed in (False, True):
        app = run(SUMS, fresh=True, start=0)
        seen: list[int] = []
        leave = app.on_commit(seen.append) if followed else None
        report = app.feed("S", numbers(BIG + 7))
        assert (report.rows, report.rejected, report.not_fed) == (BIG + 7, 0, 0)
        outputs.append(app.output("Sums").frame["total"].tolist())
        batches.append(app.stats().micro_batches)
        if leave is not None:
            leave()
    assert outputs[0] == outputs[1]
    assert batches == [1, 5]


def test_a_feed_in_local_times_with_columns_of_other_names(run: Run, tmp_path: Path) -> None:
    """As a spreadsheet in Germany saves it."""
    file = tmp_path / "rentals.csv"
    file.write_text(
        "Zeit;Station Name;Bikes\n03.06.2024 05:00:03;A;1\n03.06.2024 05:00:01;B;2\nspäter;C;3\n", encoding="utf-8"
    )
    app = run("define stream S (station string, bikes int); from S select station, bikes insert into O;")
    report = app.feed(
        "S", file, time="Zeit", time_format="%d.%m.%Y %H:%M:%S", time_zone="Europe/Berlin",
        columns={"station": "Station Name", "bikes": "Bikes"},
    )  # fmt: skip
    found = app.output("O").frame
    assert found["station"].tolist() == ["B", "A"]
    assert pd.to_datetime(found["timestamp"], unit="ms").astype(str).tolist() == [
        "2024-06-03 03:00:01", "2024-06-03 03:00:03",
    ]  # fmt: skip
    assert "Zeit: 'später' is not a time like 01.06.2024 10:00:00; time_format names another format" in text(report)
    assert "Zeit: 'später' is not a time like 01.06.2024 10:00:00; time_format names another format" in text(app.errors)


def test_a_feed_says_that_it_starts_a_stopped_app(run: Run) -> None:
    app = run("define stream S (v int); from S select v insert into O;")
    frame = pd.DataFrame({"v": [1]})
    assert "stopped" not in text(app.feed("S", frame))
    app.stop()
    assert text(app.feed("S", frame)).splitlines()[-1] == "  ! app was stopped, and runs again."
    assert "stopped" not in text(app.feed("S", frame))


def test_more_rows_that_do_not_fit_than_are_kept(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report said that 25,000 rows are kept, and 10,000 were."""
    monkeypatch.setattr("sparkstream_nb.lab.results_shown.has_magics", lambda: False)
    app = run("define stream S (v int); from S select v insert into O;", retention="errors=4")
    report = app.feed("S", pd.DataFrame({"v": [*"abcdefghij", "7"]}))
    assert text(report).splitlines()[2:] == [
        "  ! 10 of 11 rows did not fit the stream; 3 of them are kept: app.errors",
        "    of the first 3:",
        "    3 × v is not an int: 3 values, such as 'a'; a whole number is written as 1234",
    ]
    assert "app.replay() sends them again; app.replay(frame) sends mended rows of app.errors.frame." in text(app.errors)
    errors = app.errors.frame
    assert errors["reason"].tolist()[-1] == "7 more rows did not fit, and are not kept: feed them again"
    assert len(errors) == 4
    last = int(errors.index[-1])
    assert app.replay([last]).left[last].startswith("these rows are not kept: mend them in their file or frame")


def test_a_feed_tells_of_times_that_clocks_do_not_show_once(run: Run) -> None:
    times = [
        "2024-03-31 01:59:59", "2024-03-31 02:00:00", "2024-03-31 02:59:59", "2024-03-31 03:00:00",
        "2024-10-27 01:59:59", "2024-10-27 02:00:00", "2024-10-27 02:59:59", "2024-10-27 03:00:00",
    ]  # fmt: skip
    app = run("define stream S (v int); from S select v insert into O;")
    frame = pd.DataFrame({"v": range(8), "at": times})
    lines = text(app.feed("S", frame, time="at", time_zone="Europe/Berlin")).splitlines()
    assert lines[-2:] == [
        "  ! 2 events have times that exist twice, as the clocks of Europe/Berlin went back (end of summer time): the "
        "first was taken.",
        "  ! 2 events have times that do not exist, as the clocks of Europe/Berlin went forward: they were read as "
        "that much later, as 03:30 for 02:30.",
    ]
    out = app.output("O").frame
    assert out["timestamp"].diff().tolist()[1:4] == [1000, 0, 3599000], "02:00 is 03:00, in the feed's order"
    twice, skipped = DoubtCounts(1, 1).words("Europe/Berlin")
    assert twice.startswith("1 event has a time that exists twice, as")
    assert skipped.startswith("1 event has a time that does not exist, as")


def test_times_that_look_like_seconds_are_told_once(run: Run) -> None:
    app = run("define stream S (v int); from S select v insert into O;")
    frame = pd.DataFrame({"v": [1, 2], "at": [1717236000, 1717236001]})
    assert text(app.feed("S", frame, time="at")).count("lie in 1970. If they are seconds") == 1
    app = run("define stream S (v int); from S select v insert into O;", fresh=True)
    assert "1970" not in text(app.feed("S", frame, time="at", time_format="s"))
    assert app.output("O").frame["timestamp"].tolist() == [1717236000_000, 1717236001_000]


def test_a_pause_says_what_is_still_under_way(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    app = run(SUMS)
    may_commit, entered = threading.Event(), threading.Event()
    commit = app.runtime.stream.job.commit.commit

    def held(*arguments: Any) -> None:
        entered.set()
        assert may_commit.wait(SECONDS)
        commit(*arguments)

    monkeypatch.setattr(app.runtime.stream.job.commit, "commit", held)
    feed = app.feed("S", numbers(BIG), time="at", background=True)
    assert entered.wait(SECONDS)
    feed.pause()
    assert f"paused ({CHUNK_ROWS:,} events under way still)" in text(feed)
    may_commit.set()
    app.flush()
    assert "under way" not in text(feed)
    feed.stop()
    assert feed.wait(SECONDS).not_fed == BIG - CHUNK_ROWS


def test_events_that_come_late_or_have_no_times_are_pointed_out(run: Callable[..., App]) -> None:
    """Where the time of their arrival matters: an aggregation without `aggregate by` counts them in its bucket."""
    app = run(
        "define stream S (k string, at long); define aggregation A from S select k, count() as n group by k aggregate "
        "every sec; define aggregation B from S select k, count() as n group by k aggregate by at every sec;"
    )
    later = pd.DataFrame({"at": [1717495200000, 1717495201000], "k": ["x", "x"]})
    assert app.feed("S", later, time="at").notes == []
    earlier = pd.DataFrame({"at": [1717495199000, 1717495200500, 1717495202000], "k": ["x", "x", "x"]})
    (said,) = app.feed("S", earlier, time="at").notes
    assert said == (
        "2 events are earlier than the app's clock, which is at 2024-06-04 10:00:01 UTC. A counts them at the clock's "
        "time; an aggregation with `aggregate by` counts them where they belong."
    )
    ask = "from {} within '2024-**-** **:**:**' per 'seconds' select AGG_TIMESTAMP, n"
    assert sorted(app.query(ask.format("A")).frame["n"]) == [1, 1, 3]
    assert sorted(app.query(ask.format("B")).frame["n"]) == [1, 1, 1, 2]
    (said,) = app.feed("S", later).notes
    assert said.startswith("No column of times was given (--time, time=): the events are 1 ms apart, from ")
    assert said.endswith(" UTC on. That matters to A.")


def test_no_note_on_times_where_they_do_not_matter(run: Callable[..., App]) -> None:
    app = run("define stream S (k string); from S select k insert into O;")
    frame = pd.DataFrame({"at": [2000, 1000], "k": ["x", "x"]})
    assert [app.feed("S", frame.iloc[[n]], time="at").notes for n in (0, 1)] == [[], []]
    assert app.feed("S", frame).notes == []
