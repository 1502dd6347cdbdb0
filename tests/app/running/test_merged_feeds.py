"""Feeds of several sources, merged by event time; the pace of feeds, and steps through them."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkstream_nb.app import App
from sparkstream_nb.app.running.pace import DueRows, Pace, Pacer
from sparkstream_nb.errors import Misuse, SparkStreamError
from sparkstream_nb.sources import feeds as reading

Run = Callable[..., App]
SECONDS = 60
LIT = """define stream Lamp (id int, at long);
define stream Key (id int, at long);
from every l=Lamp -> k=Key select l.id as lamp, k.id as key insert into Matches;
"""
LAMPS = pd.DataFrame({"id": [1, 2], "at": [1000, 3000]})
KEYS = pd.DataFrame({"id": [10, 20], "at": [2000, 4000]})
MATCHES = [(1, 10), (2, 20)]
EXACT = """define stream A (n int, at long);
define stream B (n int, at long);
from A#window.length(3) select sum(n) as v insert into Sums;
from every a=A -> b=B[n > a.n] within 5 sec select a.n as x, b.n as y insert into Pairs;
from A#window.time(2 sec) join B#window.length(2) on A.n == B.n select A.n as n, B.at as at insert into Joined;
from B#window.timeBatch(3 sec) select count() as n insert into Batches;
"""
STREAMS = ("Sums", "Pairs", "Joined", "Batches")


def rows(app: App, stream: str) -> list[tuple[Any, ...]]:
    frame = app.output(stream).frame
    return [*frame.drop(columns=["node"]).itertuples(index=False, name=None)]


def matches(app: App) -> list[tuple[int, int]]:
    return [*app.output("Matches").frame[["lamp", "key"]].itertuples(index=False, name=None)]


def numbered(n: int, first: int = 0, step: int = 1000) -> pd.DataFrame:
    return pd.DataFrame({"id": np.arange(n), "at": first + step * np.arange(n)})


# ----------------------------------------------------------------------------------------------------------- merging


@pytest.mark.contract
def test_two_streams_in_the_order_of_their_events(run: Run) -> None:
    app = run(LIT)
    report = app.feed({"Lamp": LAMPS, "Key": KEYS}, time="at")
    assert matches(app) == MATCHES
    assert (report.stream, report.rows, report.rejected, report.events) == ("Lamp, Key", 4, 0, 4)


@pytest.mark.contract
def test_files_of_every_kind_on_several_nodes(run: Run, tmp_path: Path) -> None:
    """Row groups of parquet as they are, a CSV file, and a frame, on nodes that get all events of a key."""
    text = """define stream Lamp (id int, at long); define stream Key (id int, at long);
    from every l=Lamp -> k=Key[id == l.id] select l.id as lamp, k.at - l.at as waited insert into Matches;"""
    lamps, keys = numbered(50).astype({"id": "int32"}), numbered(50, 500).astype({"id": "int32"})
    pq.write_table(pa.table(lamps), tmp_path / "lamps.parquet", row_group_size=7)
    keys[:30].to_csv(tmp_path / "keys.csv", index=False)
    sources = {"Lamp": tmp_path / "lamps.parquet", "Key": [tmp_path / "keys.csv", keys[30:]]}
    for nodes, routing in ((1, "round_robin"), (3, "hash:id")):
        app = run(text, nodes=nodes, routing=routing, fresh=True)
        assert app.feed(sources, time="at").rows == 100
        found = app.output("Matches").frame.sort_values("lamp")
        assert found["lamp"].tolist() == list(range(50))
        assert set(found["waited"]) == {500}


def test_of_equal_times_an_earlier_source_comes_first(run: Run) -> None:
    app = run(LIT)
    same = pd.DataFrame({"id": [1, 2], "at": [1000, 1000]})
    app.feed({"Key": same, "Lamp": same}, time="at")
    assert matches(app) == []
    app.feed({"Lamp": same.assign(at=2000), "Key": same.assign(at=2000)}, time="at")
    assert matches(app) == [(1, 1), (2, 1), (1, 1), (2, 1)]


@pytest.mark.thorough
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    events=st.lists(
        st.tuples(st.sampled_from("AB"), st.integers(0, 5), st.integers(0, 40), st.integers(0, 3)), max_size=40
    ),
    chunk=st.integers(1, 7),
    followed=st.booleans(),
)
def test_any_split_of_a_feed_gives_the_result_of_one(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: Sequence[tuple[str, int, int, int]], chunk: int,
    followed: bool,
) -> None:
    """Events (stream, value, time in 100 ms, file) in files by stream, in chunks, against the same sent one by one."""
    monkeypatch.setattr(reading, "CHUNK_ROWS", chunk)
    files: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for stream, n, time, file in sorted(events, key=lambda e: (e[0], e[3])):
        files.setdefault((stream, file), []).append((n, 1_000_000 + 100 * time))
    ordered = sorted(((at, s, n) for (s, _), own in files.items() for n, at in own), key=lambda e: e[0])
    one = run(EXACT, fresh=True, name="one", home=tmp_path / "one")
    for at, stream, n in ordered:
        one.send(stream, [n, at], at=at)
    one.flush()
    sources: dict[str, list[pd.DataFrame]] = {}
    for (stream, _), own in files.items():
        sources.setdefault(stream, []).append(pd.DataFrame(own, columns=["n", "at"]))
    split = run(EXACT, fresh=True, name="split", home=tmp_path / "split")
    end = split.on_commit(lambda n: None) if followed else None
    if sources:
        split.feed(sources, time="at")
    if end is not None:
        end()
    assert {s: rows(split, s) for s in STREAMS} == {s: rows(one, s) for s in STREAMS}


def test_one_time_column_for_each_stream(run: Run) -> None:
    app = run("define stream Lamp (id int); define stream Key (id int);" + LIT.partition(";\n")[2].partition(";\n")[2])
    frames = {"Lamp": LAMPS.rename(columns={"at": "lit"}), "Key": KEYS.rename(columns={"at": "pressed"})}
    app.feed(frames, time={"Lamp": "lit", "Key": "pressed"})
    assert matches(app) == MATCHES


def test_a_restart_reads_merged_entries_again(run: Run) -> None:
    app = run(LIT)
    app.feed({"Lamp": LAMPS, "Key": KEYS}, time="at")
    app.stop()
    again = run(LIT)
    again.feed({"Lamp": LAMPS.assign(at=[5000, 7000]), "Key": KEYS.assign(at=[6000, 8000])}, time="at")
    assert matches(again) == [*MATCHES, *MATCHES]
    assert again.divergence().merged == {}


def test_a_study_merges_its_feeds(run: Run) -> None:
    app = run(LIT)
    found = app.study([1, 2], ["node:1"], feed={"Lamp": LAMPS, "Key": KEYS}, time="at")
    assert found.frame["same"].tolist() == [2, 2]


def test_rejected_rows_of_all_sources_are_counted(run: Run) -> None:
    app = run(LIT)
    report = app.feed({"Lamp": pd.DataFrame({"id": ["x", "2"], "at": ["1000", "3000"]}), "Key": KEYS}, time="at")
    assert (report.rows, report.rejected, report.events) == (4, 1, 3)
    assert len(app.errors) == 1
    assert [*report.reasons.values()] == [1]


@pytest.mark.parametrize(
    ("given", "how", "message"),
    [
        ({"Lamp": LAMPS, "Key": KEYS}, {}, "merged by event time: name its column for Lamp, Key, with time="),
        ({"Lamp": LAMPS, "Key": KEYS}, {"time": {"Lamp": "at"}}, "name its column for Key"),
        ({"Lamp": LAMPS}, {"time": {"Lump": "at"}}, "no stream 'Lump' is fed. Did you mean 'Lamp'"),
        ({"Lump": LAMPS}, {"time": "at"}, "no stream 'Lump'"),
        ({}, {"time": "at"}, "nothing to feed"),
        ({"Lamp": LAMPS}, {"speed": 60}, "this feed has none: name its column with time=, or give a rate"),
        ({"Lamp": LAMPS}, {"time": "at", "speed": 0}, "speed is a positive number"),
        ({"Lamp": LAMPS}, {"time": "at", "speed": 60, "rate": 5}, "not both"),
        ({"Lamp": LAMPS}, {"time": "at", "paused": 1}, "paused is True or False"),
    ],
)
def test_wrong_arguments(run: Run, given: Any, how: dict[str, Any], message: str) -> None:
    app = run(LIT)
    with pytest.raises(Misuse) as raised:
        app.feed(given, **how)
    assert message in str(raised.value)
    assert app.stats().events == 0


def test_a_dict_and_a_source_are_too_much(run: Run) -> None:
    with pytest.raises(Misuse, match="not both"):
        run(LIT).feed({"Lamp": LAMPS}, KEYS)


# -------------------------------------------------------------------------------------------------- steps and pace


def test_steps_through_a_merged_feed(run: Run) -> None:
    app = run(LIT)
    feed = app.feed({"Lamp": LAMPS, "Key": KEYS}, time="at", paused=True)
    feed.step(2)
    assert feed.position.events == 2
    assert feed.state == "paused"
    assert str(feed.position) == "2 events fed, at 1970-01-01 00:00:02 UTC, 2 remaining"
    assert matches(app) == [(1, 10)]
    feed.step_until(3000)
    assert feed.position.events == 3
    feed.step_until("1970-01-01 00:00:03.500")  # nothing is due
    feed.resume()
    assert feed.wait(SECONDS).events == 4
    assert matches(app) == MATCHES


def test_a_feed_joins_one_that_is_under_way(run: Run) -> None:
    app = run(LIT)
    first = app.feed("Lamp", LAMPS, time="at", paused=True)
    assert app.feed("Key", KEYS, time="at", together=True) is first
    first.resume()
    report = first.wait(SECONDS)
    assert (report.stream, report.events) == ("Lamp, Key", 4)
    assert matches(app) == MATCHES


def test_a_feed_beside_another_says_that_it_is_not_merged(run: Run) -> None:
    app = run(LIT)
    first = app.feed("Lamp", LAMPS, time="at", paused=True)
    second = app.feed("Key", KEYS, time="at")
    assert f"Events of feed {first.id} come in besides, and are not merged" in " ".join(second.notes)
    first.stop()
    first.wait(SECONDS)


def test_a_feed_begins_again(run: Run) -> None:
    app = run(LIT)
    feed = app.feed({"Lamp": LAMPS, "Key": KEYS}, time="at", background=True)
    assert feed.wait(SECONDS).events == 4
    feed.restart()
    assert feed.wait(SECONDS).events == 4
    assert len(app.output("Matches")) == 4


def test_a_feed_begins_again_half_way(run: Run) -> None:
    app = run(LIT)
    feed = app.feed({"Lamp": LAMPS, "Key": KEYS}, time="at", paused=True)
    feed.step(3)
    assert feed.position.events == 3
    feed.restart()
    feed.resume()
    assert feed.wait(SECONDS).events == 4
    assert app.stats().events == 7


def test_an_app_that_is_stopped_ends_a_paused_feed(run: Run) -> None:
    app = run(LIT)
    feed = app.feed({"Lamp": LAMPS, "Key": KEYS}, time="at", paused=True)
    feed.step()
    assert feed.position.events == 1
    app.stop()
    assert feed.wait(SECONDS).not_fed == 3
    assert [f.name for f in (app.home / f"life-{app.runtime.app_run.run}" / "inbox").glob("feed-*")] == []


@pytest.mark.parametrize("how", [{"rate": 1e6}, {"speed": 1e6}])
def test_a_paced_feed_is_waited_for(run: Run, how: dict[str, float]) -> None:
    app = run(LIT)
    assert app.feed({"Lamp": numbered(500), "Key": numbered(500, 500)}, time="at", **how).events == 1000
    assert len(app.output("Matches")) == 500


def test_a_step_needs_times(run: Run) -> None:
    app = run(LIT)
    feed = app.feed("Lamp", LAMPS, paused=True)
    with pytest.raises(Misuse, match="step_until goes by event time"):
        feed.step_until(3000)
    with pytest.raises(Misuse, match="speed goes by event time"):
        feed.set_pace(speed=2)
    feed.set_pace(rate=1e6)
    assert str(feed.pace) == "1,000,000 events/s"
    feed.resume()
    assert feed.wait(SECONDS).events == 2


def test_a_source_that_cannot_be_read_ends_the_feed_that_it_joins(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    app = run(LIT)
    feed = app.feed("Lamp", LAMPS, time="at", paused=True)
    monkeypatch.setattr("sparkstream_nb.app.running.app_inputs.check_source", lambda source, shape: shape)
    app.feed("Key", Path("gone.csv"), time="at", together=True)
    with pytest.raises(SparkStreamError, match=r"gone\.csv"):
        feed.wait(SECONDS)


def test_a_rate_counts_from_the_first_event() -> None:
    now = [100.0]
    pacer = Pacer(Pace.of(None, 10), lambda: now[0])
    assert pacer.due(0, None) == DueRows(rows=1)
    assert pacer.due(1, None) == DueRows(rows=0, wait=0.1)
    now[0] += 0.55
    assert pacer.due(1, None) == DueRows(rows=5)
    pacer.rest()
    now[0] += 1000  # paused
    assert pacer.due(6, None) == DueRows(rows=1)


def test_a_speed_follows_event_time() -> None:
    now = [100.0]
    pacer = Pacer(Pace.of(60, None), lambda: now[0])
    assert pacer.due(0, 5_000) == DueRows(until=5_000)
    due = pacer.due(1, 65_000)
    assert due.until == 5_000
    assert due.wait == pytest.approx(1.0)
    now[0] += 1
    assert pacer.due(1, 65_000) == DueRows(until=65_000)
    assert Pacer(Pace(), lambda: 0.0).due(7, 9) == DueRows()


def test_times_are_read_as_everywhere(run: Run) -> None:
    app = run(LIT)
    feed = app.feed("Lamp", LAMPS, time="at", paused=True)
    feed.step_until(datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC))
    assert feed.position.events == 1
    feed.stop()
    feed.wait(SECONDS)
