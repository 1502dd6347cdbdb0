"""Partitions: the entry gives each event its instance number; the queries inside keep state per instance."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from ...plan import nodes
from ...types import Type
from ..columnar.arrays import grown
from ..columnar.column_data import Array, Column, StringPool
from ..columnar.frame import frame_of
from ..columnar.javamap import capacity, computed_ranks, concurrent_order, spread, string_hash
from ..columnar.key_ids import IdTable, key_numbers
from ..columnar.rows import EVENT_PHASE, ORDER_KEY_BITS, Clock, Rows, concat_rows
from ..expressions import Env, Evaluator, compile_expr
from ..expressions.java_texts import text as to_text
from ..notation.kernels import kernel
from ..state.declared import DeclaredState, Plain, per_instance, plain_value
from ..state.saving import Form, plain
from ..state.services import Services

NEVER = 2**63 - 1
"""The order key at which an instance that lives on is forgotten."""


class _FreeNumbers(Plain):
    """A list of numbers."""

    def state(self, value: list[int], form: Form, owner: Any) -> Any:
        return np.array(value, np.int64)

    def load(self, value: list[int], state: Any, owner: Any) -> list[int]:
        return list(state.tolist())


class Instances(DeclaredState):
    """The instances of one partition: key texts, numbered in the order in which they first came.

    `@purge` removes the keys that had no event for its idle period, every interval of the app's clock
    (`PartitionRuntimeImpl.initPartition` does so on the wall clock). A key that comes again is a new instance. If no
    state of an instance is left then (`reuses`), its number goes to a new instance.
    """

    count: int = plain_value(0)
    """Number of instance numbers."""
    _most: int = plain_value(0)
    _born: Array = per_instance()
    _hashes: Array = per_instance()
    _seen: Array = per_instance()
    _gone: Array = per_instance()
    _made: int = plain_value(0)
    """Number of instances ever created."""
    _turns: Array = per_instance()
    """By number: which of those the instance is."""
    _free: Any = _FreeNumbers([])
    _check: int | None = plain_value()

    def __init__(self, strings: StringPool, purge: nodes.Purge | None = None) -> None:
        self._strings, self.purge = strings, purge
        self._create()
        self.numbers: dict[str, int] = {}
        self.holders: list[Callable[[], None]] = []
        """Callbacks that make each query inside drop the state of the instances in `deaths`."""
        self.reuses = True
        self.deaths: list[tuple[int, Array]] = []
        """Roots at which instances were forgotten, whose state may still be held, and their numbers."""
        self._walk: list[int] | None = None
        self._rank, self._rank_end, self._buckets = np.zeros(0, np.int64), 0, 0
        self._codes = np.zeros(0, np.int32)
        """The codes of the keys at the last save."""
        self.age = 0  # grows when numbers mean something else than before
        self.instance_count = 0
        """Number of instances known to the queries inside."""

    def number(self, key: str, now: int) -> int:
        """The instance of a key, new if need be; `now` is the clock (ms)."""
        instance = self.numbers.get(key)
        if instance is None:
            instance = self._free.pop() if self._free else self.count
            self.numbers[key] = instance
            self.count = max(self.count, instance + 1)
            self._most = max(self._most, len(self.numbers))
            self._born, self._hashes = grown(self._born, self.count), grown(self._hashes, self.count)
            self._born[instance], self._hashes[instance] = now, spread(string_hash(key))
            self._turns = grown(self._turns, self.count)
            self._turns[instance], self._made = self._made, self._made + 1
            self._rank_end = min(self._rank_end, instance)
            self._walk, self.instance_count = None, self.count
        return instance

    def born(self) -> Array:
        """int64 per instance: the clock (ms) at which it was made."""
        return self._born[: self.count]

    def hashes(self) -> Array:
        """int64 per instance: its key's hash as Java's maps use it."""
        return self._hashes[: self.count]

    def rank(self) -> Array:
        """int64 per instance: its position in the iteration order of a Java map that `computeIfAbsent` filled in the
        order of the instances (`computed_ranks`), as in Siddhi's schedulers."""
        buckets = capacity(self._made - 1)
        if self._buckets != buckets:
            self._buckets, self._rank_end = buckets, 0
        if self._rank_end < self.count:
            fresh = np.arange(self._rank_end, self.count)
            self._rank, self._rank_end = grown(self._rank, self.count), self.count
            self._rank[fresh] = computed_ranks(self._hashes[fresh], self._turns[fresh], buckets)
        return self._rank[: self.count]

    def in_order(self) -> list[int]:
        """The live instances, in the order of Siddhi's map of the partition's keys."""
        if self._walk is None:
            instances = list(self.numbers.values())
            self._walk = [instances[i] for i in concurrent_order(self._hashes[instances].tolist(), self._most)]
        return self._walk

    # ------------------------------------------------------------------------------------------------------ forgetting

    def purge_keys(self) -> Array | None:
        """int64 per instance: the order key from which on it is purged; None if none is."""
        if len(self._gone) == 0:
            return None
        self._gone = grown(self._gone, self.count, NEVER)
        return self._gone

    def seen(self, instance: Array, now: Array) -> None:
        """Records the time of events by instance."""
        if self.purge is not None and len(instance):
            self._seen = grown(self._seen, self.count)
            np.maximum.at(self._seen, instance, now)

    def check(self, clock: Clock, step: int) -> int:
        """The first step from `step` on at which keys may be purged; `clock.last` if there is none."""
        if self.purge is None or step >= clock.last:
            return clock.last
        if self._check is None:
            self._check = int(clock.now[step]) + max(self.purge.interval, 1)
        step = max(step, int(np.searchsorted(clock.now, self._check)))
        while step < clock.last and not clock.may_fire[step]:
            step += 1
        return min(step, clock.last)

    def next_due(self) -> int | None:
        """The first look for idle keys (ms) that finds one; None if none will."""
        if self.purge is None or self._check is None or not self.numbers:
            return None
        seen = grown(self._seen, self.count)[list(self.numbers.values())]
        idle, every = int(seen.min()) + self.purge.idle, max(self.purge.interval, 1)
        return self._check + max(0, (idle - self._check) // every + 1) * every

    def forget(self, clock: Clock, step: int) -> None:
        """Purges the idle keys: after the timers of a step, before its events."""
        assert self.purge is not None
        assert self._check is not None
        every = max(self.purge.interval, 1)
        time = self._check + (int(clock.now[step]) - self._check) // every * every
        self._check = time + every
        self._seen = grown(self._seen, self.count)
        idle = [k for k, p in self.numbers.items() if self._seen[p] + self.purge.idle < time]
        if not idle:
            return
        self.age, self._walk = self.age + 1, None
        self._codes = np.zeros(0, np.int32)
        self._gone = grown(self._gone, self.count, NEVER)
        dead = np.array([self.numbers.pop(key) for key in idle])
        order_key = ((clock.base + step) << ORDER_KEY_BITS) | EVENT_PHASE
        self._gone[dead] = order_key
        self.deaths.append((order_key, dead))

    def release(self) -> None:
        """Drops the state of the instances that were forgotten. To be called between micro-batches."""
        if not self.deaths:
            return
        for release in self.holders:
            release()
        for _, dead in self.deaths:
            if self.reuses:
                self._free += dead.tolist()
                self._gone[dead] = NEVER
        self.deaths.clear()

    # ----------------------------------------------------------------------------------------------------------- state

    @property
    def instances(self) -> int:
        """Number of instance numbers."""
        return self.count

    def _state(self, form: Form) -> dict[str, Any]:
        """By change, the keys are a column to which only new keys are added."""
        if form is plain:
            return {**super()._state(form), "keys": dict(self.numbers)}
        saved_count = len(self._codes)
        if saved_count < len(self.numbers):
            new = self._strings.encode(list(islice(self.numbers, saved_count, None)))
            self._codes = np.concatenate([self._codes, new])
        numbers = np.fromiter(self.numbers.values(), np.int32, len(self.numbers))
        return {**super()._state(form), "keys": Column(Type.STRING, self._codes), "numbers": numbers}

    def load(self, state: dict[str, Any]) -> None:
        self.age += 1
        if "numbers" in state:
            keys = state["keys"].to_list(self._strings)
            self.numbers = dict(zip(keys, state["numbers"].tolist(), strict=True))
        else:
            self.numbers = dict(state["keys"])
        self._codes = np.zeros(0, np.int32)
        super().load(state)
        self.deaths.clear()
        self._rank_end, self._walk = 0, None
        self.instance_count = self.count


@kernel
def _by_row(hits: Array, index: Array, place: Array) -> bool:
    """For each row, one after the other, and each range that takes it, `hits[range, row]`: the row and the range, which
    need room for one more. Returns whether each row is there once."""
    n = 0
    once = True
    for i in range(hits.shape[1]):
        for k in range(hits.shape[0]):
            index[n] = i
            place[n] = k
            n += hits[k, i]
        once &= n == i + 1
    return once


class PartitionEntry:
    """The entry of one stream into a partition (`PartitionStreamReceiver`): by value, by ranges, or to every
    instance."""

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
        self.has_key = key is not None
        self._ids = IdTable()  # of values that are no texts
        self._instance_of = np.zeros(0, np.int32)
        """Instance by code of the text or id of the value, -1: not looked up."""
        self._age = 0

    def run(self, rows: Rows, clock: Clock) -> Rows:
        """The rows with their instances; an event may enter several instances, or none (a null key)."""
        parts, row, step = [], 0, clock.first
        while (step := self.instances.check(clock, step)) < clock.last:
            end = int(np.searchsorted(rows.order_key, ((clock.base + step) << ORDER_KEY_BITS) | EVENT_PHASE))
            parts.append(self._run(rows.slice(row, end), clock))
            self.instances.forget(clock, step)
            row, step = end, step + 1
        if not parts:
            return self._run(rows, clock)
        return concat_rows([*parts, self._run(rows.slice(row, len(rows)), clock)])

    def _run(self, rows: Rows, clock: Clock) -> Rows:
        n = len(rows)
        if n == 0:
            return rows
        if not self.has_key:
            return self._to_all(rows)
        env = Env(n, self.services.strings, rows.ts, lambda: clock.at(rows.order_key), frame_of(rows).resolve)
        index: Array | None = None
        if self._value is not None:
            instance = self._numbers(self._value(env), rows.order_key, clock)
        else:
            index, instance = self._in_ranges(env, clock.at(rows.order_key))
        if env.failed_rows is not None:
            self.services.route_failed(self.name, self.stream, env, list(rows.columns), rows.order_key)
            instance = np.where(env.failed_rows if index is None else env.failed_rows[index], np.int32(-1), instance)
        if index is not None or (len(instance) and instance.min() < 0):
            keep = np.flatnonzero(instance >= 0)
            rows, instance = rows.take(keep if index is None else index[keep]), instance[keep]
        if self.instances.purge is not None:
            self.instances.seen(instance, clock.at(rows.order_key))
        # What one send brings for one instance in a row is one chunk.
        chunk = np.zeros(len(rows), np.int64)
        np.cumsum((rows.chunk[1:] != rows.chunk[:-1]) | (instance[1:] != instance[:-1]), out=chunk[1:])
        return Rows(rows.columns, rows.ts, rows.order_key, chunk, rows.kind, instance)

    def _numbers(self, column: Column, order_key: Array, clock: Clock) -> Array:
        """Instances (int32) by value; -1 for null. New ones are numbered in the order of the rows that bring them."""
        strings, text = self.services.strings, column.type is Type.STRING
        if self._age != self.instances.age:  # an instance is no more
            self._age, self._instance_of = self.instances.age, self._instance_of[:0]
        ids = column.values if text else self._ids.assign(*key_numbers(column, strings))[0]
        self._instance_of = grown(self._instance_of, (len(strings) if text else self._ids.size) + 1, -1)
        instance: Array = self._instance_of[ids]  # the last place is for null
        missing = instance < 0 if column.null is None else (instance < 0) & ~column.null
        if missing.any():
            rows = np.flatnonzero(missing)
            first = np.full(len(self._instance_of), -1)
            first[ids[rows[::-1]]] = rows[::-1]  # the last write of an id stays: its first row
            rows = np.sort(first[first >= 0])
            keys, now = column.take(rows).to_list(strings), clock.at(order_key[rows]).tolist()
            for k, key, t in zip(ids[rows].tolist(), keys, now, strict=True):
                self._instance_of[k] = self.instances.number(to_text(column.type, key), t)
            instance = self._instance_of[ids]
        return instance if column.null is None else np.where(column.null, np.int32(-1), instance)

    def _in_ranges(self, env: Env, now: Array) -> tuple[Array | None, Array]:
        """The rows in some range, None for all as they are, and their instances (int32)."""
        hits = np.empty((len(self._ranges), len(now)), np.bool_)
        for k, (condition, _) in enumerate(self._ranges):
            result = condition(env)
            hits[k] = result.values if result.null is None else result.values & ~result.null
        n = np.count_nonzero(hits)
        index, place = np.empty(n + 1, np.int64), np.empty(n + 1, np.int32)
        once = _by_row(hits, index, place)
        hit_ranges = np.flatnonzero(hits.any(axis=1))
        first = hits[hit_ranges].argmax(axis=1)
        numbers = np.full(len(self._ranges), -1, np.int32)
        for k in np.argsort(first, kind="stable").tolist():
            numbers[hit_ranges[k]] = self.instances.number(self._ranges[hit_ranges[k]][1], int(now[first[k]]))
        return None if once else index[:-1], numbers[place[:-1]]

    def _to_all(self, rows: Rows) -> Rows:
        """Every chunk to every instance there is, in the map's order; before the first key there is none."""
        by_rank = self.instances.in_order()
        k = len(by_rank)
        if k == 0:
            return rows.take(np.empty(0, np.int64))
        parts = []
        for number, chunk in enumerate(rows.by_chunk()):
            for j, p in enumerate(by_rank):
                m = len(chunk)
                instance, at = np.full(m, p, np.int32), np.full(m, number * k + j, np.int64)
                parts.append(Rows(chunk.columns, chunk.ts, chunk.order_key, at, chunk.kind, instance))
        return concat_rows(parts)
