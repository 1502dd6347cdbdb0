"""Joins of streams, windows and tables.

Both sides run their windows first; what comes out (CURRENT, EXPIRED, RESET rows) is taken in the order of the roots.
A CURRENT row enters its side's contents, an EXPIRED one leaves it (ENTER and LEAVE rows where a window says so), and
a row of a side that triggers looks up the other
side's contents at that moment (Siddhi's `JoinProcessor` after each window). Contents hang in chains, one per join key:
the equalities of the `on` condition are a hash index, the rest of it is evaluated over the candidate pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from ..plan import nodes
from ..plan.nodes import EventRef, Expr, Ref
from ..types import Type, promote
from .arrays import grown
from .columns import DTYPES, Array, Column, concat
from .expressions import Env, Evaluator, compile_expr
from .frame import EventTime, Frame, Resolver, cached
from .groups import Keys
from .jit import kernel
from .rows import CURRENT, ENTER, EXPIRED, LEAVE, RESET, Clock, Rows
from .services import Services
from .steps import Steps, slot_attrs
from .windows import changes
from .windows.log import EventLog

_BLOCK = 1 << 20
"""Pairs that one pass of the lookup loop may make before the rest of the condition is evaluated over them."""


class Lookup(Protocol):
    """A side that is not a stream: a table or an aggregation."""

    def find(self, env: Env, roots: Array) -> tuple[Array, Array]:
        """(row of `env`, position) of every match, in the order of the rows and then of the contents. `roots` are the
        rows'.
        """
        ...

    def column(self, attr: int, positions: Array) -> Column:
        """Values of an attribute at positions."""
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
        plain = not any(isinstance(e, nodes.InTable | nodes.Call | nodes.ScriptCall) for e in nodes.walk(on))
        if both is not None and both is not Type.OBJECT and plain:
            if slots == [{0}, {1}]:
                return [(on.left, on.right, both)], None
            if slots == [{1}, {0}]:
                return [(on.right, on.left, both)], None
    return [], on


@kernel
def _lookup(
    at: int, side: Array, kind: Array, key: Array, pos: Array, triggers: Array, head: Array, tail: Array, nxt: Array,
    prv: Array, alive: Array, key_of: Array, born: Array, part: Array, finds: Array, probed: Array, resume: Array,
    op_out: Array, pos_out: Array,
) -> tuple[int, int]:  # fmt: skip
    """Runs the ops from `at` on until the pair buffer is full; returns (next op, pairs made).

    `pos` is an entering row's new place in the contents of its side, a leaving row's old one (-1: it never was there).
    `resume[0]` is the content at which an interrupted lookup goes on, -1 for none. `probed` marks the EXPIRED rows
    whose contents were looked into since they came (`finds` counts the lookups by side and partition instance).
    """
    pairs = 0
    for i in range(at, len(side)):
        s = side[i]
        o = 1 - s
        if resume[0] < 0:
            p = pos[i]
            if (kind[i] == CURRENT or kind[i] == ENTER) and p >= 0:
                k = key[i]
                key_of[s, p] = k
                alive[s, p] = True
                born[s, p] = finds[s, part[i]]
                if k >= 0:
                    nxt[s, p] = -1
                    prv[s, p] = tail[s, k]
                    if tail[s, k] >= 0:
                        nxt[s, tail[s, k]] = p
                    else:
                        head[s, k] = p
                    tail[s, k] = p
            elif (kind[i] == EXPIRED or kind[i] == LEAVE) and p >= 0 and alive[s, p]:
                alive[s, p] = False
                probed[i] = finds[s, part[i]] > born[s, p]
                k = key_of[s, p]
                if k >= 0:
                    if prv[s, p] >= 0:
                        nxt[s, prv[s, p]] = nxt[s, p]
                    else:
                        head[s, k] = nxt[s, p]
                    if nxt[s, p] >= 0:
                        prv[s, nxt[s, p]] = prv[s, p]
                    else:
                        tail[s, k] = prv[s, p]
            if not triggers[s] or kind[i] > EXPIRED:
                continue
            finds[o, part[i]] += 1
            if key[i] < 0:
                continue
            c = head[o, key[i]]
        else:
            c = resume[0]
            resume[0] = -1
        while c >= 0:
            if pairs == len(op_out):
                resume[0] = c
                return i, pairs
            op_out[pairs] = i
            pos_out[pairs] = c
            pairs += 1
            c = nxt[o, c]
    return len(side), pairs


class _Contents:
    """What the two sides hold: values by side, and the chains as arrays of two rows (left, right)."""

    def __init__(self, types: tuple[tuple[Type, ...], tuple[Type, ...]]) -> None:
        self.logs = (EventLog(types[0]), EventLog(types[1]))
        self.head = np.full((2, 0), -1, np.int64)
        self.tail = np.full((2, 0), -1, np.int64)
        self.next = np.full((2, 0), -1, np.int64)
        self.prev = np.full((2, 0), -1, np.int64)
        self.alive = np.zeros((2, 0), np.bool_)
        self.key = np.full((2, 0), -1, np.int64)
        self.born = np.zeros((2, 0), np.int64)
        self.finds = np.zeros((2, 0), np.int64)
        self.place = [np.full(0, -1, np.int64), np.full(0, -1, np.int64)]  # serial - first → position
        self.first = [0, 0]

    def room(self, keys: int, parts: int) -> None:
        n = max(len(self.logs[0].ts), len(self.logs[1].ts), self.logs[0].end, self.logs[1].end)
        self.head, self.tail = grown(self.head, keys, -1), grown(self.tail, keys, -1)
        self.next, self.prev = grown(self.next, n, -1), grown(self.prev, n, -1)
        self.alive, self.key = grown(self.alive, n, False), grown(self.key, n, -1)
        self.born, self.finds = grown(self.born, n), grown(self.finds, parts)

    def add(self, side: int, rows: Rows, serial: Array) -> Array:
        """Appends rows to a side's values, in no chain yet; returns their positions."""
        log = self.logs[side]
        at = log.append(rows)
        if len(serial):
            top = int(serial.max()) + 1 - self.first[side]
            self.place[side] = grown(self.place[side], top, -1)
            self.place[side][serial - self.first[side]] = np.arange(at, at + len(serial))
        return np.arange(at, at + len(serial), dtype=np.int64)

    def find(self, side: int, serial: Array) -> Array:
        """Positions of rows by serial number, -1 where they are gone."""
        at = serial - self.first[side]
        place = self.place[side]
        ok = (at >= 0) & (at < len(place))
        out = np.full(len(serial), -1, np.int64)
        out[ok] = place[at[ok]]
        return out

    def compact(self, side: int) -> None:
        """Drops the dead rows of a side once they are the most."""
        log = self.logs[side]
        if log.end < 2048:
            return
        keep = np.flatnonzero(self.alive[side, : log.end])
        if 2 * len(keep) > log.end:
            return
        moved = np.full(self.next.shape[1] + 1, -1, np.int64)
        moved[keep] = np.arange(len(keep))
        log.compact(keep)
        n = len(keep)
        for a in (self.next, self.prev):
            a[side, :n] = moved[a[side, keep]]
        self.key[side, :n] = self.key[side, keep]
        self.born[side, :n] = self.born[side, keep]
        self.alive[side, :n], self.alive[side, n:] = True, False
        self.head[side], self.tail[side] = moved[self.head[side]], moved[self.tail[side]]
        place = self.place[side]
        live = np.where(place >= 0, moved[place], -1)
        held = np.flatnonzero(live >= 0)
        cut = int(held[0]) if len(held) else len(live)
        self.place[side] = live[cut:]
        self.first[side] += cut

    def state(self, side: int) -> dict[str, Any]:
        log = self.logs[side]
        keep = np.flatnonzero(self.alive[side, : log.end])
        serial = np.full(log.end, -1, np.int64)
        held = np.flatnonzero(self.place[side] >= 0)
        serial[self.place[side][held]] = held + self.first[side]
        # Rows enter the chains in the order of their positions, so positions are all that order needs.
        return {**log.state(keep), "key": self.key[side, keep], "serial": serial[keep], "born": self.born[side, keep]}

    def load(self, side: int, state: dict[str, Any], keys: int, parts: int) -> None:
        serial, key = state["serial"], state["key"]
        n = len(serial)
        zeros = np.zeros(n, np.int64)
        self.first[side] = int(serial.min()) if n else 0
        self.add(side, Rows(state["columns"], state["ts"], zeros, zeros, None, state["part"]), serial)
        self.room(keys, parts)
        sides, none = np.full(n, side, np.int8), np.empty(0, np.int64)
        _lookup(
            0, sides, np.zeros(n, np.int8), key, np.arange(n), np.zeros(2, np.bool_), self.head, self.tail, self.next,
            self.prev, self.alive, self.key, self.born, state["part"], self.finds, np.zeros(n, np.bool_),
            np.array([-1]), none, none,
        )  # fmt: skip
        self.born[side, :n] = state["born"]


class JoinOp:
    """The input of a join query. `streams` are the ids that it receives, `lookups` the sides that are not streams."""

    def __init__(
        self,
        join: nodes.JoinInput,
        exprs: list[Expr],
        services: Services,
        *,
        query: str,
        scheduler: int,
        wants_expired: bool,
        lookups: Mapping[int, Lookup],
        partitioned: bool = False,
    ) -> None:
        self.join, self.services, self.query = join, services, query
        self.lookups = dict(lookups)
        self.partitioned = partitioned
        self.sides = (join.left, join.right)
        self.wants_expired = wants_expired
        equal, rest = ([], join.on) if lookups else equalities(join.on)
        needed = exprs + [x for a, b, _ in equal for x in (a, b)] + ([join.on] if join.on is not None else [])
        self._attrs = tuple(sorted(slot_attrs(iter(needed), s)) for s in (0, 1))
        self._steps: list[Steps | None] = []
        self.schedulers = 0
        for s, side in enumerate(self.sides):
            if s in self.lookups:
                self._steps.append(None)
                continue
            steps = Steps(
                side, set(self._attrs[s]), services, query=query, slot=s, scheduler=scheduler + self.schedulers,
                wants_expired=wants_expired, findable=True, serial=True,
            )  # fmt: skip
            self.schedulers += steps.schedulers
            self._steps.append(steps)
        self.inputs = tuple(dict.fromkeys(x.source.id for s, x in enumerate(self.sides) if s not in self.lookups))
        self.right_first = False  # whether of rows of one root those of the right side come first
        self.self_join = len(self.inputs) == 1 and not self.lookups
        self.triggers = np.array(join.triggers, np.bool_)
        if self.self_join and join.left.source.kind == "window":
            # Only the first side of a named window joined with itself receives (`MultiProcessStreamReceiver` of one).
            self.triggers[1] = False
        context = services.context
        self._left_keys: list[Evaluator] = [compile_expr(a, context) for a, _, _ in equal]
        self._right_keys: list[Evaluator] = [compile_expr(b, context) for _, b, _ in equal]
        self._key_types = [t for _, _, t in equal]
        self._rest = None if rest is None else compile_expr(rest, context)
        key_types = ([Type.INT] if partitioned else []) + self._key_types
        self._keys = Keys(key_types, services.strings) if key_types else None
        self._types = tuple(tuple(side.schema.types[a] for a in self._attrs[s]) for s, side in enumerate(self.sides))
        self._contents = _Contents((self._types[0], self._types[1]))
        self._serial = [0, 0]

    # ------------------------------------------------------------------------------------------------------ running

    def run(self, inputs: Mapping[str, Rows], clock: Clock) -> Frame:
        """The joined rows, in order; each row that triggered makes one chunk."""
        if self.self_join:
            rows = inputs[self.inputs[0]]
            if len(rows) > 1 and (rows.chunk[1:] == rows.chunk[:-1]).any():
                raise NotImplementedError("the node takes self joins event by event")
        outs = []
        for s, side in enumerate(self.sides):
            steps = self._steps[s]
            outs.append(None if steps is None else self._side(s, steps, inputs[side.source.id], clock))
        if self.lookups:
            (s,) = (i for i in (0, 1) if i not in self.lookups)
            probing = outs[s]
            assert probing is not None
            return self._with_lookup(s, probing, clock)
        assert outs[0] is not None
        assert outs[1] is not None
        return self._with_windows(outs[0], outs[1], clock)

    def _side(self, s: int, steps: Steps, rows: Rows, clock: Clock) -> Rows:
        """The rows after a side's window; their last column is the serial number."""
        if self.sides[s].source.kind == "window":
            return steps.named(rows)
        n = len(rows)
        serial = np.arange(self._serial[s], self._serial[s] + n, dtype=np.int64)
        self._serial[s] += n
        out = steps.run(rows, clock, Column(Type.LONG, serial))
        return out if steps.window is not None else self._empty_window(out, clock)

    def _empty_window(self, rows: Rows, clock: Clock) -> Rows:
        """A side without a window: every event comes, expires where that is wanted, and resets
        (`EmptyWindowProcessor`).
        """
        n, k = len(rows), 3 if self.wants_expired else 2
        index = np.repeat(np.arange(n), k)
        kinds = np.array([CURRENT, EXPIRED, RESET] if self.wants_expired else [CURRENT, RESET], np.int8)
        out = rows.take(index)
        out.kind = np.tile(kinds, n)
        out.ts = np.where(out.kind == CURRENT, out.ts, clock.at(out.root))
        return out

    def _key_ids(self, s: int, rows: Rows, clock: Clock) -> Array:
        """Ids of the rows' join keys; -1 where a part is null, which matches nothing."""
        n = len(rows)
        if self._keys is None:
            return np.zeros(n, np.int64)
        env = self._env(n, rows.ts, rows.root, clock, self._of_rows(s, rows))
        columns = [
            _as(e(env), t)
            for e, t in zip(self._left_keys if s == 0 else self._right_keys, self._key_types, strict=True)
        ]
        none = np.zeros(n, np.bool_)
        for c in columns:
            if c.null is not None:
                none |= c.null
        if env.failed is not None:
            self.services.failed(self.query, self.sides[s].source.id, env, list(rows.columns[:-1]))
            none |= env.failed
        if self.partitioned:
            columns.insert(0, Column(Type.INT, rows.parts()))
        ids = self._keys.ids(columns).astype(np.int64)
        ids[none] = -1
        return ids

    def _of_rows(self, s: int, rows: Rows) -> Resolver:
        places = {a: i for i, a in enumerate(self._attrs[s])}

        def resolve(ref: Ref | EventRef) -> Column:
            if isinstance(ref, EventRef):
                return Column(Type.BOOL, np.ones(len(rows), np.bool_))
            return rows.columns[places[ref.attr]]

        return resolve

    def _env(self, n: int, ts: Array, root: Array, clock: Clock, resolve: Any) -> Env:
        return Env(n, self.services.strings, ts, lambda: clock.at(root), resolve, tables=self.services.in_table)

    def _with_windows(self, left: Rows, right: Rows, clock: Clock) -> Frame:
        sides = (left, right)
        root = np.concatenate([left.root, right.root])
        n0 = len(left)
        order = np.argsort(root, kind="stable")
        if self.right_first or (self.self_join and self.sides[0].source.kind == "window"):
            # In a window's self-join both sides look into the same window, which holds the event before anybody is
            # told of it.
            order = np.lexsort((np.arange(len(root)) < n0, root))
        side = (order >= n0).astype(np.int8)
        keys = np.concatenate([self._key_ids(0, left, clock), self._key_ids(1, right, clock)])
        held = self._contents
        for s in (0, 1):  # not at the end of a call: its frame reads the contents when the select asks
            held.compact(s)
        places = []
        for s, rows in enumerate(sides):
            serial = rows.columns[-1].values if len(rows.columns) else np.empty(0, np.int64)
            pos = np.full(len(rows), -1, np.int64)
            has_window = self._steps[s] is not None and self._holds(s)
            if has_window and len(rows):
                fresh, gone = changes(rows)
                entering = rows.take(fresh)
                pos[fresh] = held.add(s, entering.with_columns(entering.columns[:-1]), serial[fresh])
                pos[gone] = held.find(s, serial[gone])
            places.append(pos)
        held.room(1 if self._keys is None else self._keys.size, self.services.parts)
        kinds = np.concatenate([left.kinds(), right.kinds()])[order]
        pos, keys = np.concatenate(places)[order], keys[order]
        part = np.concatenate([left.parts(), right.parts()])[order]
        probed = np.zeros(len(order), np.bool_)
        resume, at = np.array([-1], np.int64), 0
        ops, found = [], []
        while at < len(order):
            op_out, pos_out = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)
            at, pairs = _lookup(
                at, side, kinds, keys, pos, self.triggers, held.head, held.tail, held.next, held.prev, held.alive,
                held.key, held.born, part, held.finds, probed, resume, op_out, pos_out,
            )  # fmt: skip
            op, place = op_out[:pairs], pos_out[:pairs]
            if self._rest is not None and pairs:
                keep = self._rest_holds(sides, order, side, n0, op, place, clock)
                op, place = op[keep], place[keep]
            ops.append(op)
            found.append(place)
        op = np.concatenate(ops) if ops else np.empty(0, np.int64)
        place = np.concatenate(found) if found else np.empty(0, np.int64)
        frame = self._frame(sides, order, side, n0, kinds, op, place)
        self._keep_times(frame, side, pos, probed)
        return frame

    def _keep_times(self, frame: Frame, side: Array, pos: Array, probed: Array) -> None:
        """Expired rows of a batch window that was looked into keep their own time: Siddhi's stamping loop goes on
        from where the lookup left the queue's cursor (`while (expiredEventQueue.hasNext())` without a reset)."""
        for s in (0, 1):
            steps = self._steps[s]
            if steps is None or steps.window is None or not getattr(steps.window, "stamps_unprobed", False):
                continue
            op = frame.chunk
            late = np.flatnonzero(probed[op] & (side[op] == s))
            if len(late):
                frame.ts = frame.ts.copy()
                frame.ts[late] = self._contents.logs[s].ts[pos[op[late]]]

    def _holds(self, s: int) -> bool:
        """Whether a side has contents at all: a stream without window has none."""
        steps = self._steps[s]
        return self.sides[s].source.kind == "window" or (steps is not None and steps.window is not None)

    def _rest_holds(
        self, sides: tuple[Rows, Rows], order: Array, side: Array, n0: int, op: Array, place: Array, clock: Clock
    ) -> Array:
        """Indices of the pairs for which the rest of the condition is true."""
        resolve = self._pair_resolver(sides, order, side, n0, op, place)
        ts, root = self._probe_times(sides, order, op)
        env = self._env(len(op), ts, root, clock, resolve)
        assert self._rest is not None
        result = self._rest(env)
        mask = result.values if result.null is None else result.values & ~result.null
        if env.failed is not None:
            self.services.failed(self.query, self.sides[0].source.id, env, [])
            mask = mask & ~env.failed
        return np.flatnonzero(mask)

    @staticmethod
    def _probe_times(sides: tuple[Rows, Rows], order: Array, op: Array) -> tuple[Array, Array]:
        ts = np.concatenate([sides[0].ts, sides[1].ts])[order[op]]
        root = np.concatenate([sides[0].root, sides[1].root])[order[op]]
        return ts, root

    def _pair_resolver(
        self, sides: tuple[Rows, Rows], order: Array, side: Array, n0: int, op: Array, place: Array
    ) -> Any:
        """Columns of pairs: `place` is the match's position on the other side, -1 for none (an outer join's null)."""
        row = order[op] - np.where(side[op] == 1, n0, 0)
        probing = side[op]
        places = tuple({a: i for i, a in enumerate(self._attrs[s])} for s in (0, 1))

        def resolve(ref: Ref | EventRef) -> Column:
            s = ref.slot
            mine = probing == s
            if isinstance(ref, EventRef):
                return Column(Type.BOOL, np.ones(len(op), np.bool_), ~mine & (place < 0))
            i = places[s][ref.attr]
            own = sides[s].columns[i]
            if mine.all():
                return own.take(row)
            matched = np.flatnonzero(~mine & (place >= 0))
            parts = [own, self._contents.logs[s].column(i, place[matched]), Column.all_null(ref.type, 1)]
            index = np.full(len(op), len(own) + len(matched), np.int64)
            index[mine] = row[mine]
            index[matched] = np.arange(len(own), len(own) + len(matched))
            return concat(parts).take(index)

        return cached(resolve)

    def _outer(self, s: int) -> bool:
        """Whether a row of side `s` without a match comes out with nulls."""
        return self.join.kind == "full outer" or self.join.kind == ("left outer" if s == 0 else "right outer")

    def _frame(
        self, sides: tuple[Rows, Rows], order: Array, side: Array, n0: int, kinds: Array, op: Array, place: Array
    ) -> Frame:
        """Matches, the rows that match nothing where the join is outer on their side, and RESET rows, by op."""
        extra = np.flatnonzero((kinds == RESET) & self.triggers[side])
        outer = np.array([self._outer(0), self._outer(1)])
        if outer.any():
            matched = np.zeros(len(order), np.bool_)
            matched[op] = True
            alone = np.flatnonzero((kinds <= EXPIRED) & self.triggers[side] & outer[side] & ~matched)
            extra = np.concatenate([extra, alone])
        if len(extra):
            op = np.concatenate([op, extra])
            place = np.concatenate([place, np.full(len(extra), -1, np.int64)])
            by_op = np.argsort(op, kind="stable")
            op, place = op[by_op], place[by_op]
        ts, root = self._probe_times(sides, order, op)
        part = None
        if sides[0].part is not None or sides[1].part is not None:
            part = np.concatenate([sides[0].parts(), sides[1].parts()])[order[op]]
        resolve = self._pair_resolver(sides, order, side, n0, op, place)
        event_time = self._pair_times(sides, order, side, n0, op, place)
        return Frame(ts, root, op, kinds[op], part, resolve, event_time)

    def _pair_times(
        self, sides: tuple[Rows, Rows], order: Array, side: Array, n0: int, op: Array, place: Array
    ) -> EventTime:
        """Timestamps of the events of a side in pairs, null where an outer join has none."""
        row = order[op] - np.where(side[op] == 1, n0, 0)

        def times(ref: EventRef) -> Column:
            s = ref.slot
            mine = side[op] == s
            out, matched = np.zeros(len(op), np.int64), ~mine & (place >= 0)
            out[mine] = sides[s].ts[row[mine]]
            out[matched] = self._contents.logs[s].ts[place[matched]]
            none = ~mine & (place < 0)
            return Column(Type.LONG, out, none if none.any() else None)

        return times

    # ------------------------------------------------------------------------------------- tables and aggregations

    def _with_lookup(self, s: int, rows: Rows, clock: Clock) -> Frame:
        """A stream side against a table or an aggregation, whose contents hold still during the call."""
        lookup, kinds = self.lookups[1 - s], rows.kinds()
        probing = np.flatnonzero(kinds <= EXPIRED) if self.triggers[s] else np.empty(0, np.int64)
        probes = rows.take(probing)
        env = self._env(len(probes), probes.ts, probes.root, clock, self._of_rows(s, probes))
        at, place = lookup.find(env, probes.root)
        if env.failed is not None:
            self.services.failed(self.query, self.sides[s].source.id, env, list(probes.columns[:-1]))
        op = probing[at]
        extra = np.flatnonzero(kinds == RESET) if self.triggers[s] else np.empty(0, np.int64)
        if self._outer(s):
            matched = np.zeros(len(rows), np.bool_)
            matched[op] = True
            alone = probing[~matched[probing]]
            if env.failed is not None:
                alone = alone[~env.failed[~matched[probing]]]
            extra = np.concatenate([extra, alone])
        if len(extra):
            op = np.concatenate([op, extra])
            place = np.concatenate([place, np.full(len(extra), -1, np.int64)])
            by_op = np.argsort(op, kind="stable")
            op, place = op[by_op], place[by_op]
        own = self._of_rows(s, rows)

        def resolve(ref: Ref | EventRef) -> Column:
            if ref.slot == s:
                return own(ref).take(op)
            none = place < 0
            if isinstance(ref, EventRef):
                return Column(Type.BOOL, np.ones(len(op), np.bool_), none)
            column = concat([lookup.column(ref.attr, place[~none]), Column.all_null(ref.type, 1)])
            index = np.full(len(op), len(column) - 1, np.int64)
            index[~none] = np.arange(len(column) - 1)
            return column.take(index)

        part = None if rows.part is None else rows.part[op]
        return Frame(rows.ts[op], rows.root[op], op, kinds[op], part, cached(resolve))

    # -------------------------------------------------------------------------------------------------------- state

    def state(self) -> dict[str, Any]:
        return {
            "steps": [None if s is None else s.state() for s in self._steps],
            "contents": [self._contents.state(s) for s in (0, 1)],
            "finds": self._contents.finds,
            "keys": None if self._keys is None else self._keys.state(),
            "serial": list(self._serial),
        }

    def load(self, state: dict[str, Any]) -> None:
        for steps, s in zip(self._steps, state["steps"], strict=True):
            if steps is not None:
                steps.load(s)
        if self._keys is not None:
            self._keys.load(state["keys"])
        self._contents = _Contents((self._types[0], self._types[1]))
        for side in (0, 1):
            self._contents.load(
                side, state["contents"][side], 1 if self._keys is None else self._keys.size, self.services.parts
            )
        self._contents.finds = grown(np.array(state["finds"], np.int64), self.services.parts)
        self._serial = list(state["serial"])

    @property
    def bytes(self) -> int:
        """Bytes held in windows and contents."""
        windows = sum(s.window.bytes for s in self._steps if s is not None and s.window is not None)
        return windows + sum(log.bytes for log in self._contents.logs)


def _as(column: Column, type: Type) -> Column:
    """A numeric column in the common type of an equality."""
    if column.type is type or type is Type.STRING:
        return column
    return Column(type, column.values.astype(DTYPES[type]), column.null)
