"""`frequent(n[, attributes])` (Misra-Gries counting) and `lossyFrequent(support, error[, attributes])`.

Both keep the last event of every key that counts as frequent. Siddhi's key is the concatenated texts of the attributes;
without attributes, of all that the query selects, in a join of the attributes that it selects unchanged from that side
(the output data of its `MetaStreamEvent`). Keys that leave together do so in the order in which a `ConcurrentHashMap`
walks through them: by bin, in a bin as they came, and when the map grows the part of a bin that does not end it comes
out reversed (`ConcurrentHashMap.transfer`; bins that become trees are not followed).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..columnar.arrays import fill_at, grown
from ..columnar.column_data import Array
from ..columnar.key_ids import IdTable
from ..columnar.rows import CURRENT, ENTER, EXPIRED, LEAVE, Clock, Rows
from ..notation.kernels import compiled, compiled_by, inlined, struct
from ..state.key_hash import TextKeys
from .chain import ChainedLog
from .window_protocol import Emission, Feed, Untimed, WindowSetup, with_ranks

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


@struct
class CountedKeys(Untimed):
    """Common base of windows that hold the last event of every key: the numbers of keys and of partition instances."""

    stamps, moves, is_ordered = None, True, True
    log: ChainedLog
    lossy = False
    most = 0
    share = 0.0
    width = 0
    """Events of a bucket; 0: there is only one."""

    def __init__(self, setup: WindowSetup, first: int) -> None:
        key_columns = [setup.column(i) for i in range(first, len(setup.args))]
        self.setup = setup
        self.keys: list[int | None] = [*key_columns] if key_columns else list(setup.selected_columns)
        self._clear()

    def _clear(self) -> None:
        self.is_partitioned = False
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
        if self.is_partitioned:
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
        self.is_partitioned = self.is_partitioned or rows.instance is not None
        ids = self._ids(rows)
        self._room(instances)
        at = log.add(rows, instances)
        live = int(self.fields[LIVE].sum())
        findable, apart = self.setup.findable, self.setup.ops_only
        # Every key leaves at most once, and the contents for joins enter again whenever a map doubles.
        out = Emission((1 + 2 * findable) * n + (1 + 5 * findable) * (n + live), apart)
        ranks = np.zeros(len(out.pos) if findable else 0, np.int64)
        self.leaving_keys, self.ranks, self.findable = np.empty(live + n, np.int64), ranks, findable
        count = self._step(Feed(rows, at), ids, clock.at(rows.order_key), out)
        if apart:
            passing_rows = out.pos[np.flatnonzero(out.kind[:count] == CURRENT)] - at
            result = out.beside(count, log, rows if len(passing_rows) == n else rows.take(passing_rows))
        else:
            result = out.rows(count, log, rows.instance is not None)
        if findable:
            result = with_ranks(result, ranks[:count])
        log.tidy(self.key[LAST])
        self._renumber_keys()
        return result

    @compiled_by("lossy", "is_partitioned", "findable")
    def _step(self, rows: Feed, ids: Array, now: Array, out: Emission) -> int:
        """`FrequentWindowProcessor.process`, and of a `lossy` window `LossyFrequentWindowProcessor.process`.

        `ranks`: for ENTER rows, the place of the event's key in its map: by bin, then by its order there. In a
        partition Siddhi forgets an instance's state when it counts no key at a chunk's end (`canDestroy`). Returns how
        many rows are put out, each in the chunk of the row that brought it.
        """
        for r in range(rows.count):
            pos = rows.first + r
            p = self.log.instance[pos]
            k = ids[r]
            order_key = rows.order_key[r]
            out.chunks = rows.chunk[r]
            leaving_count = 0
            is_counted = True
            if self.lossy:
                self.fields[TOTAL, p] += 1
            elif self.key[COUNT, k] == 0 and self.fields[LIVE, p] >= self.most:
                leaving_count = self._take_one_off(p)
                is_counted = leaving_count > 0
            # Of a lossy window keys leave after the event at hand, of the other one before it.
            if not self.lossy:
                self._leave(leaving_count, p, now[r], order_key, out)
            if is_counted:
                self._count(k, pos, p, order_key, out)
                if self.lossy and self.width > 0 and self.fields[TOTAL, p] % self.width == 0:
                    leaving_count = self._find_rare(p)
            if self.lossy:
                self._leave(leaving_count, p, now[r], order_key, out)
            ends = r + 1 == rows.count or rows.chunk[r + 1] != rows.chunk[r]
            if self.is_partitioned and self.fields[LIVE, p] == 0 and ends:
                self.fields[TOTAL, p] = 0
                self.fields[SIZE, p] = _BINS
        return out.count

    @inlined
    def _take_one_off(self, p: int) -> int:
        """A key too many takes one off every count; finds the keys that are counted no more, and returns how many."""
        leaving_count = 0
        self.fields[TAKEN, p] += 1
        if self.fields[LEAST, p] <= self.fields[TAKEN, p]:
            least = np.int64(2**62)
            other = self.fields[FIRST, p]
            while other >= 0:
                if self.key[COUNT, other] == self.fields[TAKEN, p]:
                    self.leaving_keys[leaving_count] = other
                    leaving_count += 1
                else:
                    least = min(least, self.key[COUNT, other])
                other = self.key[NEXT, other]
            self.fields[LEAST, p] = least
        return leaving_count

    @inlined
    def _find_rare(self, p: int) -> int:
        """At the end of a bucket: finds the keys that are too rare to be counted on, and returns how many."""
        leaving_count = 0
        bucket = (self.fields[TOTAL, p] + self.width - 1) // self.width
        other = self.fields[FIRST, p]
        while other >= 0:
            if self.key[COUNT, other] + self.key[BUCKET, other] <= bucket:
                self.leaving_keys[leaving_count] = other
                leaving_count += 1
            other = self.key[NEXT, other]
        return leaving_count

    @inlined
    def _count(self, k: int, pos: int, p: int, order_key: int, out: Emission) -> None:
        """The event at hand is counted, and is the last one of its key."""
        if self.key[COUNT, k] > 0:
            self.key[COUNT, k] += 1
            previous = self.key[LAST, k]
            self.log.alive[previous] = False
            if self.findable:
                out.put(previous, LEAVE, self.log.ts[previous], order_key)
        else:
            bins = self.fields[SIZE, p]
            self._enter(k, p)
            if self.findable and self.fields[SIZE, p] != bins:
                self._look_anew(p, order_key, out)
            if self.lossy:
                total = self.fields[TOTAL, p]
                is_first = total == 1 or self.width == 0
                self.key[BUCKET, k] = 0 if is_first else (total + self.width - 1) // self.width - 1
        self.key[LAST, k] = pos
        self.log.alive[pos] = True
        if self.findable:
            place = self._place(k, p)
            self.ranks[out.count] = place
            out.put(pos, ENTER, self.log.ts[pos], order_key)
        if not self.lossy or self.key[COUNT, k] >= self.share * self.fields[TOTAL, p]:
            out.put(pos, CURRENT, self.log.ts[pos], order_key)

    @inlined
    def _leave(self, leaving_count: int, p: int, now: int, order_key: int, out: Emission) -> None:
        """The keys that were found are counted no more, and their events leave."""
        if leaving_count > 1:
            self._sort_found(leaving_count, p)
        for i in range(leaving_count):
            other = self.leaving_keys[i]
            self._drop(other, p)
            last = self.key[LAST, other]
            self.key[LAST, other] = -1
            self.log.alive[last] = False
            if self.findable:
                out.put(last, LEAVE, self.log.ts[last], order_key)
            out.put(last, EXPIRED, now, order_key)

    @inlined
    def _look_anew(self, p: int, order_key: int, out: Emission) -> None:
        """After the map has grown: the events of an instance leave the contents for joins and enter again with new
        ranks."""
        at = self.fields[FIRST, p]
        while at >= 0:
            last = self.key[LAST, at]
            if last >= 0:
                out.put(last, LEAVE, self.log.ts[last], order_key)
                place = self._place(at, p)
                self.ranks[out.count] = place
                out.put(last, ENTER, self.log.ts[last], order_key)
            at = self.key[NEXT, at]

    @inlined
    def _place(self, k: int, p: int) -> int:
        """The place of a key in the map of its instance."""
        return ((self.key[SPREAD, k] & (self.fields[SIZE, p] - 1)) << _BIN) | self.key[ORDER, k]

    @inlined
    def _sort_found(self, n: int, p: int) -> None:
        """Sorts the first `n` keys that were found as the map walks through them: few by insertion."""
        if n > _FEW:
            self._sort_many(n, p)
        else:
            for i in range(1, n):
                k = self.leaving_keys[i]
                place = self._place(k, p)
                j = i
                while j > 0:
                    before = self.leaving_keys[j - 1]
                    place_before = self._place(before, p)
                    if place_before < place:
                        break
                    self.leaving_keys[j] = before
                    j -= 1
                self.leaving_keys[j] = k

    @compiled
    def _sort_many(self, n: int, p: int) -> None:
        places = np.empty(n, np.int64)
        for i in range(n):
            place = self._place(self.leaving_keys[i], p)
            places[i] = place
        self.leaving_keys[:n] = self.leaving_keys[:n][np.argsort(places)]

    @compiled
    def _grow(self, p: int) -> None:
        """Doubles the map of an instance."""
        bins, n = self.fields[SIZE, p], self.fields[LIVE, p]
        keys = np.empty(n, np.int64)
        places = np.empty(n, np.int64)
        k = self.fields[FIRST, p]
        for i in range(n):
            keys[i] = k
            place = self._place(k, p)
            places[i] = place
            k = self.key[NEXT, k]
        keys = keys[np.argsort(places)]
        a = 0
        while a < n:
            b = a + 1
            while b < n and (self.key[SPREAD, keys[b]] & (bins - 1)) == (self.key[SPREAD, keys[a]] & (bins - 1)):
                b += 1
            run = b - 1
            while run > a and (self.key[SPREAD, keys[run - 1]] & bins) == (self.key[SPREAD, keys[b - 1]] & bins):
                run -= 1
            for i in range(a, b):
                self.key[ORDER, keys[i]] = n + i - run if i >= run else n - 1 - (i - a)
            a = b
        self.order[0] = max(self.order[0], 2 * n)
        self.fields[SIZE, p] = 2 * bins

    @inlined
    def _enter(self, k: int, p: int) -> None:
        """A key is counted for the first time."""
        self.key[COUNT, k] = self.fields[TAKEN, p] + 1
        self.fields[LEAST, p] = self.fields[TAKEN, p] + 1
        self.key[ORDER, k] = self.order[0]
        self.order[0] += 1
        at = self.fields[FIRST, p]
        self.key[NEXT, k] = at
        self.key[PREVIOUS, k] = -1
        if at >= 0:
            self.key[PREVIOUS, at] = k
        self.fields[FIRST, p] = k
        self.fields[LIVE, p] += 1
        while self.fields[LIVE, p] >= self.fields[SIZE, p] * 3 // 4:
            self._grow(p)

    @inlined
    def _drop(self, k: int, p: int) -> None:
        """A key is counted no more."""
        self.key[COUNT, k] = 0
        before, after = self.key[PREVIOUS, k], self.key[NEXT, k]
        if before >= 0:
            self.key[NEXT, before] = after
        else:
            self.fields[FIRST, p] = after
        if after >= 0:
            self.key[PREVIOUS, after] = before
        self.fields[LIVE, p] -= 1

    def _renumber_keys(self) -> None:
        """Renumber the counted keys if most others are gone."""
        live_keys = np.flatnonzero(self.key[COUNT])
        if self.key.shape[1] > 4 * len(live_keys) + 4096:
            self._again(live_keys, self.key[:, live_keys])

    def _again(self, live_keys: Array, numbers: Array) -> None:
        """Enters keys with these numbers, which name their last events."""
        self._forget_keys()
        log = self.log
        last = numbers[LAST]
        new = self._ids(Rows(log.columns(last), last, last, last, None, log.instance[last]))
        numbers[SPREAD] = self.key[SPREAD, new]
        old_first = self.fields[FIRST].copy()
        new_numbers = np.full(int(live_keys.max(initial=-1)) + 2, -1, np.int64)  # the last place is for -1
        new_numbers[live_keys] = new
        self.key[:, new] = numbers
        self.key[NEXT, new], self.key[PREVIOUS, new] = new_numbers[numbers[NEXT]], new_numbers[numbers[PREVIOUS]]
        self.fields[FIRST] = new_numbers[old_first]

    def _walk(self) -> Array:
        """The counted keys, instance by instance, as their maps walk through them."""
        live_keys = np.flatnonzero(self.key[COUNT])
        instance = self.log.instance[self.key[LAST, live_keys]]
        place = self.key[SPREAD, live_keys] & (self.fields[SIZE, instance] - 1)
        by: Array = live_keys[np.lexsort((self.key[ORDER, live_keys], place, instance))]
        return by

    def forget(self, instances: Array) -> None:
        state = self.state()
        events = state["events"]
        stays = np.flatnonzero(~np.isin(events["part"], instances))
        staying_events = {"columns": [c.take(stays) for c in events["columns"]], "ts": events["ts"][stays]}
        state["events"] = {**staying_events, "part": events["part"][stays]}
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
            "partitioned": self.is_partitioned,
        }

    def load(self, state: dict[str, Any]) -> None:
        self._clear()
        self.is_partitioned = state["partitioned"]
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


class FrequentWindow(CountedKeys):
    """The n most frequent keys: a key too many takes one off every count, and itself only where one falls to
    nothing."""

    def __init__(self, setup: WindowSetup) -> None:
        super().__init__(setup, 1)
        self.most = int(setup.constant(0))


class LossyFrequentWindow(CountedKeys):
    """Events of the keys whose share reaches support - error; at the end of each bucket rare keys are dropped."""

    lossy = True

    def __init__(self, setup: WindowSetup) -> None:
        super().__init__(setup, 2)
        support, error = float(setup.constant(0)), float(setup.constant(1))
        self.share = support - error
        self.width = math.ceil(1 / error) if error else 0
