"""The interface of aggregators, their input, and base classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np

from ...types import Type
from ..columnar.arrays import grown
from ..columnar.column_data import DTYPES, Array, Column, Mask
from ..columnar.rows import EXPIRED, RESET, FixedLagOps
from ..notation.inlining import is_inlined
from ..notation.intrinsics import AHEAD, FAR, prefetch
from ..notation.kernels import inlined, kernel, struct
from ..state.declared import DeclaredState
from ..state.saving import Form

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

    The value after an op is output if the op's type is in the bit mask `shown_kinds`. `slot` (int64) is the output row
    of each such op; None: consecutive rows. The last value of an output row wins. `size` is the number of output rows.

    `fixed_lag`: defines the ops instead of `kind` and `pos`, until `lay_out` computes these; CURRENT ops are shown.
    """

    n: int
    kind: Array | None
    group: Array
    groups: int
    instance: Array | None
    instances: int
    pos: Array | None = None
    shown_kinds: int = EVERY
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

    def group_distance(self, words: int) -> int:
        """The prefetch distance in ops for group states of `words` words each; 0 if they fit the cache."""
        return AHEAD if self.groups * words >= FAR or self.event_distance else 0

    @property
    def event_distance(self) -> int:
        """The prefetch distance in ops for events; 0 if they are few, or in the order of the ops."""
        return 2 * AHEAD if self.instances > 1 << 8 and len(self.group) > 1 << 16 else 0

    @property
    def shown_ops(self) -> Array:
        """int64[size]: the op whose value each output row gets."""
        ops = np.arange(self.n)
        if self.kind is not None:
            ops = np.flatnonzero((self.shown_kinds >> self.kind.astype(np.int64)) & 1)
        if self.slot is None:
            return ops
        last = np.empty(self.size, np.int64)
        last[self.slot] = ops
        return last


@struct
@dataclass(slots=True)
class Ops:
    """The ops of an `AggregateInput` as the compiled loops take them: arrays are empty for None. `eras` and `epoch`:
    see `Grouped`; `group_distance` and `event_distance`: see `AggregateInput`.
    """

    n: int
    kind: Array
    pos: Array
    group: Array
    instance: Array
    slot: Array
    shown_kinds: int
    eras: Array
    epoch: Array
    group_distance: int
    event_distance: int

    @inlined
    def ask(self, soon: Any, later: Any, by_pos: bool, values: Array, cells: Array, shift: int) -> None:
        """Prefetches the group of op `soon` and, with `event_distance`, the event of op `later`. `by_pos`: whether
        there is a `pos`."""
        if self.event_distance > 0 and by_pos:
            event = self.pos[later]
            prefetch(self.group, event)
            prefetch(values, event)
        prefetch(cells, np.uint64(self.group[np.uint64(self.pos[soon]) if by_pos else soon]) << np.uint64(shift))

    @inlined
    def look_ahead(self, j: int, values: Array, cells: Array, shift: int) -> None:
        """Prefetches the event of the op `event_distance` ops ahead, and the group of the op `group_distance` ops
        ahead."""
        if self.group_distance > 0:
            soon, later = np.uint64(min(j + self.group_distance, self.n - 1)), min(j + self.event_distance, self.n - 1)
            self.ask(soon, later, len(self.pos) > 0, values, cells, shift)

    @inlined
    def reset(self, k: Any, p: Any) -> None:
        """A RESET increments the epoch of its instance `p`."""
        if k == RESET:
            self.eras[p] += 1

    @inlined
    def begins(self, g: Any, p: Any) -> Any:
        """True if this is the first op of group `g` in the current epoch of its instance `p`; updates the group's
        epoch."""
        is_first = len(self.epoch) > 0 and self.epoch[g] != self.eras[p]
        if is_first:
            self.epoch[g] = self.eras[p]
        return is_first


@struct
class Outputs:
    """The output values of a loop, `count` so far, and which of them are null. They have room for one more: a value
    that is not shown lies where the next one comes. `holes[0]`: whether one that is shown is null."""

    def __init__(self, size: int, dtype: Any) -> None:
        self.values, self.null = np.empty(size + 1, dtype), np.empty(size + 1, np.bool_)
        self.holes = np.zeros(1, np.bool_)
        self.count = 0

    @inlined
    def put_null(self, ops: Ops) -> None:
        """Puts null out."""
        o = ops.slot[self.count] if len(ops.slot) else self.count
        self.values[o] = 0
        self.null[o] = True
        self.holes[0] = True
        self.count += 1

    @inlined
    def put(self, ops: Ops, plain: bool, value: Any, is_null: Any, shows: Any) -> None:
        """Puts a value out, or null, if the op shows. `plain`: there is no `ops.slot`."""
        if plain or len(ops.slot) == 0:
            self.values[self.count] = value
            self.null[self.count] = is_null
            self.count += shows
        elif shows:
            self.values[ops.slot[self.count]] = value
            self.null[ops.slot[self.count]] = is_null
            self.count += 1

    @inlined
    def write(self, o: Any, value: Any) -> None:
        """The value number `o`."""
        self.values[o] = value
        self.null[o] = False

    @inlined
    def write_null(self, o: Any) -> None:
        """The value number `o` is null."""
        self.values[o] = 0
        self.null[o] = True
        self.holes[0] = True

    def column(self, type: Type) -> Column:
        """All of them."""
        values = self.values[:-1].astype(DTYPES[type], copy=False)
        return Column(type, values, self.null[:-1] if self.holes[0] and self.null[:-1].any() else None)


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
        out, shown_ops = self.run(args, feed.kind, group, feed.groups, instance), feed.shown_ops
        return out if len(shown_ops) == feed.n else out.take(shown_ops)

    def fold(self, args: tuple[Column, ...], group: Array, groups: int) -> Column:
        n = len(group)
        return self.over(args, AggregateInput(n, None, group, groups, None, 1, None, EVERY, group, groups))

    def find_refused(self, args: tuple[Column, ...]) -> tuple[Mask, str] | None:
        return None


@struct
class Grouped(DeclaredState, Base):
    """An aggregator with arrays of state by group id. A RESET increments the epoch of its partition instance (`eras`).
    A group whose own epoch (`epoch`) is older starts empty.

    A subclass declares its arrays (`state/declared.py`), says which `type` its value has and in which `dtype` it is
    computed, and has `clear`, `take` and `show`, from which its loop is made (`_one_by_one`).
    """

    type: Type
    dtype: Any

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        self._begin()

    words = 4
    """Approximate size of a group's state in words."""
    constants: tuple[str, ...] = ()
    """Fields that are constants in the loops, which are compiled for each of their values."""
    has_all_versions = False
    """True if its loop is compiled in all versions (`GENERAL`, ...)."""

    def _begin(self) -> None:
        """Begins with no groups."""
        self._create()
        self.eras, self.epoch = np.zeros(1, np.int64), np.zeros(0, np.int64)

    def ops(self, feed: AggregateInput) -> Ops:
        """The ops of a feed. Until the first RESET, `instance` and `epoch` are empty, and loops skip them."""
        instance = feed.instance
        if len(self.epoch) == 0 and (feed.comes_and_goes or not np.any(feed.kind == RESET)):
            instance = None
        else:
            self.eras, self.epoch = grown(self.eras, feed.instances), grown(self.epoch, feed.groups)
        return Ops(
            feed.n,
            NO_KIND if feed.kind is None else feed.kind,
            NO_PLACE if feed.pos is None else feed.pos,
            feed.group,
            NO_INSTANCE if instance is None else instance,
            NO_PLACE if feed.slot is None else feed.slot,
            feed.shown_kinds, self.eras, self.epoch, feed.group_distance(self.words), feed.event_distance,
        )  # fmt: skip

    @inlined
    def look_ahead(self, j: int, values: Array, ops: Ops) -> None:
        """Asks for what later ops need."""

    @inlined
    def clear(self, g: Any) -> None:
        """The group is empty."""

    @inlined
    def take(self, g: Any, value: Any, kind: Any) -> None:
        """A value enters a group, or (EXPIRED) leaves it."""

    @inlined
    def show(self, g: Any, o: Any, outputs: Outputs) -> None:
        """Writes the value of a group, as number `o`."""

    @inlined
    def show_reset(self, ops: Ops, outputs: Outputs) -> None:
        """Puts out what a RESET shows."""
        outputs.put_null(ops)

    def over(self, args: tuple[Column, ...], feed: AggregateInput) -> Column:
        self._widen(feed.groups)
        outputs = Outputs(feed.size, self.dtype)
        self._run_loop(args[0], as_numbers(args[0].values, self.dtype), feed, outputs)
        return outputs.column(self.type)

    def forget(self, groups: Array, instances: Array) -> None:
        self._drop(groups)

    def _state(self, form: Form) -> dict[str, Any]:
        return {**super()._state(form), "epoch": self.epoch, "era": self.eras}

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        self.epoch, self.eras = state["epoch"].copy(), state["era"].copy()

    def _run_loop(self, column: Column, values: Array, feed: AggregateInput, outputs: Outputs) -> None:
        """Takes all ops, on these values of the argument `column`."""
        ops, null = self.ops(feed), NO_MASK if column.null is None else column.null
        self._version(_one_by_one, ops, feed, column.null)(self, values, null, ops, outputs)

    def _version(
        self, source: Callable[..., int], ops: Ops, feed: AggregateInput, null: Mask | None
    ) -> Callable[..., int]:
        """The version of a loop over ops for this feed, whose arguments have the mask `null`."""
        plain = (
            self.has_all_versions and null is None and feed.slot is None and not len(self.epoch) and feed.comes_and_goes
        )
        way = GENERAL if not plain else FAR_APART if ops.group_distance else NEARBY
        cls: Any = type(self)
        return _loop(source, cls, way, *(getattr(self, name) for name in self.constants))


GENERAL, FAR_APART, NEARBY = range(3)
"""The versions of a loop. The latter two take a third of the time: they are for feeds without nulls and slots, and
without RESET and TIMER ops, now or before (`plain`); the last one also asks for nothing ahead."""


def _one_by_one(aggregator: Grouped, values: Array, null: Array, ops: Ops, outputs: Outputs, plain: bool) -> int:
    """Takes one op after the other, and puts out what is shown; returns how many values are out then."""
    for j in range(ops.n):
        aggregator.look_ahead(j, values, ops)
        i = np.uint64(ops.pos[j]) if len(ops.pos) else np.uint64(j)
        k: Any = np.int64(ops.kind[j]) if len(ops.kind) else 0
        shows = (ops.shown_kinds >> k) & 1
        g = np.uint64(ops.group[i]) if len(ops.group) else np.uint64(0)
        if not plain:
            p = np.uint64(ops.instance[i]) if len(ops.instance) else np.uint64(0)
            if k > EXPIRED:
                ops.reset(k, p)
                if shows:
                    aggregator.show_reset(ops, outputs)
                continue
            is_first = ops.begins(g, p)
            if is_first:
                aggregator.clear(g)
        if plain or not (len(null) and null[i]):
            aggregator.take(g, values[i], k)
        if plain or len(ops.slot) == 0:
            aggregator.show(g, outputs.count, outputs)
            outputs.count += shows
        elif shows:
            aggregator.show(g, ops.slot[outputs.count], outputs)
            outputs.count += 1
    return outputs.count


@cache
def _loop(source: Callable[..., int], cls: Any, way: int, *constants: Any) -> Callable[..., int]:
    """A version of a loop for the aggregators of a class with these constants; a class that is only another one with
    other constants has its loops."""
    owner = next(c for c in cls.__mro__ if any(map(is_inlined, vars(c).values())))
    constant_fields = {f"aggregator.{name}": value for name, value in zip(cls.constants, constants, strict=True)}
    if way == NEARBY:
        constant_fields |= {"ops.group_distance": 0, "ops.event_distance": 0}
    return kernel(source, {"aggregator": owner}, plain=way != GENERAL, **constant_fields)


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
