"""The interface of aggregators, their input, and base classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...types import Type
from ..columnar.arrays import grown
from ..columnar.column_data import Array, Column, Mask
from ..columnar.rows import EXPIRED, RESET, FixedLagOps
from ..notation.intrinsics import AHEAD, FAR, prefetch
from ..notation.kernels import inlined, kernel

NO_MASK = np.zeros(0, np.bool_)
NO_KIND = np.zeros(0, np.int8)
NO_PLACE = np.zeros(0, np.int64)
NO_INSTANCE = np.zeros(0, np.int32)
ONE_GROUP = np.zeros(0, np.int32)

EVERY = 0xFF
"""All kinds of row, as a bit mask."""


@dataclass(slots=True)
class AggregateInput:
    """The input of aggregators: `n` operations (ops) in order, each on an event.

    `kind` int8[n], None: all CURRENT. `pos` int64[n] is the event of each op, an index into the arguments, `group` and
    `instance`; None: op i is on event i. `group` are ids (int32) below `groups`, empty: there is one group.
    `instance` are partition instances below `instances`, None outside: a RESET op clears the groups of its instance.

    The value after an op is output if the op's type is in the bit mask `shown`. `slot` (int64) is the output row of
    each such op; None: consecutive rows. The last value of an output row wins. `size` is the number of output rows.

    `fixed_lag`: defines the ops instead of `kind` and `pos`, until `lay_out` computes these; CURRENT ops are shown.
    """

    n: int
    kind: Array | None
    group: Array
    groups: int
    instance: Array | None
    instances: int
    pos: Array | None = None
    shown: int = EVERY
    slot: Array | None = None
    size: int = -1
    fixed_lag: FixedLagOps | None = None

    def lay_out(self) -> None:
        """Computes `kind` and `pos` from `fixed_lag`, for loops that do not support it."""
        if self.fixed_lag is not None:
            self.kind, self.pos = self.fixed_lag.laid_out()
            self.fixed_lag = None

    @staticmethod
    def of(kind: Array | None, group: Array, groups: int, instance: Array | None = None) -> AggregateInput:
        """A feed with one op and one output row per row."""
        instances = int(instance.max()) + 1 if instance is not None and len(instance) else 1
        return AggregateInput(len(group), kind, group, groups, instance, instances, None, EVERY, None, len(group))

    @property
    def comes_and_goes(self) -> bool:
        """True if all ops are CURRENT or EXPIRED."""
        return self.kind is None or len(self.kind) == 0 or int(self.kind.max()) <= EXPIRED

    def ahead(self, words: int) -> int:
        """The prefetch distance in ops for group states of `words` words each; 0 if they fit the cache."""
        return AHEAD if self.groups * words >= FAR or self.reach else 0

    @property
    def reach(self) -> int:
        """The prefetch distance in ops for events; 0 if they are few, or in the order of the ops."""
        return 2 * AHEAD if self.instances > 1 << 8 and len(self.group) > 1 << 16 else 0

    @property
    def shown_ops(self) -> Array:
        """int64[size]: the op whose value each output row gets."""
        shown = np.arange(self.n)
        if self.kind is not None:
            shown = np.flatnonzero((self.shown >> self.kind.astype(np.int64)) & 1)
        if self.slot is None:
            return shown
        last = np.empty(self.size, np.int64)
        last[self.slot] = shown
        return last

    @property
    def arrays(self) -> tuple[Any, ...]:
        """(n, kind, pos, group, instance, slot, shown), as the compiled loops take them: empty for None."""
        return (
            self.n,
            NO_KIND if self.kind is None else self.kind,
            NO_PLACE if self.pos is None else self.pos,
            self.group,
            NO_INSTANCE if self.instance is None else self.instance,
            NO_PLACE if self.slot is None else self.slot,
            self.shown,
        )


class Loops:
    """A loop over a feed, compiled from one source in three versions: `general`, and two specialized ones that take a
    third of the time. `far` (`plain=True`) requires no nulls, no slots, and no RESET or TIMER ops now or before; `near`
    also does no prefetching. `fixed`: see `kernel`.
    """

    def __init__(self, source: Callable[..., Any], **fixed: bool | int) -> None:
        self.near = kernel(source, plain=True, ahead=0, reach=0, **fixed)
        self.far = kernel(source, plain=True, **fixed)
        self.general = kernel(source, plain=False, **fixed)


@inlined
def ask(
    soon: Any, later: Any, reach: int, by_pos: bool, pos: Array, group: Array, values: Array, cells: Array, shift: int
) -> None:
    """Prefetches the group of op `soon` and, if `reach` > 0, the event of op `later`. `by_pos`: whether there is a
    `pos`."""
    if reach > 0 and by_pos:
        event = pos[later]
        prefetch(group, event)
        prefetch(values, event)
    prefetch(cells, np.uint64(group[np.uint64(pos[soon]) if by_pos else soon]) << np.uint64(shift))


@inlined
def look_ahead(
    j: int, ahead: int, reach: int, n: int, pos: Array, group: Array, values: Array, cells: Array, shift: int
) -> None:
    """Prefetches the event of the op `reach` ops ahead, and the group of the op `ahead` ops ahead."""
    if ahead > 0:
        ask(np.uint64(min(j + ahead, n - 1)), min(j + reach, n - 1), reach, len(pos) > 0, pos, group, values, cells,
            shift)  # fmt: skip


@inlined
def reset(k: Any, p: Any, now: Array) -> None:
    """A RESET increments the epoch of its instance `p` (see `Grouped`)."""
    if k == RESET:
        now[p] += 1


@inlined
def begins(g: Any, p: Any, now: Array, epoch: Array) -> Any:
    """True if this is the first op of group `g` in the current epoch of its instance `p`; updates the group's epoch."""
    anew = len(epoch) > 0 and epoch[g] != now[p]
    if anew:
        epoch[g] = now[p]
    return anew


@inlined
def put_nothing(m: Any, slot: Array, out: Array, out_null: Array) -> Any:
    """Outputs null as value number `m`; returns `m + 1`."""
    o = slot[m] if len(slot) else m
    out[o] = 0
    out_null[o] = True
    return m + 1


def by_op(args: tuple[Column, ...], feed: AggregateInput) -> tuple[tuple[Column, ...], Array, Array | None]:
    """(arguments, group, partition instance) of each op; None for the latter outside of partitions."""
    group = feed.group if len(feed.group) else np.zeros(len(args[0]) if args else feed.n, np.int32)
    if feed.pos is None:
        return args, group, feed.instance
    instance = None if feed.instance is None else feed.instance[feed.pos]
    return tuple(a.take(feed.pos) for a in args), group[feed.pos], instance


class Aggregator(Protocol):
    """One aggregator of one query."""

    def over(self, args: tuple[Column, ...], feed: AggregateInput) -> Column:
        """The `feed.size` output values. `args` are over the events of `feed`."""
        ...

    def run(
        self, args: tuple[Column, ...], kind: Array | None, group: Array, groups: int, instance: Array | None = None
    ) -> Column:
        """Values after each row. `kind` int8[n] or None (all CURRENT), `group` int32[n] ids below `groups`.

        `instance` is the partition instance of each row (None outside): a RESET row clears the groups of its instance.
        """
        ...

    pushes: bool
    """True if `over` supports a feed with `fixed_lag`."""

    def fold(self, args: tuple[Column, ...], group: Array, groups: int) -> Column:
        """The final value of each of the `groups`, as `over` of a new aggregator gives for CURRENT events of the groups
        `group`, numbered by first occurrence. The aggregator's state afterwards is undefined."""
        ...

    def find_refused(self, args: tuple[Column, ...]) -> tuple[Mask, str] | None:
        """The rows whose arguments raise an error, and the reason; None if there are none. They must not be passed to
        `run`."""
        ...

    def forget(self, groups: Array, instances: Array) -> None:
        """Reset these `groups`, which are all the groups of the partition instances `instances`."""
        ...

    def state(self) -> dict[str, Any]:
        """Plain data that `load` takes back."""
        ...

    def load(self, state: dict[str, Any]) -> None: ...


class Base:
    """Base class. The constructor takes the types of the arguments, and whether rows of the query expire one by one (or
    expired rows are output). A subclass defines `run` or `over`; the other one is derived from it."""

    pushes = False

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        raise NotImplementedError

    def run(
        self, args: tuple[Column, ...], kind: Array | None, group: Array, groups: int, instance: Array | None = None
    ) -> Column:
        return self.over(args, AggregateInput.of(kind, group, groups, instance))

    def over(self, args: tuple[Column, ...], feed: AggregateInput) -> Column:
        args, group, instance = by_op(args, feed)
        out, shown = self.run(args, feed.kind, group, feed.groups, instance), feed.shown_ops
        return out if len(shown) == feed.n else out.take(shown)

    def fold(self, args: tuple[Column, ...], group: Array, groups: int) -> Column:
        n = len(group)
        return self.over(args, AggregateInput(n, None, group, groups, None, 1, None, EVERY, group, groups))

    def find_refused(self, args: tuple[Column, ...]) -> tuple[Mask, str] | None:
        return None


class Grouped(Base):
    """An aggregator with arrays of state by group id. A RESET increments the epoch of its partition instance (`eras`).
    A group whose own epoch (`epoch`) is older starts empty."""

    words = 4
    """Approximate size of a group's state in words."""

    def _begin(self) -> None:
        self.eras, self.epoch = np.zeros(1, np.int64), np.zeros(0, np.int64)

    def _ops(self, feed: AggregateInput) -> tuple[Any, ...]:
        """(*feed.arrays, eras, epoch, ahead, reach). Until the first RESET, `instance`
        and `epoch` are empty, and loops skip them. `ahead` and `reach`: see `AggregateInput`."""
        arrays = feed.arrays
        if len(self.epoch) == 0 and (feed.comes_and_goes or not np.any(feed.kind == RESET)):
            return (*arrays[:4], NO_INSTANCE, *arrays[5:], self.eras, self.epoch, feed.ahead(self.words), feed.reach)
        self.eras, self.epoch = grown(self.eras, feed.instances), grown(self.epoch, feed.groups)
        return (*arrays, self.eras, self.epoch, feed.ahead(self.words), feed.reach)

    def _through(
        self, loops: Loops, feed: AggregateInput, null: Mask | None, before: tuple[Any, ...], after: tuple[Any, ...]
    ) -> Any:
        """Calls one of `loops` with (*before, *ops, *after); `null` is the mask of the arguments."""
        *ops, ahead, reach = self._ops(feed)
        if null is not None or feed.slot is not None or len(self.epoch) or not feed.comes_and_goes:
            return loops.general(*before, *ops, ahead, reach, *after)
        return loops.far(*before, *ops, ahead, reach, *after) if ahead else loops.near(*before, *ops, *after)


def shown_column(type: Type, out: Array, null: Mask | None = None) -> Column:
    """The output column of a loop, whose arrays have one extra element at the end."""
    if null is not None:
        null = null[:-1]
    return Column(type, out[:-1], null if null is not None and null.any() else None)


def as_numbers(values: Array, dtype: Any) -> Array:
    """`values` in this type. They may include uninitialized room of a log, for which
    numpy would print warnings."""
    with np.errstate(invalid="ignore"):
        numbers: Array = values.astype(dtype, copy=False)
    return numbers


def null_rows(column: Column, why: str) -> tuple[Mask, str] | None:
    """Rows with a null argument, for aggregators that fail on null in Siddhi."""
    if column.null is None or not column.null.any():
        return None
    return column.null, why
