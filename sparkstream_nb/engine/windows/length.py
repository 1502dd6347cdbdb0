"""`length(n)` and `lengthBatch(n)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..columnar.column_data import Array
from ..columnar.rows import CURRENT, EXPIRED, RESET, Clock, Rows
from ..notation.intrinsics import AHEAD, prefetch
from ..notation.kernels import compiled, compiled_by, inlined, struct
from .batch_windows import BatchesInChains, BatchesInLine
from .chain import CURRENT_CHAIN, EXPIRED_CHAIN
from .declared_state import ChainedWindow, lengths, per_instance
from .ordered_expiry import pushed_beside, pushed_out
from .window_protocol import Emission, Feed, Untimed, Window, WindowSetup


@struct
class LengthWindow(ChainedWindow, Untimed):
    """The last n events; a new one pushes out the oldest just before itself."""

    stamps, moves, is_ordered = None, False, False
    count = lengths()

    def __init__(self, setup: WindowSetup) -> None:
        self.length = int(setup.constant(0))
        self.ops_only = setup.ops_only
        self._declare(setup.types, in_line=not setup.is_partitioned, has_times=not setup.ops_only)

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        n = len(rows)
        at = self.log.add(rows, instances)
        in_line = self.log.in_line and self.length > 0
        if in_line and self.ops_only:
            result = pushed_beside(self.log, self.length, at, rows)
            self.log.tidy()
            return result
        out = Emission(n * (2 if self.length else 3), self.ops_only)
        now = rows.order_key if self.ops_only else clock.at(rows.order_key)
        if in_line:
            count = pushed_out(self.log, self.length, at, now, rows, out)
        else:
            self._widen(instances)
            count = self._push_through(Feed(rows, at), now, out)
        is_partitioned = rows.instance is not None
        result = out.beside(count, self.log, rows) if self.ops_only else out.rows(count, self.log, is_partitioned)
        self.log.tidy()
        return result

    @compiled_by("ops_only")
    def _push_through(self, rows: Feed, now: Array, out: Emission) -> int:
        """`LengthWindowProcessor.process`; with `ops_only`, positions and kinds are all that is asked for. Returns how
        many rows are put out, each in the chunk of the row that brought it."""
        many = len(self.log.head[0]) > 1 << 8
        for i in range(rows.count):
            pos = rows.first + i
            if many:  # their events lie far apart
                later = self.log.instance[min(pos + AHEAD, rows.first + rows.count - 1)]
                prefetch(self.log.next, self.log.head[0][later])
                prefetch(self.log.alive, self.log.head[0][later])
                prefetch(self.log.next, self.log.tail[0][later])
            p = self.log.instance[pos] if len(self.log.instance) else 0
            if self.length > 0:
                if self.count[p] < self.length:
                    self.count[p] += 1
                else:
                    oldest = self.log.pop(0, p)
                    self.log.alive[oldest] = False
                    self._emit(oldest, EXPIRED, now[i], i, rows, out)
                self.log.push(0, pos, p)
                self.log.alive[pos] = True
            self._emit(pos, CURRENT, 0 if self.ops_only else self.log.ts[pos], i, rows, out)
            if self.length == 0:
                for kind in (EXPIRED, RESET):
                    self._emit(pos, kind, 0 if self.ops_only else self.log.ts[pos], i, rows, out)
        return out.count

    @inlined
    def _emit(self, pos: int, kind: int, time: int, i: int, rows: Feed, out: Emission) -> None:
        if self.ops_only:
            out.put_op(pos, kind)
        else:
            out.chunks = rows.chunk[i]
            out.emit(pos, kind, time, rows.order_key[i])

    def save_chain(self, chain: int) -> dict[str, Any]:
        return self.log.ordered_saved()

    def load(self, state: dict[str, Any]) -> None:
        self.count = self.log.load_ordered(state["events"])


class _LengthBatchInLine(BatchesInLine):
    """`lengthBatch` outside partitions, without `stream.current.event`."""

    def __init__(self, setup: WindowSetup) -> None:
        super().__init__(setup)
        self.length = int(setup.constant(0))

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        at = self.take(rows)
        end = np.arange(int(self.places[1]) + self.length, self.log.end + 1, self.length)
        order_key = rows.order_key[end - 1 - at]
        return self.batches(end, clock.at(order_key), order_key)


def length_batch_window(setup: WindowSetup) -> Window:
    """Batches of n events. With `stream.current.event` events pass on at once and the batch only expires together."""
    in_line = not (setup.is_partitioned or setup.constant(1, False)) and int(setup.constant(0)) > 0
    return _LengthBatchInLine(setup) if in_line else LengthBatchWindow(setup)


@struct
class LengthBatchWindow(BatchesInChains, Untimed):
    """`lengthBatch` inside a partition, of no event, or with `stream.current.event`."""

    stamps, moves, is_ordered = EXPIRED, False, False
    count = per_instance()

    def __init__(self, setup: WindowSetup) -> None:
        self.length = int(setup.constant(0))
        self.streaming = bool(setup.constant(1, False))
        self.wants_expired, self.resets_per_chunk = setup.wants_expired, setup.resets_per_chunk
        self._declare(setup.types, in_line=not setup.is_partitioned)

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        at = self.log.add(rows, instances)
        self._widen(instances)
        # Every event leaves at most once as each of CURRENT, EXPIRED and RESET.
        out = Emission(3 * (at + len(rows)))
        log = self.log
        count = self._step(Feed(rows, at), clock.at(rows.order_key), out)
        result = out.rows(count, log, rows.instance is not None, self.resets_per_chunk)
        self._tidy()
        return result

    @compiled
    def _step(self, rows: Feed, now: Array, out: Emission) -> int:
        """`LengthBatchWindowProcessor.process`; every event that puts something out makes a chunk of its own. Returns
        how many rows are put out."""
        for i in range(rows.count):
            pos = rows.first + i
            p = self.log.instance[pos] if len(self.log.instance) else 0
            first = out.count
            if self.length == 0:
                out.emit(pos, CURRENT, self.log.ts[pos], rows.order_key[i])
                if self.wants_expired:
                    out.emit(pos, EXPIRED, now[i], rows.order_key[i])
                if not self.resets_per_chunk:
                    out.emit(pos, RESET, now[i], rows.order_key[i])
            else:
                self._come(pos, p, now[i], rows.order_key[i], out)
            if out.count > first:
                out.chunks += 1
        return out.count

    @inlined
    def _come(self, pos: int, p: int, now: int, order_key: int, out: Emission) -> None:
        """An event of an instance comes; a full batch leaves."""
        if self.reset[p] < 0:
            self.reset[p] = pos
        self.count[p] += 1
        self.log.alive[pos] = not self.streaming or self.wants_expired
        if not self.streaming:
            self.log.push(CURRENT_CHAIN, pos, p)
        if self.count[p] == (self.length + 1 if self.streaming else self.length):
            self._send(p, now, order_key, out)
            self.count[p] = 1 if self.streaming else 0
        if self.streaming:
            out.emit(pos, CURRENT, self.log.ts[pos], order_key)
            if self.wants_expired:
                self.log.push(EXPIRED_CHAIN, pos, p)
