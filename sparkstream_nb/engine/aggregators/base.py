"""What an aggregator is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...types import Type
from ..arrays import grown
from ..columns import Array, Column, Mask
from ..jit import AHEAD, FAR, inlined, kernel, prefetch
from ..rows import EXPIRED, RESET, TIMER, Pushed

NO_MASK = np.zeros(0, np.bool_)
NO_KIND = np.zeros(0, np.int8)
NO_PLACE = np.zeros(0, np.int64)
NO_PART = np.zeros(0, np.int32)
ONE_GROUP = np.zeros(0, np.int32)

EVERY = 0xFF
"""All kinds of row, as a bit mask."""


@dataclass(slots=True)
class Feed:
    """What aggregates run over: `n` ops, one after the other, each about an event.

    `kind` int8[n], None: all CURRENT. `pos` int64[n] is the event of each op, a place in the arguments, in `group`
    and in `part`; None: op i is about event i. `group` are ids (int32) below `groups`, empty: there is one group.
    `part` are partition instances below `parts`, None outside: a RESET op clears the groups of its instance.

    Of the ops whose kind is in the bit mask `shown`, the value after it comes out: those of the first such op in the
    place that `slot` (int64) says, and so on; None: one after the other. The last of a place stays. `size` is how many
    places there are.

    `pushed`: the ops are those, and `kind` and `pos` are to come (`lay_out`); CURRENT ones are shown.
    """

    n: int
    kind: Array | None
    group: Array
    groups: int
    part: Array | None
    parts: int
    pos: Array | None = None
    shown: int = EVERY
    slot: Array | None = None
    size: int = -1
    pushed: Pushed | None = None

    def lay_out(self) -> None:
        """Says of each op what it is, for loops that know of no `pushed`."""
        if self.pushed is not None:
            self.kind, self.pos = self.pushed.laid_out()
            self.pushed = None

    @staticmethod
    def of(kind: Array | None, group: Array, groups: int, part: Array | None = None) -> Feed:
        """A value after each of the rows that `kind`, `group` and `part` are about."""
        parts = int(part.max()) + 1 if part is not None and len(part) else 1
        return Feed(len(group), kind, group, groups, part, parts, None, EVERY, None, len(group))

    @property
    def comes_and_goes(self) -> bool:
        """Whether all ops are CURRENT or EXPIRED."""
        return self.kind is None or len(self.kind) == 0 or int(self.kind.max()) <= EXPIRED

    def ahead(self, words: int) -> int:
        """How many ops ahead a loop is to ask for its groups, for each of which it holds so many words; 0 where the
        cache holds them anyway."""
        return AHEAD if self.groups * words >= FAR or self.reach else 0

    @property
    def reach(self) -> int:
        """How many ops ahead a loop is to ask for its events; 0 where they are few, or lie in the order of the ops."""
        return 2 * AHEAD if self.parts > 1 << 8 and len(self.group) > 1 << 16 else 0

    @property
    def shown_ops(self) -> Array:
        """int64[size]: the ops after which a value comes out."""
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
        """(n, kind, pos, group, part, slot, shown), as the compiled loops take them: empty for None."""
        return (
            self.n,
            NO_KIND if self.kind is None else self.kind,
            NO_PLACE if self.pos is None else self.pos,
            self.group,
            NO_PART if self.part is None else self.part,
            NO_PLACE if self.slot is None else self.slot,
            self.shown,
        )


class Loops:
    """A loop over a feed, compiled from one source for all there is (`general`), and for what is mostly asked for, in
    a third of the time: `plain` means no nulls, no slots, no RESET or TIMER ops and none before, `near` besides that
    nothing need be asked for ahead. `fixed`: see `kernel`.
    """

    def __init__(self, source: Callable[..., Any], **fixed: bool | int) -> None:
        self.near = kernel(source, plain=True, ahead=0, reach=0, **fixed)
        self.far = kernel(source, plain=True, **fixed)
        self.general = kernel(source, plain=False, **fixed)


@inlined
def ask(
    soon: Any, later: Any, reach: int, by_pos: bool, pos: Array, group: Array, values: Array, cells: Array, shift: int
) -> None:
    """Asks for the group of op `soon`, and if there is a `reach`, for the event of op `later`. `by_pos`: whether there
    is a `pos`."""
    if reach > 0 and by_pos:
        event = pos[later]
        prefetch(group, event)
        prefetch(values, event)
    prefetch(cells, np.uint64(group[np.uint64(pos[soon]) if by_pos else soon]) << np.uint64(shift))


@inlined
def look_ahead(
    j: int, ahead: int, reach: int, n: int, pos: Array, group: Array, values: Array, cells: Array, shift: int
) -> None:
    """Asks for the event of the op `reach` from here, and for the group of the one `ahead`."""
    if ahead > 0:
        ask(np.uint64(min(j + ahead, n - 1)), min(j + reach, n - 1), reach, len(pos) > 0, pos, group, values, cells,
            shift)  # fmt: skip


@inlined
def reset(k: Any, p: Any, now: Array) -> None:
    """A RESET begins the next era of its instance `p` (see `Grouped`)."""
    if k == RESET:
        now[p] += 1


@inlined
def begins(g: Any, p: Any, now: Array, epoch: Array) -> Any:
    """Whether group `g` was not touched yet in the era of its instance `p`; now it is."""
    anew = len(epoch) > 0 and epoch[g] != now[p]
    if anew:
        epoch[g] = now[p]
    return anew


@inlined
def put_nothing(m: Any, slot: Array, out: Array, out_null: Array) -> Any:
    """Shows nothing as the value that comes out next, which is `m`; the number of the one after it."""
    o = slot[m] if len(slot) else m
    out[o] = 0
    out_null[o] = True
    return m + 1


def by_op(args: tuple[Column, ...], feed: Feed) -> tuple[tuple[Column, ...], Array, Array | None]:
    """(arguments, group, partition instance) of each op; None for the latter outside of partitions."""
    group = feed.group if len(feed.group) else np.zeros(len(args[0]) if args else feed.n, np.int32)
    if feed.pos is None:
        return args, group, feed.part
    part = None if feed.part is None else feed.part[feed.pos]
    return tuple(a.take(feed.pos) for a in args), group[feed.pos], part


class Aggregator(Protocol):
    """One aggregator of one query."""

    def over(self, args: tuple[Column, ...], feed: Feed) -> Column:
        """The values that come out, `feed.size` of them. `args` are over the events of `feed`."""
        ...

    def run(
        self, args: tuple[Column, ...], kind: Array | None, group: Array, groups: int, part: Array | None = None
    ) -> Column:
        """Values after each row. `kind` int8[n] or None (all CURRENT), `group` int32[n] ids below `groups`.

        `part` is the partition instance of each row (None outside): a RESET row clears the groups of its instance.
        """
        ...

    by_group: bool
    """Whether it has a state per group, and nothing that several share."""
    pushes: bool
    """Whether `over` takes a feed that has `pushed`."""

    def fold(self, args: tuple[Column, ...], group: Array, groups: int) -> Column:
        """As `over` for a new aggregator and CURRENT events of the groups `group`, which are numbered as they first
        come: what each of the `groups` comes to. What it holds afterwards is nobody's."""
        ...

    def refused(self, args: tuple[Column, ...]) -> tuple[Mask, str] | None:
        """The rows whose arguments raise an error, and why; None where there is none. They must not come to `run`."""
        ...

    def forget(self, groups: Array, parts: Array) -> None:
        """Begins anew for these `groups`, which are all those of the partition instances `parts`."""
        ...

    def state(self) -> dict[str, Any]:
        """Plain data that `load` takes back."""
        ...

    def load(self, state: dict[str, Any]) -> None: ...


class Base:
    """An aggregator that takes every value. Made from the types of its arguments, and whether rows of its query expire
    one by one (or expired ones are wanted). One of `run` and `over` is to be defined, and is made from the other."""

    by_group = True
    pushes = False

    def __init__(self, args: tuple[Type, ...], sliding: bool) -> None:
        raise NotImplementedError

    def run(
        self, args: tuple[Column, ...], kind: Array | None, group: Array, groups: int, part: Array | None = None
    ) -> Column:
        return self.over(args, Feed.of(kind, group, groups, part))

    def over(self, args: tuple[Column, ...], feed: Feed) -> Column:
        args, group, part = by_op(args, feed)
        out, shown = self.run(args, feed.kind, group, feed.groups, part), feed.shown_ops
        return out if len(shown) == feed.n else out.take(shown)

    def fold(self, args: tuple[Column, ...], group: Array, groups: int) -> Column:
        n = len(group)
        return self.over(args, Feed(n, None, group, groups, None, 1, None, EVERY, group, groups))

    def refused(self, args: tuple[Column, ...]) -> tuple[Mask, str] | None:
        return None


class Grouped(Base):
    """An aggregator with arrays of state by group id. A RESET begins a new era of its partition instance (`eras` counts
    them): a group that was last touched in an older one (`epoch`) starts from nothing."""

    words = 4
    """Of state for a group, about."""

    def _begin(self) -> None:
        self.eras, self.epoch = np.zeros(1, np.int64), np.zeros(0, np.int64)

    def _ops(self, feed: Feed) -> tuple[Any, ...]:
        """(*feed.arrays, eras, epoch, ahead, reach). Until the first RESET there is but one era: then `part` and
        `epoch` are empty, and loops need not look at them. `ahead` and `reach`: see `Feed`."""
        arrays = feed.arrays
        if len(self.epoch) == 0 and (feed.comes_and_goes or not np.any(feed.kind == RESET)):
            return (*arrays[:4], NO_PART, *arrays[5:], self.eras, self.epoch, feed.ahead(self.words), feed.reach)
        self.eras, self.epoch = grown(self.eras, feed.parts), grown(self.epoch, feed.groups)
        return (*arrays, self.eras, self.epoch, feed.ahead(self.words), feed.reach)

    def _through(
        self, loops: Loops, feed: Feed, null: Mask | None, before: tuple[Any, ...], after: tuple[Any, ...]
    ) -> Any:
        """Calls one of `loops` with (*before, *ops, *after); `null` is the mask of the arguments."""
        *ops, ahead, reach = self._ops(feed)
        if null is not None or feed.slot is not None or len(self.epoch) or not feed.comes_and_goes:
            return loops.general(*before, *ops, ahead, reach, *after)
        return loops.far(*before, *ops, ahead, reach, *after) if ahead else loops.near(*before, *ops, *after)


def shown_column(type: Type, out: Array, null: Mask | None = None) -> Column:
    """A column of what a loop put out, which left room for one more at the end."""
    if null is not None:
        null = null[:-1]
    return Column(type, out[:-1], null if null is not None and null.any() else None)


def as_numbers(values: Array, dtype: Any) -> Array:
    """`values` in this type. Among them may lie the room of a log that holds nothing yet, whose bits may be such as
    numpy warns of."""
    with np.errstate(invalid="ignore"):
        numbers: Array = values.astype(dtype, copy=False)
    return numbers


def null_rows(column: Column, why: str) -> tuple[Mask, str] | None:
    """Rows without a value, for aggregators that Siddhi lets fail on null."""
    if column.null is None or not column.null.any():
        return None
    return column.null, why


def shared(touched: set[int], kind: Array | None, part: Array | None) -> Array | None:
    """The kinds of ops for an aggregator that keeps one store for all groups and partition instances.

    Siddhi clears such a store at a RESET only where the row's instance has taken an event since its last one; the other
    RESET rows become TIMER rows, which change nothing. `touched` are the instances that have, and is brought up to
    date.
    """
    instances = np.zeros(0 if kind is None else len(kind), np.int64) if part is None else part
    if kind is None or not (kind == RESET).any():
        events = instances if kind is None else instances[kind <= EXPIRED]
        touched.update([0] if part is None else np.unique(events).tolist())
        return kind
    taken = np.zeros(1 + max(int(instances.max()), max(touched, default=0)), np.bool_)
    taken[list(touched)] = True
    kinds = kind.copy()
    _drop_resets(kinds, instances, taken)
    touched.clear()
    touched.update(np.flatnonzero(taken).tolist())
    return kinds


@kernel
def _drop_resets(kinds: Array, part: Array, taken: Array) -> None:
    """Makes RESET rows of instances that have not `taken` an event since the last one TIMER rows."""
    for i in range(len(kinds)):
        p = np.uint64(part[i])
        if kinds[i] == RESET:
            if not taken[p]:
                kinds[i] = TIMER
            taken[p] = False
        elif kinds[i] <= EXPIRED:
            taken[p] = True
