"""`batch([n])`: events that arrive together, in pieces of n events at most."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..columnar.arrays import fill_at, grown
from ..columnar.column_data import Array
from ..columnar.rows import CURRENT, EXPIRED, RESET, Clock, Rows
from ..notation.kernels import kernel
from .chain import ChainedLog, pop, push
from .length import load_reset, reset_state
from .window_protocol import Emission, Untimed, WindowSetup


@kernel
def _batch(
    length: int, wants_expired: bool, at: int, rows: int, now: Array, row_order_key: Array, row_chunk: Array, ts: Array,
    instance: Array, nxt: Array, alive: Array, head: Array, tail: Array, reset: Array, pos_out: Array, kind_out: Array,
    ts_out: Array, order_key_out: Array, chunk_out: Array,
) -> int:  # fmt: skip
    """`BatchWindowProcessor.process`, chunk by chunk. All of a chunk expires with the next one, however it was cut."""
    n = 0
    chunk = 0
    i = 0
    while i < rows:
        a = i
        i += 1
        while i < rows and row_chunk[i] == row_chunk[a]:
            i += 1
        p = instance[at + a]
        begin = n
        if wants_expired and head[p] >= 0:
            while head[p] >= 0:
                old = pop(p, nxt, head, tail)
                alive[old] = False
                pos_out[n] = old
                kind_out[n] = EXPIRED
                ts_out[n] = now[a]
                n += 1
            if reset[p] >= 0:
                pos_out[n] = reset[p]
                kind_out[n] = RESET
                ts_out[n] = ts[reset[p]]
                n += 1
                reset[p] = -1
        b = a
        while b < i:
            e = i if length == 0 else min(i, b + length)
            if reset[p] >= 0:
                pos_out[n] = reset[p]
                kind_out[n] = RESET
                ts_out[n] = ts[reset[p]]
                n += 1
            reset[p] = at + b
            for k in range(b, e):
                pos = at + k
                if wants_expired:
                    push(pos, p, nxt, head, tail)
                    alive[pos] = True
                pos_out[n] = pos
                kind_out[n] = CURRENT
                ts_out[n] = ts[pos]
                n += 1
            for k in range(begin, n):
                order_key_out[k] = row_order_key[a]
                chunk_out[k] = chunk
            begin = n
            chunk += 1
            b = e
    return n


class BatchWindow(Untimed):
    """Chunks as they arrive; one takes the place of the one before it.

    A join finds the chunk only in a query that wants expired events: else Siddhi does not keep it.
    """

    stamps, is_ordered = EXPIRED, False

    def __init__(self, setup: WindowSetup) -> None:
        self.length = int(setup.constant(0, 0))
        self.wants_expired, self.resets_per_chunk = setup.wants_expired, setup.resets_per_chunk
        self.moves = not setup.wants_expired
        self.log = ChainedLog(setup.types)
        self.reset = np.full(0, -1, np.int64)

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        if self.resets_per_chunk:
            return self._pieces(rows)
        n = len(rows)
        log = self.log
        at = log.add(rows, instances)
        self.reset = grown(self.reset, instances, -1)
        # Every event leaves at most once as each of CURRENT, EXPIRED and RESET.
        out = Emission(3 * (at + n))
        made = _batch(
            self.length, self.wants_expired, at, n, clock.at(rows.order_key), rows.order_key, rows.chunk, log.ts,
            log.instance,
            log.next,
            log.alive, log.head[0], log.tail[0], self.reset, *out.arrays,
        )  # fmt: skip
        result = out.rows(made, log, rows.instance is not None)
        if not self.wants_expired:
            log.alive[: log.end] = False
        log.alive[self.reset[self.reset >= 0]] = True
        log.tidy(self.reset)
        return result

    def _pieces(self, rows: Rows) -> Rows:
        """The rows themselves, a chunk for each piece."""
        chunk = rows.chunk
        if self.length:
            at = np.arange(len(rows))
            fresh = np.append(True, chunk[1:] != chunk[:-1])[: len(rows)]
            begin = at[fresh][np.cumsum(fresh) - 1]
            chunk = np.cumsum((at - begin) % self.length == 0)
        return Rows(rows.columns, rows.ts, rows.order_key, chunk, None, rows.instance, resets_per_chunk=True)

    def forget(self, instances: Array) -> None:
        self.log.forget(instances)
        fill_at(self.reset, instances, -1)

    def state(self) -> dict[str, Any]:
        return {"events": self.log.chain_state(), "reset": reset_state(self.log, self.reset)}

    def load(self, state: dict[str, Any]) -> None:
        self.reset = load_reset(self.log, [state["events"]], state["reset"])

    @property
    def bytes(self) -> int:
        return self.log.bytes
