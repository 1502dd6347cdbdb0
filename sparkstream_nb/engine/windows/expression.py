"""`expression(text)` and `expressionBatch(text, ...)`: windows that hold events as long as a condition over them is
true.

The condition sees the event that comes or goes, the `first` and the `last` one, and aggregates of the held events; its
aggregators count the events of all partition instances together. The loops are compiled with the condition as a program
(`bytecode.interpret`); a condition that no program can state runs them as plain Python.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, cast

import numpy as np

from ...errors import SparkStreamError
from ...plan.binding.expression_windows import bind_window_condition
from ...plan.nodes import Agg, Const, EventRef, Expr, Ref, walk
from ...types import Schema, Type
from ..aggregators import Aggregator, make_aggregator
from ..columnar.column_data import Array, Column
from ..columnar.rows import CURRENT, ENTER, EXPIRED, LEAVE, RESET, Clock, Rows
from ..expressions import Env, Evaluator, compile_expr
from ..expressions.bytecode import FAILED, FALSE, TRUE, NoProgram
from ..notation.kernels import compiled, inlined, struct
from ..notation.structs import static
from .chain import CURRENT_CHAIN, EXPIRED_CHAIN, ChainedLog
from .condition_program import ConditionProgram
from .window_protocol import Emission, Feed, Untimed, WindowSetup, no_rows


class EvaluatedCondition:
    """A condition that no program can state: evaluated in Python, event by event."""

    def __init__(self, expr: Expr, setup: WindowSetup, log: ChainedLog) -> None:
        self.setup, self.log = setup, log
        self.why = ""
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

    def holds(self, kind: int, now: int, event: int, first: int, last: int, ts: Array) -> int:
        """`ConditionProgram.holds`; FAILED if the condition raises an error, with `why`."""
        log = self.log
        places = [np.array([p]) for p in (event, first, last)]
        # What has left the window bears the time at which it did.
        times = [np.array([now if kind == EXPIRED and p == event else ts[p]]) for p in (event, first, last)]

        def resolve(ref: Ref | EventRef) -> Column:
            if isinstance(ref, EventRef):
                return Column(Type.BOOL, np.ones(1, np.bool_))
            return log.column(ref.attr, places[ref.slot])

        env = Env(
            1, self.setup.strings, ts[places[0]], np.array([now]), resolve,
            event_time=lambda ref: Column(Type.LONG, times[ref.slot]),
        )  # fmt: skip
        env.aggs = _EvaluationAggregates(self._aggregators, env, kind)
        result = self._evaluate(env)
        if env.failed_rows is not None:
            self.why = env.reason(0) or "the window's expression failed"
            return FAILED
        return TRUE if result.values[0] and not (result.null is not None and result.null[0]) else FALSE

    def room(self, events: int) -> None:
        """Nothing to prepare."""

    def compact(self, keep: Array) -> None:
        """Nothing is kept by position."""

    def state(self) -> Any:
        return [a.state() for a, _ in self._aggregators.values()]

    def load(self, state: Any) -> None:
        for (a, _), s in zip(self._aggregators.values(), state, strict=True):
            a.load(s)


class _EvaluationAggregates(Mapping[Agg, Column]):
    """The aggregators of one evaluation: reading one makes it take the event."""

    def __init__(self, aggregators: dict[int, tuple[Aggregator, list[Evaluator]]], env: Env, kind: int) -> None:
        self._aggregators, self._env, self._kind = aggregators, env, np.array([kind], np.int8)

    def __getitem__(self, agg: Agg) -> Column:
        aggregator, args = self._aggregators[id(agg)]
        return aggregator.run(tuple(a(self._env) for a in args), self._kind, np.zeros(1, np.int32), 1)

    def __iter__(self) -> Iterator[Agg]:
        raise TypeError("aggregators are asked for one by one")

    def __len__(self) -> int:
        return len(self._aggregators)


class _ExpressionBase(Untimed):
    """Common base of both windows: the condition, constant or from an attribute, and the loop that it runs in."""

    chains = 1
    stamps: int | None = None
    moves, is_ordered = True, False
    log: ChainedLog
    program: ConditionProgram
    """The condition; one that is evaluated in Python stands in for it where a loop is not compiled."""
    step: compiled

    def __init__(self, setup: WindowSetup) -> None:
        self.setup, self.findable = setup, setup.findable
        self.dynamic = not isinstance(setup.args[0], Const)
        self._clear()

    def _clear(self) -> None:
        self.log = ChainedLog(self.setup.types, self.chains)
        self.text: str | None = None
        self.condition: ConditionProgram | EvaluatedCondition | None = None
        if not self.dynamic:
            assert self.setup.condition is not None
            self._take(self.setup.condition)

    def _take(self, expr: Expr) -> None:
        """Makes `expr` the condition."""
        try:
            self.condition = self.program = ConditionProgram(expr, self.setup, self.log)
            self._step = self.step
        except NoProgram:
            self.condition = EvaluatedCondition(expr, self.setup, self.log)
            self.program = cast(ConditionProgram, self.condition)
            self._step = partial(static(type(self), "step").function, self)

    def _bind(self, text: str) -> None:
        types = self.setup.types[: len(self.setup.names)]
        schema = Schema.of(*zip(self.setup.names, types, strict=True))
        self._take(bind_window_condition(text, schema))

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        attrs = [a.attr for a in self.setup.args if isinstance(a, Ref)]
        rows = self.setup.without_nulls(rows, attrs, "the window's expression is null")
        n = len(rows)
        if n == 0:
            return no_rows(self.setup.types)
        log = self.log
        at = log.add(rows, instances)
        out = Emission((2 + 2 * self.setup.findable) * (at + n) + 2 * n)
        now, bad = clock.at(rows.order_key), np.zeros(n, np.bool_)
        why = ""
        feed = Feed(rows, at)
        self._begin()
        for a, b, text in self._stretches(rows):
            again = text is not None and text != self.text
            if again:
                try:
                    self._bind(str(text))
                    self.text = text
                except SparkStreamError as e:
                    bad[a:b], why = True, str(e)
                    continue
            condition = self.condition
            assert condition is not None
            condition.room(2 * n + (2 * at if again else 0))
            out.count = self._step(again, a, b, feed, now, bad, out)
            if isinstance(condition, EvaluatedCondition):
                why = condition.why or why
        if bad.any():
            self.setup.refuse(rows, bad, why)
        result = out.rows(out.count, log, rows.instance is not None)
        before, keep = log.end, np.flatnonzero(log.alive[: log.end])
        log.tidy()
        if log.end != before and self.condition is not None:
            self.condition.compact(keep)
        return result

    def _begin(self) -> None:
        """The log has the rows of a run."""

    def _stretches(self, rows: Rows) -> Iterator[tuple[int, int, str | None]]:
        """(first row, end, text) of stretches of rows with one condition; text None: the constant one."""
        if not self.dynamic:
            yield 0, len(rows), None
            return
        column = rows.columns[self.setup.column(0)]
        cuts = [0, *(np.flatnonzero(np.diff(column.values)) + 1).tolist(), len(rows)]
        for a, b in itertools.pairwise(cuts):
            yield a, b, self.setup.strings.text(int(column.values[a]))

    def forget(self, instances: Array) -> None:
        self.log.forget(instances)

    def state(self) -> dict[str, Any]:
        return {
            "lists": [self.log.chain_state(i) for i in range(self.chains)],
            "text": self.text,
            "condition": None if self.condition is None else self.condition.state(),
        }

    def load(self, state: dict[str, Any]) -> None:
        self._clear()
        self.log.load_chains(state["lists"])
        self.text = state["text"]
        if self.text is not None:
            self._bind(self.text)
        if self.condition is not None:
            self.condition.load(state["condition"])

    @property
    def bytes(self) -> int:
        return self.log.bytes


@struct
class ExpressionWindow(_ExpressionBase):
    """When a new event makes the condition false, the oldest leave until it is true again (the new one too, if need
    be)."""

    @compiled
    def step(self, again: bool, row: int, end: int, rows: Feed, now: Array, bad: Array, out: Emission) -> int:
        """`ExpressionWindowProcessor.process`."""
        earlier: Any = np.int64(-1)
        if again:
            p = self.log.instance[rows.first + row]
            earlier = self.log.head[0][p]
            self.log.head[0][p] = -1
            self.log.tail[0][p] = -1
        r = row
        while earlier >= 0 or r < end:
            fresh = earlier < 0
            pos = rows.first + r if fresh else earlier
            if not fresh:
                earlier = self.log.next[earlier]
            out.chunks = rows.chunk[r]
            if not bad[r]:
                self._come(pos, r, fresh, rows.order_key[r], now, bad, out)
            elif not fresh:
                self.log.alive[pos] = False
            if fresh:
                r += 1
        return out.count

    @inlined
    def _come(self, pos: int, r: int, fresh: bool, order_key: int, now: Array, bad: Array, out: Emission) -> None:
        """An event comes, and the oldest leave until the condition is true."""
        p = self.log.instance[pos]
        if fresh and self.findable:
            out.emit(pos, ENTER, self.log.ts[pos], order_key)
        self.log.push(0, pos, p)
        self.log.alive[pos] = True
        event = pos
        kind = CURRENT
        going = True
        while going:
            first = self.log.head[0][p] if self.log.head[0][p] >= 0 else event
            verdict = self.program.holds(kind, now[r], event, first, pos, self.log.ts)
            if verdict == FAILED:
                bad[r] = True
            going = verdict == FALSE and self.log.head[0][p] >= 0
            if going:
                event = self.log.pop(0, p)
                self.log.alive[event] = False
                kind = EXPIRED
                if self.findable:
                    out.emit(event, LEAVE, self.log.ts[event], order_key)
                out.emit(event, EXPIRED, now[r], order_key)
        if fresh and not bad[r]:
            out.emit(pos, CURRENT, self.log.ts[pos], order_key)


@struct
class ExpressionBatchWindow(_ExpressionBase):
    """An event that makes the condition false lets the batch out; it begins the next one, or ends this one where asked.

    With `stream.current.event` events pass at once and a batch only expires together. A join finds the batch that is
    being collected.
    """

    chains = 2

    def __init__(self, setup: WindowSetup) -> None:
        flag = setup.args[1] if len(setup.args) > 1 else None
        self.flag = flag.attr if isinstance(flag, Ref) else None
        self.include = bool(setup.constant(1, False)) if self.flag is None else False
        self.streaming = bool(setup.constant(2, False))
        self.stamps = None if self.streaming else CURRENT
        super().__init__(setup)

    @compiled
    def step(self, again: bool, row: int, end: int, rows: Feed, now: Array, bad: Array, out: Emission) -> int:
        """`ExpressionBatchWindowProcessor.process`. The current chain holds the events not emitted yet (if `streaming`,
        those that expire with the next event), the other one the events emitted last, which will expire. `chunk`
        numbers the chunks of the run.
        """
        earlier: Any = np.int64(-1)
        if again:
            p = self.log.instance[rows.first + row]
            earlier = self.log.head[EXPIRED_CHAIN][p] if self.streaming else self.log.head[CURRENT_CHAIN][p]
            if self.streaming:
                self.log.head[EXPIRED_CHAIN][p] = -1
                self.log.tail[EXPIRED_CHAIN][p] = -1
            else:
                self.log.head[CURRENT_CHAIN][p] = -1
                self.log.tail[CURRENT_CHAIN][p] = -1
        r = row
        while earlier >= 0 or r < end:
            fresh = earlier < 0
            pos = rows.first + r if fresh else earlier
            if not fresh:
                earlier = self.log.next[earlier]
            if fresh and r > 0 and rows.chunk[r] != rows.chunk[r - 1]:
                self.chunk[0] += 1
            closes = self._closes(pos, r, now[r], bad)
            out.chunks = self.chunk[0]
            if bad[r]:
                self.log.alive[pos] = False
            elif self.streaming:
                self._pass(pos, fresh, closes, now[r], rows.order_key[r], out)
            else:
                self._collect(pos, fresh, closes, now[r], rows.order_key[r], out)
            if fresh:
                r += 1
        return out.count

    @inlined
    def _closes(self, pos: int, r: int, now: int, bad: Array) -> bool:
        """True if the event makes the condition false; it then resets the aggregators."""
        p = self.log.instance[pos]
        first = self.log.head[EXPIRED_CHAIN][p] if self.streaming else self.log.head[CURRENT_CHAIN][p]
        if first < 0:
            first = pos
        closes = False
        k = 0
        while k < 3 and not bad[r]:
            kind = RESET if k == 1 else CURRENT
            verdict = self.program.holds(kind, now, pos, first, pos, self.log.ts)
            if verdict == FAILED:
                bad[r] = True
            closes = closes or verdict == FALSE
            k = k + 1 if closes else 3
        return closes

    @inlined
    def _pass(self, pos: int, fresh: bool, closes: bool, now: int, order_key: int, out: Emission) -> None:
        """An event passes at once; the batch expires with the first one after it."""
        p = self.log.instance[pos]
        if fresh:
            out.chunks += 1
            out.expire(self.log, CURRENT_CHAIN, p, now, order_key)
        if not closes:
            self.log.push(EXPIRED_CHAIN, pos, p)
            self.log.alive[pos] = True
            if fresh:
                out.emit(pos, CURRENT, self.log.ts[pos], order_key)
        elif self.log.head[EXPIRED_CHAIN][p] >= 0:
            self._let_out(pos, p, fresh, self.includes[pos], now, order_key, out)
        elif fresh:
            out.emit(pos, EXPIRED, now, order_key)
            out.emit(pos, CURRENT, now, order_key)
        else:
            self.log.push(CURRENT_CHAIN, pos, p)
        self.chunk[0] = out.chunks + fresh

    @inlined
    def _let_out(
        self, pos: int, p: int, fresh: bool, is_included: bool, now: int, order_key: int, out: Emission
    ) -> None:
        """A batch of events that have passed is over; the event at hand is the last of it or (not `is_included`) the
        first of the next one."""
        if is_included and fresh:
            out.emit(pos, CURRENT, self.log.ts[pos], order_key)
        if is_included:
            self.log.push(EXPIRED_CHAIN, pos, p)
        while self.log.head[EXPIRED_CHAIN][p] >= 0:
            oldest = self.log.pop(EXPIRED_CHAIN, p)
            self.log.alive[oldest] = not fresh
            if fresh:
                out.emit(oldest, EXPIRED, now, order_key)
            else:
                self.log.push(CURRENT_CHAIN, oldest, p)
        if not is_included:
            if fresh:
                out.emit(pos, CURRENT, self.log.ts[pos], order_key)
            self.log.push(EXPIRED_CHAIN, pos, p)
            self.log.alive[pos] = True

    @inlined
    def _collect(self, pos: int, fresh: bool, closes: bool, now: int, order_key: int, out: Emission) -> None:
        """An event waits for the end of its batch."""
        p = self.log.instance[pos]
        stays = not closes
        if closes:
            out.chunks += 1
            out.expire(self.log, EXPIRED_CHAIN, p, now, order_key)
            if self.log.head[CURRENT_CHAIN][p] >= 0:
                stays = not self.includes[pos]
                self._send(pos, p, self.includes[pos], now, order_key, out)
                self.log.alive[pos] = True
            else:
                self.log.alive[pos] = False
                out.emit(pos, EXPIRED, now, order_key)
                out.emit(pos, CURRENT, now, order_key)
        if stays:
            self.log.push(CURRENT_CHAIN, pos, p)
            self.log.alive[pos] = True
        if self.findable and stays == fresh:
            out.emit(pos, ENTER if stays else LEAVE, self.log.ts[pos], order_key)
        self.chunk[0] = out.chunks + closes

    @inlined
    def _send(self, pos: int, p: int, is_included: bool, now: int, order_key: int, out: Emission) -> None:
        """The events that have waited leave, with the event at hand if it is `is_included`."""
        while self.log.head[CURRENT_CHAIN][p] >= 0:
            oldest = self.log.pop(CURRENT_CHAIN, p)
            if self.findable:
                out.emit(oldest, LEAVE, self.log.ts[oldest], order_key)
            out.emit(oldest, CURRENT, now, order_key)
            self.log.push(EXPIRED_CHAIN, oldest, p)
        if is_included:
            out.emit(pos, CURRENT, self.log.ts[pos], order_key)
            self.log.push(EXPIRED_CHAIN, pos, p)

    def _begin(self) -> None:
        """`includes`: for each position of the log, whether the event that ends a batch belongs to it."""
        self.chunk = np.zeros(1, np.int64)
        every = np.full(self.log.capacity, self.include)
        self.includes = every if self.flag is None else self.log.values(self.flag)
