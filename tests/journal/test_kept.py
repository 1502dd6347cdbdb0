"""The journal's segments, and what of the inbox goes when Spark is done with it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.errors import Misuse
from sparkstream_nb.journal import inbox as inbox_module
from sparkstream_nb.journal.entries import Ask, Reject, RowsEntry, StepsEntry
from sparkstream_nb.journal.inbox import Inbox
from sparkstream_nb.journal.journal import entries_from, lines, segments
from sparkstream_nb.journal.kept import JournalRetention, clear_unnamed
from sparkstream_nb.outputs.input_events import InboxReader
from sparkstream_nb.retention import GB, Retention
from sparkstream_nb.types import Schema, Type

SCHEMAS = {"S": Schema.of(("v", Type.INT))}
Offset = dict[str, int]


@pytest.fixture(autouse=True)
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_module, "SEGMENT_BYTES", 1_000)


def send(inbox: Inbox, count: int = 1, *, events: int = 1) -> None:
    """Entries of `events` events each; several thousand need a file."""
    for _ in range(count):
        at = np.arange(events, dtype=np.int64)
        values = pa.array(at + inbox.position.step, pa.int32())
        inbox.append(
            [inbox.batch(InputBatch(at + inbox.position.step, {"S": StreamRows(at, at, [values])}), "round_robin")]
        )


def offsets(folder: Path) -> list[Offset]:
    return [after for _, after in entries_from(folder)]


def files(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.glob("batch-*"))


def test_files_of_entries_that_never_came_in_go_and_others_stay(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    send(inbox, 2, events=5000)
    inbox.append([Reject(file=inbox.write("late-0123456789ab", b""))])
    inbox._roll()
    feed = "feed-0123456789ab"
    shared = [RowsEntry(clock=1, route="node:1", file=f"{feed}-00000", stream="S", groups=(g,)) for g in (0, 1)]
    for name in (f"{feed}-00000", f"{feed}-00000-rejected"):
        inbox.write(name, b"x")
    inbox.append([*shared, Reject(file=f"{feed}-00000-rejected")])
    inbox.close()
    named = {*files(tmp_path), "late-0123456789ab", f"{feed}-00000", f"{feed}-00000-rejected"}
    gone = [
        feed, f"{feed}-00001", f"{feed}-7-00000-00000", f"{feed}-7-00000-rejected", f"{feed}-ordered-00000-00002",
        "batch-0123456789abcdef", "late-ba9876543210", "rejected-0123456789ab",
    ]  # fmt: skip
    others = ["batch-mine", "feed-0123456789ab.csv", "feed-mine", "late-0123456789ab.txt", "mirrored.json"]
    for name in (*gone, *others):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "batch-fedcba9876543210").mkdir()
    clear_unnamed(tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {
        *named, *others, "batch-fedcba9876543210", "journal", "marks"
    }  # fmt: skip


def test_offsets_count_through_segments_and_a_new_inbox_goes_on(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    send(inbox, 20)
    assert len(segments(tmp_path)) > 3
    places = offsets(tmp_path)
    assert [p["seq"] for p in places] == list(range(1, 21))
    for after in places[:-1]:
        assert next(e for e, _ in entries_from(tmp_path, after)).seq == after["seq"]
    before = inbox.position
    inbox.close()
    again = Inbox(tmp_path)
    assert again.position == before
    assert before.events == {"S": 20}
    send(again)
    assert [e.seq for e, _ in entries_from(tmp_path)] == list(range(21))


@settings(deadline=None)
@given(seq=st.integers(0, 20), cut=st.integers(0, 40))
def test_what_is_taken_back_may_span_segments(seq: int, cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("inbox")
    inbox = Inbox(folder)
    for i in range(10):
        inbox.append([Ask(text="x" * (cut * i)), Ask(text="y")])
    assert inbox.take_back(seq) == {}
    assert [e.seq for e, _ in entries_from(folder)] == list(range(min(seq, 20)))
    inbox.append([Ask(text="z")])
    inbox.close()
    assert Inbox(folder).position.seq == min(seq, 20) + 1
    assert [e.seq for e, _ in entries_from(folder)] == list(range(min(seq, 20) + 1))


def test_the_oldest_goes_first_and_nothing_that_is_not_done_with(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    for _ in range(10):
        send(inbox, 3)
        send(inbox, events=9_000)
    places, named = offsets(tmp_path), files(tmp_path)
    assert len(named) == 10
    size = (tmp_path / named[0]).stat().st_size
    JournalRetention(tmp_path, 0, None).end({"seq": 0, "at": 0, "skip": 0})
    assert offsets(tmp_path) == places
    kept = JournalRetention(tmp_path, 3 * size, None)
    kept.end(places[19])
    left = [e for e, _ in entries_from(tmp_path)]
    assert left[-1].seq == 39
    there = {e.file for e in left if isinstance(e, StepsEntry) and e.file and (tmp_path / e.file).exists()}
    assert there == set(files(tmp_path))
    assert 2 <= len([e for e in left if e.file in there and e.seq < 20]) <= 3
    assert len([e for e in left if e.file in there and e.seq >= 20]) == 5
    again = JournalRetention(tmp_path, 0, None)
    again.end(places[-1])
    assert files(tmp_path) == []
    assert len(segments(tmp_path)) == 1
    with pytest.raises(FileNotFoundError):
        list(lines(tmp_path, 0))
    inbox.close()
    assert Inbox(tmp_path).position.seq == 40


def test_what_is_too_old_goes(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    send(inbox, 2, events=9_000)
    first = next(e for e, _ in entries_from(tmp_path))
    assert isinstance(first, StepsEntry)
    assert first.file is not None
    os.utime(tmp_path / first.file, (0, 0))
    kept = JournalRetention(tmp_path, None, 7.0)
    kept.end(offsets(tmp_path)[-1])
    assert not (tmp_path / first.file).exists()
    assert len(files(tmp_path)) == 1


def test_arrivals_count_what_is_gone(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    send(inbox, 20)
    JournalRetention(tmp_path, 2_500, None).end(offsets(tmp_path)[-1])
    found = InboxReader(tmp_path, SCHEMAS, ["node-1"], 1).last("S", 100)
    assert found.total == 20
    assert 0 < found.unreadable == 20 - len(found.frame)
    assert found.frame["v"].tolist() == list(range(found.unreadable, 20))
    assert InboxReader(tmp_path, SCHEMAS, ["node-1"], 1).last("S", 2).unreadable == 0


def test_limits_from_a_text() -> None:
    assert Retention.of(None) == Retention(GB, 10 * GB, None)
    assert Retention.of("recording=500MB, outputs=off,days=0.5") == Retention(500_000_000, None, 0.5)
    assert Retention.of("outputs=1.5kb") == Retention(outputs=1_500)
    assert Retention.of("errors=5000").errors == 5_000
    assert Retention.of("errors=off").errors is None
    for wrong, said in {
        "output=1GB": "Did you mean 'outputs'",
        "outputs=1XB": "outputs cannot be '1XB'. Write a size, such as 500MB",
        "days=7d": "days cannot be '7d'. Write a number, such as 7, or off",
        "days=0": "days is a number above 0",
        "errors=1MB": "errors cannot be '1MB'. Write a number, such as 5000, or off",
        "errors=0": "errors is a number above 0",
        "recording": "'recording' is not one of",
    }.items():
        with pytest.raises(Misuse, match=said):
            Retention.of(wrong)
    with pytest.raises(Misuse, match="retention is a Retention"):
        Retention.of(7)  # type: ignore[arg-type]
    with pytest.raises(Misuse, match="recording is a number above 0"):
        Retention.of(Retention(recording=0.5))  # type: ignore[arg-type]
