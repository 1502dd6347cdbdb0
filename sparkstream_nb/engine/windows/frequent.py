"""`frequent(n[, attributes])` (Misra-Gries counting) and `lossyFrequent(support, error[, attributes])`.

Both keep the last event of every key that counts as frequent. Siddhi's key is the attributes' texts laid end to end;
without
attributes it is made of all that the query selects.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...types import Type
from ..columns import Array, Column, Strings
from ..expressions.values import text
from ..javamap import ConcurrentKeys, string_hash
from ..rows import CURRENT, ENTER, EXPIRED, LEAVE, Clock, Rows
from .base import Emission, WindowSetup, with_ranks
from .chain import ChainedLog


def key_codes(columns: list[Column | None], strings: Strings, n: int) -> Array:
    """The dictionary code of each row's key; None stands for a null. Texts are made once per distinct value."""
    texts: list[Array] = []
    for c in columns:
        if c is None:
            texts.append(np.full(n, "null", object))
            continue
        if c.type is Type.OBJECT:
            used, inverse = c.values, np.arange(n)
        else:
            used, inverse = np.unique(c.values, return_inverse=True)
        values = Column(c.type, used).to_list(strings)
        made = np.array([*("null" if v is None else text(c.type, v) for v in values), "null"], object)
        index = inverse if c.null is None else np.where(c.null, len(used), inverse)
        texts.append(made[index])
    if not texts:
        return np.full(n, strings.code(""), np.int32)
    whole = texts[0]
    for t in texts[1:]:
        whole = whole + t
    return strings.encode(whole.tolist())


class _Counting:
    """What the two windows share: per partition instance, the last event and the count of every key."""

    moves = True
    ordered = True

    def __init__(self, setup: WindowSetup, first: int) -> None:
        chosen = [setup.column(i) for i in range(first, len(setup.args))]
        self.setup = setup
        self.keys: list[int | None] = [*chosen] if chosen else list(setup.selected)
        self.log = ChainedLog(setup.types)
        self.last: dict[tuple[int, int], int] = {}
        """(instance, key) → position of its last event."""
        self.count: dict[int, dict[int, int]] = {}
        """Instance → key → how often it came, in the order of the keys' coming."""
        self.keys_of: dict[int, ConcurrentKeys] = {}
        """Instance → its keys, in the order of Siddhi's map."""
        self.rank: dict[tuple[int, int], int] = {}
        """(instance, key) → a number in the order of that map: its bin, and the key's turn in it."""
        self.turn = 0

    def _count(self, part: int, key: int, row: int, made: list[tuple[int, ...]]) -> None:
        """A key is counted for the first time."""
        self.count.setdefault(part, {})[key] = 1
        text = self.setup.strings.text(key) or ""
        keys = self.keys_of.setdefault(part, ConcurrentKeys())
        size = len(keys.bins)
        keys.add(key, string_hash(text))
        if len(keys.bins) == size:
            self._rank(part, [key])
            return
        self._rank(part, keys.walk())
        for k in keys.walk():
            self._moved(self.last.get((part, k)), LEAVE, row, made)
            self._moved(self.last.get((part, k)), ENTER, row, made, self.rank[part, k])

    def _rank(self, part: int, keys: list[int]) -> None:
        table = self.keys_of[part]
        for key in keys:
            self.turn += 1
            self.rank[part, key] = (table.spread[key] & (len(table.bins) - 1)) << 40 | self.turn

    def _forget(self, part: int, key: int) -> int:
        """A key is dropped; returns the position of its last event."""
        del self.count[part][key]
        self.keys_of[part].remove(key)
        del self.rank[part, key]
        return self.last.pop((part, key))

    def _order(self, part: int) -> list[int]:
        return self.keys_of[part].walk() if part in self.keys_of else []

    def run(self, rows: Rows, clock: Clock, parts: int, rank: Array | None) -> Rows:
        n = len(rows)
        log = self.log
        codes = key_codes([None if i is None else rows.columns[i] for i in self.keys], self.setup.strings, n).tolist()
        at = log.add(rows, parts)
        now, part = clock.at(rows.root), rows.parts().tolist()
        made: list[tuple[int, ...]] = []  # position, kind, row, whether it keeps its own time, rank
        for i, key in enumerate(codes):
            self._take(at + i, part[i], key, i, made)
        out = Emission(0)
        table = np.array(made, np.int64).reshape(-1, 5)
        out.pos, out.kind = table[:, 0], table[:, 1].astype(np.int8)
        row = table[:, 2]
        out.ts = np.where(table[:, 3] == 1, log.ts[out.pos], now[row]) if len(row) else row
        out.root, out.chunk = rows.root[row], rows.chunk[row]
        result = out.rows(len(table), log, rows.part is not None)
        if self.setup.findable:
            result = with_ranks(result, table[:, 4])
        held = np.fromiter(self.last.values(), np.int64, len(self.last))
        log.alive[: log.end] = False
        log.alive[held] = True
        log.tidy(held)
        self.last = dict(zip(self.last, held.tolist(), strict=True))
        return result

    def _take(self, pos: int, part: int, key: int, row: int, made: list[tuple[int, ...]]) -> None:
        raise NotImplementedError

    def _moved(self, pos: int | None, kind: int, row: int, made: list[tuple[int, ...]], rank: int = 0) -> None:
        if self.setup.findable and pos is not None:
            made.append((pos, kind, row, 1, rank))

    def state(self) -> dict[str, Any]:
        held = list(self.last)
        counted = [(p, k, self.count[p][k]) for p, keys in self.keys_of.items() for k in keys.walk()]
        return {
            "events": self.log.state(np.array([self.last[k] for k in held], np.int64)),
            "last": Column(Type.STRING, np.array([k for _, k in held], np.int32)),
            "instances": np.array([p for p, _ in held], np.int64),
            "keys": Column(Type.STRING, np.array([k for _, k, _ in counted], np.int32)),
            "of": np.array([p for p, _, _ in counted], np.int64),
            "counts": np.array([c for _, _, c in counted], np.int64),
            "turns": np.array([self.rank[p, k] for p, k, _ in counted], np.int64),
            "bins": [[p, len(keys.bins), [len(b) for b in keys.bins]] for p, keys in self.keys_of.items()],
            "parts": self.log.parts,
        }

    def load(self, state: dict[str, Any]) -> None:
        events = state["events"]
        n = len(events["ts"])
        zeros = np.zeros(n, np.int64)
        self.log = ChainedLog(self.setup.types)
        self.log.add(Rows(events["columns"], events["ts"], zeros, zeros, None, events["part"]), state["parts"])
        self.log.alive[:n] = True
        self.last = {
            (p, k): i
            for i, (p, k) in enumerate(zip(state["instances"].tolist(), state["last"].values.tolist(), strict=True))
        }
        self.count = {}
        for p, k, c in zip(
            state["of"].tolist(), state["keys"].values.tolist(), state["counts"].tolist(), strict=True
        ):
            self.count.setdefault(p, {})[k] = c
        self.keys_of = {}
        for p, size, lengths in state["bins"]:
            table = self.keys_of[p] = ConcurrentKeys()
            table.bins = [[] for _ in range(size)]
            order = iter(list(self.count.get(p, {})))
            for b, n in zip(table.bins, lengths, strict=True):
                for k in [next(order) for _ in range(n)]:
                    h = string_hash(self.setup.strings.text(k) or "") & 0xFFFFFFFF
                    table.spread[k] = h ^ (h >> 16)
                    b.append(k)
        places = zip(state["of"].tolist(), state["keys"].values.tolist(), strict=True)
        self.rank = dict(zip(places, state["turns"].tolist(), strict=True))
        self.turn = max((r & ((1 << 40) - 1) for r in self.rank.values()), default=0)

    @property
    def bytes(self) -> int:
        return self.log.bytes + 24 * sum(len(c) for c in self.count.values())


class FrequentWindow(_Counting):
    """The n most frequent keys: a key too many takes one off every count, and itself only where one falls to
    nothing."""

    def __init__(self, setup: WindowSetup) -> None:
        super().__init__(setup, 1)
        self.most = int(setup.constant(0))

    def _take(self, pos: int, part: int, key: int, row: int, made: list[tuple[int, ...]]) -> None:
        """`FrequentWindowProcessor.process`."""
        count = self.count.setdefault(part, {})
        if key in count:
            count[key] += 1
        else:
            if len(count) >= self.most:
                for k in self._order(part)[: self.most]:
                    count[k] -= 1
                    if count[k] == 0:
                        gone = self._forget(part, k)
                        self._moved(gone, LEAVE, row, made)
                        made.append((gone, EXPIRED, row, 0, 0))
                if len(count) >= self.most:
                    return
            self._count(part, key, row, made)
        self._moved(self.last.get((part, key)), LEAVE, row, made)
        self.last[part, key] = pos
        self._moved(pos, ENTER, row, made, self.rank[part, key])
        made.append((pos, CURRENT, row, 1, 0))


class LossyFrequentWindow(_Counting):
    """Events of the keys whose share reaches support - error; at the end of each bucket rare keys are dropped."""

    def __init__(self, setup: WindowSetup) -> None:
        super().__init__(setup, 2)
        self.support, self.error = float(setup.constant(0)), float(setup.constant(1))
        self.width = math.ceil(1 / self.error) if self.error else math.inf
        self.total: dict[int, int] = {}
        self.bucket: dict[tuple[int, int], int] = {}
        """(instance, key) → the bucket before the one in which it was first counted."""

    def _take(self, pos: int, part: int, key: int, row: int, made: list[tuple[int, ...]]) -> None:
        """`LossyFrequentWindowProcessor.process`."""
        count = self.count.setdefault(part, {})
        total = self.total[part] = self.total.get(part, 0) + 1
        bucket = 1 if total == 1 else math.ceil(total / self.width)
        self._moved(self.last.get((part, key)), LEAVE, row, made)
        if key in count:
            count[key] += 1
        else:
            self._count(part, key, row, made)
            self.bucket[part, key] = bucket - 1
        self.last[part, key] = pos
        self._moved(pos, ENTER, row, made, self.rank[part, key])
        if count[key] >= (self.support - self.error) * total:
            made.append((pos, CURRENT, row, 1, 0))
        if total % self.width == 0:
            for k in self._order(part):
                if count[k] + self.bucket[part, k] <= bucket:
                    del self.bucket[part, k]
                    gone = self._forget(part, k)
                    self._moved(gone, LEAVE, row, made)
                    made.append((gone, EXPIRED, row, 0, 0))

    def state(self) -> dict[str, Any]:
        buckets = [self.bucket[p, k] for p, keys in self.keys_of.items() for k in keys.walk()]
        return {**super().state(), "total": self.total, "buckets": np.array(buckets, np.int64)}

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        self.total = dict(state["total"])
        of, keys = state["of"].tolist(), state["keys"].values.tolist()
        self.bucket = {(p, k): b for p, k, b in zip(of, keys, state["buckets"].tolist(), strict=True)}
