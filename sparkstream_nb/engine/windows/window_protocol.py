"""The protocol of a window: configuration, a compiled loop over positions, and state that is plain data."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ...plan.nodes import Const, Expr, Ref
from ...types import Type
from ..columnar.arrays import grown
from ..columnar.column_data import Array, Column, Mask, StringPool
from ..columnar.eventlog import EventLog
from ..columnar.rows import CURRENT, ENTER, EXPIRED, RESET, Clock, Rows, WindowOps
from ..expressions import Context
from ..notation.kernels import inlined, struct
from .chain import ChainedLog


@dataclass(frozen=True)
class WindowSetup:
    """The arguments for creating a window.

    `args` are the window's arguments, `types` the types of the columns it holds. `scheduler` is the number of its timer
    phase. `wants_expired` is Siddhi's `outputExpectsExpiredEvents`: the query emits expired events; `findable` tells
    that a join looks into the window. `condition` is the condition in an `expression` window's constant text, `names`
    the attributes of the columns, `selected_columns` the columns that the query selects as they are, in order (None for
    computed ones). `is_partitioned`: there are several instances. With `ops_only`, the query wants the CURRENT rows
    alone, and a window may emit its input instead, with its operations beside it (`rows.WindowOps`). With
    `resets_per_chunk` it wants the CURRENT rows alone, and each chunk begins with a RESET, which is not emitted
    (`Rows.resets_per_chunk`). `refuse` takes rows that raise an error (mask over them, why): they do not enter the
    window. References among `args` and in `condition` name column positions.
    """

    args: tuple[Expr, ...]
    types: tuple[Type, ...]
    scheduler: int
    wants_expired: bool
    findable: bool = False
    condition: Expr | None = None
    names: tuple[str, ...] = ()
    selected_columns: tuple[int | None, ...] = ()
    strings: StringPool = field(default_factory=StringPool)
    context: Context = field(default_factory=Context)
    is_partitioned: bool = False
    ops_only: bool = False
    resets_per_chunk: bool = False
    refuse: Callable[[Rows, Mask, str], None] = lambda rows, mask, why: None

    def constant(self, i: int, default: Any = None) -> Any:
        """The value of constant argument `i`; `default` if there are fewer."""
        if i >= len(self.args):
            return default
        arg = self.args[i]
        assert isinstance(arg, Const), "the binder lets only constants through here"
        return arg.value

    def column(self, i: int) -> int:
        """The position of the column that argument `i` names."""
        arg = self.args[i]
        assert isinstance(arg, Ref), "the binder lets only attributes through here"
        return arg.attr

    def without_nulls(self, rows: Rows, columns: Sequence[int], why: str) -> Rows:
        """The rows that have a value in all of `columns`; the others are refused (Siddhi's executors cast null)."""
        null = np.zeros(len(rows), np.bool_)
        for i in columns:
            mask = rows.columns[i].null
            if mask is not None:
                null |= mask
        if not null.any():
            return rows
        self.refuse(rows, null, why)
        return rows.where(~null)


class Window(Protocol):
    """One window of one query (or one named window).

    Its contents for a join: a CURRENT row enters, an EXPIRED or LEAVE row leaves. Properties that depend on the
    window's arguments or setup are its own; the rest is declared (`plan.signatures.windows`).
    """

    @property
    def stamps(self) -> int | None:
        """The kind of rows that Siddhi stamps with the time of a batch, but only from where a join's last look ended;
        None if it does not continue from there.
        """
        ...

    @property
    def moves(self) -> bool:
        """True if for joins only ENTER and LEAVE rows count. It emits such rows only when it is made `findable`."""
        ...

    @property
    def is_ordered(self) -> bool:
        """True if it emits, when it is made `findable`, a LONG column before the last: the contents for a join are
        sorted by this column's values in the ENTER rows.
        """
        ...

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        """Process CURRENT rows, fire due timers, and emit rows of all kinds in Siddhi's order.

        `instances` is the number of partition instances so far, `hashes` the hashes of their keys (`Instances.hashes`;
        None outside partitions).
        """
        ...

    def next_due(self) -> int | None:
        """The earliest time (ms) at which the clock alone can bring out a row; None if no time does. It may be too
        early, and in the past where instances wait for the next movement of the clock, but is never too late."""
        ...

    def forget(self, instances: Array) -> None:
        """Drops all that is held for these partition instances, whose numbers may be given to new ones. Never called
        outside partitions."""
        ...

    def state(self) -> dict[str, Any]: ...

    def load(self, state: dict[str, Any]) -> None: ...

    @property
    def bytes(self) -> int:
        """Bytes held."""
        ...


def rows_held(window: Window) -> int | None:
    """Number of events in a window; None for one without a log."""
    log = getattr(window, "log", None)
    if isinstance(log, ChainedLog):
        return log.held
    if not isinstance(log, EventLog):
        return None
    left = max(0, log.bytes - window.bytes) // max(1, log.row_bytes)
    return log.end - left


class Untimed:
    """A window that only events move on."""

    def next_due(self) -> int | None:
        """None: there are no timers."""
        return None


class OutsidePartitions:
    """A window that is made only outside partitions."""

    def forget(self, instances: Array) -> None:
        raise AssertionError("there are no partition instances")


def for_joins(rows: Rows, window: Window) -> Rows:
    """Output of a window, for a reader that follows the contents by the serial numbers (the last column): if only ENTER
    and LEAVE rows count, the others have -2 - number.
    """
    if not window.moves or rows.kind is None:
        return rows
    serial = rows.columns[-1]
    serials = np.where(rows.kind > RESET, serial.values, -2 - serial.values)
    return rows.with_columns([*rows.columns[:-1], Column(serial.type, serials)])


def with_ranks(rows: Rows, ranks: Array) -> Rows:
    """Output of an `is_ordered` window, with the ranks of the ENTER rows."""
    return rows.with_columns([*rows.columns[:-1], Column(Type.LONG, ranks), rows.columns[-1]])


def entering_rows(rows: Rows) -> Array:
    """Indices of the rows of `for_joins` whose events enter the window's contents."""
    kind, serial = rows.kind, rows.columns[-1].values
    if kind is None:
        return np.flatnonzero(serial >= 0)
    return np.flatnonzero((kind == ENTER) | ((kind == CURRENT) & (serial >= 0)))


WindowFactory = Callable[[WindowSetup], Window]


ROW, COUNT, CHUNKS, INSTANCE = range(4)
"""Places in `Feed.stop`: row, numbers of rows and chunks put out, and the instance whose timer had fired (-1: none)."""


@struct
class Feed:
    """The rows of a run, of which the first is at position `first` of the window's log. `stop`: where the loop
    continues after it ran out of room (`ROW`, ...)."""

    def __init__(self, rows: Rows, first: int) -> None:
        self.first, self.count, self.order_key, self.chunk = first, len(rows), rows.order_key, rows.chunk
        self.stop = np.array([0, 0, 0, -1], np.int64)


_LARGE = 1 << 17
"""Rows from which on buffers that stay almost empty are used again: the system clears fresh ones, which takes longer
than to fill them."""
_spare: list[tuple[Array, ...]] = []


@struct
class Emission:
    """Output buffers of a compiled loop: position in the log, kind, time, order key and chunk of each row; `apart`:
    position and kind alone. Not usable after its rows were taken.

    In a loop, `count` is the number of rows so far, and `chunks` the number of chunks, of which the last one is at
    hand.
    """

    def __init__(self, capacity: int, apart: bool = False) -> None:
        self.count, self.chunks = 0, 0
        if capacity >= _LARGE and not apart:
            with contextlib.suppress(IndexError):  # another thread may be quicker
                spare = _spare.pop()
                if len(spare[0]) >= capacity:
                    self.pos, self.kind, self.ts, self.order_key, self.chunk = spare
                    return
        self.pos = np.empty(capacity, np.int64)
        self.kind = np.empty(capacity, np.int8)
        self.ts, self.order_key, self.chunk = (np.empty(0 if apart else capacity, np.int64) for _ in range(3))

    @inlined
    def emit(self, pos: int, kind: int, time: int, order_key: int) -> None:
        """Puts a row out, in the chunk at hand."""
        self.pos[self.count] = pos
        self.kind[self.count] = kind
        self.ts[self.count] = time
        self.order_key[self.count] = order_key
        self.chunk[self.count] = self.chunks
        self.count += 1

    @inlined
    def put(self, pos: int, kind: int, time: int, order_key: int) -> None:
        """`emit`, also where position and kind alone are wanted."""
        self.pos[self.count] = pos
        self.kind[self.count] = kind
        if len(self.ts) > 0:
            self.ts[self.count] = time
            self.order_key[self.count] = order_key
            self.chunk[self.count] = self.chunks
        self.count += 1

    @inlined
    def expire(self, log: ChainedLog, chain: int, instance: int, now: int, order_key: int) -> None:
        """Puts all events of a chain out as expired; they leave the log."""
        while log.head[chain][instance] >= 0:
            oldest = log.pop(chain, instance)
            log.alive[oldest] = False
            self.emit(oldest, EXPIRED, now, order_key)

    @inlined
    def write(self, n: Any, pos: Any, kind: int, time: Any, order_key: Any) -> None:
        """Puts a row out as the n-th, for loops that count by unsigned numbers, which are never looked at for less than
        zero."""
        self.pos[n] = pos
        self.kind[n] = kind
        self.ts[n] = time
        self.order_key[n] = order_key
        self.chunk[n] = self.chunks

    @inlined
    def put_op(self, pos: int, kind: int) -> None:
        """Puts position and kind out, which are all that is wanted."""
        self.pos[self.count] = pos
        self.kind[self.count] = kind
        self.count += 1

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array, Array]:
        return self.pos, self.kind, self.ts, self.order_key, self.chunk

    def room(self, n: int) -> None:
        """Make room for `n` rows in all, keeping the present ones."""
        self.pos, self.kind, self.ts, self.order_key, self.chunk = (grown(a, n) for a in self.arrays)

    def _taken(self, n: int) -> tuple[Array, Array, Array, Array, Array]:
        """The first `n` of each array."""
        pos, kind, ts, order_key, chunk = (a[:n] for a in self.arrays)
        capacity = len(self.ts)
        if capacity < _LARGE or 8 * n > capacity:
            return pos, kind, ts, order_key, chunk
        if not _spare:
            _spare.append(self.arrays)
        return pos.copy(), kind.copy(), ts.copy(), order_key.copy(), chunk.copy()

    def rows(self, n: int, log: EventLog, is_partitioned: bool, resets_per_chunk: bool = False) -> Rows:
        """The first `n` as rows; the flag is `resets_per_chunk` of `WindowSetup`."""
        pos, kind, ts, order_key, chunk = self._taken(n)
        columns = log.at(pos)
        all_instances, instance = (log.instance, log.instance[pos]) if is_partitioned else (None, None)
        if resets_per_chunk:
            return Rows(columns, ts, order_key, chunk, None, instance, None, True)
        return Rows(columns, ts, order_key, chunk, kind, instance, WindowOps(columns, kind, all_instances, False))

    def beside(self, n: int, log: EventLog, rows: Rows) -> Rows:
        """The rows that came in, which are the CURRENT ones of the first `n`, and all `n` beside them."""
        instance = None if rows.instance is None else log.instance
        passing = WindowOps(log.at(self.pos[:n]), self.kind[:n], instance, True)
        return Rows(rows.columns, rows.ts, rows.order_key, rows.chunk, None, rows.instance, passing)


def no_rows(types: Sequence[Type]) -> Rows:
    """Rows with these columns and no row."""
    none = np.empty(0, np.int64)
    return Rows([Column.empty(t) for t in types], none, none, none)
