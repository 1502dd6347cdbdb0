"""How fast an app is: what came in by entry, and the rates of micro-batches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.journal import inbox as inboxes
from sparkstream_nb.journal.entries import RowsEntry
from sparkstream_nb.journal.inbox import Inbox
from sparkstream_nb.journal.throughput import ArrivalCounts, BatchFigures, BatchTimes, Rates, Throughput, steps


def append(inbox: Inbox, events: int) -> int:
    zeros = np.zeros(events, np.int64)
    rows = StreamRows(zeros, zeros, [pa.array(range(events), pa.int32())])
    return inbox.append([inbox.batch(InputBatch(np.zeros(1, np.int64), {"S": rows}), "round_robin")])


def test_events_by_entry(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    assert (inbox.arrivals.total, inbox.arrivals.through(-1)) == (0, 0)
    assert [append(inbox, n) for n in (3, 4, 5)] == [0, 1, 2]
    assert inbox.arrivals.total == 12
    assert [inbox.arrivals.through(seq) for seq in (-1, 0, 1)] == [0, 3, 7]
    rows = inbox.write("feed", b"rows")
    inbox.append([RowsEntry(steps=6, clock=1, route="round_robin", file=rows, stream="S")])
    assert inbox.arrivals.total == 18
    inbox.take_back(2)
    assert inbox.arrivals.total == 12
    append(inbox, 1)
    inbox.close()
    again = Inbox(tmp_path)
    assert [again.arrivals.total, again.arrivals.through(0), again.arrivals.through(2)] == [13, 3, 12]


def test_what_a_sink_could_not_deliver_is_no_event_from_outside(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    append(inbox, 3)
    rows = StreamRows(np.zeros(2, np.int64), np.zeros(2, np.int64), [pa.array([1, 2], pa.int32())])
    again = inbox.batch(InputBatch(np.zeros(1, np.int64), {"!O": rows}), "node:1")
    inbox.append([replace(again, requests=0, sink="O-http-1", place=(0, 1))])
    append(inbox, 4)
    inbox.close()
    for found in (inbox, Inbox(tmp_path)):
        assert found.position.events == {"S": 7}
        assert found.position.request == 2
        assert [found.arrivals.through(seq) for seq in (0, 1, 2)] == [3, 3, 7]


def test_events_of_earlier_segments_are_known_where_these_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inboxes, "SEGMENT_BYTES", 1)
    inbox = Inbox(tmp_path)
    for _ in range(5):
        append(inbox, 2)
    inbox.close()
    again = Inbox(tmp_path)
    assert again.arrivals.total == 10
    assert again.arrivals.through(2) in (4, 6), "at most a segment too low"
    assert again.arrivals.through(4) == 10


def test_what_is_committed_is_forgotten() -> None:
    counts = ArrivalCounts()
    for seq in range(1000):
        counts.add(seq, seq + 1)
    assert counts.through(998) == 999
    assert len(counts._seqs) == 2


def test_rates() -> None:
    speed = Throughput()
    assert (speed.rates(), speed.times()) == (Rates(), BatchTimes())
    speed.begin(100, 40)
    speed.begin(0, 0)
    speed.add(BatchFigures(0, 1001.0, 500.0, 160, 140))
    # From the begin of the micro-batch, 1000.5, on: 60 came in, 100 were committed.
    assert speed.rates() == Rates(120.0, 200.0, 120.0, 200.0)
    speed.add(BatchFigures(1, 1002.5, 1500.0, 220, 220))
    assert speed.rates() == Rates(60.0, 90.0, 60.0, 90.0)
    assert speed.times() == BatchTimes(1500.0, 1000.0, 1490.0, 2000.0, 2)
    assert steps(speed.last(2)) == [(40.0, 80 / 1.5)]
    for n in range(30):
        speed.add(BatchFigures(2 + n, 5003.5 + n, 100.0, 220 + 10 * (n + 1), 220 + 10 * (n + 1)))
    rates = speed.rates()
    assert rates.input == pytest.approx(100 / 9.1), "the last ten alone, from the begin of the first of them"
    assert rates.processing == pytest.approx(100.0)
    assert rates.processing_since_start == 480 / 5.0
    speed.add(BatchFigures(32, 9000.0, 200.0, 620, 620))
    assert speed.rates().input == pytest.approx(500.0), "without the time before, with nothing to do"
