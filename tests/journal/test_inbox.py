"""The journal of an app, and the reader that Spark drives."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.journal.checkpoints import SparkCheckpoint
from sparkstream_nb.journal.entries import Ask, Entry, EventsEntry, RowsEntry, StepsEntry
from sparkstream_nb.journal.inbox import INLINE_BYTES, Inbox, Ticket, entries_in
from sparkstream_nb.journal.journal import entries_from, runs, segment, segments
from sparkstream_nb.journal.result_rows import Entries, from_table
from sparkstream_nb.journal.segments import ahead, join, load, pieces
from sparkstream_nb.runners.inline import InlineSession
from sparkstream_nb.runners.spark.inbox_source import JournalStreamReader
from sparkstream_nb.runners.stateless import SourceApp, SourceNode, options_of
from sparkstream_nb.sources.feed_cursor import FeedCursor, Spacing, rejects_of
from sparkstream_nb.sources.feed_order import in_order
from sparkstream_nb.sources.feeds import ChunkPlace, FeedOnDisk, Shape, read_feed
from sparkstream_nb.types import Schema, Type

START = {"seq": 0, "at": 0, "skip": 0}
SCHEMAS = {"S": Schema.of(("k", Type.STRING), ("v", Type.INT))}


def batch(first: int, n: int) -> InputBatch:
    at = np.arange(n, dtype=np.int64)
    columns = [pa.array([f"k{i % 3}" for i in range(n)]), pa.array(range(first, first + n), pa.int32())]
    return InputBatch(first + at, {"S": StreamRows(at, first + at, columns)})


def filled(folder: Path, *sizes: int) -> Inbox:
    inbox = Inbox(folder)
    for n in sizes:
        inbox.append([inbox.batch(batch(inbox.position.step, n), "round_robin")])
    return inbox


def most_rows(count: int) -> Any:
    """Spark's ReadMaxRows, which versions before 4.2 lack."""
    return SimpleNamespace(max_rows=count)


def reader(folder: Path, rows: int = 1000) -> JournalStreamReader:
    return JournalStreamReader(options_of(folder, [SourceApp((SourceNode(7, 0),), SCHEMAS)], rows))


def entries_of(found: JournalStreamReader, start: dict[str, int], end: dict[str, int]) -> list[EventsEntry]:
    """What the source passes on of the journal between two offsets."""
    out: list[EventsEntry] = []
    for partition in found.partitions(start, end):
        for batch in found.read(partition):
            assert batch["key"].to_pylist() == [7] * batch.num_rows
            for row in from_table(pa.Table.from_batches([batch])):
                assert isinstance(row, Entries)
                out += [e for e in row.entries() if isinstance(e, EventsEntry)]
    return out


def test_entries_are_numbered_and_survive_a_new_inbox(tmp_path: Path) -> None:
    inbox = filled(tmp_path, 3, 2)
    inbox.append([inbox.batch(InputBatch(np.array([900])), "round_robin")])
    before = inbox.position
    assert (before.seq, before.step, before.request, before.clock) == (3, 6, 5, 900)
    inbox.close()
    assert Inbox(tmp_path).position == before


def test_a_line_cut_short_is_dropped(tmp_path: Path) -> None:
    filled(tmp_path, 1, 1).close()
    journal = segment(tmp_path, 0)
    journal.write_bytes(journal.read_bytes()[:-5])
    inbox = Inbox(tmp_path)
    assert inbox.position.seq == 1
    inbox.append([inbox.batch(batch(1, 2), "round_robin")])
    assert [e.steps for e, _ in entries_from(tmp_path, START)] == [1, 2]


DAMAGES: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]] = {
    "a line": (lambda found: [b'[{"seq":}]\n', *found], "the line at byte 0 is damaged"),
    "zeros": (lambda found: [*found[:1], b"\0" * 50 + b"\n", *found[1:]], "the line at byte [0-9,]+ is damaged"),
    "members": (lambda found: [*found, b'[{"kind":"steps","x":1}]\n'], "the line at byte [0-9,]+ is damaged"),
    "nested": (lambda found: [*found, b"[" * 100_000 + b"\n"], "the line at byte [0-9,]+ is damaged"),
    "position": (lambda found: [b'{"position"\n', *found], "0+ cannot be read: its beginning is damaged"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_damaged_line_is_an_error_with_the_ways_out(what: str, tmp_path: Path) -> None:
    filled(tmp_path, 1, 1).close()
    file = segment(tmp_path, 0)
    change, said = DAMAGES[what]
    file.write_bytes(b"".join(change(file.read_bytes().splitlines(keepends=True))))
    for opened in (Inbox, entries_in):
        with pytest.raises(SparkStreamError, match=f"{said}. Put it back from a copy; fresh=True"):
            opened(tmp_path)


def test_a_segment_without_its_position_is_an_error(tmp_path: Path) -> None:
    inbox = filled(tmp_path, 1)
    inbox._roll()
    inbox.append([inbox.batch(batch(9, 1), "round_robin")])
    inbox.close()
    file = segments(tmp_path)[-1][1]
    file.write_bytes(file.read_bytes().partition(b"\n")[2])
    with pytest.raises(SparkStreamError, match=f"{file.name} cannot be read: its beginning is damaged"):
        Inbox(tmp_path)


def test_a_changed_position_of_a_segment_is_an_error(tmp_path: Path) -> None:
    inbox = filled(tmp_path, 1, 1)
    inbox._roll()
    inbox.append([inbox.batch(batch(9, 1), "round_robin")])
    inbox.close()
    file = segments(tmp_path)[-1][1]
    file.write_bytes(file.read_bytes().replace(b'"seq": 2', b'"seq": 1', 1))
    with pytest.raises(SparkStreamError, match=f"{file.name} cannot be read: its beginning is damaged"):
        Inbox(tmp_path)
    with pytest.raises(SparkStreamError, match=f"{file.name} cannot be read: its beginning is damaged"):
        entries_in(tmp_path)


@pytest.mark.parametrize("log", [b"", b'v1\n{"a"', b"v1\n{}\n3", b'v1\n{}\n{"seq":null}'])
def test_a_damaged_checkpoint_is_an_error_with_the_ways_out(log: bytes, tmp_path: Path) -> None:
    (tmp_path / "checkpoint" / "offsets").mkdir(parents=True)
    (tmp_path / "checkpoint" / "offsets" / "0").write_bytes(log)
    with pytest.raises(SparkStreamError, match=r"checkpoint/offsets/0 cannot be read: .* from a copy; fresh=True"):
        SparkCheckpoint.of(tmp_path, None).read_progress()


def test_large_batches_get_a_file_that_goes_when_spark_is_done_with_it(tmp_path: Path) -> None:
    inbox = filled(tmp_path, INLINE_BYTES)
    ((entry, end),) = entries_from(tmp_path, START)
    assert entry.file is not None
    assert (tmp_path / entry.file).exists()
    reader(tmp_path).commit(end)
    assert not (tmp_path / entry.file).exists()
    inbox.close()


def rows_of_a_feed(inbox: Inbox, count: int) -> RowsEntry:
    return RowsEntry(steps=count, clock=99, route="round_robin", file=inbox.write("feed", b"rows"), stream="S")


def test_rows_of_a_feed_can_be_taken_back_and_events_that_were_sent_stay(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    inbox.append([inbox.batch(batch(0, 4), "round_robin"), rows_of_a_feed(inbox, 5)])
    inbox.append([inbox.batch(batch(9, 6), "round_robin"), Ask(text="from T select *"), rows_of_a_feed(inbox, 7)])
    assert inbox.take_back(1) == {"S": 12}
    assert (inbox.position.seq, inbox.position.step, inbox.position.clock) == (2, 10, 14)
    inbox.append([inbox.batch(batch(50, 1), "round_robin")])
    assert [(e.seq, e.step, e.steps) for e, _ in entries_from(tmp_path, START)] == [(0, 0, 4), (1, 4, 6), (2, 10, 1)]
    assert inbox.take_back(0) == {}


def test_what_a_sink_could_not_deliver_stays_when_others_are_taken_back(tmp_path: Path) -> None:
    """With the last place of each sink, also where only the beginning of a segment tells it."""

    def failed(step: int, sink: str, *place: int) -> StepsEntry:
        return replace(inbox.batch(batch(step, 1), "node:1"), sink=sink, place=place)

    inbox = filled(tmp_path, 4)
    inbox.append([failed(50, "a", 0, 3)])
    inbox.append([rows_of_a_feed(inbox, 5), failed(70, "b", 1, 0)])
    inbox.append([failed(80, "a", 2, 7)])
    assert inbox.take_back(1) == {"S": 5}
    assert (inbox.position.seq, inbox.position.step) == (4, 7)
    assert inbox.position.sinks == {"a": (2, 7), "b": (1, 0)}
    found = [e for e, _ in entries_from(tmp_path, START)]
    assert [(e.seq, e.step, e.steps) for e in found] == [(0, 0, 4), (1, 4, 1), (2, 5, 1), (3, 6, 1)]
    inbox._roll()
    inbox.append([inbox.batch(batch(90, 1), "round_robin")])
    inbox.close()
    segment(tmp_path, 0).unlink()
    assert Inbox(tmp_path).position.sinks == {"a": (2, 7), "b": (1, 0)}


def test_a_trigger_takes_entries_up_to_its_limit_and_one_at_least(tmp_path: Path) -> None:
    filled(tmp_path, 3, 3, 10, 1)
    found = reader(tmp_path, rows=7)
    ends, at = [], START
    while (after := found.latestOffset(at, most_rows(7))) != at:
        ends.append(after["seq"])
        at = after
    assert ends == [2, 3, 4]


def test_a_reader_that_is_not_told_where_a_micro_batch_begins(tmp_path: Path) -> None:
    """As before Spark 4.2, whose first offset of a run is that of the last micro-batch that its checkpoint has."""
    folder = tmp_path / "inbox"
    inbox = filled(folder, 3, 3, 10, 1)
    found = reader(folder, rows=7)
    ends = [found.latestOffset() for _ in range(4)]
    assert [end["seq"] for end in ends] == [2, 3, 4, 4]
    logged = tmp_path / "checkpoint" / "offsets"
    logged.mkdir(parents=True)
    for number, end in enumerate(ends[:2]):
        (logged / str(number)).write_text(f"v1\n{{}}\n{json.dumps(end)}")
    inbox.append([inbox.batch(batch(17, 2), "round_robin")])
    assert reader(folder).latestOffset()["seq"] == 5  # from the planned micro-batch on, whether it was committed or not
    again = reader(folder, rows=7)
    again.partitions(ends[0], ends[1])  # which comes again first
    assert [again.latestOffset()["seq"] for _ in range(2)] == [5, 5]
    (logged / "1").write_text("")
    with pytest.raises(SparkStreamError, match=r"checkpoint/offsets/1 cannot be read: it was cut off or changed"):
        reader(folder).latestOffset()


@pytest.mark.parametrize("sizes", [(12,), (1,) * 12, (5, 4, 3)])
def test_however_the_input_is_cut_each_node_gets_the_same(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    filled(tmp_path, *sizes)
    found = reader(tmp_path)
    entries = entries_of(found, START, found.latestOffset(START, most_rows(1000)))
    for node in range(3):
        values = []
        for run in runs(entries):
            (taken,) = pieces(tmp_path, run, SCHEMAS, [node], 3)
            assert taken.before == (taken.step - 1 if taken.step else None)
            for r in taken.batch.rows.values():
                values += zip((r.step + taken.step).tolist(), r.columns[1].to_pylist(), strict=True)
        assert values == [(i, i) for i in range(node, 12, 3)]


def test_what_is_read_ahead_comes_in_order_with_its_error() -> None:
    def items() -> Iterator[int]:
        yield from range(5)
        raise ValueError("no more")

    found = ahead(items())
    assert list(islice(found, 5)) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="no more"):
        next(found)


def test_joined_batches_keep_their_chunks() -> None:
    one = batch(0, 2)
    one.rows["S"].step = np.array([1, 1])
    both = join([one, batch(5, 1), InputBatch(np.array([7]))])
    assert both.clock.tolist() == [0, 1, 5, 7]
    assert both.rows["S"].step.tolist() == [1, 1, 2]


def entries_of_feed(feed: FeedOnDisk, shape: Shape, inbox: Inbox) -> list[Entry]:
    cursor = FeedCursor(inbox.folder)
    cursor.add(feed, shape)
    found = cursor.take(inbox, "round_robin", Spacing(0))
    cursor.discard()
    return [*found, *rejects_of(feed)]


@pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_a_parquet_file_in_order_enters_as_it_is(tmp_path: Path, text: pa.DataType) -> None:
    table = pa.table(
        {
            "at": pa.array([5, 7, 7, 9]),
            "k": pa.array(["a", None, "b", "a"]).cast(text) if text != pa.string() else ["a", None, "b", "a"],
            "v": pa.array([1, 2, None, 4], pa.int16()),
        }
    )
    pq.write_table(table, tmp_path / "feed.parquet", row_group_size=3)
    inbox = Inbox(tmp_path / "inbox")
    shape = Shape("S", SCHEMAS["S"], "at", {})
    feed = read_feed(tmp_path / "feed.parquet", shape, ChunkPlace(inbox.folder, InlineSession()), None)
    feed, _ = in_order(feed, inbox.folder)
    inbox.append(entries_of_feed(feed, shape, inbox))
    ((entry, _),) = entries_from(inbox.folder, START)
    assert isinstance(entry, RowsEntry)
    assert (entry.steps, entry.clock, entry.groups) == (4, 9, (0, 1))
    rows = load(inbox.folder, entry, SCHEMAS).rows["S"]
    assert rows.ts.tolist() == [5, 7, 7, 9]
    assert [c.to_pylist() for c in rows.columns] == [["a", None, "b", "a"], [1, 2, None, 4]]
    assert rows.columns[1].type == pa.int32()


@pytest.mark.parametrize(
    "columns",
    [
        {"at": [1, 3, 2], "k": ["a", "b", "c"], "v": [1, 2, 3]},  # not in order
        {"at": [1, None, 2], "k": ["a", "b", "c"], "v": [1, 2, 3]},  # a time is missing
        {"at": [1, 2, 3], "k": ["a", "b", "c"], "v": ["1", "2", "x"]},  # a row may be rejected
        {"at": [1, 2, 3], "k": ["a", "b", "c"]},  # a column is missing
    ],
)
def test_other_parquet_files_go_row_by_row(tmp_path: Path, columns: dict[str, list[Any]]) -> None:
    pq.write_table(pa.table(columns), tmp_path / "feed.parquet", row_group_size=2)
    shape = Shape("S", SCHEMAS["S"], "at", {})
    found = read_feed(tmp_path / "feed.parquet", shape, ChunkPlace(tmp_path, InlineSession()), None)
    assert found.rows + found.rejected == 3
    assert not any(chunk.groups for chunk in found.chunks)


def test_what_came_in_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all its bytes, its file and the folders that name both, before `append` returns."""
    synced: dict[int, int] = {}
    fsync = os.fsync

    def noted(file: int) -> None:
        found = os.fstat(file)
        synced[found.st_ino] = found.st_size
        fsync(file)

    def on_disk(*paths: Path) -> bool:
        return all(synced.get(p.stat().st_ino) == p.stat().st_size for p in paths)

    monkeypatch.setattr(os, "fsync", noted)
    inbox = Inbox(tmp_path / "inbox")
    assert on_disk(segment(inbox.folder, 0), inbox.folder / "journal", inbox.folder, tmp_path)
    sent = inbox.batch(batch(0, 5000), "round_robin")
    shape = Shape("S", SCHEMAS["S"], None, {})
    frame = pd.DataFrame({"k": ["a", "b"], "v": [1, "x"]})
    typed = read_feed(frame, shape, ChunkPlace(inbox.folder, InlineSession()), None)
    fed = entries_of_feed(typed, shape, inbox)
    for taken in ([inbox.batch(batch(0, 1), "round_robin")], [sent], fed):
        synced.clear()
        inbox.append(taken)
        files = [inbox.folder / e.file for e in taken if e.file is not None]
        assert on_disk(segment(inbox.folder, 0), *files)
        assert not files or on_disk(inbox.folder)
    assert len(files) == 2
    synced.clear()
    inbox._roll()
    assert on_disk(segments(inbox.folder)[-1][1], inbox.folder / "journal")


FULL = """
import resource, sys
from pathlib import Path
import numpy as np, pandas as pd, pyarrow as pa
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.runners.inline import InlineSession
from sparkstream_nb.journal.entries import Entry, Ask
from sparkstream_nb.sources.feeds import ChunkPlace, Shape, read_feed
from sparkstream_nb.journal.inbox import Inbox
from sparkstream_nb.journal.journal import segment
from sparkstream_nb.types import Schema, Type

inbox = Inbox(Path(sys.argv[1]))
inbox.append([Ask(text="one")])
size = segment(inbox.folder, 0).stat().st_size
n = 300_000
shape = Shape("S", Schema.of(("v", Type.LONG)), None, {})
rejected = Shape("S", Schema.of(("v", Type.INT)), None, {})
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, hard))
for work in (
    lambda: inbox.append([Ask(text="two" * 100)]),
    lambda: inbox.write("batch-x", b"x" * 10_000),
    lambda: read_feed(pd.DataFrame({"v": range(n)}), shape, ChunkPlace(inbox.folder, InlineSession()), None),
    lambda: read_feed(pd.DataFrame({"v": ["x"] * 1000}), rejected, ChunkPlace(inbox.folder, InlineSession()), None),
):
    try:
        work()
        print("written")
    except SparkStreamError as e:
        print(str(e).replace("\\n", "|"))
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
inbox.append([Ask(text="three")])
"""


def test_what_a_full_disk_refuses_is_not_in(tmp_path: Path) -> None:
    found = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True)
    said = r".* cannot be written to: .*File too large. The events were not taken; make room and send them again\."
    assert [bool(re.fullmatch(said, line)) for line in found.stdout.splitlines()] == [True] * 4
    entries = [e for e, _ in entries_from(tmp_path, START)]
    assert [(e.seq, e.text) for e in entries if isinstance(e, Ask)] == [(0, "one"), (1, "three")]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["journal", "marks"]


class Disk:
    """Stands for the wait for the disk: it is over when it is told, or fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting, self.over = threading.Semaphore(0), threading.Semaphore(0)
        self.error: OSError | None = None
        self.waits = 0
        monkeypatch.setattr("sparkstream_nb.journal.inbox.sync", self.wait)

    def wait(self, file: int) -> None:
        self.waits += 1
        self.waiting.release()
        assert self.over.acquire(timeout=30)
        if self.error is not None:
            raise self.error


def settled(inbox: Inbox, tickets: list[Ticket]) -> tuple[list[threading.Thread], list[object]]:
    """Threads that wait each for one of `tickets`, and what comes of it: True, or the error."""
    found: list[object] = []

    def wait(ticket: Ticket) -> None:
        try:
            inbox.settle(ticket)
            found.append(True)
        except SparkStreamError as error:
            found.append(str(error))

    threads = [threading.Thread(target=wait, args=(t,), daemon=True) for t in tickets]
    for thread in threads:
        thread.start()
    return threads, found


def entry(inbox: Inbox) -> StepsEntry:
    return inbox.batch(batch(inbox.position.step, 1), "round_robin")


def test_one_wait_for_the_disk_is_for_all_that_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox, disk = Inbox(tmp_path), Disk(monkeypatch)
    first, one = settled(inbox, [inbox.put([entry(inbox)])])
    assert disk.waiting.acquire(timeout=30)
    others, found = settled(inbox, [inbox.put([entry(inbox)]) for _ in range(50)])
    assert one == found == []
    disk.over.release()
    assert disk.waiting.acquire(timeout=30)
    first[0].join()
    assert (one, found) == ([True], []), "what came in while the disk was waited for has a wait of its own"
    disk.over.release()
    for thread in others:
        thread.join()
    assert (disk.waits, found) == (2, [True] * 50)
    inbox.close()
    assert disk.waits == 2
    assert [e.seq for e, _ in entries_from(tmp_path)] == list(range(51))


def test_what_the_disk_does_not_take_is_not_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = Inbox(tmp_path)
    inbox.append([entry(inbox)])
    disk = Disk(monkeypatch)
    first, one = settled(inbox, [inbox.put([entry(inbox)]) for _ in range(3)])
    assert disk.waiting.acquire(timeout=30)
    others, found = settled(inbox, [inbox.put([entry(inbox)])])
    disk.error = OSError(28, "No space left on device")
    disk.over.release()
    for thread in (*first, *others):
        thread.join()
    assert len(one) == 3
    assert all("No space left on device" in str(said) for said in (*one, *found))
    assert (inbox.position.seq, inbox.arrivals.total, len(list(entries_from(tmp_path)))) == (1, 1, 1)
    disk.error = None
    disk.over.release()
    assert inbox.append([entry(inbox)]) == 1
    assert [e.step for e, _ in entries_from(tmp_path)] == [0, 1]
    assert entries_in(tmp_path) == 2


@pytest.mark.parametrize("end", ["close", "take_back", "roll"])
def test_what_is_in_is_on_the_disk_before_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    inbox, disk = Inbox(tmp_path), Disk(monkeypatch)
    inbox.put([entry(inbox)])
    disk.over.release()
    if end == "close":
        inbox.close()
    elif end == "take_back":
        assert inbox.take_back(0) == {}
    else:
        monkeypatch.setattr("sparkstream_nb.journal.inbox.SEGMENT_BYTES", 10)
        inbox.put([entry(inbox)])
        assert len(segments(tmp_path)) == 2
    assert disk.waits == 1
