"""Common parts of batch windows of one instance: their events are adjacent in the log, and batches leave in order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..columnar.column_data import Array
from ..columnar.eventlog import EventLog
from ..columnar.rows import CURRENT, EXPIRED, RESET, Rows
from ..notation.kernels import kernel
from .window_protocol import Emission, OutsidePartitions, Untimed, WindowSetup


@kernel
def _put_out(
    wants_expired: bool, clocked: bool, end: Array, time: Array, order_key: Array, ts: Array, places: Array,
    pos_out: Array,
    kind_out: Array, ts_out: Array, order_key_out: Array, chunk_out: Array,
) -> int:  # fmt: skip
    """A chunk for each batch: the one before it, a RESET, its own events."""
    n = 0
    old = places[0]
    new = places[1]
    for b in range(len(end)):
        begin = n
        if wants_expired:
            for pos in range(old, new):
                pos_out[n] = pos
                kind_out[n] = EXPIRED
                ts_out[n] = time[b]
                n += 1
        if new < end[b]:
            pos_out[n] = new
            kind_out[n] = RESET
            ts_out[n] = time[b] if clocked else ts[new]
            n += 1
        for pos in range(new, end[b]):
            pos_out[n] = pos
            kind_out[n] = CURRENT
            ts_out[n] = ts[pos]
            n += 1
        old = new if wants_expired else end[b]
        new = end[b]
        for k in range(begin, n):
            order_key_out[k] = order_key[b]
            chunk_out[k] = b
    places[0] = old
    places[1] = new
    return n


class BatchesInLine(Untimed, OutsidePartitions):
    """Events of one instance in batches, each of which expires with the next one. `places` are the first event that is
    still to expire, and the first of the batch to come. RESET rows bear the time of the batch if they are `clocked`.
    """

    stamps, moves, is_ordered = EXPIRED, False, False
    clocked = True

    def __init__(self, setup: WindowSetup) -> None:
        self.wants_expired, self.resets_per_chunk = setup.wants_expired, setup.resets_per_chunk
        self.log = EventLog(setup.types, partitioned=False)
        self.places = np.zeros(2, np.int64)

    def take(self, rows: Rows) -> int:
        """Holds the rows; returns the position of the first."""
        self.places -= self.log.room(len(rows), int(self.places[0]))
        return self.log.append(rows)

    def batches(self, end: Array, time: Array, order_key: Array) -> Rows:
        """Rows emitted for batches that end before the positions `end`, at these times and order keys. A batch without
        events of its own is emitted only if others expire.
        """
        log, low = self.log, int(self.places[1])
        if self.resets_per_chunk:
            high = int(end[-1]) if len(end) else low
            size = np.diff(end, prepend=low)
            chunk = np.repeat(np.arange(len(end)), size)
            result = Rows(log.between(low, high), log.ts[low:high], np.repeat(order_key, size), chunk,
                resets_per_chunk=True)
            self.places[:] = high
        else:
            # Every event leaves at most once as each of CURRENT, EXPIRED and RESET.
            out = Emission(3 * (log.end - int(self.places[0])))
            made = _put_out(self.wants_expired, self.clocked, end, time, order_key, log.ts, self.places, *out.arrays)
            result = out.rows(made, log, False)
        self.places -= log.fit(int(self.places[0]))
        return result

    def state(self) -> dict[str, Any]:
        low = int(self.places[0])
        return {"events": self.log.state(np.arange(low, self.log.end)), "places": self.places - low}

    def save_state(self) -> dict[str, Any]:
        low = int(self.places[0])
        return {"events": self.log.save_state(low, self.log.end), "places": self.places - low}

    def load(self, state: dict[str, Any]) -> None:
        self.log.load(state["events"])
        self.places = state["places"].copy()

    @property
    def bytes(self) -> int:
        return self.log.bytes_from(int(self.places[0]))
