"""Partitions: an event gets the number of its instance on the way in; the queries inside keep state per instance."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..plan import nodes
from ..types import Type
from .columns import Array, Column
from .expressions import Env, Evaluator, compile_expr
from .expressions.values import text as to_text
from .frame import frame_of
from .javamap import string_hash, walk_order
from .rows import Clock, Rows, concat_rows
from .services import Services


class Instances:
    """The instances of one partition: key texts, numbered in the order in which they first came."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.numbers: dict[str, int] = {}
        self._born: list[int] = []
        self._rank = np.zeros(0, np.int64)
        services.parts = 0

    def number(self, key: str, now: int) -> int:
        """The instance of a key, new if need be; `now` is the clock (ms)."""
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = len(self.numbers)
            self._born.append(now)
            self.services.parts = len(self.numbers)
        return found

    def born(self) -> Array:
        """int64 per instance: the clock (ms) at which it was made."""
        return np.array(self._born, np.int64)

    def rank(self) -> Array:
        """int64 per instance: its place when Siddhi walks through the map of instances."""
        if len(self._rank) != len(self.numbers):
            order = walk_order([string_hash(k) for k in self.numbers], len(self.numbers))
            self._rank = np.empty(len(order), np.int64)
            self._rank[order] = np.arange(len(order))
        return self._rank

    def state(self) -> dict[str, Any]:
        return {"keys": list(self.numbers), "born": self.born()}

    def load(self, state: dict[str, Any]) -> None:
        self.numbers, self._born = {}, []
        self.services.parts = 0
        for key, now in zip(state["keys"], state["born"].tolist(), strict=True):
            self.number(key, now)


class PartitionEntry:
    """One stream's way into a partition (`PartitionStreamReceiver`): by value, by ranges, or to every instance."""

    def __init__(
        self,
        stream: str,
        key: nodes.ValueKey | nodes.RangeKey | None,
        instances: Instances,
        services: Services,
        name: str,
    ) -> None:
        self.stream, self.instances, self.services, self.name = stream, instances, services, name
        context = services.context
        self._value = compile_expr(key.expr, context) if isinstance(key, nodes.ValueKey) else None
        self._ranges: list[tuple[Evaluator, str]] = (
            [(compile_expr(e, context), text) for e, text in key.ranges] if isinstance(key, nodes.RangeKey) else []
        )
        self.keyed = key is not None
        self._known: dict[Any, int] = {}

    def run(self, rows: Rows, clock: Clock) -> Rows:
        """The rows with their instances; an event may come in several times, or not at all (a null key)."""
        n = len(rows)
        if n == 0:
            return rows
        if not self.keyed:
            return self._to_all(rows)
        env = Env(n, self.services.strings, rows.ts, clock.at(rows.root), frame_of(rows).resolve)
        if self._value is not None:
            part = self._numbers(self._value(env), clock.at(rows.root))
            index = np.arange(n)
        else:
            index, part = self._in_ranges(env, clock.at(rows.root))
        if env.failed is not None:
            self.services.failed(self.name, self.stream, env, list(rows.columns), rows.root)
            part = np.where(env.failed[index], -1, part)
        keep = np.flatnonzero(part >= 0)
        if len(keep) < n or self._ranges:
            index, part = index[keep], part[keep]
            rows = rows.take(index)
        # What one send brings for one instance in a row is one chunk.
        fresh = np.ones(len(rows), np.bool_)
        fresh[1:] = (rows.chunk[1:] != rows.chunk[:-1]) | (part[1:] != part[:-1])
        return Rows(rows.columns, rows.ts, rows.root, np.cumsum(fresh) - 1, rows.kind, part.astype(np.int32))

    def _numbers(self, column: Column, now: Array) -> Array:
        """Instances by value; -1 for null."""
        if column.type is Type.STRING:
            codes = column.values
            used, inverse = np.unique(codes, return_inverse=True)
            if column.null is not None:
                inverse = np.where(column.null, -1, inverse)
            return self._by_first(inverse, self.services.strings.decode(used), now)
        distinct, inverse = np.unique(column.values, return_inverse=True)
        texts = [to_text(column.type, v) for v in distinct.tolist()]
        if column.null is not None:
            inverse = np.where(column.null, -1, inverse)
        return self._by_first(inverse, texts, now)

    def _by_first(self, inverse: Array, texts: list[Any], now: Array) -> Array:
        """Numbers new keys in the order of the rows that bring them."""
        out = np.full(len(texts) + 1, -1, np.int64)
        known = [self.instances.numbers.get(t) if t is not None else -1 for t in texts]
        missing = [i for i, k in enumerate(known) if k is None]
        for i, k in enumerate(known):
            if k is not None:
                out[i] = k
        if missing:
            first = np.full(len(texts), len(inverse), np.int64)
            np.minimum.at(first, inverse[inverse >= 0], np.flatnonzero(inverse >= 0))
            for i in sorted(missing, key=lambda i: int(first[i])):
                if first[i] < len(inverse):
                    out[i] = self.instances.number(texts[i], int(now[first[i]]))
        return out[inverse]

    def _in_ranges(self, env: Env, now: Array) -> tuple[Array, Array]:
        rows, parts, order = [], [], []
        for k, (condition, text) in enumerate(self._ranges):
            result = condition(env)
            hit = np.flatnonzero(result.values if result.null is None else result.values & ~result.null)
            rows.append(hit)
            order.append(np.full(len(hit), k))
            parts.append([text] * len(hit))
        index, rank = np.concatenate(rows), np.concatenate(order)
        by = np.lexsort((rank, index))
        texts = [t for p in parts for t in p]
        now = now[index]
        part = np.array([self.instances.number(texts[i], int(now[i])) for i in by.tolist()], np.int64)
        return index[by], part

    def _to_all(self, rows: Rows) -> Rows:
        """Every chunk to every instance there is, in the map's order; before the first key there is none."""
        k = len(self.instances.numbers)
        if k == 0:
            return rows.take(np.empty(0, np.int64))
        by_rank = np.argsort(self.instances.rank())
        parts = []
        for number, chunk in enumerate(rows.by_chunk()):
            for j, p in enumerate(by_rank.tolist()):
                m = len(chunk)
                part, at = np.full(m, p, np.int32), np.full(m, number * k + j, np.int64)
                parts.append(Rows(chunk.columns, chunk.ts, chunk.root, at, chunk.kind, part))
        return concat_rows(parts)
