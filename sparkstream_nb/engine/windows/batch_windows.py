"""Common parts of batch windows. With one instance their events are adjacent in the log, and batches leave in order."""

from __future__ import annotations

import numpy as np

from ..columnar.column_data import Array
from ..columnar.rows import CURRENT, EXPIRED, RESET, Rows
from ..notation.kernels import compiled, inlined, struct
from .chain import CURRENT_CHAIN, EXPIRED_CHAIN
from .declared_state import ChainedWindow, WindowInLine, first_events
from .window_protocol import Emission, Untimed, WindowSetup


@struct
class Batches:
    """Batches that end: before which position each does, with its time and order key, `count` so far."""

    def __init__(self, room: int) -> None:
        self.end, self.time, self.order_key = (np.empty(room, np.int64) for _ in range(3))
        self.count = 0

    @inlined
    def put(self, end: int, time: int, order_key: int) -> None:
        self.end[self.count] = end
        self.time[self.count] = time
        self.order_key[self.count] = order_key
        self.count += 1

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        """All of them."""
        return self.end[: self.count], self.time[: self.count], self.order_key[: self.count]


@struct
class BatchesInLine(Untimed, WindowInLine):
    """Events of one instance in batches, each of which expires with the next one. `places` are the first event that is
    still to expire, and the first of the batch to come. With `stamps_resets`, RESET rows
    bear the time of the batch.
    """

    stamps, moves, is_ordered = EXPIRED, False, False
    stamps_resets = True

    def __init__(self, setup: WindowSetup) -> None:
        self.wants_expired, self.resets_per_chunk = setup.wants_expired, setup.resets_per_chunk
        self._declare(setup.types)

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
            result = out.rows(self._put_out(end, time, order_key, out), log, False)
        self.places -= log.fit(int(self.places[0]))
        return result

    @compiled
    def _put_out(self, end: Array, time: Array, order_key: Array, out: Emission) -> int:
        """A chunk for each batch: the one before it, a RESET, its own events; returns how many rows are put out."""
        expiring = self.places[0]
        new = self.places[1]
        for b in range(len(end)):
            out.chunks = b
            if self.wants_expired:
                for pos in range(expiring, new):
                    out.emit(pos, EXPIRED, time[b], order_key[b])
            if new < end[b]:
                out.emit(new, RESET, time[b] if self.stamps_resets else self.log.ts[new], order_key[b])
            for pos in range(new, end[b]):
                out.emit(pos, CURRENT, self.log.ts[pos], order_key[b])
            expiring = new if self.wants_expired else end[b]
            new = end[b]
        self.places[0] = expiring
        self.places[1] = new
        return out.count


@struct
class BatchesInChains(ChainedWindow):
    """Events of several instances in batches, each of which expires with the next one of its instance. In `streaming`
    windows events pass at once, and only expire together. With `stamps_resets`, RESET rows bear the time of the
    batch.
    """

    streaming: bool
    wants_expired: bool
    resets_per_chunk: bool
    stamps_resets = True
    chains = ("current", "expired")
    reset = first_events()

    @inlined
    def _send(self, p: int, now: int, order_key: int, out: Emission) -> None:
        """The batch of an instance leaves."""
        if self.wants_expired:
            out.expire(self.log, EXPIRED_CHAIN, p, now, order_key)
        if self.reset[p] >= 0:
            if not self.resets_per_chunk:
                out.emit(self.reset[p], RESET, now if self.stamps_resets else self.log.ts[self.reset[p]], order_key)
            if self.streaming and not self.wants_expired:
                self.log.alive[self.reset[p]] = False
            self.reset[p] = -1
        while self.log.head[CURRENT_CHAIN][p] >= 0:
            new = self.log.pop(CURRENT_CHAIN, p)
            out.emit(new, CURRENT, self.log.ts[new], order_key)
            if self.wants_expired:
                self.log.push(EXPIRED_CHAIN, new, p)
            else:
                self.log.alive[new] = False
