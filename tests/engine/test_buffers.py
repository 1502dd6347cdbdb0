"""Arrays that are used again, and places that are looked at before anything lies there."""

from __future__ import annotations

import numpy as np

from sparkstream_nb.engine.columns import Column
from sparkstream_nb.engine.join_contents import Contents
from sparkstream_nb.engine.rows import EXPIRED, Rows
from sparkstream_nb.engine.windows.base import Emission
from sparkstream_nb.engine.windows.log import EventLog
from sparkstream_nb.types import Type


def rows(n: int) -> Rows:
    at = np.arange(n)
    return Rows([Column(Type.LONG, at * 10)], at, at, at)


def test_what_an_almost_empty_buffer_put_out_stays_when_it_is_used_again() -> None:
    log = EventLog([Type.LONG])
    log.append(rows(8))

    def put_out(first: int) -> tuple[Emission, Rows]:
        out = Emission(1 << 18)
        for n in range(3):
            out.pos[n], out.kind[n], out.ts[n] = first + n, 0, first
            out.root[n] = out.chunk[n] = first
        return out, out.rows(3, log, False)

    a, before = put_out(0)
    b, after = put_out(5)
    assert a.pos is b.pos
    assert before.columns[0].values.tolist() == [0, 10, 20]
    assert before.ts.tolist() == before.root.tolist() == before.chunk.tolist() == [0, 0, 0]
    assert after.columns[0].values.tolist() == [50, 60, 70]
    assert after.ts.tolist() == [5, 5, 5]


def test_a_row_of_an_event_that_never_entered_finds_its_place_free() -> None:
    held = Contents([(Type.LONG,)])
    slot = held.slots(0, np.array([-2 - 700]))
    kind, none = np.array([EXPIRED], np.int8), np.zeros(1, np.int64)
    assert held._place.shape[1] > 700
    for _ in held.run(
        np.zeros(1, np.int8), kind, none - 1, slot, none, np.zeros(2, np.bool_), np.ones(2, np.bool_), none - 1, 0, 1
    ):
        pass
    assert kind.tolist() == [EXPIRED]


def test_rows_of_which_none_is_left_out_are_the_same_rows() -> None:
    given = rows(4)
    assert given.where(np.ones(4, np.bool_)) is given
    assert given.where(given.ts % 2 == 0).columns[0].values.tolist() == [0, 20]
