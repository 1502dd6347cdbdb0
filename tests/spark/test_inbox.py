"""The journal of an app, and the reader that Spark drives."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from sparkstream_nb.engine.batch import InputBatch, StreamRows
from sparkstream_nb.spark.inbox import INLINE_BYTES, Inbox, entries_from
from sparkstream_nb.spark.segments import join
from sparkstream_nb.spark.source import InboxReader, options_of
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


def reader(folder: Path, nodes: int = 1, rows: int = 1000) -> InboxReader:
    return InboxReader(options_of(folder, [(range(nodes), SCHEMAS)], rows))


def values(found: InboxReader, start: dict[str, int], end: dict[str, int], nodes: int) -> list[list[tuple[int, int]]]:
    """Per node, (step, value) of every row between two offsets."""
    out: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
    for partition in found.partitions(start, end):
        for rows in found.read(partition):
            for key, step, blob in zip(*(rows[c].to_pylist() for c in ("key", "step", "blob")), strict=True):
                for r in InputBatch.from_bytes(blob).rows.values():
                    out[key] += zip((r.step + step).tolist(), r.columns[1].to_pylist(), strict=True)
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
    journal = tmp_path / "journal"
    journal.write_bytes(journal.read_bytes()[:-5])
    inbox = Inbox(tmp_path)
    assert inbox.position.seq == 1
    inbox.append([inbox.batch(batch(1, 2), "round_robin")])
    assert [e["steps"] for e, _ in entries_from(tmp_path, START)] == [1, 2]


def test_large_batches_get_a_file_that_goes_when_spark_is_done_with_it(tmp_path: Path) -> None:
    inbox = filled(tmp_path, INLINE_BYTES)
    ((entry, end),) = entries_from(tmp_path, START)
    assert (tmp_path / entry["file"]).exists()
    reader(tmp_path).commit(end)
    assert not (tmp_path / entry["file"]).exists()
    inbox.close()


def test_what_was_not_begun_can_be_taken_back(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    inbox.append([inbox.batch(batch(0, 4), "round_robin"), inbox.batch(batch(4, 5), "round_robin")])
    inbox.append([inbox.batch(batch(9, 6), "round_robin")])
    assert inbox.truncate(1) == 11
    assert (inbox.position.seq, inbox.position.step) == (1, 4)
    inbox.append([inbox.batch(batch(50, 1), "round_robin")])
    assert [json.dumps(e["steps"]) for e, _ in entries_from(tmp_path, START)] == ["4", "1"]


def test_a_trigger_takes_entries_up_to_its_limit_and_one_at_least(tmp_path: Path) -> None:
    filled(tmp_path, 3, 3, 10, 1)
    found = reader(tmp_path, rows=7)
    ends, at = [], START
    while (after := found.latestOffset(at, ReadMaxRows(7))) != at:
        ends.append(after["seq"])
        at = after
    assert ends == [2, 3, 4]


@pytest.mark.parametrize("sizes", [(12,), (1,) * 12, (5, 4, 3)])
def test_however_the_input_is_cut_each_node_gets_the_same(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    filled(tmp_path, *sizes)
    found = reader(tmp_path, nodes=3)
    end = found.latestOffset(START, ReadMaxRows(1000))
    assert values(found, START, end, 3) == [[(i, i) for i in range(k, 12, 3)] for k in range(3)]


def test_joined_batches_keep_their_chunks() -> None:
    one = batch(0, 2)
    one.rows["S"].step = np.array([1, 1])
    both = join([one, batch(5, 1), InputBatch(np.array([7]))])
    assert both.clock.tolist() == [0, 1, 5, 7]
    assert both.rows["S"].step.tolist() == [1, 1, 2]
