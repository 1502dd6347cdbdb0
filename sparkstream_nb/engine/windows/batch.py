"""`batch([n])`: events that arrive together, in pieces of n events at most."""

from __future__ import annotations

import numpy as np

from ..columnar.column_data import Array
from ..columnar.rows import CURRENT, EXPIRED, RESET, Clock, Rows
from ..notation.kernels import compiled, inlined, struct
from .declared_state import ChainedWindow, first_events
from .window_protocol import Emission, Feed, Untimed, WindowSetup


@struct
class BatchWindow(ChainedWindow, Untimed):
    """Chunks as they arrive; one takes the place of the one before it.

    A join finds the chunk only in a query that wants expired events: else Siddhi does not keep it.
    """

    stamps, is_ordered = EXPIRED, False
    reset = first_events()

    def __init__(self, setup: WindowSetup) -> None:
        self.length = int(setup.constant(0, 0))
        self.wants_expired, self.resets_per_chunk = setup.wants_expired, setup.resets_per_chunk
        self.moves = not setup.wants_expired
        self._declare(setup.types)

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        if self.resets_per_chunk:
            return self._pieces(rows)
        n = len(rows)
        log = self.log
        at = log.add(rows, instances)
        self._widen(instances)
        # Every event leaves at most once as each of CURRENT, EXPIRED and RESET.
        out = Emission(3 * (at + n))
        count = self._step(Feed(rows, at), clock.at(rows.order_key), out)
        result = out.rows(count, log, rows.instance is not None)
        if not self.wants_expired:
            log.alive[: log.end] = False
        self._tidy()
        return result

    @compiled
    def _step(self, rows: Feed, now: Array, out: Emission) -> int:
        """`BatchWindowProcessor.process`, chunk by chunk. All of a chunk expires with the next one, however it was cut.
        Returns how many rows are put out.
        """
        i = 0
        while i < rows.count:
            a = i
            i += 1
            while i < rows.count and rows.chunk[i] == rows.chunk[a]:
                i += 1
            order_key = rows.order_key[a]
            p = self.log.instance[rows.first + a]
            if self.wants_expired and self.log.head[0][p] >= 0:
                out.expire(self.log, 0, p, now[a], order_key)
                self._reset(p, -1, order_key, out)
            b = a
            while b < i:
                e = i if self.length == 0 else min(i, b + self.length)
                self._reset(p, rows.first + b, order_key, out)
                for pos in range(rows.first + b, rows.first + e):
                    if self.wants_expired:
                        self.log.push(0, pos, p)
                        self.log.alive[pos] = True
                    out.emit(pos, CURRENT, self.log.ts[pos], order_key)
                out.chunks += 1
                b = e
        return out.count

    @inlined
    def _reset(self, p: int, new: int, order_key: int, out: Emission) -> None:
        """Puts the RESET row out that waits, if any; `new` is the position of the next one."""
        if self.reset[p] >= 0:
            out.emit(self.reset[p], RESET, self.log.ts[self.reset[p]], order_key)
        self.reset[p] = new

    def _pieces(self, rows: Rows) -> Rows:
        """The rows themselves, a chunk for each piece."""
        chunk = rows.chunk
        if self.length:
            at = np.arange(len(rows))
            fresh = np.append(True, chunk[1:] != chunk[:-1])[: len(rows)]
            begin = at[fresh][np.cumsum(fresh) - 1]
            chunk = np.cumsum((at - begin) % self.length == 0)
        return Rows(rows.columns, rows.ts, rows.order_key, chunk, None, rows.instance, resets_per_chunk=True)
