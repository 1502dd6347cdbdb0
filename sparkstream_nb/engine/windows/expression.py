"""`expression(text)` and `expressionBatch(text, ...)`: windows that hold events as long as a condition over them is
true.

The condition sees the event that comes or goes, the `first` and the `last` one, and aggregates of what is held. It
changes with
every event, so these windows go event by event; the events themselves stay columns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...errors import SparkStreamError
from ...plan.binding.windows import bind_window_condition
from ...plan.nodes import Agg, Const, EventRef, Expr, Ref, walk
from ...types import Schema, Type
from ..aggregators import Aggregator, make_aggregator
from ..columns import Array, Column
from ..expressions import Env, Evaluator, compile_expr
from ..rows import CURRENT, ENTER, EXPIRED, LEAVE, RESET, Clock, Rows
from .base import Emission, WindowSetup
from .chain import ChainedLog

Events = deque[int]
"""Positions of events, oldest first."""


class _Condition:
    """A condition over a window's contents; its aggregators hold what they have seen, in all partition instances
    together.

    As in Siddhi an aggregator takes an event when it is evaluated: one behind an `and` whose left side is false does
    not.
    """

    def __init__(self, expr: Expr, setup: WindowSetup, log: ChainedLog) -> None:
        self.setup, self.log = setup, log
        self._evaluate = compile_expr(expr, setup.context)
        nodes = [e for e in walk(expr) if isinstance(e, Agg)]
        self._aggregators: dict[int, tuple[Aggregator, list[Evaluator]]] = {
            id(e): (
                make_aggregator(e, True, setup.strings),
                [compile_expr(a, setup.context) for a in e.args],
            )
            for e in nodes
        }
        self._keep = nodes  # so that their identities stay theirs

    def holds(self, kind: int, now: int, event: int, first: int, last: int) -> bool:
        """Whether it is true for `event` (a position), which comes (CURRENT), goes (EXPIRED) or begins anew (RESET)."""
        log = self.log
        places = [np.array([p]) for p in (event, first, last)]

        def resolve(ref: Ref | EventRef) -> Column:
            if isinstance(ref, EventRef):
                return Column(Type.BOOL, np.ones(1, np.bool_))
            return log.column(ref.attr, places[ref.slot])

        env = Env(
            1, self.setup.strings, log.ts[places[0]], np.array([now]), resolve,
            event_time=lambda ref: Column(Type.LONG, log.ts[places[ref.slot]]),
        )  # fmt: skip
        env.aggs = _Running(self._aggregators, env, kind)
        result = self._evaluate(env)
        if env.failed is not None:
            raise _Failed(env.reason(0) or "the window's expression failed")
        return bool(result.values[0]) and not (result.null is not None and result.null[0])

    def state(self) -> list[dict[str, Any]]:
        return [a.state() for a, _ in self._aggregators.values()]

    def load(self, state: list[dict[str, Any]]) -> None:
        for (a, _), s in zip(self._aggregators.values(), state, strict=True):
            a.load(s)


class _Failed(Exception):
    """The condition raised an error for an event."""


class _Running(Mapping[Agg, Column]):
    """The aggregators of one evaluation: asking for one is what makes it take the event."""

    def __init__(self, aggregators: dict[int, tuple[Aggregator, list[Evaluator]]], env: Env, kind: int) -> None:
        self._aggregators, self._env, self._kind = aggregators, env, np.array([kind], np.int8)

    def __getitem__(self, agg: Agg) -> Column:
        aggregator, args = self._aggregators[id(agg)]
        return aggregator.run(tuple(a(self._env) for a in args), self._kind, np.zeros(1, np.int32), 1)

    def __iter__(self) -> Iterator[Agg]:
        raise TypeError("aggregators are asked for one by one")

    def __len__(self) -> int:
        return len(self._aggregators)


class _ExpressionBase:
    """What both windows share: the condition, constant or from an attribute, and the events as lists of positions."""

    lists = 1
    moves = True

    def __init__(self, setup: WindowSetup) -> None:
        self.setup = setup
        self.log = ChainedLog(setup.types)
        self.held: list[dict[int, Events]] = [{} for _ in range(self.lists)]
        self.dynamic = not isinstance(setup.args[0], Const)
        self.text: str | None = None
        self.condition: _Condition | None = None
        if not self.dynamic:
            assert setup.condition is not None
            self.condition = _Condition(setup.condition, setup, self.log)
        self.out: list[tuple[int, int, int, int, int]] = []
        self.chunk = 0

    def _queue(self, which: int, part: int) -> Events:
        return self.held[which].setdefault(part, deque())

    def _bound(self, text: str) -> _Condition:
        types = self.setup.types[: len(self.setup.names)]
        schema = Schema.of(*zip(self.setup.names, types, strict=True))
        return _Condition(bind_window_condition(text, schema), self.setup, self.log)

    def run(self, rows: Rows, clock: Clock, parts: int, rank: Array | None) -> Rows:
        rows = self._wanted(rows)
        n = len(rows)
        log = self.log
        at = log.add(rows, parts)
        texts = rows.columns[self.setup.column(0)].to_list(self.setup.strings) if self.dynamic else [None] * n
        now, part, root, chunk = clock.at(rows.root).tolist(), rows.parts().tolist(), rows.root.tolist(), rows.chunk
        self.out, self.chunk = [], 0
        bad = np.zeros(n, np.bool_)
        why = ""
        for i in range(n):
            if i and chunk[i] != chunk[i - 1]:
                self.chunk += 1
            try:
                if self.dynamic and texts[i] != self.text:
                    condition = self._bound(str(texts[i]))
                    self.condition, self.text = condition, texts[i]
                    self._again(part[i], now[i], root[i])
                self._take(at + i, part[i], now[i], root[i])
            except (_Failed, SparkStreamError) as e:
                bad[i], why = True, str(e)
        if bad.any():
            self.setup.refuse(rows, bad, why)
        result = self._emitted(rows.part is not None)
        self._tidy()
        return result

    def _wanted(self, rows: Rows) -> Rows:
        """The rows without those whose text (or flag) is null."""
        needed = [a.attr for a in self.setup.args if isinstance(a, Ref)]
        return self.setup.without_nulls(rows, needed, "the window's expression is null")

    def _again(self, part: int, now: int, root: int) -> None:
        """The condition is another one: what is held is taken anew."""
        raise NotImplementedError

    def _take(self, pos: int, part: int, now: int, root: int) -> None:
        raise NotImplementedError

    def _move(self, pos: int, kind: int, root: int) -> None:
        """Tells a join that looks into the window."""
        if self.setup.findable:
            self._put(pos, kind, int(self.log.ts[pos]), root)

    def _put(self, pos: int, kind: int, ts: int, root: int) -> None:
        self.out.append((pos, kind, ts, root, self.chunk))

    def _emitted(self, partitioned: bool) -> Rows:
        table = np.array(self.out, np.int64).reshape(-1, 5)
        out = Emission(0)
        out.pos, out.kind, out.ts = table[:, 0], table[:, 1].astype(np.int8), table[:, 2]
        out.root, out.chunk = table[:, 3], table[:, 4]
        self.out = []
        return out.rows(len(table), self.log, partitioned)

    def _tidy(self) -> None:
        log = self.log
        every = [(w, p, q) for w, by in enumerate(self.held) for p, q in by.items()]
        flat = np.array([i for _, _, q in every for i in q], np.int64)
        log.alive[: log.end] = False
        log.alive[flat] = True
        before = log.end
        log.tidy(flat)
        if log.end != before:
            moved = iter(flat.tolist())
            for w, p, q in every:
                self.held[w][p] = deque(next(moved) for _ in range(len(q)))

    def state(self) -> dict[str, Any]:
        lists = []
        for by in self.held:
            parts = sorted(by)
            lists.append(
                {
                    "events": self.log.state(np.array([i for p in parts for i in by[p]], np.int64)),
                    "parts": parts,
                    "lengths": [len(by[p]) for p in parts],
                }
            )
        condition = None if self.condition is None else self.condition.state()
        return {"lists": lists, "text": self.text, "condition": condition, "room": self.log.parts}

    def load(self, state: dict[str, Any]) -> None:
        self.log = ChainedLog(self.setup.types)
        self.held = []
        for one in state["lists"]:
            events = one["events"]
            n = len(events["ts"])
            zeros = np.zeros(n, np.int64)
            at = self.log.add(
                Rows(events["columns"], events["ts"], zeros, zeros, None, events["part"]), state["room"]
            )
            self.log.alive[at : at + n] = True
            by = {}
            for p, k in zip(one["parts"], one["lengths"], strict=True):
                by[p] = deque(range(at, at + k))
                at += k
            self.held.append(by)
        self.text = state["text"]
        if self.dynamic:
            self.condition = None if self.text is None else self._bound(self.text)
        else:
            assert self.setup.condition is not None
            self.condition = _Condition(self.setup.condition, self.setup, self.log)
        if self.condition is not None:
            self.condition.load(state["condition"])

    @property
    def bytes(self) -> int:
        return self.log.bytes


class ExpressionWindow(_ExpressionBase):
    """When a new event makes the condition false, the oldest leave until it is true again (the new one too, if need
    be)."""

    def _again(self, part: int, now: int, root: int) -> None:
        """`ExpressionWindowProcessor.processAllExpiredEvents`."""
        held = list(self._queue(0, part))
        self._queue(0, part).clear()
        for pos in held:
            self._add(pos, part, now, root)

    def _take(self, pos: int, part: int, now: int, root: int) -> None:
        self._move(pos, ENTER, root)
        self._add(pos, part, now, root)
        self._put(pos, CURRENT, int(self.log.ts[pos]), root)

    def _add(self, pos: int, part: int, now: int, root: int) -> None:
        """`ExpressionWindowProcessor.processStreamEvent`."""
        assert self.condition is not None
        queue = self._queue(0, part)
        queue.append(pos)
        if self.condition.holds(CURRENT, now, pos, queue[0], pos):
            return
        while queue:
            old = queue.popleft()
            self._move(old, LEAVE, root)
            self._put(old, EXPIRED, now, root)
            if self.condition.holds(EXPIRED, now, old, queue[0] if queue else old, pos):
                break


_PENDING, _GONE = 0, 1
"""The lists of an `expressionBatch` window: what has not come out yet, and what came out last and will expire."""


class ExpressionBatchWindow(_ExpressionBase):
    """An event that makes the condition false lets the batch out; it begins the next one, or ends this one where asked.

    With `stream.current.event` events pass at once and a batch only expires together. A join finds the batch that is
    being collected.
    """

    lists = 2

    def __init__(self, setup: WindowSetup) -> None:
        super().__init__(setup)
        flag = setup.args[1] if len(setup.args) > 1 else None
        self.flag = flag.attr if isinstance(flag, Ref) else None
        self.include = bool(setup.constant(1, False)) if self.flag is None else False
        self.streaming = bool(setup.constant(2, False))
        self.stamps = None if self.streaming else CURRENT

    def _includes(self, pos: int) -> bool:
        """Whether the event that ends a batch belongs to it."""
        return self.include if self.flag is None else bool(self.log.values(self.flag)[pos])

    def _again(self, part: int, now: int, root: int) -> None:
        """`ExpressionBatchWindowProcessor.processAllExpiredEvents`."""
        queue = self._queue(_GONE if self.streaming else _PENDING, part)
        held = list(queue)
        queue.clear()
        for pos in held:
            if self.streaming:
                self._stream(pos, part, now, root, output=False)
            else:
                self._collect(pos, part, now, root, held=True)

    def _take(self, pos: int, part: int, now: int, root: int) -> None:
        if self.streaming:
            self._stream(pos, part, now, root, output=True)
        else:
            self._collect(pos, part, now, root, held=False)

    def _ends(self, pos: int, now: int, first: int) -> bool:
        """Whether `pos` makes the condition false; its aggregators then begin anew with that event."""
        assert self.condition is not None
        if self.condition.holds(CURRENT, now, pos, first, pos):
            return False
        self.condition.holds(RESET, now, pos, first, pos)
        self.condition.holds(CURRENT, now, pos, first, pos)
        return True

    def _collect(self, pos: int, part: int, now: int, root: int, *, held: bool) -> None:
        """`processStreamEvent`. `held`: the event is in the batch already and is taken anew."""
        pending, gone = self._queue(_PENDING, part), self._queue(_GONE, part)
        if not self._ends(pos, now, pending[0] if pending else pos):
            pending.append(pos)
            if not held:
                self._move(pos, ENTER, root)
            return
        self.chunk += 1
        while gone:
            self._put(gone.popleft(), EXPIRED, now, root)
        stays = False
        if pending:
            while pending:
                old = pending.popleft()
                self._move(old, LEAVE, root)
                self._put(old, CURRENT, now, root)
                gone.append(old)
            if self._includes(pos):
                self._put(pos, CURRENT, int(self.log.ts[pos]), root)
                gone.append(pos)
            else:
                pending.append(pos)
                stays = True
        else:
            self._put(pos, EXPIRED, now, root)
            self._put(pos, CURRENT, now, root)
        if stays != held:
            self._move(pos, ENTER if stays else LEAVE, root)
        self.chunk += 1

    def _stream(self, pos: int, part: int, now: int, root: int, *, output: bool) -> None:
        """`processStreamEventAsStream`. What expires while held events are taken anew waits in the list of pending
        ones."""
        waiting, held = self._queue(_PENDING, part), self._queue(_GONE, part)
        ends = self._ends(pos, now, held[0] if held else pos)
        ts = int(self.log.ts[pos])
        if output:
            self.chunk += 1
            while waiting:
                self._put(waiting.popleft(), EXPIRED, now, root)
        if not ends:
            held.append(pos)
            if output:
                self._put(pos, CURRENT, ts, root)
        elif held:
            includes = self._includes(pos)
            if includes and output:
                self._put(pos, CURRENT, ts, root)
            leaving = [*held, pos] if includes else list(held)
            held.clear()
            if output:
                for p in leaving:
                    self._put(p, EXPIRED, now, root)
                if not includes:
                    self._put(pos, CURRENT, ts, root)
            else:
                waiting.extend(leaving)
            if not includes:
                held.append(pos)
        elif output:
            self._put(pos, EXPIRED, now, root)
            self._put(pos, CURRENT, now, root)
        else:
            waiting.append(pos)
        if output:
            self.chunk += 1
