"""`cron('text')`: batches that come out at the times that a cron text names."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..columns import Array
from ..cron import CronTimes
from ..jit import kernel
from ..rows import CURRENT, EXPIRED, ROOT_BITS, Clock, Rows
from .base import Emission, WindowSetup
from .chain import ChainedLog, pop, push

_BITS = np.int64(ROOT_BITS)


@kernel
def _cron(
    scheduler: int, parts: int, order: Array, at: int, rows: int, row_root: Array, base: int, now: Array, fires: Array,
    ts: Array, part: Array, nxt: Array, alive: Array, chead: Array, ctail: Array, ehead: Array, etail: Array,
    pos_out: Array, kind_out: Array, ts_out: Array, root_out: Array, chunk_out: Array,
) -> int:  # fmt: skip
    """`CronWindowProcessor.process` and `dispatchEvents`: no RESET, and expired events come out whoever wants them."""
    n = 0
    chunk = 0
    f = 0
    for i in range(rows + 1):
        while f < len(fires):
            root = ((base + fires[f]) << _BITS) | scheduler
            if i < rows and root > row_root[i]:
                break
            t = now[fires[f]]
            f += 1
            for k in range(parts):
                p = order[k] if len(order) else k
                if chead[p] < 0:
                    continue
                begin = n
                while ehead[p] >= 0:
                    old = pop(p, nxt, ehead, etail)
                    alive[old] = False
                    pos_out[n], kind_out[n], ts_out[n] = old, EXPIRED, t
                    n += 1
                while chead[p] >= 0:
                    cur = pop(p, nxt, chead, ctail)
                    pos_out[n], kind_out[n], ts_out[n] = cur, CURRENT, ts[cur]
                    n += 1
                    push(cur, p, nxt, ehead, etail)
                for j in range(begin, n):
                    root_out[j] = root
                    chunk_out[j] = chunk
                chunk += 1
        if i == rows:
            break
        push(at + i, part[at + i], nxt, chead, ctail)
        alive[at + i] = True
    return n


class CronWindow:
    """What came since the last time that the text names comes out at the next one, by the app's clock."""

    stamps, moves, ordered = None, False, False

    def __init__(self, setup: WindowSetup) -> None:
        self.times = CronTimes(str(setup.constant(0)))
        self.scheduler, self.ranks = setup.scheduler, setup.ranks
        self.log = ChainedLog(setup.types, chains=2)
        self.due = self.times.after(0)

    def _fires(self, clock: Clock) -> Array:
        """The steps at which the clock reaches or passes a time of the text."""
        out = []
        at = clock.first
        while self.due is not None:
            at += int(np.searchsorted(clock.now[at : clock.last], self.due))
            if at >= clock.last:
                break
            out.append(at)
            self.due = self.times.after(int(clock.now[at]))
        return np.array(out, np.int64)

    def run(self, rows: Rows, clock: Clock, parts: int, hashes: Array | None) -> Rows:
        n = len(rows)
        log = self.log
        at = log.add(rows, parts)
        out = Emission(2 * (at + n))
        ranks = self.ranks()
        order = np.empty(0, np.int64) if ranks is None else np.argsort(ranks[:parts])
        made = _cron(
            self.scheduler, parts, order, at, n, rows.root, clock.base, clock.now, self._fires(clock), log.ts, log.part,
            log.next, log.alive, log.head[0], log.tail[0], log.head[1], log.tail[1], *out.arrays,
        )  # fmt: skip
        result = out.rows(made, log, rows.part is not None)
        log.tidy()
        return result

    def forget(self, parts: Array) -> None:
        self.log.forget(parts)

    def state(self) -> dict[str, Any]:
        return {"current": self.log.chain_state(0), "expired": self.log.chain_state(1), "due": self.due}

    def load(self, state: dict[str, Any]) -> None:
        self.log.load_chains([state["current"], state["expired"]])
        self.due = state["due"]

    @property
    def bytes(self) -> int:
        return self.log.bytes
