"""`length(n)` and `lengthBatch(n)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..columnar.arrays import fill_at, grown
from ..columnar.column_data import Array
from ..columnar.rows import CURRENT, EXPIRED, RESET, Clock, Rows
from ..notation.intrinsics import AHEAD, prefetch
from ..notation.kernels import kernel
from .batch_windows import BatchesInLine
from .chain import ChainedLog, pop, push
from .ordered_expiry import pushed_beside, pushed_out
from .window_protocol import Emission, Untimed, Window, WindowSetup


def _length(
    apart: bool, length: int, at: int, now: Array, order_key: Array, chunk: Array, ts: Array, instance: Array, nxt:
    Array, alive: Array, head: Array, tail: Array, count: Array, pos_out: Array, kind_out: Array, ts_out: Array,
    order_key_out: Array, chunk_out: Array,
) -> int:  # fmt: skip
    """`LengthWindowProcessor.process`; `ops_only`: positions and kinds are all that is asked for."""
    n = 0
    many = len(head) > 1 << 8
    for i in range(len(now)):
        pos = at + i
        if many:  # their events lie far apart
            later = instance[min(pos + AHEAD, at + len(now) - 1)]
            prefetch(nxt, head[later])
            prefetch(alive, head[later])
            prefetch(nxt, tail[later])
        p = instance[pos] if len(instance) else 0
        first = n
        if length > 0:
            if count[p] < length:
                count[p] += 1
            else:
                old = pop(p, nxt, head, tail)
                alive[old] = False
                pos_out[n] = old
                kind_out[n] = EXPIRED
                if not apart:
                    ts_out[n] = now[i]
                n += 1
            push(pos, p, nxt, head, tail)
            alive[pos] = True
        pos_out[n] = pos
        kind_out[n] = CURRENT
        if not apart:
            ts_out[n] = ts[pos]
        n += 1
        if length == 0:
            for k in (EXPIRED, RESET):
                pos_out[n] = pos
                kind_out[n] = k
                if not apart:
                    ts_out[n] = ts[pos]
                n += 1
        if not apart:
            for k in range(first, n):
                order_key_out[k] = order_key[i]
                chunk_out[k] = chunk[i]
    return n


_LENGTHS = {apart: kernel(_length, apart=apart) for apart in (False, True)}


class LengthWindow(Untimed):
    """The last n events; a new one pushes out the oldest just before itself."""

    stamps, moves, is_ordered = None, False, False

    def __init__(self, setup: WindowSetup) -> None:
        self.length = int(setup.constant(0))
        self.ops_only = setup.ops_only
        self.log = ChainedLog(setup.types, in_line=not setup.partitioned, timed=not setup.ops_only)
        self.count = np.zeros(0, np.int64)

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
            made = pushed_out(self.log, self.length, at, now, rows, out)
        else:
            self.count = grown(self.count, instances)
            made = _LENGTHS[self.ops_only](
                self.length, at, now, rows.order_key, rows.chunk, self.log.ts, self.log.instance, self.log.next,
                self.log.alive,
                self.log.head[0], self.log.tail[0], self.count, *out.arrays,
            )  # fmt: skip
        partitioned = rows.instance is not None
        result = out.beside(made, self.log, rows) if self.ops_only else out.rows(made, self.log, partitioned)
        self.log.tidy()
        return result

    def forget(self, instances: Array) -> None:
        self.log.forget(instances)
        fill_at(self.count, instances, 0)

    def state(self) -> dict[str, Any]:
        return {"events": self.log.chain_state()}

    def save_state(self) -> dict[str, Any]:
        return {"events": self.log.ordered_saved()}

    def load(self, state: dict[str, Any]) -> None:
        self.count = self.log.load_ordered(state["events"])

    @property
    def bytes(self) -> int:
        return self.log.bytes


@kernel
def _length_batch(
    length: int, streaming: bool, wants_expired: bool, anew: bool, at: int, now: Array, order_key: Array, ts: Array,
    instance: Array, nxt: Array, alive: Array, chead: Array, ctail: Array, ehead: Array, etail: Array, count: Array,
    reset: Array, pos_out: Array, kind_out: Array, ts_out: Array, order_key_out: Array, chunk_out: Array,
) -> int:  # fmt: skip
    """`LengthBatchWindowProcessor.process`; every event that puts something out makes a chunk of its own."""
    n = 0
    chunks = 0
    for i in range(len(now)):
        pos = at + i
        p = instance[pos] if len(instance) else 0
        first = n
        if length == 0:
            pos_out[n] = pos
            kind_out[n] = CURRENT
            ts_out[n] = ts[pos]
            n += 1
            for k in (EXPIRED, RESET):
                if not anew if k == RESET else wants_expired:
                    pos_out[n] = pos
                    kind_out[n] = k
                    ts_out[n] = now[i]
                    n += 1
        else:
            if reset[p] < 0:
                reset[p] = pos
            count[p] += 1
            alive[pos] = not streaming or wants_expired
            if not streaming:
                push(pos, p, nxt, chead, ctail)
            full = count[p] == (length + 1 if streaming else length)
            if full:
                if wants_expired:
                    while ehead[p] >= 0:
                        old = pop(p, nxt, ehead, etail)
                        alive[old] = False
                        pos_out[n] = old
                        kind_out[n] = EXPIRED
                        ts_out[n] = now[i]
                        n += 1
                if reset[p] >= 0:
                    if not anew:
                        pos_out[n] = reset[p]
                        kind_out[n] = RESET
                        ts_out[n] = now[i]
                        n += 1
                    if streaming and not wants_expired:
                        alive[reset[p]] = False
                    reset[p] = -1
                count[p] = 1 if streaming else 0
                if not streaming:
                    while chead[p] >= 0:
                        cur = pop(p, nxt, chead, ctail)
                        pos_out[n] = cur
                        kind_out[n] = CURRENT
                        ts_out[n] = ts[cur]
                        n += 1
                        if wants_expired:
                            push(cur, p, nxt, ehead, etail)
                        else:
                            alive[cur] = False
            if streaming:
                pos_out[n] = pos
                kind_out[n] = CURRENT
                ts_out[n] = ts[pos]
                n += 1
                if wants_expired:
                    push(pos, p, nxt, ehead, etail)
        for k in range(first, n):
            order_key_out[k] = order_key[i]
            chunk_out[k] = chunks
        if n > first:
            chunks += 1
    return n


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
    in_line = not (setup.partitioned or setup.constant(1, False)) and int(setup.constant(0)) > 0
    return _LengthBatchInLine(setup) if in_line else LengthBatchWindow(setup)


class LengthBatchWindow(Untimed):
    """`lengthBatch` inside a partition, of no event, or with `stream.current.event`."""

    stamps, moves, is_ordered = EXPIRED, False, False

    def __init__(self, setup: WindowSetup) -> None:
        self.length = int(setup.constant(0))
        self.streaming = bool(setup.constant(1, False))
        self.wants_expired, self.resets_per_chunk = setup.wants_expired, setup.resets_per_chunk
        self.log = ChainedLog(setup.types, chains=2, in_line=not setup.partitioned)
        self.count = np.zeros(0, np.int64)
        self.reset = np.full(0, -1, np.int64)

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        at = self.log.add(rows, instances)
        self.count, self.reset = grown(self.count, instances), grown(self.reset, instances, -1)
        # Every event leaves at most once as each of CURRENT, EXPIRED and RESET.
        out = Emission(3 * (at + len(rows)))
        log = self.log
        made = _length_batch(
            self.length, self.streaming, self.wants_expired, self.resets_per_chunk, at, clock.at(rows.order_key),
            rows.order_key,
            log.ts, log.instance, log.next, log.alive, log.head[0], log.tail[0], log.head[1], log.tail[1], self.count,
            self.reset, *out.arrays,
        )  # fmt: skip
        result = out.rows(made, log, rows.instance is not None, self.resets_per_chunk)
        held = self.reset[self.reset >= 0]
        log.alive[held] = True
        log.tidy(self.reset)
        return result

    def forget(self, instances: Array) -> None:
        self.log.forget(instances)
        fill_at(self.count, instances, 0)
        fill_at(self.reset, instances, -1)

    def state(self) -> dict[str, Any]:
        return {
            "current": self.log.chain_state(0),
            "expired": self.log.chain_state(1),
            "count": self.count[: self.log.instances],
            "reset": reset_state(self.log, self.reset),
        }

    def load(self, state: dict[str, Any]) -> None:
        self.reset = load_reset(self.log, [state["current"], state["expired"]], state["reset"])
        self.count = state["count"].copy()

    @property
    def bytes(self) -> int:
        return self.log.bytes


def reset_state(log: ChainedLog, reset: Array) -> dict[str, Any]:
    """The events that the RESET rows to come will carry, as plain data."""
    instances = np.flatnonzero(reset >= 0)
    return {"events": log.state(reset[instances]), "parts": instances, "size": len(reset)}


def load_reset(log: ChainedLog, chains: Sequence[dict[str, Any]], state: dict[str, Any]) -> Array:
    """The inverse of `reset_state`, for a log that is to have these chains (`ChainedLog.load_chains`)."""
    instances = state["parts"]
    log.load_chains(chains, state["events"])
    out = np.full(state["size"], -1, np.int64)
    out[instances] = np.arange(len(instances))
    return out
