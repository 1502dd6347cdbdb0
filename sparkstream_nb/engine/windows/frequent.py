"""`frequent(n[, attributes])` (Misra-Gries counting) and `lossyFrequent(support, error[, attributes])`.

Both keep the last event of every key that counts as frequent. Siddhi's key is the concatenated texts of the attributes;
without attributes, of all that the query selects, in a join of the attributes that it selects unchanged from that side
(the output data of its `MetaStreamEvent`). Keys that leave together do so in the order in which a `ConcurrentHashMap`
walks through them: by bin, in a bin as they came, and when the map grows the part of a bin that does not end it comes
out reversed (`ConcurrentHashMap.transfer`; bins that become trees are not followed).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..columnar.arrays import fill_at, grown
from ..columnar.column_data import Array
from ..columnar.key_ids import IdTable
from ..columnar.rows import CURRENT, ENTER, EXPIRED, LEAVE, Clock, Rows
from ..notation.kernels import inlined, kernel
from ..state.key_hash import TextKeys
from .chain import ChainedLog
from .window_protocol import Emission, Untimed, WindowSetup, put, with_ranks

COUNT, LAST, BUCKET, SPREAD, ORDER, NEXT, PREVIOUS = range(7)
"""Numbers of a key: how often it came, plus the amount subtracted from all before (0: it is not counted), the position
of its last event, the bucket before the one in which it was first counted, its hash as the map spreads it, its order
within a bin, and its neighbours among the keys of its instance.
"""

FIRST, LIVE, SIZE, TOTAL, TAKEN, LEAST = range(6)
"""Numbers of a partition instance: its first key, how many it counts, its map's bins, the events so far, the amount
subtracted from every count (the counts themselves do not change), and a lower bound of the counts.
"""

_BIN = np.int64(40)
_BINS = 16
"""Bins of a new map."""
_FEW = 24


@kernel
def _sort(found: Array, n: int, bins: int, key: Array) -> None:
    places = np.empty(n, np.int64)
    for i in range(n):
        k = found[i]
        places[i] = ((key[SPREAD, k] & (bins - 1)) << _BIN) | key[ORDER, k]
    found[:n] = found[:n][np.argsort(places)]


@inlined
def _in_order(found: Array, n: int, bins: int, key: Array) -> None:
    """Sorts keys as the map walks through them: few by insertion."""
    if n > _FEW:
        _sort(found, n, bins, key)
    else:
        for i in range(1, n):
            k = found[i]
            place = ((key[SPREAD, k] & (bins - 1)) << _BIN) | key[ORDER, k]
            j = i
            while j > 0:
                other = found[j - 1]
                if ((key[SPREAD, other] & (bins - 1)) << _BIN) | key[ORDER, other] < place:
                    break
                found[j] = other
                j -= 1
            found[j] = k


@kernel
def _grow(p: int, key: Array, fields: Array, order: Array) -> None:
    """Doubles the map of an instance."""
    bins, n = fields[SIZE, p], fields[LIVE, p]
    found = np.empty(n, np.int64)
    k = fields[FIRST, p]
    for i in range(n):
        found[i] = k
        k = key[NEXT, k]
    _in_order(found, n, bins, key)
    a = 0
    while a < n:
        b = a + 1
        while b < n and (key[SPREAD, found[b]] & (bins - 1)) == (key[SPREAD, found[a]] & (bins - 1)):
            b += 1
        run = b - 1
        while run > a and (key[SPREAD, found[run - 1]] & bins) == (key[SPREAD, found[b - 1]] & bins):
            run -= 1
        for i in range(a, b):
            key[ORDER, found[i]] = n + i - run if i >= run else n - 1 - (i - a)
        a = b
    order[0] = max(order[0], 2 * n)
    fields[SIZE, p] = 2 * bins


@inlined
def _enter(k: int, p: int, key: Array, fields: Array, order: Array) -> None:
    """A key is counted for the first time."""
    key[COUNT, k] = fields[TAKEN, p] + 1
    fields[LEAST, p] = fields[TAKEN, p] + 1
    key[ORDER, k] = order[0]
    order[0] += 1
    at = fields[FIRST, p]
    key[NEXT, k] = at
    key[PREVIOUS, k] = -1
    if at >= 0:
        key[PREVIOUS, at] = k
    fields[FIRST, p] = k
    fields[LIVE, p] += 1
    while fields[LIVE, p] >= fields[SIZE, p] * 3 // 4:
        _grow(p, key, fields, order)


@inlined
def _drop(k: int, p: int, key: Array, fields: Array) -> None:
    """A key is counted no more."""
    key[COUNT, k] = 0
    before, after = key[PREVIOUS, k], key[NEXT, k]
    if before >= 0:
        key[NEXT, before] = after
    else:
        fields[FIRST, p] = after
    if after >= 0:
        key[PREVIOUS, after] = before
    fields[LIVE, p] -= 1


@inlined
def _look_anew(
    p: int, order_key: int, chunk: int, key: Array, fields: Array, ts: Array, n: int, pos_out: Array, kind_out: Array,
    ts_out: Array, order_key_out: Array, chunk_out: Array, rank_out: Array,
) -> int:  # fmt: skip
    """After the map has grown: the events of an instance leave the contents for joins and enter again with new ranks.
    """
    k = fields[FIRST, p]
    while k >= 0:
        pos = key[LAST, k]
        if pos >= 0:
            n = put(pos, LEAVE, ts[pos], order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out, chunk_out)
            rank_out[n] = ((key[SPREAD, k] & (fields[SIZE, p] - 1)) << _BIN) | key[ORDER, k]
            n = put(pos, ENTER, ts[pos], order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out, chunk_out)
        k = key[NEXT, k]
    return n


def _frequent(
    lossy: bool, forgets: bool, most: int, share: float, width: int, findable: bool, at: int, ids: Array, now: Array,
    row_order_key: Array, row_chunk: Array, ts: Array, instance: Array, alive: Array, key: Array, fields: Array,
    order: Array,
    found: Array, rank_out: Array, pos_out: Array, kind_out: Array, ts_out: Array, order_key_out: Array,
    chunk_out: Array,
) -> int:  # fmt: skip
    """`FrequentWindowProcessor.process`, and with `lossy` `LossyFrequentWindowProcessor.process`.

    `rank_out`: for ENTER rows, the place of the event's key in its map: by bin, then by its order there. In a
    partition Siddhi `forgets` an instance's state when it counts no key at a chunk's end (`canDestroy`).
    """
    n = 0
    for r in range(len(ids)):
        pos = at + r
        p = instance[pos]
        k = ids[r]
        t, order_key, chunk = now[r], row_order_key[r], row_chunk[r]
        gone = 0
        kept = True
        if lossy:
            fields[TOTAL, p] += 1
        elif key[COUNT, k] == 0 and fields[LIVE, p] >= most:
            fields[TAKEN, p] += 1  # a key too many takes one off every count
            if fields[LEAST, p] <= fields[TAKEN, p]:
                least = np.int64(2**62)
                other = fields[FIRST, p]
                while other >= 0:
                    if key[COUNT, other] == fields[TAKEN, p]:
                        found[gone] = other
                        gone += 1
                    else:
                        least = min(least, key[COUNT, other])
                    other = key[NEXT, other]
                fields[LEAST, p] = least
            kept = gone > 0
        # Of a lossy window keys leave after the event at hand, of the other one before it.
        for leaving in range(2):
            if leaving == lossy:
                if gone > 1:
                    _in_order(found, gone, fields[SIZE, p], key)
                for i in range(gone):
                    other = found[i]
                    _drop(other, p, key, fields)
                    old = key[LAST, other]
                    key[LAST, other] = -1
                    alive[old] = False
                    if findable:
                        n = put(old, LEAVE, ts[old], order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out,
                            chunk_out)
                    n = put(old, EXPIRED, t, order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out, chunk_out)
            elif kept:
                if key[COUNT, k] > 0:
                    key[COUNT, k] += 1
                    old = key[LAST, k]
                    alive[old] = False
                    if findable:
                        n = put(old, LEAVE, ts[old], order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out,
                            chunk_out)
                else:
                    bins = fields[SIZE, p]
                    _enter(k, p, key, fields, order)
                    if findable and fields[SIZE, p] != bins:
                        n = _look_anew(
                            p, order_key, chunk, key, fields, ts, n, pos_out, kind_out, ts_out, order_key_out,
                            chunk_out, rank_out
                        )
                    if lossy:
                        total = fields[TOTAL, p]
                        key[BUCKET, k] = 0 if total == 1 or width == 0 else (total + width - 1) // width - 1
                key[LAST, k] = pos
                alive[pos] = True
                if findable:
                    rank_out[n] = ((key[SPREAD, k] & (fields[SIZE, p] - 1)) << _BIN) | key[ORDER, k]
                    n = put(pos, ENTER, ts[pos], order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out,
                        chunk_out)
                if not lossy or key[COUNT, k] >= share * fields[TOTAL, p]:
                    n = put(pos, CURRENT, ts[pos], order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out,
                        chunk_out)
                if lossy and width > 0 and fields[TOTAL, p] % width == 0:
                    bucket = (fields[TOTAL, p] + width - 1) // width
                    other = fields[FIRST, p]
                    while other >= 0:
                        if key[COUNT, other] + key[BUCKET, other] <= bucket:
                            found[gone] = other
                            gone += 1
                        other = key[NEXT, other]
        if forgets and fields[LIVE, p] == 0 and (r + 1 == len(ids) or row_chunk[r + 1] != chunk):
            fields[TOTAL, p] = 0
            fields[SIZE, p] = _BINS
    return n


@cache
def _loop(lossy: bool, forgets: bool, findable: bool) -> Callable[..., int]:
    """`_frequent` for a kind of window."""
    return kernel(_frequent, lossy=lossy, forgets=forgets, findable=findable)


class _Counting(Untimed):
    """Common base of the two windows: the numbers of keys and of partition instances."""

    stamps, moves, is_ordered = None, True, True
    lossy = False
    most = 0
    share = 0.0
    width = 0
    """Events of a bucket; 0: there is only one."""

    def __init__(self, setup: WindowSetup, first: int) -> None:
        chosen = [setup.column(i) for i in range(first, len(setup.args))]
        self.setup = setup
        self.keys: list[int | None] = [*chosen] if chosen else list(setup.selected)
        self._clear()

    def _clear(self) -> None:
        self.partitioned = False
        self.log = ChainedLog(self.setup.types)
        self.texts = TextKeys(self.setup.strings)
        self.order = np.zeros(1, np.int64)
        self.fields = np.zeros((LEAST + 1, 0), np.int64)
        self._forget_keys()

    def _forget_keys(self) -> None:
        self.table, self.pairs = IdTable(), IdTable()
        self.key = np.zeros((PREVIOUS + 1, 0), np.int64)

    def _ids(self, rows: Rows) -> Array:
        """The ids of the rows' keys; makes room for new ones."""
        columns = [None if i is None else rows.columns[i] for i in self.keys]
        numbers, hashes = self.texts.numbers(columns, len(rows))
        ids, first = self.table.assign(numbers)
        size = self.table.size
        if self.partitioned:
            ids, first = self.pairs.assign(ids.astype(np.int64) << 32 | rows.instances())
            size = self.pairs.size
        fresh = np.arange(size - len(first), size)
        self.key = grown(self.key, size)
        self.key[COUNT, fresh], self.key[LAST, fresh] = 0, -1
        self.key[SPREAD, fresh] = hashes[first] ^ (hashes[first] >> 16)
        return ids

    def _room(self, instances: int) -> None:
        have = self.fields.shape[1]
        self.fields = grown(self.fields, instances)
        self.fields[FIRST, have:], self.fields[SIZE, have:] = -1, _BINS

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        n = len(rows)
        log = self.log
        self.partitioned = self.partitioned or rows.instance is not None
        ids = self._ids(rows)
        self._room(instances)
        at = log.add(rows, instances)
        live = int(self.fields[LIVE].sum())
        findable, apart = self.setup.findable, self.setup.ops_only
        # Every key leaves at most once, and the contents for joins enter again whenever a map doubles.
        out = Emission((1 + 2 * findable) * n + (1 + 5 * findable) * (n + live), apart)
        ranks = np.zeros(len(out.pos) if findable else 0, np.int64)
        made = _loop(self.lossy, self.partitioned, findable)(
            self.most, self.share, self.width, at, ids, clock.at(rows.order_key), rows.order_key, rows.chunk, log.ts,
            log.instance,
            log.alive, self.key, self.fields, self.order, np.empty(live + n, np.int64), ranks, *out.arrays,
        )  # fmt: skip
        if apart:
            kept = out.pos[np.flatnonzero(out.kind[:made] == CURRENT)] - at
            result = out.beside(made, log, rows if len(kept) == n else rows.take(kept))
        else:
            result = out.rows(made, log, rows.instance is not None)
        if findable:
            result = with_ranks(result, ranks[:made])
        log.tidy(self.key[LAST])
        self._renumber_keys()
        return result

    def _renumber_keys(self) -> None:
        """Renumber the counted keys if most others are gone."""
        counted = np.flatnonzero(self.key[COUNT])
        if self.key.shape[1] > 4 * len(counted) + 4096:
            self._again(counted, self.key[:, counted])

    def _again(self, counted: Array, numbers: Array) -> None:
        """Enters keys with these numbers, which name their last events."""
        self._forget_keys()
        log = self.log
        last = numbers[LAST]
        new = self._ids(Rows(log.columns(last), last, last, last, None, log.instance[last]))
        numbers[SPREAD] = self.key[SPREAD, new]
        old_first = self.fields[FIRST].copy()
        moved = np.full(int(counted.max(initial=-1)) + 2, -1, np.int64)  # the last place is for -1
        moved[counted] = new
        self.key[:, new] = numbers
        self.key[NEXT, new], self.key[PREVIOUS, new] = moved[numbers[NEXT]], moved[numbers[PREVIOUS]]
        self.fields[FIRST] = moved[old_first]

    def _walk(self) -> Array:
        """The counted keys, instance by instance, as their maps walk through them."""
        counted = np.flatnonzero(self.key[COUNT])
        instance = self.log.instance[self.key[LAST, counted]]
        place = self.key[SPREAD, counted] & (self.fields[SIZE, instance] - 1)
        by: Array = counted[np.lexsort((self.key[ORDER, counted], place, instance))]
        return by

    def forget(self, instances: Array) -> None:
        state = self.state()
        events = state["events"]
        stays = np.flatnonzero(~np.isin(events["part"], instances))
        kept = {"columns": [c.take(stays) for c in events["columns"]], "ts": events["ts"][stays]}
        state["events"] = {**kept, "part": events["part"][stays]}
        for name in ("counts", "buckets", "orders"):
            state[name] = state[name][stays]
        fill_at(state["bins"], instances, _BINS)
        fill_at(state["totals"], instances, 0)
        self.load(state)

    def state(self) -> dict[str, Any]:
        keys = self._walk()
        instances = self.log.instances
        return {
            "events": self.log.state(self.key[LAST, keys]),
            "counts": self.key[COUNT, keys] - self.fields[TAKEN, self.log.instance[self.key[LAST, keys]]],
            "buckets": self.key[BUCKET, keys],
            "orders": self.key[ORDER, keys],
            "order": self.order.copy(),
            "bins": self.fields[SIZE, :instances].copy(),
            "totals": self.fields[TOTAL, :instances].copy(),
            "partitioned": self.partitioned,
        }

    def load(self, state: dict[str, Any]) -> None:
        self._clear()
        self.partitioned = state["partitioned"]
        events, instances = state["events"], len(state["bins"])
        n = len(events["ts"])
        zeros = np.zeros(n, np.int64)
        at = self.log.add(Rows(events["columns"], events["ts"], zeros, zeros, None, events["part"]), instances)
        self.log.alive[at : at + n] = True
        self._room(instances)
        self.fields[SIZE, :instances], self.fields[TOTAL, :instances] = state["bins"], state["totals"]
        self.order = state["order"].copy()
        instance = events["part"]
        key = np.arange(n)
        numbers = np.zeros((PREVIOUS + 1, n), np.int64)
        numbers[COUNT], numbers[BUCKET], numbers[LAST] = state["counts"], state["buckets"], np.arange(at, at + n)
        numbers[ORDER] = state["orders"]
        same = np.append(instance[1:] == instance[:-1], False)
        numbers[NEXT] = np.where(same, key + 1, -1)
        numbers[PREVIOUS] = np.where(np.append(False, same[:-1])[:n], key - 1, -1)
        starts = numbers[PREVIOUS] < 0
        self.fields[FIRST, instance[starts]] = key[starts]
        self.fields[LIVE] = np.bincount(instance, minlength=self.fields.shape[1])
        self._again(key, numbers)

    @property
    def bytes(self) -> int:
        return self.log.bytes + self.key.nbytes


class FrequentWindow(_Counting):
    """The n most frequent keys: a key too many takes one off every count, and itself only where one falls to
    nothing."""

    def __init__(self, setup: WindowSetup) -> None:
        super().__init__(setup, 1)
        self.most = int(setup.constant(0))


class LossyFrequentWindow(_Counting):
    """Events of the keys whose share reaches support - error; at the end of each bucket rare keys are dropped."""

    lossy = True

    def __init__(self, setup: WindowSetup) -> None:
        super().__init__(setup, 2)
        support, error = float(setup.constant(0)), float(setup.constant(1))
        self.share = support - error
        self.width = math.ceil(1 / error) if error else 0
