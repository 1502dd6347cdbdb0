"""Streaming DataFrames fed to an app: each micro-batch once, over stops, restarts and crashes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sparkstream_nb import App, deploy
from sparkstream_nb.app import FrameFeed
from sparkstream_nb.errors import Misuse
from sparkstream_nb.sources.frame_stream import FrameStreamReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TEXT = """
    define stream Payments (card string, amount double);
    from Payments#window.length(1000) select card, count() as n, sum(amount) as total insert into Totals;
"""
SCHEMA = "at bigint, card string, amount double"


class Source:
    """A folder of files, and a stream over it."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark, self.path, self.rows = spark, path, 0

    def add(self, rows: int = 10) -> None:
        """A file of rows, the later ones first."""
        numbers = range(self.rows, self.rows + rows)
        self.rows += rows
        found = [(1_700_000_000_000 + i, f"card-{i % 3}", float(i)) for i in reversed(numbers)]
        self.spark.createDataFrame(found, SCHEMA).coalesce(1).write.mode("append").parquet(str(self.path))

    def stream(self) -> DataFrame:
        return self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(self.path))


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Source:
    found = Source(spark, tmp_path / "in")
    found.add()
    return found


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Callable[[], App]]:
    running: list[App] = []

    def start() -> App:
        running.append(deploy(TEXT, name="followed", master="inline", home=tmp_path / "home"))
        return running[-1]

    yield start
    for one in running:
        if one.state != "closed":
            one.stop()
            one.close()


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def check_outputs(app: App, source: Source) -> None:
    """All rows of the source have come once, in the order of their times."""
    wait_for(lambda: app.runtime.inbox.position.events.get("Payments", 0) >= source.rows)
    app.flush()
    totals = app.output("Totals").frame
    assert totals["n"].tolist() == list(range(1, source.rows + 1))
    assert totals["total"].iloc[-1] == sum(range(source.rows))


@pytest.mark.contract
def test_follows_pauses_and_continues(app: Callable[[], App], source: Source) -> None:
    running = app()
    feed = running.feed("Payments", source.stream(), time="at")
    assert isinstance(feed, FrameFeed)
    assert running.catch_up(60)
    assert feed.events == 10
    check_outputs(running, source)
    assert (feed.state, feed.events) == ("running", 10)
    assert str(feed) == "Feed of Payments from a streaming frame, running: 10 events"
    feed.pause()
    source.add()
    assert feed.state == "paused"
    assert running.runtime.inbox.position.events["Payments"] == 10
    feed.resume()
    check_outputs(running, source)
    assert [(s.type, s.events) for s in running.stats().sources] == [("spark", 20)]
    feed.stop()
    assert feed.state == "stopped"
    with pytest.raises(Misuse, match="the feed was stopped: feed the frame again"):
        feed.resume()


@pytest.mark.thorough
def test_stops_and_starts_with_the_app(app: Callable[[], App], source: Source) -> None:
    running = app()
    feed = running.feed("Payments", source.stream(), time="at")
    check_outputs(running, source)
    running.stop()
    source.add()
    assert feed.state == "paused"
    running.start()
    check_outputs(running, source)
    running.stop()
    running.close()
    source.add()
    again = app()
    again.feed("Payments", source.stream(), time="at")
    check_outputs(again, source)


@pytest.mark.thorough
def test_many_micro_batches_are_compacted(app: Callable[[], App], source: Source) -> None:
    """Spark compacts its sink's log every ten micro-batches; data files that were taken are gone by then."""
    running = app()
    feed = running.feed("Payments", source.stream(), time="at")
    for _ in range(12):
        source.add(3)
    check_outputs(running, source)
    feed.pause()
    for _ in range(11):
        source.add(3)
    feed.resume()
    check_outputs(running, source)
    rows = running.runtime.app_run.folder(running.home) / "frames" / "Payments" / "rows"
    wait_for(lambda: not list(rows.glob("*.parquet")))


@pytest.mark.thorough
def test_a_crash_before_the_files_are_removed_repeats_nothing(
    app: Callable[[], App], source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as crashed:
        crashed.setattr(FrameStreamReader, "confirm", lambda *_: None)
        running = app()
        running.feed("Payments", source.stream(), time="at")
        check_outputs(running, source)
        running.stop()
        running.close()
    source.add()
    again = app()
    again.feed("Payments", source.stream(), time="at")
    check_outputs(again, source)


@pytest.mark.thorough
def test_rows_that_do_not_fit_are_errors(app: Callable[[], App], spark: SparkSession, tmp_path: Path) -> None:
    rows = [(1_700_000_000_000, "a", "1.5"), (None, "b", "2"), (1_700_000_000_001, "c", "much")]
    path = str(tmp_path / "in")
    spark.createDataFrame(rows, "at bigint, card string, amount string").coalesce(1).write.parquet(path)
    running = app()
    stream = spark.readStream.schema("at bigint, card string, amount string").parquet(path)
    feed = running.feed("Payments", stream, time="at")
    assert isinstance(feed, FrameFeed)
    wait_for(lambda: feed.events == 1)
    running.flush()
    wait_for(lambda: len(running.errors.frame) == 2)
    assert sorted(running.errors.frame["reason"]) == ["amount: 'much' is not a double", "at: null is not a time"]
    assert feed.figures.rejected == 2


def test_what_is_refused(app: Callable[[], App], source: Source) -> None:
    running = app()
    with pytest.raises(Misuse, match="the frame has no column 'when' for stream 'Payments'"):
        running.feed("Payments", source.stream(), time="when")
    with pytest.raises(Misuse, match="a streaming frame is followed as it comes: speed is for feeds of frames"):
        running.feed("Payments", source.stream(), time="at", speed=2)


@pytest.mark.thorough
def test_a_query_that_fails_is_tried_again(app: Callable[[], App], source: Source, spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    running = app()
    bad = source.stream().withColumn("amount", F.assert_true(F.lit(False)).cast("double"))
    feed = running.feed("Payments", bad, time="at")
    assert isinstance(feed, FrameFeed)
    wait_for(lambda: feed.state == "away")
    assert "source frame:Payments (a streaming frame): " in "\n".join(running.logs)
    again = running.feed("Payments", source.stream(), time="at")
    assert isinstance(again, FrameFeed)
    check_outputs(running, source)
