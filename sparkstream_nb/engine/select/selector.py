"""The select of a query: group by, aggregates, having, one row per chunk and group, order by, limit, offset.

Rules of Siddhi's `QuerySelector`: for each chunk, a query with aggregates emits only the last row that passes
`having`; a query with group by emits the last such row of each group, in the order of the groups' first rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ...plan.nodes import OUTPUT, Agg, EventRef, Expr, Ref, Select, Source, walk
from ...types import Type
from ..aggregators import Aggregator, make_aggregator, over_all, settle, share
from ..aggregators.aggregator_base import EVERY, NO_KIND, NO_PLACE, ONE_GROUP, AggregateInput, Base
from ..columnar.column_data import Array, Column
from ..columnar.frame import LazyRows, cache_columns
from ..columnar.key_ids import Keys
from ..columnar.ordering import order_rows
from ..columnar.rows import CURRENT, EXPIRED, RESET, Clock, Rows, WindowOps
from ..expressions import Env, Evaluator, compile_expr
from ..notation.kernels import compiled, struct
from ..state.declared import DeclaredState, part, parts
from ..state.services import Services
from .steps import GROUP

_GROUP = Ref(Type.INT, 0, GROUP, "")
NO_CLOCK = Clock(0, np.empty(0, np.int64), np.empty(0, np.bool_), 0, 0)


@dataclass(slots=True)
class Selected:
    """Output rows, and the group of each where the query groups (for rate limits).

    `cut` are the chunks that lost their last row, but not all: `having` or `limit` dropped it.
    """

    rows: Rows
    group: Array | None
    cut: Array = field(default_factory=lambda: np.empty(0, np.int64))


@struct
class _GroupRows:
    """Rows by chunk and group, empty for None: row i has the group `group[pos[i]]`, and counts if its kind is in the
    mask `shown_kinds`. `stamp` and `place` are, by group, the last chunk and the place of its row there."""

    def __init__(
        self, chunk: Array, group: Array, groups: int, pos: Array | None, kind: Array | None, shown_kinds: int
    ) -> None:
        self.chunk, self.group, self.shown_kinds = chunk, group, shown_kinds
        self.pos = NO_PLACE if pos is None else pos
        self.kind = NO_KIND if kind is None else kind
        self.stamp, self.place = np.full(groups, -1, np.int64), np.empty(groups, np.int64)

    @compiled
    def last(self, out: Array, slot: Array) -> tuple[int, int]:
        """Rows that stay: the last per (chunk, group), where the group's first row stood; and how many were looked at.
        """
        n = 0
        m = 0
        for i in range(len(self.chunk)):
            if len(self.kind) and not (self.shown_kinds >> np.int64(self.kind[i])) & 1:
                continue
            g = np.uint64(0)
            if len(self.group):
                g = np.uint64(self.group[np.uint64(self.pos[i]) if len(self.pos) else np.uint64(i)])
            if self.stamp[g] != self.chunk[i]:
                self.stamp[g] = self.chunk[i]
                self.place[g] = n
                n += 1
            o = self.place[g]
            out[o] = i
            slot[m] = o
            m += 1
        return n, m


def last_per_group(chunk: Array, group: Array, groups: int | None = None) -> Array:
    """Positions of the last row of every (chunk, group), in the order of the groups' first rows; equal chunks must be
    adjacent. An empty `group` means one group."""
    return _lasts(chunk, group, (int(group.max()) + 1 if len(group) else 1) if groups is None else groups)[0]


def _lasts(
    chunk: Array,
    group: Array,
    groups: int,
    pos: Array | None = None,
    kind: Array | None = None,
    shown_kinds: int = EVERY,
) -> tuple[Array, Array]:
    """`last_per_group`, and for each row the index of its group's last row among these positions. With `pos`, row i has
    the group `group[pos[i]]`; with `kind`, only rows whose kind is in the mask `shown_kinds` count.
    """
    out, slot = np.empty(len(chunk), np.int64), np.empty(len(chunk), np.int64)
    n, m = _GroupRows(chunk, group, max(groups, 1), pos, kind, shown_kinds).last(out, slot)
    return out[:n], slot[:m]


def _repeats(chunk: Array) -> bool:
    """True if a chunk has two rows."""
    return bool(np.any(chunk[1:] == chunk[:-1]))


def _at(group: Array, pos: Array | None, index: Array | None) -> Array:
    """The groups of rows `index` (None: all), where row i has the group `group[pos[i]]`."""
    if len(group) == 0:
        return group
    if pos is not None:
        return group[pos if index is None else pos[index]]
    return group if index is None else group[index]


@dataclass(frozen=True)
class SelectedGroups:
    """The groups of a select: their partition instances (None outside), the columns of their keys, and of the present
    values of the `aggregates`."""

    instance: Array | None
    keys: list[Column]
    aggregates: Sequence[Agg]
    values: list[Column]


def _without_values(type: Type, size: int) -> Column:
    """A column of nulls; of empty sets, as there are no aggregates of null objects."""
    column = Column.all_null(type, size)
    if type is Type.OBJECT:
        values = np.empty(size, object)
        values[:] = [frozenset()] * size
        return Column(type, values)
    return column


@dataclass(frozen=True)
class SelectorSetup:
    """A select's query: its `name`, the event types that it emits (`current`, `wants_expired`), and how rows come and
    go.

    `sliding`: rows expire one by one, for the aggregators. `batching`: chunks are reduced to one row of each group.
    With `has_rate_limit`, a rate limit follows: RESET rows pass if Siddhi's select lets them through to it: if it
    neither groups nor reduces chunks. `source` is the stream that slot 0 is, if there is just one: an event that fails
    is kept with its values. `in_window`: events may be given their group before they enter a window
    (`Selector.number`). `tells_cut` asks for `Selected.cut`.
    """

    name: str
    current: bool
    wants_expired: bool
    sliding: bool
    batching: bool = True
    has_rate_limit: bool = False
    source: Source | None = None
    in_window: bool = False
    tells_cut: bool = False


class Selector(DeclaredState):
    """One query's select over frames."""

    _aggs: list[Aggregator] = parts(saved_as="aggregators")
    _keys: Keys | None = part()

    def __init__(self, select: Select, services: Services, setup: SelectorSetup) -> None:
        self.select, self.services, self.name = select, services, setup.name
        self.current, self.wants_expired = setup.current, setup.wants_expired
        self.batching, self.is_partitioned = setup.batching, services.is_partitioned
        self._source, self._tells_cut = setup.source, setup.tells_cut
        self._has_rate_limit, self._resets = setup.has_rate_limit, setup.has_rate_limit and not select.group_by
        context = services.context
        exprs: list[Expr] = [i.expr for i in select.items]
        if select.having is not None:
            exprs.append(select.having)
        self._agg_nodes = list(dict.fromkeys(e for x in exprs for e in walk(x) if isinstance(e, Agg)))
        has_groups = self.is_partitioned or bool(select.group_by)
        self._make: list[Callable[[], Aggregator]] = [
            partial(make_aggregator, a, setup.sliding, services.strings, has_groups=has_groups) for a in self._agg_nodes
        ]
        self._aggs = [make() for make in self._make]
        share(self._aggs)
        self._args: list[list[Evaluator]] = [[compile_expr(x, context) for x in a.args] for a in self._agg_nodes]
        self._group = [compile_expr(g, context) for g in select.group_by]
        self._items = [compile_expr(e, context) for e in (*(i.expr for i in select.items), *select.unselected)]
        self._having = None if select.having is None else compile_expr(select.having, context)
        types = [g.type for g in select.group_by]
        self._keys = None
        if types:
            key = [Type.INT, *types] if self.is_partitioned else types
            self._keys = Keys(key, services.strings, instances=self.is_partitioned)
        if self.batching and self._agg_nodes:
            self._resets = False
        self._wants = (self.current << CURRENT) | (self.wants_expired << EXPIRED) | (self._resets << RESET)
        args_plain = all(isinstance(x, Ref) and x.slot == 0 for a in self._agg_nodes for x in a.args)
        keys_plain = not select.group_by or (setup.in_window and all(isinstance(g, Ref) for g in select.group_by))
        # `plain`: groups and arguments can be had from the events alone, whatever becomes of them in the window.
        takes_all = all(getattr(type(a), "find_refused", None) is Base.find_refused for a in self._aggs)
        self.plain = args_plain and keys_plain and takes_all and not self._resets
        self.numbers = self.plain and self._keys is not None
        # `resets_per_chunk`: the select can do without RESET rows where every chunk begins with one.
        self.resets_per_chunk = self.current and not self.wants_expired and not self._resets

    # ------------------------------------------------------------------------------------------------------ running

    def run(self, frame: LazyRows, clock: Clock) -> Selected:
        """Output rows, CURRENT and EXPIRED as they are; TIMER and RESET rows only act on the aggregates."""
        passing = frame.window_ops
        if len(frame) == 0 and passing is None:
            return self._none()
        frame.resolve = cache_columns(frame.resolve)
        env = self._env(frame, clock)
        if passing is not None and self.plain:
            args, feed = self._of_events(frame, passing)
        else:
            args = [tuple(a(env) for a in arg_list) for arg_list in self._args]
            for agg, values in zip(self._aggs, args, strict=True):
                failure = agg.find_refused(values)
                if failure is not None:
                    env.fail(*failure)
            keys = [g(env) for g in self._group]
            if env.failed_rows is not None:
                # A row that fails here takes no part at all: neither in the aggregates nor in the output.
                self._report(env, frame)
                keep = np.flatnonzero(~env.failed_rows)
                return self.run(frame.take(keep), clock)
            feed = self._of_rows(frame, keys)
        group, pos = feed.group, feed.pos  # group and position of the frame's rows
        if passing is not None and passing.ops_only:
            group, pos = ONE_GROUP if frame.instance is None else frame.instance, None
            if self.numbers:
                group = frame.resolve(_GROUP).values
        reduces = self.batching and (self._keys is not None or len(self._aggs) > 0)
        index: Array | None
        slot, cut = None, np.empty(0, np.int64)
        if reduces and self._having is None and _repeats(frame.chunk):
            index, slot = _lasts(frame.chunk, group, feed.groups, pos, frame.kind, self._wants)
        else:
            index = self._wanted_rows(frame)  # None: all
        if frame.resets_per_chunk:
            results = self._fresh(frame, args, group, feed.groups, slot)
        else:
            feed.shown_kinds, feed.size = self._wants, len(frame) if index is None else len(index)
            feed.slot = None if slot is None or len(slot) == feed.size else slot
            results = over_all(self._aggs, args, feed)
        env.aggs = dict(zip(self._agg_nodes, results, strict=True))
        chunks = frame.chunk
        columns, index, env, frame = self._evaluate(frame, env, index, clock)
        if self._having is not None:
            passes = self._passes(columns, env, frame)
            if passes is not None:
                columns, index = [c.take(passes) for c in columns], passes if index is None else index[passes]
                frame = frame.take(passes)
            tells_cut = self._tells_cut and self._keys is None and not self.select.order_by
            if not reduces and index is not None and tells_cut:
                cut = self._cut(chunks, index)
            if reduces and _repeats(frame.chunk):
                stay = last_per_group(frame.chunk, _at(group, pos, index), feed.groups)
                columns, index = [c.take(stay) for c in columns], stay if index is None else index[stay]
                frame = frame.take(stay)
        rows = Rows(columns, frame.ts, frame.order_key, frame.chunk, frame.kind, frame.instance)
        groups = _at(group, pos, index) if self._keys is not None and self._has_rate_limit else None
        return self._order_and_limit(rows, groups, cut)

    def _fresh(
        self, frame: LazyRows, args: list[tuple[Column, ...]], group: Array, groups: int, slot: Array | None
    ) -> list[Column]:
        """The aggregates, restarted with each chunk: the final values of each chunk's groups if only those are needed
        (`slot` numbers them), else the values after each row."""
        if not self._aggs:
            return []
        aggs = [make() for make in self._make]
        share(aggs)
        if slot is not None:
            size = int(slot.max()) + 1
            return [agg.fold(arg, slot, size) for agg, arg in zip(aggs, args, strict=True)]
        lasts, number = _lasts(frame.chunk, group, groups)
        feed = AggregateInput(len(frame), None, number, len(lasts), None, 1, None, EVERY, None, len(frame))
        return over_all(aggs, args, feed)

    @staticmethod
    def _cut(chunk: Array, index: Array) -> Array:
        """The chunks of which rows stay (`index`), but not the last."""
        chunks = chunk[index]
        ends = np.append(chunks[1:] != chunks[:-1], True) if len(chunks) else np.empty(0, np.bool_)
        last = np.searchsorted(chunk, chunks[ends], "right") - 1
        out: Array = chunks[ends][index[ends] < last]
        return out

    def number(self, frame: LazyRows) -> Array:
        """The group ids of events."""
        assert self._keys is not None
        keys = [g(self._env(frame, NO_CLOCK)) for g in self._group]
        if self.is_partitioned:
            instance = frame.instance if frame.instance is not None else np.zeros(len(frame), np.int32)
            keys.insert(0, Column(Type.INT, instance))
        return self._keys.ids(keys)

    def _of_events(self, frame: LazyRows, passing: WindowOps) -> tuple[list[tuple[Column, ...]], AggregateInput]:
        """The arguments of the aggregates and their input, by event."""
        args = [tuple(frame.event(x.attr) for x in a.args if isinstance(x, Ref)) for a in self._agg_nodes]
        instance, instances = passing.instance, self.services.instances
        if self._keys is not None:
            group, groups = frame.event(GROUP).values, self._keys.size
        else:
            group, groups = (ONE_GROUP, 1) if instance is None else (instance, instances)
        reset_of = instance if self.is_partitioned else None
        lag = passing.fixed_lag
        if lag is not None:
            return args, AggregateInput(lag.ops, None, group, groups, reset_of, instances, fixed_lag=lag)
        pos = passing.columns.pos
        return args, AggregateInput(len(passing.kind), passing.kind, group, groups, reset_of, instances, pos)

    def _of_rows(self, frame: LazyRows, keys: list[Column]) -> AggregateInput:
        """The input of aggregates over the rows of a frame; `keys` are the `group by` values."""
        instance, instances = frame.instance, self.services.instances
        if self._keys is None:
            group, groups = (ONE_GROUP, 1) if instance is None else (instance, instances)
        else:
            if self.is_partitioned:
                keys = [Column(Type.INT, instance if instance is not None else np.zeros(len(frame), np.int32)), *keys]
            group, groups = self._keys.ids(keys), self._keys.size
        reset_of = instance if self.is_partitioned else None
        return AggregateInput(len(frame), frame.kind, group, groups, reset_of, instances)

    def _none(self) -> Selected:
        none = np.empty(0, np.int64)
        return Selected(Rows([Column.empty(i.expr.type) for i in self.select.items], none, none, none), None)

    def _env(self, frame: LazyRows, clock: Clock) -> Env:
        services = self.services
        return Env(
            len(frame), services.strings, frame.ts, lambda: clock.at(frame.order_key), frame.resolve,
            tables=services.in_table, event_time=frame.event_time,
        )

    def _wanted_rows(self, frame: LazyRows) -> Array | None:
        """Rows of the kinds that the query emits; None for all."""
        kind = frame.kind
        if kind is None:
            return None if self.current else np.empty(0, np.int64)
        kinds = [k for k in (CURRENT, EXPIRED, RESET) if self._wants >> k & 1]
        mask = kind == kinds[0]
        for k in kinds[1:]:
            mask |= kind == k
        index = np.flatnonzero(mask)
        return None if len(index) == len(kind) else index

    def _evaluate(
        self, frame: LazyRows, env: Env, index: Array | None, clock: Clock
    ) -> tuple[list[Column], Array | None, Env, LazyRows]:
        """The select's columns at `index`, less the rows that fail, and the frame there; the aggregates are there
        already."""
        if index is not None:
            frame = frame.take(index)
            sub = self._env(frame, clock)
            sub.aggs = env.aggs
            env = sub
        columns = [item(env) for item in self._items]
        if env.failed_rows is None:
            return columns, index, env, frame
        self._report(env, frame)
        keep = np.flatnonzero(~env.failed_rows)
        frame = frame.take(keep)
        sub = self._env(frame, clock)
        sub.aggs = {node: c.take(keep) for node, c in env.aggs.items()}
        return [c.take(keep) for c in columns], keep if index is None else index[keep], sub, frame

    def _passes(self, columns: list[Column], env: Env, frame: LazyRows) -> Array | None:
        """The rows that `having` lets through; None for all."""
        resets = frame.kind == RESET if self._resets and frame.kind is not None else None

        def output(ref: Ref | EventRef) -> Column:
            if isinstance(ref, Ref) and ref.slot == OUTPUT:
                return columns[ref.attr]
            return env.resolve(ref)

        having = Env(
            len(frame), env.strings, env.ts, env.now, output, env.aggs, env.tables, event_time=env.event_time
        )
        assert self._having is not None
        result = self._having(having)
        mask = result.values if result.null is None else result.values & ~result.null
        if having.failed_rows is not None:
            self._report(having, frame)
            mask = mask & ~having.failed_rows
        if resets is not None:
            mask = mask | resets
        index = np.flatnonzero(mask)
        return None if len(index) == len(mask) else index

    def _report(self, env: Env, frame: LazyRows) -> None:
        """Report a failed event when it enters; an expired one only if the query emits nothing else."""
        only = None
        if frame.kind is not None:
            only = frame.kind == (CURRENT if self.current else EXPIRED)
        if self._source is not None:
            attrs = enumerate(self._source.schema.attributes)
            columns = [frame.resolve(Ref(a.type, 0, i, a.name)) for i, a in attrs]
            self.services.route_failed(self.name, self._source.id, env, columns, frame.order_key, only)
            return
        refs = dict.fromkeys(
            e
            for x in (*(i.expr for i in self.select.items), *self.select.group_by)
            for e in walk(x)
            if isinstance(e, Ref) and e.slot >= 0
        )
        self.services.route_failed(self.name, "", env, [frame.resolve(r) for r in refs], frame.order_key, only)

    def _order_and_limit(self, rows: Rows, group: Array | None, cut: Array) -> Selected:
        s = self.select
        output_rows = rows.with_columns(rows.columns[: len(s.items)]) if s.unselected else rows
        if len(rows) == 0 or (not s.order_by and s.limit is None and s.offset is None):
            return Selected(output_rows, group, cut)
        order, shorter = order_rows(rows, s, self.services.strings)
        if len(shorter):
            cut = np.append(cut, shorter)
        return Selected(output_rows.take(order), None if group is None else group[order], cut)

    def groups(self) -> SelectedGroups | None:
        """The groups and the present values of their aggregates; None of a select without aggregates. Not of a query
        whose aggregates restart with each chunk (`_fresh`)."""
        if not self._agg_nodes:
            return None
        keys, instance = [] if self._keys is None else self._keys.columns(), None
        size = self._keys.size if self._keys is not None else self.services.instances if self.is_partitioned else 1
        if self.is_partitioned:
            instance = keys.pop(0).values if keys else np.arange(size, dtype=np.int32)
        aggs = [make() for make in self._make]
        share(aggs)
        for copy, agg in zip(aggs, self._aggs, strict=True):
            copy.load(agg.state())
        settle(aggs)
        # An event without values that comes and goes at once changes nothing, and shows the value of its group.
        kind = np.tile(np.array([CURRENT, EXPIRED], np.int8), size)
        group = np.repeat(np.arange(size, dtype=np.int32), 2)
        feed = AggregateInput(
            2 * size, kind, group, size, None if instance is None else np.repeat(instance, 2),
            max(1, self.services.instances), shown_kinds=1 << EXPIRED, size=size,
        )  # fmt: skip
        args = [tuple(_without_values(a.type, 2 * size) for a in node.args) for node in self._agg_nodes]
        return SelectedGroups(instance, keys, self._agg_nodes, over_all(aggs, args, feed))

    def forget(self, instances: Array) -> None:
        """Drop the state of these partition instances. A group's id stays, in case an instance of the same number has
        it again.
        """
        groups = instances
        if self._keys is not None:
            groups = np.flatnonzero(np.isin(self._keys.columns()[0].values, instances))
        for agg in self._aggs:
            agg.forget(groups, instances)

    # -------------------------------------------------------------------------------------------------------- state

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        settle(self._aggs)


