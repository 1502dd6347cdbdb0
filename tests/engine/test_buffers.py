"""Arrays that are used again, and places that are looked at before anything lies there."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparkstream_nb.engine.columnar.column_data import Column
from sparkstream_nb.engine.columnar.eventlog import EventLog
from sparkstream_nb.engine.columnar.rows import EXPIRED, Rows
from sparkstream_nb.engine.joins.join_contents import Contents, Lookups
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.runtime.operators import QueryOperator
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.engine.windows import chain
from sparkstream_nb.engine.windows.chain import ChainedLog
from sparkstream_nb.engine.windows.window_protocol import Emission
from sparkstream_nb.plan import compile_app
from sparkstream_nb.types import Type


def rows(n: int) -> Rows:
    at = np.arange(n)
    return Rows([Column(Type.LONG, at * 10)], at, at, at)


def test_chains_hold_what_they_held_when_the_log_closes_its_ranks() -> None:
    r, instances, closed = Random(3), 5, 0
    log = ChainedLog([Type.LONG], chains=2)
    chains = [[deque[int]() for _ in range(instances)] for _ in range(2)]
    for step in range(90):
        n, begin = r.randint(1, 300), step * 1000
        instance = np.array([r.randrange(instances) for _ in range(n)], np.int32)
        values, order = Column(Type.LONG, np.arange(begin, begin + n)), np.arange(n)
        at = log.add(Rows([values], order, order, order, None, instance), instances)
        for k, p in enumerate(instance.tolist()):
            if k % 17:  # the others enter no chain
                log.push(0, at + k, p)
                log.alive[at + k] = True
                chains[0][p].append(begin + k)
        for _ in range(4 * n):  # behind later events of the other chain, or out
            p, c, stays = r.randrange(instances), r.randrange(2), r.random() < 0.5
            if chains[c][p]:
                pos = log.pop(c, p)
                value = chains[c][p].popleft()
                log.alive[pos] = stays
                if stays:
                    log.push(1 - c, pos, p)
                    chains[1 - c][p].append(value)
        marks, before = np.append(log.head[0], -1), log.end
        log.tidy(marks)
        closed += log.end < before
        assert marks.tolist() == [*log.head[0].tolist(), -1]
        for c in range(2):
            state = log.chain_state(c)
            assert state["columns"][0].values.tolist() == [v for held in chains[c] for v in held]
            assert state["lengths"].tolist() == [len(held) for held in chains[c]]
        assert log.held == sum(len(held) for of_chain in chains for held in of_chain)
    assert closed > 5


def test_the_first_event_of_a_log_may_come_behind_another_in_a_chain() -> None:
    log = ChainedLog([Type.LONG])
    log.add(rows(5000), 1)
    for pos in (1, 0):
        log.push(0, pos, 0)
        log.alive[pos] = True
    log.tidy()
    assert log.end == 2
    assert log.chain_state()["columns"][0].values.tolist() == [10, 0]


def fill_in_line(log: ChainedLog, n: int) -> None:
    """Adds `n` events, which enter the first chain."""
    at = log.add(rows(n), 1)
    for pos in range(at, at + n):
        log.push(0, pos, 0)


def test_a_log_of_batches_drops_those_that_left() -> None:
    log = ChainedLog([Type.LONG], chains=2, in_line=True)
    for _ in range(30):
        fill_in_line(log, 500)
        while log.head[1][0] >= 0:
            log.pop(1, 0)
        while log.head[0][0] >= 0:
            log.push(1, log.pop(0, 0), 0)
        log.tidy()
        assert log.held == 500
    assert log.end < 5000


def test_a_log_gives_room_back_once_few_of_many_events_are_left() -> None:
    log = ChainedLog([Type.LONG], in_line=True)
    fill_in_line(log, 20_000)
    log.tidy()
    assert log.end == 20_000
    for _ in range(19_900):
        log.pop(0, 0)
    log.tidy()
    assert log.held == 100
    assert log.capacity < 10_000
    assert log.chain_state()["columns"][0].values.tolist() == [10 * i for i in range(19_900, 20_000)]


def test_a_log_with_enough_room_is_not_moved() -> None:
    log = ChainedLog([Type.LONG], in_line=True)
    fill_in_line(log, 3000)
    for _ in range(2000):
        log.pop(0, 0)
    log.tidy()
    assert log.end == 3000, "the next batch drops what is dead"


def test_a_log_in_chains_says_so_when_it_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "_MOST", 20)
    log = ChainedLog([Type.LONG])
    log.add(rows(20), 1)
    with pytest.raises(OverflowError):
        log.add(rows(1), 1)


def test_what_an_almost_empty_buffer_put_out_stays_when_it_is_used_again() -> None:
    log = EventLog([Type.LONG])
    log.append(rows(8))

    def put_out(first: int) -> tuple[Emission, Rows]:
        out = Emission(1 << 18)
        for n in range(3):
            out.pos[n], out.kind[n], out.ts[n] = first + n, 0, first
            out.order_key[n] = out.chunk[n] = first
        return out, out.rows(3, log, False)

    a, before = put_out(0)
    b, after = put_out(5)
    assert a.pos is b.pos
    assert before.columns[0].values.tolist() == [0, 10, 20]
    assert before.ts.tolist() == before.order_key.tolist() == before.chunk.tolist() == [0, 0, 0]
    assert after.columns[0].values.tolist() == [50, 60, 70]
    assert after.ts.tolist() == [5, 5, 5]


def test_a_row_of_an_event_that_never_entered_finds_its_place_free() -> None:
    held = Contents([(Type.LONG,)])
    slot = held.slots(0, np.array([-2 - 700]))
    kind, none = np.array([EXPIRED], np.int8), np.zeros(1, np.int64)
    assert held._place.shape[1] > 700
    off, on = np.zeros(2, np.bool_), np.ones(2, np.bool_)
    for _ in held.run(Lookups(np.zeros(1, np.int8), kind, none - 1, slot, none, off, on, none - 1), 0, 1):
        pass
    assert kind.tolist() == [EXPIRED]


def test_rows_of_which_none_is_left_out_are_the_same_rows() -> None:
    given = rows(4)
    assert given.where(np.ones(4, np.bool_)) is given
    assert given.where(given.ts % 2 == 0).columns[0].values.tolist() == [0, 20]


def test_time_windows_of_many_instances_come_out_alike_however_batches_are_cut() -> None:
    """The log of all instances grows, is shifted in place and shrinks; what hangs on its places goes along."""
    app = (
        "define stream S (k string, v long); partition with (k of S) begin "
        "from S#window.time(4 sec) select k, sum(v) as s, count() as n insert into O; end;"
    )
    plan, r, n = compile_app(app), np.random.default_rng(5), 40_000
    keys = pa.array([f"k{i}" for i in range(20)]).take(pa.array(r.integers(0, 20, n)))
    gaps = np.where(np.arange(n) // 5000 % 2 == 0, 1, r.integers(0, 9, n))
    columns = [keys, pa.array(r.integers(0, 100, n))]
    ts = 1_000_000 + np.cumsum(gaps)

    def outputs(size: int) -> pa.Table:
        node, found = NodeEngine(plan), []
        (op,) = (o for o in node.operators if isinstance(o, QueryOperator))
        assert op.query._steps is not None
        window: Any = op.query._steps.window
        for a in range(0, n, size):
            step = np.arange(min(size, n - a))
            rows = StreamRows(step, ts[a : a + size], [c.slice(a, size) for c in columns])
            out = node.step(InputBatch(ts[a : a + size], {"S": rows})).streams["O"]
            assert len(window.link) >= len(window.log.ts)
            texts = out.columns[0].cast(pa.string())
            found.append(pa.table([texts, *out.columns[1:]], ["k", "s", "n"]))
        return pa.concat_tables(found)

    whole = outputs(n)
    assert whole.num_rows == n
    for size in (100, 700, 9000):
        assert outputs(size).equals(whole)
