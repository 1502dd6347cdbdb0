"""Rows: events inside a node, as columns, with their order keys, types and partition instances.

Order. Siddhi pushes one event through everything it causes before it takes the next one. Every row therefore has a
`order_key`, an order key: the input step that caused it, and whether a timer or the step's own event did: `step <<
ORDER_KEY_BITS
| phase`, where the phase of a timer is the number of its scheduler and the phase of the event is `EVENT_PHASE`. Roots
never decrease within one `Rows`.

Chunks. The rows that a window, a batch send or a timer emits at once are one chunk and stay one downstream; `chunk`
numbers them, never decreasing within one `Rows`. Siddhi's `ComplexEventChunk`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...types import Type
from ..notation.kernels import kernel, struct
from .column_data import Array, Column, Mask, SelectionView, concat, take_columns, writable
from .k_way_merge import merge_order

ORDER_KEY_BITS = 16
EVENT_PHASE = (1 << ORDER_KEY_BITS) - 1

BEFORE_ALL = -(2**63)
"""A clock (ms) before all events, at which nothing expires."""

CURRENT, EXPIRED, TIMER, RESET = 0, 1, 2, 3
"""Kinds of row, Siddhi's `ComplexEvent.Type`."""

ENTER, LEAVE = 4, 5
"""Kinds of row that no query sees: the event enters or leaves the window's contents as a join sees them, at this place
among the others. Only windows that joins look into emit them.
"""


@struct
@dataclass(frozen=True, slots=True)
class FixedLagOps:
    """The operations of a full `length` window of `lag` events: each of `n` events from position `first` on is added
    (CURRENT), and just before it the event `lag` positions earlier is removed (EXPIRED). The first `free` events remove
    none."""

    first: int
    n: int
    free: int
    lag: int

    @property
    def ops(self) -> int:
        return 2 * self.n - self.free

    def laid_out(self) -> tuple[Array, Array]:
        """(event type, position) of each operation."""
        kind, pos = np.empty(self.ops, np.int8), np.empty(self.ops, np.int64)
        _lay_out(self.first, self.n, self.free, self.lag, kind, pos)
        return kind, pos


@kernel
def _lay_out(first: int, n: int, free: int, lag: int, kind: Array, pos: Array) -> None:
    for i in range(free):
        kind[i], pos[i] = CURRENT, first + i
    for i in range(free, n):
        k = np.uint64(2 * i - free)
        kind[k], pos[k] = EXPIRED, first + i - lag
        kind[k + np.uint64(1)], pos[k + np.uint64(1)] = CURRENT, first + i


@dataclass(slots=True)
class WindowOps:
    """The window's stream of add and remove operations, for the aggregates: event types `kind` (int8) over `columns`;
    `instance` is the partition instance of each event in `columns` (None outside partitions). With `ops_only`, the rows
    beside it are the CURRENT operations only, in order; else they are the operations. With `fixed_lag`, the operations
    are given by it, and `kind` and the positions of `columns` are empty.
    """

    columns: SelectionView
    kind: Array
    instance: Array | None
    ops_only: bool
    fixed_lag: FixedLagOps | None = None


@dataclass(slots=True)
class Rows:
    """`n` rows. `kind` None means that all are CURRENT; `instance` is the partition instance of each row, None outside.

    Shapes: every array has length n; `ts` int64 ms, `order_key` int64, `chunk` int64, `kind` int8, `instance` int32.
    `window_ops` is the window's stream of add and remove operations, set only on rows that come straight from a window.
    With `resets_per_chunk`, aggregates restart with each chunk, and all rows are CURRENT.
    """

    columns: Sequence[Column]
    ts: Array
    order_key: Array
    chunk: Array
    kind: Array | None = None
    instance: Array | None = None
    window_ops: WindowOps | None = None
    resets_per_chunk: bool = False

    def __len__(self) -> int:
        return len(self.ts)

    def take(self, index: Array) -> Rows:
        """The rows at `index` (increasing, so that order holds)."""
        return Rows(
            take_columns(self.columns, index),
            self.ts.take(index),
            *order_at(self.order_key, self.chunk, index),
            None if self.kind is None else self.kind[index],
            None if self.instance is None else self.instance[index],
        )

    def where(self, mask: Mask) -> Rows:
        """The rows for which `mask` is true; `self` if it is true for all."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def with_columns(self, columns: Sequence[Column]) -> Rows:
        return Rows(columns, self.ts, self.order_key, self.chunk, self.kind, self.instance)

    def pick(self, places: Sequence[int]) -> Rows:
        """The same rows with only the columns at `places`."""
        source, passing = self.columns, self.window_ops
        columns = source.pick(places) if isinstance(source, SelectionView) else [source[p] for p in places]
        if passing is not None:
            op_columns = columns if not passing.ops_only else passing.columns.pick(places)
            assert isinstance(op_columns, SelectionView)
            passing = WindowOps(op_columns, passing.kind, passing.instance, passing.ops_only, passing.fixed_lag)
        return Rows(
            columns, self.ts, self.order_key, self.chunk, self.kind, self.instance, passing, self.resets_per_chunk
        )

    def alike(self, other: Rows) -> bool:
        """True if both are equal bit by bit (so 0.0 and -0.0 differ, and a NaN equals itself)."""
        if len(self) != len(other) or not np.array_equal(self.order_key, other.order_key):
            return False
        for a, b in zip(self.columns, other.columns, strict=True):
            if a.type is Type.OBJECT:
                if not np.array_equal(a.values, b.values):
                    return False
            elif a.values.tobytes() != b.values.tobytes() or not np.array_equal(a.nulls(), b.nulls()):
                return False
        return True

    def kinds(self) -> Array:
        return np.zeros(len(self.ts), np.int8) if self.kind is None else self.kind

    def instances(self) -> Array:
        return np.zeros(len(self.ts), np.int32) if self.instance is None else self.instance

    def by_chunk(self) -> list[Rows]:
        """One Rows per chunk, in order."""
        if len(self.ts) == 0:
            return []
        cuts = np.flatnonzero(np.diff(self.chunk)) + 1
        if len(cuts) == 0:
            return [self]
        bounds = [0, *cuts.tolist(), len(self.ts)]
        return [self.slice(a, b) for a, b in itertools.pairwise(bounds)]

    def slice(self, a: int, b: int) -> Rows:
        """Rows a ≤ i < b, as views."""
        return Rows(
            [c.slice(a, b) for c in self.columns],
            self.ts[a:b],
            *order_at(self.order_key, self.chunk, slice(a, b)),
            None if self.kind is None else self.kind[a:b],
            None if self.instance is None else self.instance[a:b],
        )


def order_at(order_key: Array, chunk: Array, index: Array | slice) -> tuple[Array, Array]:
    """(order keys, chunks) of the rows at `index`; one shared array if `rows` shares one."""
    order_keys = order_key[index] if isinstance(index, slice) else order_key.take(index)
    return order_keys, order_keys if chunk is order_key else chunk[index]


def concat_rows(parts: Sequence[Rows]) -> Rows:
    """Concatenated rows; chunks are renumbered so that chunks of different parts stay distinct."""
    parts = [p for p in parts if len(p)] or list(parts[:1])
    if len(parts) == 1:
        return parts[0]
    chunks, base = [], 0
    for p in parts:
        low = int(p.chunk[0])
        chunks.append(p.chunk - low + base)
        base = int(chunks[-1][-1]) + 1
    return Rows(
        [concat(cs) for cs in zip(*(p.columns for p in parts), strict=True)],
        np.concatenate([p.ts for p in parts]),
        np.concatenate([p.order_key for p in parts]),
        np.concatenate(chunks),
        np.concatenate([p.kinds() for p in parts]) if any(p.kind is not None for p in parts) else None,
        np.concatenate([p.instances() for p in parts]) if any(p.instance is not None for p in parts) else None,
    )


def one_by_one(rows: Rows) -> Rows:
    """The same rows, each a chunk of its own."""
    return Rows(rows.columns, rows.ts, rows.order_key, np.arange(len(rows), dtype=np.int64), rows.kind, rows.instance)


def each_alone(rows: Rows, clock: Clock) -> Iterator[tuple[Rows, Clock]]:
    """The rows in pieces in which no two events have the same order key, each with its part of the clock."""
    cuts = np.flatnonzero(rows.order_key[1:] == rows.order_key[:-1]) + 1
    steps = (rows.order_key[cuts] >> ORDER_KEY_BITS) - clock.base + 1
    first, start = clock.first, 0
    for cut, step in zip(cuts.tolist(), steps.tolist(), strict=True):
        last = max(first, min(step, clock.last))
        yield rows.slice(start, cut), Clock(clock.base, clock.now, clock.may_fire, first, last)
        first, start = last, cut
    yield rows.slice(start, len(rows)), Clock(clock.base, clock.now, clock.may_fire, first, clock.last)


def in_order(parts: Sequence[tuple[int, Rows]]) -> Rows:
    """Merges the rows of several operators, each ordered by order key and given with its rank, by (order key, rank)."""
    runs = [r for _, r in sorted(parts, key=lambda part: part[0])]
    rows = concat_rows(runs)
    if len(parts) == 1:
        return rows
    rows = rows.take(merge_order([r.order_key for r in runs]))
    rows.chunk = chunk_numbers(rows.chunk)
    return rows


@kernel
def chunk_numbers(chunk: Array) -> Array:
    """Renumbers chunks as 0, 1, 2 ...; equal chunk ids must be adjacent."""
    out = np.empty(len(chunk), np.int64)
    n = -1
    for i in range(len(chunk)):
        n += i == 0 or chunk[i] != chunk[i - 1]
        out[i] = n
    return out


@kernel
def _order_keys(step: Array, base: int, order_key: Array) -> None:
    for i in range(len(step)):
        order_key[i] = ((step[i] + base) << ORDER_KEY_BITS) | EVENT_PHASE


def event_order(step: Array, base: int) -> tuple[Array, Array]:
    """(order keys, chunks) of input events at the steps `step` (int64, relative to `base`): one shared array, as
    events sent at once have one order key and are one chunk."""
    order_key = np.empty(len(step), np.int64)
    _order_keys(np.ascontiguousarray(step, np.int64), base, order_key)
    return order_key, order_key


@kernel
def _steps(order_key: Array, base: int, out: Array) -> None:
    for i in range(len(order_key)):
        out[i] = max((order_key[i] >> ORDER_KEY_BITS) - base, 0)


def steps_of(order_keys: Sequence[Array], base: int) -> Array:
    """The steps of rows with these order keys, concatenated, relative to `base`; earlier rows count as step 0."""
    out = np.empty(sum(map(len, order_keys)), np.int64)
    at = 0
    for order_key in order_keys:
        _steps(order_key, base, out[at : at + len(order_key)])
        at += len(order_key)
    return out


@kernel
def _write_clock_times(order_key: Array, base: int, now: Array, out: Array) -> None:
    for i in range(len(order_key)):
        out[i] = now[(order_key[i] >> ORDER_KEY_BITS) - base]


@kernel
def _ticks(times: Array, clock: int, now: Array, may_fire: Array) -> int:
    for i in range(len(times)):
        may_fire[i] = times[i] >= clock
        clock = max(clock, times[i])
        now[i] = clock
    return clock


@struct
@dataclass(slots=True)
class Clock:
    """The app's clock over the steps of one `step` call.

    `now[i]` is the clock (ms) after step `base + i`: the highest timestamp so far. `may_fire[i]`: the step may fire
    timers: Siddhi's `setCurrentTimestamp` does so when the step's time is not older than the clock. An operator run may
    fire timers at the steps `first` ≤ i < `last` (empty while an event is being pushed).
    """

    base: int
    now: Array
    may_fire: Array
    first: int
    last: int

    def at(self, order_key: Array) -> Array:
        """The clock (ms) for rows with these order keys."""
        out = np.empty(len(order_key), np.int64)
        _write_clock_times(order_key, self.base, self.now, out)
        return out

    @property
    def until(self) -> int:
        """The time (ms) up to which timers may fire; before all times if none may."""
        return int(self.now[self.last - 1]) if self.last > 0 else BEFORE_ALL

    @staticmethod
    def over(times: Array, now: int, base: int) -> tuple[Clock, int]:
        """The clock over steps that move it to `times` (int64 ms), and its time after them; `now` before."""
        times = writable(np.ascontiguousarray(times, np.int64))
        if len(times) and times[0] >= now and not np.any(times[1:] < times[:-1]):
            return Clock(base, times, np.ones(len(times), np.bool_), 0, len(times)), int(times[-1])
        clock = Clock(base, np.empty(len(times), np.int64), np.empty(len(times), np.bool_), 0, len(times))
        return clock, int(_ticks(times, now, clock.now, clock.may_fire))

    def part(self, a: int, b: int) -> Clock:
        """The clock over the steps a ≤ i < b only."""
        return Clock(self.base + a, self.now[a:b], self.may_fire[a:b], 0, b - a)
