"""Joins of streams, windows and tables.

Both sides run their windows first; their output (CURRENT, EXPIRED, RESET rows) is merged by order key. A CURRENT row
enters its side's contents, an EXPIRED one leaves it (ENTER and LEAVE rows if the window emits them), and a row of a
triggering side probes the other side's contents at that time (Siddhi's `JoinProcessor` after each window). It is a
hash join: the equalities of the `on` condition are the key, and the rest of it is evaluated over the candidate pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ...plan import nodes
from ...plan.nodes import EventRef, Expr, Ref
from ...types import Type, promote
from ..columnar.column_data import DTYPES, Array, Column, Mask, concat
from ..columnar.frame import LazyRows, Resolver, cache_columns
from ..columnar.key_ids import Keys
from ..columnar.rows import CURRENT, EXPIRED, RESET, Clock, Rows, each_alone, one_by_one
from ..columnar.timers import earliest
from ..expressions import Env, Evaluator, compile_expr
from ..expressions.java_arithmetic import common_type
from ..select.selector import Selected
from ..select.steps import InputSteps, WindowNeeds, select_exprs, slot_attrs
from ..state.declared import DeclaredState, Part, part, parts, plain_value
from ..state.saving import Form
from ..state.services import Services
from ..windows import entering_rows
from .join_contents import Contents, Lookups, without
from .join_pairs import Ops, Pairs
from .lookups import AggregationLookup


class Lookup(Protocol):
    """A side that is not a stream: a table or an aggregation."""

    def find(self, env: Env, order_keys: Array) -> tuple[Array, Array]:
        """(row of `env`, position) of every match, in the order of the rows and then of the contents. `order_keys` are
        the rows'.
        """
        ...

    def column(self, attr: int, positions: Array) -> Column:
        """Values of an attribute at positions."""
        ...

    def times(self, positions: Array) -> Array:
        """Timestamps (int64, ms) of the rows at positions, for `eventTimestamp(e)`."""
        ...


def equalities(on: Expr | None) -> tuple[list[tuple[Expr, Expr, Type]], Expr | None]:
    """Splits a condition into (left side, right side, common type) equalities between the slots, and the rest."""
    if on is None:
        return [], None
    if isinstance(on, nodes.Logic) and on.op == "and":
        a, rest_a = equalities(on.left)
        b, rest_b = equalities(on.right)
        rest = rest_a if rest_b is None else rest_b if rest_a is None else nodes.Logic(Type.BOOL, "and", rest_a, rest_b)
        return a + b, rest
    if isinstance(on, nodes.Compare) and on.op == "==":
        slots = [{e.slot for e in nodes.walk(x) if isinstance(e, Ref | EventRef)} for x in (on.left, on.right)]
        both = on.left.type if on.left.type == on.right.type else promote(on.left.type, on.right.type)
        if both is Type.FLOAT:
            both = common_type("==", on.left.type, on.right.type)
        plain = not any(isinstance(e, nodes.InTable | nodes.Call | nodes.ScriptCall) for e in nodes.walk(on))
        if both is not None and both is not Type.OBJECT and plain:
            if slots == [{0}, {1}]:
                return [(on.left, on.right, both)], None
            if slots == [{1}, {0}]:
                return [(on.right, on.left, both)], None
    return [], on


def _insert_alone(op: Array, place: Array, extra: Array) -> tuple[Array, Array]:
    """Pairs of ops and places with those ops `extra` that have no place (-1), by op."""
    if not len(extra):
        return op, place
    op, place = np.concatenate([op, extra]), np.concatenate([place, np.full(len(extra), -1, np.int64)])
    by_op = np.argsort(op, kind="stable")
    return op[by_op], place[by_op]


class _Sides(Part):
    """The contents of both sides; loaded by the join, which has the keys then."""

    def state(self, value: Contents, form: Form, owner: JoinOp) -> Any:
        return [value.state(s) for s in (0, 1)]

    def load(self, value: Contents, state: Any, owner: JoinOp) -> Contents:
        return value


class JoinOp(DeclaredState):
    """The input of a join query. `streams` are the ids that it receives, `lookups` the sides that are not streams."""

    steps: list[InputSteps | None] = parts()
    _contents: Contents = _Sides()  # type: ignore[assignment]
    _keys: Keys | None = part()
    _serial: list[int] = plain_value()

    def __init__(
        self,
        join: nodes.JoinInput,
        select: nodes.Select,
        services: Services,
        *,
        query: str,
        scheduler: int,
        wants_expired: bool,
        lookups: Mapping[int, Lookup],
        only_current: bool = False,
    ) -> None:
        """`only_current`: pairs that expired rows make, and resets, change nothing and show nowhere."""
        self._last = CURRENT if only_current else EXPIRED
        self.join, self.services, self.query = join, services, query
        self.lookups = dict(lookups)
        self.sides = (join.left, join.right)
        self.wants_expired = wants_expired
        equal, rest = ([], join.on) if lookups else equalities(join.on)
        read_exprs = select_exprs(select) + [x for a, b, _ in equal for x in (a, b)]
        read_exprs += [e for e in (join.on, *join.within, join.per) if e is not None]
        until = [len(x.schema) for x in self.sides]
        for s, lookup in self.lookups.items():
            if isinstance(lookup, AggregationLookup):
                until[1 - s] = lookup.range_from
        self._attrs = tuple(sorted(a for a in slot_attrs(iter(read_exprs), s) if a < until[s]) for s in (0, 1))
        plain = [i.expr for i in select.items if isinstance(i.expr, Ref)]
        self.steps = []
        self.schedulers = 0
        for s, side in enumerate(self.sides):
            if s in self.lookups:
                self.steps.append(None)
                continue
            selected_attrs = tuple(dict.fromkeys(e.attr for e in plain if e.slot == s and e.attr < until[s]))
            steps = InputSteps(
                side, set(self._attrs[s]), services, query=query, slot=s, scheduler=scheduler + self.schedulers,
                window=WindowNeeds(wants_expired, findable=True, selected_attrs=selected_attrs or None, serials=True),
            )  # fmt: skip
            self.schedulers += steps.schedulers
            self.steps.append(steps)
        self.inputs = tuple(dict.fromkeys(x.source.id for s, x in enumerate(self.sides) if s not in self.lookups))
        self.right_first = False  # whether rows of the right side come first among rows of one order key
        self.self_join = len(self.inputs) == 1 and not self.lookups
        self.triggers = np.array(join.triggers, np.bool_)
        if self.self_join and join.left.source.kind == "window":
            # Only the first side of a named window joined with itself receives (`MultiProcessStreamReceiver` of one).
            self.triggers[1] = False
        is_window = np.array([side.source.kind == "window" for side in self.sides])
        if services.is_partitioned:
            # No instance receives from a named window (`PartitionRuntimeImpl.addPartitionReceiver`).
            self.triggers &= ~is_window
        # All instances look into the same named window, and it never looks back.
        self._by_instance = services.is_partitioned and not is_window.any()
        context = services.context
        self._left_keys: list[Evaluator] = [compile_expr(a, context) for a, _, _ in equal]
        self._right_keys: list[Evaluator] = [compile_expr(b, context) for _, b, _ in equal]
        self._key_types = [t for _, _, t in equal]
        self._rest = None if rest is None else compile_expr(rest, context)
        key_types = ([Type.INT] if self._by_instance else []) + self._key_types
        self._keys = Keys(key_types, services.strings) if key_types else None
        self._types = tuple(tuple(side.schema.types[a] for a in self._attrs[s]) for s, side in enumerate(self.sides))
        self._contents = Contents((self._types[0], self._types[1]))
        self._serial = [0, 0]
        self._group = np.empty(0, np.int64)
        windows = [None if s is None else s.window for s in self.steps]
        self._stamps = [None if w is None else w.stamps for w in windows]
        """The kind of rows that a side's window stamps with the time at which they are emitted, if it does."""
        self._loses = np.array([stamps == CURRENT for stamps in self._stamps])
        self.windows_read: tuple[str, ...] = ()
        """The named windows that the last run looked into."""

    # ------------------------------------------------------------------------------------------------------ running

    def passing_rows(self, stream: str, rows: Rows, clock: Clock) -> Mask:
        """Mask of the rows of an input that pass the first filters of a side (`InputSteps.passing_rows`)."""
        out = np.zeros(len(rows), np.bool_)
        for side, steps in zip(self.sides, self.steps, strict=True):
            if steps is not None and side.source.id == stream:
                out |= steps.passing_rows(rows, clock)
        return out

    def run(self, inputs: Mapping[str, Rows], clock: Clock) -> LazyRows:
        """The joined rows, in order; each triggering row makes one chunk, until `regroup`."""
        outs = []
        for s, side in enumerate(self.sides):
            steps = self.steps[s]
            outs.append(None if steps is None else self._side(s, steps, inputs[side.source.id], clock))
        if self.lookups:
            (s,) = (i for i in (0, 1) if i not in self.lookups)
            probing = outs[s]
            assert probing is not None
            return self._with_lookup(s, probing, clock)
        assert outs[0] is not None
        assert outs[1] is not None
        return self._with_windows(outs[0], outs[1], clock)

    def next_due(self) -> int | None:
        """The earliest time (ms) at which the clock alone can bring out a joined row; None if no time does."""
        return earliest(s.next_due() for s in self.steps if s is not None)

    def event_by_event(
        self, inputs: Mapping[str, Rows], clock: Clock
    ) -> Iterator[tuple[Mapping[str, Rows], Clock]]:
        """The input of a self join as Siddhi takes it: each event alone through both sides of a stream, or through
        the one side of a named window, which holds all of a chunk by then (`MultiProcessStreamReceiver`)."""
        (id,) = self.inputs
        rows = one_by_one(inputs[id])
        if self.sides[0].source.kind == "window":
            yield {id: rows}, clock
        else:
            for piece, time in each_alone(rows, clock):
                yield {id: piece}, time

    def regroup(self, selection: Selected) -> Selected:
        """Assigns output chunks to the rows selected from the last run's frame: all matches of a side's chunk are one
        chunk (`OutputRateLimiter.process` of a list). As in Siddhi, if the last match of a row was dropped, the matches
        of later rows are lost (`ComplexEventChunk.remove` leaves `last` as it was)."""
        rows, cut = selection.rows, selection.cut
        group = self._group[rows.chunk]
        if len(cut):
            until = np.full(int(self._group.max()) + 1, np.iinfo(np.int64).max)
            np.minimum.at(until, self._group[cut], cut)
            keep = np.flatnonzero(rows.chunk <= until[group])
            rows, group = rows.take(keep), group[keep]
            selection = Selected(rows, None if selection.group is None else selection.group[keep])
        rows.chunk = group
        return selection

    def _side(self, s: int, steps: InputSteps, rows: Rows, clock: Clock) -> Rows:
        """The rows after a side's window; their last column is the serial number."""
        if self.sides[s].source.kind == "window":
            return steps.pick_columns(rows)
        n = len(rows)
        serial = np.arange(self._serial[s], self._serial[s] + n, dtype=np.int64)
        if not self.lookups:  # no lookup uses it
            self._serial[s] += n
        out = steps.run(rows, clock, Column(Type.LONG, serial))
        if steps.window is not None or self._last == CURRENT:
            return out
        return self._empty_window(out, clock)

    def _empty_window(self, rows: Rows, clock: Clock) -> Rows:
        """A side without a window: every event comes, expires if that is wanted, and resets
        (`EmptyWindowProcessor`).
        """
        n, k = len(rows), 3 if self.wants_expired else 2
        index = np.repeat(np.arange(n), k)
        kinds = np.array([CURRENT, EXPIRED, RESET] if self.wants_expired else [CURRENT, RESET], np.int8)
        out = rows.take(index)
        out.kind = np.tile(kinds, n)
        out.ts = np.where(out.kind == CURRENT, out.ts, clock.at(out.order_key))
        return out

    def _key_ids(self, s: int, rows: Rows, clock: Clock) -> Array:
        """Ids of the rows' join keys; -1 where a part is null, which matches nothing."""
        n = len(rows)
        if self._keys is None:
            return np.zeros(n, np.int64)
        env = self._env(s, rows, clock)
        columns = [
            _as(e(env), t)
            for e, t in zip(self._left_keys if s == 0 else self._right_keys, self._key_types, strict=True)
        ]
        none = [c.null for c in columns if c.null is not None]
        if env.failed_rows is not None:
            self.services.route_failed(self.query, self.sides[s].source.id, env, list(rows.columns[:-1]))
            none.append(env.failed_rows)
        if self._by_instance:
            columns.insert(0, Column(Type.INT, rows.instances()))
        ids = self._keys.ids(columns).astype(np.int64)
        for mask in none:
            ids[mask] = -1
        return ids

    def _of_rows(self, s: int, rows: Rows) -> Resolver:
        places = {a: i for i, a in enumerate(self._attrs[s])}

        def resolve(ref: Ref | EventRef) -> Column:
            if isinstance(ref, EventRef):
                return Column(Type.BOOL, np.ones(len(rows), np.bool_))
            return rows.columns[places[ref.attr]]

        return resolve

    def _env(self, s: int, rows: Rows, clock: Clock) -> Env:
        """For expressions over the rows of one side."""
        return Env(
            len(rows), self.services.strings, rows.ts, lambda: clock.at(rows.order_key), self._of_rows(s, rows),
            tables=self.services.in_table, event_time=lambda ref: Column(Type.LONG, rows.ts),
        )  # fmt: skip

    def _with_windows(self, left: Rows, right: Rows, clock: Clock) -> LazyRows:
        # In a window's self-join both sides look into the same window, which holds the event before either is notified.
        named_self = self.self_join and self.sides[0].source.kind == "window"
        ops = Ops(left, right, self.right_first or named_self)
        side, kinds = ops.side, ops.kinds
        keys = ops.in_order(self._key_ids(0, left, clock), self._key_ids(1, right, clock))
        contents = self._contents
        for s in (0, 1):  # not at the end of a call: its frame reads the contents when the select asks
            contents.compact(s)
        slot = ops.in_order(self._add_entering(0, left), self._add_entering(1, right))
        has_stamps = any(kind is not None for kind in self._stamps)
        probe_positions = np.full(len(ops) if has_stamps else 0, -1, np.int64)
        size = 1 if self._keys is None else self._keys.size
        blocks = []
        lookups = Lookups(
            side, kinds, keys, slot, ops.instances(), self.triggers, self._loses, probe_positions, self._last
        )
        for op, place in contents.run(lookups, size, self.services.instances):
            if self._rest is not None and len(op):
                keep = self._rest_holds(self._pairs(ops, op, place), clock)
                op, place = op[keep], place[keep]
            blocks.append((op, place))
        if len(blocks) != 1:
            none = np.empty(0, np.int64)
            blocks = [
                (np.concatenate([none, *(x for x, _ in blocks)]), np.concatenate([none, *(x for _, x in blocks)]))
            ]
        op, place = blocks[0]
        op, place = self._rank_pairs(side, op, place)
        frame = self._frame(ops, op, place)
        self._group = ops.group
        self._keep_times(frame, side, kinds, probe_positions)
        self.windows_read = ()
        if any(x.source.kind == "window" for x in self.sides):
            looks = (kinds <= EXPIRED) & self.triggers[side]
            self.windows_read = tuple(
                x.source.id
                for s, x in enumerate(self.sides)
                if x.source.kind == "window" and (looks & (side != s)).any()
            )
        return frame

    def _pairs(self, ops: Ops, op: Array, place: Array) -> Pairs:
        return Pairs(ops, self._contents, self._attrs, op, place)

    def _add_entering(self, s: int, rows: Rows) -> Array:
        """Add entering rows to a side's contents; returns their slots there."""
        if not self._holds(s):
            return np.full(len(rows), -1, np.int64)
        fresh = rows.take(entering_rows(rows))
        width = len(self._attrs[s])
        rank = fresh.columns[width].values if len(rows.columns) > width + 1 else None
        self._contents.add(s, fresh.with_columns(fresh.columns[:width]), rank)
        return self._contents.slots(s, rows.columns[-1].values)

    def _rank_pairs(self, side: Array, op: Array, place: Array) -> tuple[Array, Array]:
        """The pairs in the order in which the windows hold the matched rows."""
        contents = self._contents
        if not any(len(r) for r in contents.rank):
            return op, place
        rank = np.zeros(len(op), np.int64)
        for s in (0, 1):
            if len(contents.rank[s]):
                matches_side = side[op] != s
                rank[matches_side] = contents.rank[s][place[matches_side]]
        by = np.lexsort((rank, op))
        return op[by], place[by]

    def _keep_times(self, frame: LazyRows, side: Array, kinds: Array, probes: Array) -> None:
        """Rows of a batch window that was looked into keep their own time: Siddhi's stamping loop continues from the
        position where the lookup left the queue's cursor (`while (expiredEventQueue.hasNext())` without a reset).
        """
        op = frame.chunk
        for s in (0, 1):
            stamps = self._stamps[s]
            if stamps is None:
                continue
            # Events that leave a queue of current events left the contents just before.
            at = op if stamps == EXPIRED else op - 1
            late = np.flatnonzero((probes[at] >= 0) & (side[op] == s) & (side[at] == s) & (kinds[op] == stamps))
            if len(late):
                frame.ts = frame.ts.copy()
                frame.ts[late] = self._contents.logs[s].ts[probes[at[late]]]

    def _holds(self, s: int) -> bool:
        """True if a side has contents at all: a stream without window has none."""
        steps = self.steps[s]
        return self.sides[s].source.kind == "window" or (steps is not None and steps.window is not None)

    def _rest_holds(self, pairs: Pairs, clock: Clock) -> Array:
        """Indices of the pairs for which the rest of the condition is true."""
        ops, op = pairs.ops, pairs.op
        now = lambda: clock.at(ops.order_key[op])  # noqa: E731
        env = Env(
            len(op), self.services.strings, ops.ts[op], now, cache_columns(pairs.resolve),
            tables=self.services.in_table, event_time=pairs.times,
        )  # fmt: skip
        assert self._rest is not None
        result = self._rest(env)
        mask = result.values if result.null is None else result.values & ~result.null
        if env.failed_rows is not None:
            self.services.route_failed(self.query, self.sides[0].source.id, env, [])
            mask = mask & ~env.failed_rows
        return np.flatnonzero(mask)

    def _outer(self, s: int) -> bool:
        """True if a row of side `s` without a match is emitted with nulls."""
        return self.join.kind == "full outer" or self.join.kind == ("left outer" if s == 0 else "right outer")

    def _frame(self, ops: Ops, op: Array, place: Array) -> LazyRows:
        """Matches, the rows that match nothing if the join is outer on their side, and RESET rows, by op."""
        side, kinds = ops.side, ops.kinds
        extra = np.empty(0, np.int64)
        if self._last == EXPIRED:
            extra = np.flatnonzero((kinds == RESET) & self.triggers[side])
        outer = np.array([self._outer(0), self._outer(1)])
        if outer.any():
            has_match = np.zeros(len(ops), np.bool_)
            has_match[op] = True
            alone = np.flatnonzero((kinds <= self._last) & self.triggers[side] & outer[side] & ~has_match)
            extra = np.concatenate([extra, alone])
        op, place = _insert_alone(op, place, extra)
        pairs = self._pairs(ops, op, place)
        instance = None if ops.sides[0].instance is None and ops.sides[1].instance is None else ops.instances()[op]
        columns = cache_columns(pairs.resolve)
        return LazyRows(ops.ts[op], ops.order_key[op], op, kinds[op], instance, columns, pairs.times)

    # ------------------------------------------------------------------------------------- tables and aggregations

    def _with_lookup(self, s: int, rows: Rows, clock: Clock) -> LazyRows:
        """A stream side against a table or an aggregation, whose contents hold still during the call."""
        lookup, kinds = self.lookups[1 - s], rows.kind
        probing, probes = None, rows
        if kinds is not None or not self.triggers[s]:
            probing = np.flatnonzero(rows.kinds() <= self._last) if self.triggers[s] else np.empty(0, np.int64)
            probes = rows.take(probing)
        env = self._env(s, probes, clock)
        at, place = lookup.find(env, probes.order_key)
        if env.failed_rows is not None:
            self.services.route_failed(self.query, self.sides[s].source.id, env, list(probes.columns[:-1]))
        op = at if probing is None else probing[at]
        extra = np.empty(0, np.int64)
        if kinds is not None and self.triggers[s] and self._last == EXPIRED:
            extra = np.flatnonzero(kinds == RESET)
        if self._outer(s):
            has_match = np.zeros(len(rows), np.bool_)
            has_match[op] = True
            probing = np.arange(len(rows)) if probing is None else probing
            alone = probing[~has_match[probing]]
            if env.failed_rows is not None:
                alone = alone[~env.failed_rows[~has_match[probing]]]
            extra = np.concatenate([extra, alone])
        op, place = _insert_alone(op, place, extra)
        self._group = rows.chunk
        resolve_own, each = self._of_rows(s, rows), len(op) == len(rows) and bool((op == np.arange(len(op))).all())
        none = place < 0 if len(extra) else np.zeros(0, np.bool_)
        aggregation = lookup if isinstance(lookup, AggregationLookup) else None

        def resolve(ref: Ref | EventRef) -> Column:
            if ref.slot == s:
                if aggregation is not None and isinstance(ref, Ref) and ref.attr >= aggregation.range_from:
                    probe_rows, bound = slice(None) if probing is None else probing, np.zeros(len(rows), np.int64)
                    bound[probe_rows] = aggregation.ranges[ref.attr - aggregation.range_from].values
                    return Column(Type.LONG, bound[op])
                return resolve_own(ref) if each else resolve_own(ref).take(op)
            if isinstance(ref, EventRef):
                return Column(Type.BOOL, np.ones(len(op), np.bool_), none if len(extra) else None)
            return found(lambda at: lookup.column(ref.attr, at), ref.type)

        def found(of: Callable[[Array], Column], type: Type) -> Column:
            """Column `of` at the matched positions, null for rows without a match."""
            if not none.any():
                return of(place)
            column = concat([of(place[~none]), Column.all_null(type, 1)])
            index = np.full(len(op), len(column) - 1, np.int64)
            index[~none] = np.arange(len(column) - 1)
            return column.take(index)

        def times(ref: EventRef) -> Column:
            if ref.slot == s:
                return Column(Type.LONG, ts)
            return found(lambda at: Column(Type.LONG, lookup.times(at)), Type.LONG)

        instance = None if rows.instance is None else rows.instance if each else rows.instance[op]
        ts, order_key = (rows.ts, rows.order_key) if each else (rows.ts[op], rows.order_key[op])
        kind = None if kinds is None else kinds[op]
        return LazyRows(ts, order_key, op, kind, instance, cache_columns(resolve), times)

    # -------------------------------------------------------------------------------------------------------- state

    def forget(self, instances: Array) -> None:
        """Drop the state of both sides for these partition instances, and their join keys."""
        for steps in self.steps:
            if steps is not None:
                steps.forget(instances)
        if not self.forgets_all or self.lookups:
            return
        assert self._keys is not None, "the instance is part of the key"
        values = self._keys.columns()
        stays = np.flatnonzero(~np.isin(values[0].values, instances))
        numbers = np.full(self._keys.size + 1, -1, np.int64)  # the last place is for -1
        numbers[stays] = np.arange(len(stays))
        states = [without(self._contents.state(side), instances, numbers) for side in (0, 1)]
        self._keys.load({"values": [c.take(stays) for c in values]})
        self._load_contents(states)

    @property
    def forgets_all(self) -> bool:
        """True if nothing is held for an instance after `forget`."""
        return self._by_instance and all(s is None or s.forgets_all for s in self.steps)

    def _load_contents(self, states: Sequence[dict[str, Any]]) -> None:
        self._contents = Contents((self._types[0], self._types[1]))
        keys = 1 if self._keys is None else self._keys.size
        for side, state in enumerate(states):
            self._contents.load(side, state, keys, self.services.instances)

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        self._load_contents(state["contents"])

    @property
    def bytes(self) -> int:
        """Bytes held in windows and contents."""
        return sum(s.bytes for s in self.steps if s is not None) + self._contents.bytes

    @property
    def rows(self) -> int:
        """Events that the join's sides hold."""
        return self._contents.rows


def _as(column: Column, type: Type) -> Column:
    """A column in the common type of an equality. Zeros of either sign are one key; NaN is like null."""
    values, null = column.values, column.null
    if column.type is not type and type is not Type.STRING:
        values = values.astype(DTYPES[type])
    if type in (Type.FLOAT, Type.DOUBLE):
        values = values + 0  # -0.0 becomes 0.0
        none = np.isnan(values)
        if none.any():
            null = none if null is None else null | none
    return Column(type, values, null)
