"""`expression(text)` and `expressionBatch(text, ...)`: windows that hold events as long as a condition over them is
true.

The condition sees the event that comes or goes, the `first` and the `last` one, and aggregates of the held events; its
aggregators count the events of all partition instances together. The loops below are compiled with the condition as a
program (`bytecode.interpret`); a condition that no program can state runs them as plain Python.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from ...errors import SparkStreamError
from ...plan.binding.expression_windows import bind_window_condition
from ...plan.nodes import Agg, Const, EventRef, Expr, Ref, walk
from ...types import Schema, Type
from ..aggregators import Aggregator, make_aggregator
from ..columnar.column_data import Array, Column
from ..columnar.rows import CURRENT, ENTER, EXPIRED, LEAVE, RESET, Clock, Rows
from ..expressions import Env, Evaluator, compile_expr
from ..expressions.bytecode import FAILED, FALSE, TRUE, NoProgram, interpret
from ..notation.kernels import kernel
from .chain import ChainedLog, pop, push
from .condition_program import ConditionProgram
from .window_protocol import Emission, Untimed, WindowSetup, no_rows, put


def slide(
    again: bool, at: int, row: int, rows: int, now: Array, row_order_key: Array, row_chunk: Array, instance: Array,
    bad: Array,
    findable: bool, ts: Array, nxt: Array, alive: Array, head: Array, tail: Array, n: int, pos_out: Array,
    kind_out: Array, ts_out: Array, order_key_out: Array, chunk_out: Array, codes: Array, words: Array, reals: Array,
    nulls: Array, known: Array, known_real: Array, stack: Array, real: Array, null: Array, total: Array, total_real:
    Array, count: Array, queue: Array, queue_real: Array, ends: Array,
) -> int:  # fmt: skip
    """`ExpressionWindowProcessor.process` for the rows from `row` to `rows`; rows that fail are marked `bad`.

    `again`: the condition has changed, so the events of the first row's instance are processed again
    (`processAllExpiredEvents`).
    """
    held: Any = np.int64(-1)
    if again:
        p = instance[at + row]
        held = head[p]
        head[p] = -1
        tail[p] = -1
    r = row
    while held >= 0 or r < rows:
        fresh = held < 0
        pos = at + r if fresh else held
        if not fresh:
            held = nxt[held]
        p = instance[pos]
        if not bad[r]:
            if fresh and findable:
                n = put(
                    pos, ENTER, ts[pos], row_order_key[r], row_chunk[r], n, pos_out, kind_out, ts_out, order_key_out,
                    chunk_out
                )
            push(pos, p, nxt, head, tail)
            alive[pos] = True
            event = pos
            kind = CURRENT
            going = True
            while going:  # the oldest leave until the condition is true
                first = head[p] if head[p] >= 0 else event
                verdict = interpret(
                    kind, now[r], event, first, pos, ts, codes, words, reals, nulls, known, known_real, stack, real,
                    null, total, total_real, count, queue, queue_real, ends,
                )  # fmt: skip
                if verdict == FAILED:
                    bad[r] = True
                going = verdict == FALSE and head[p] >= 0
                if going:
                    event = pop(p, nxt, head, tail)
                    alive[event] = False
                    kind = EXPIRED
                    if findable:
                        n = put(
                            event, LEAVE, ts[event], row_order_key[r], row_chunk[r], n, pos_out, kind_out, ts_out,
                            order_key_out,
                            chunk_out,
                        )  # fmt: skip
                    n = put(
                        event, EXPIRED, now[r], row_order_key[r], row_chunk[r], n, pos_out, kind_out, ts_out,
                        order_key_out,
                        chunk_out,
                    )  # fmt: skip
            if fresh and not bad[r]:
                n = put(
                    pos, CURRENT, ts[pos], row_order_key[r], row_chunk[r], n, pos_out, kind_out, ts_out,
                    order_key_out, chunk_out
                )
        elif not fresh:
            alive[pos] = False
        if fresh:
            r += 1
    return n


def collect(
    again: bool, at: int, row: int, rows: int, now: Array, row_order_key: Array, row_chunk: Array, instance: Array,
    bad: Array,
    findable: bool, streaming: bool, includes: Array, at_chunk: Array, ts: Array, nxt: Array, alive: Array, phead:
    Array, ptail: Array, ghead: Array, gtail: Array, n: int, pos_out: Array, kind_out: Array, ts_out: Array,
    order_key_out: Array, chunk_out: Array, codes: Array, words: Array, reals: Array, nulls: Array, known: Array,
    known_real: Array, stack: Array, real: Array, null: Array, total: Array, total_real: Array, count: Array, queue:
    Array, queue_real: Array, ends: Array,
) -> int:  # fmt: skip
    """`ExpressionBatchWindowProcessor.process` as `slide`. Chain `p..` holds the events not emitted yet (if
    `streaming`, those that expire with the next event), chain `g..` the events emitted last, which will expire.
    `at_chunk[0]` numbers chunks; `includes`: for each position, whether the event that ends a batch belongs to it.
    """
    held: Any = np.int64(-1)
    if again:
        p = instance[at + row]
        held = ghead[p] if streaming else phead[p]
        if streaming:
            ghead[p] = -1
            gtail[p] = -1
        else:
            phead[p] = -1
            ptail[p] = -1
    r = row
    while held >= 0 or r < rows:
        fresh = held < 0
        pos = at + r if fresh else held
        if not fresh:
            held = nxt[held]
        p = instance[pos]
        t = now[r]
        order_key = row_order_key[r]
        if fresh and r > 0 and row_chunk[r] != row_chunk[r - 1]:
            at_chunk[0] += 1
        first = ghead[p] if streaming else phead[p]
        if first < 0:
            first = pos
        closes = False
        k = 0
        while k < 3 and not bad[r]:  # an event that makes it false resets the aggregators
            kind = RESET if k == 1 else CURRENT
            verdict = interpret(
                kind, t, pos, first, pos, ts, codes, words, reals, nulls, known, known_real, stack, real, null, total,
                total_real, count, queue, queue_real, ends,
            )  # fmt: skip
            if verdict == FAILED:
                bad[r] = True
            closes = closes or verdict == FALSE
            k = k + 1 if closes else 3
        chunk = at_chunk[0]
        if bad[r]:
            alive[pos] = False
        elif streaming:
            if fresh:
                chunk += 1
                while phead[p] >= 0:
                    old = pop(p, nxt, phead, ptail)
                    alive[old] = False
                    n = put(old, EXPIRED, t, order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out, chunk_out)
            if not closes:
                push(pos, p, nxt, ghead, gtail)
                alive[pos] = True
                if fresh:
                    n = put(pos, CURRENT, ts[pos], order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out,
                        chunk_out)
            elif ghead[p] >= 0:
                if includes[pos] and fresh:
                    n = put(pos, CURRENT, ts[pos], order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out,
                        chunk_out)
                if includes[pos]:
                    push(pos, p, nxt, ghead, gtail)
                while ghead[p] >= 0:
                    old = pop(p, nxt, ghead, gtail)
                    alive[old] = not fresh
                    if fresh:
                        n = put(old, EXPIRED, t, order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out,
                            chunk_out)
                    else:
                        push(old, p, nxt, phead, ptail)
                if not includes[pos]:
                    if fresh:
                        n = put(pos, CURRENT, ts[pos], order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out,
                            chunk_out)
                    push(pos, p, nxt, ghead, gtail)
                    alive[pos] = True
            elif fresh:
                n = put(pos, EXPIRED, t, order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out, chunk_out)
                n = put(pos, CURRENT, t, order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out, chunk_out)
            else:
                push(pos, p, nxt, phead, ptail)
            at_chunk[0] = chunk + fresh
        else:
            stays = not closes
            if closes:
                chunk += 1
                while ghead[p] >= 0:
                    old = pop(p, nxt, ghead, gtail)
                    alive[old] = False
                    n = put(old, EXPIRED, t, order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out, chunk_out)
                if phead[p] >= 0:
                    stays = not includes[pos]
                    while phead[p] >= 0:
                        old = pop(p, nxt, phead, ptail)
                        if findable:
                            n = put(old, LEAVE, ts[old], order_key, chunk, n, pos_out, kind_out, ts_out,
                                order_key_out, chunk_out)
                        n = put(old, CURRENT, t, order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out,
                            chunk_out)
                        push(old, p, nxt, ghead, gtail)
                    if includes[pos]:
                        n = put(pos, CURRENT, ts[pos], order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out,
                            chunk_out)
                        push(pos, p, nxt, ghead, gtail)
                    alive[pos] = True
                else:
                    alive[pos] = False
                    n = put(pos, EXPIRED, t, order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out, chunk_out)
                    n = put(pos, CURRENT, t, order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out, chunk_out)
            if stays:
                push(pos, p, nxt, phead, ptail)
                alive[pos] = True
            if findable and stays == fresh:
                moved = ENTER if stays else LEAVE
                n = put(pos, moved, ts[pos], order_key, chunk, n, pos_out, kind_out, ts_out, order_key_out, chunk_out)
            at_chunk[0] = chunk + closes
        if fresh:
            r += 1
    return n


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

    def holds(self, kind: int, now: int, event: int, first: int, last: int, ts: Array, *program: Any) -> int:
        """`bytecode.interpret`; FAILED if the condition raises an error, with `why`."""
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
        if env.failed is not None:
            self.why = env.reason(0) or "the window's expression failed"
            return FAILED
        return TRUE if result.values[0] and not (result.null is not None and result.null[0]) else FALSE

    def room(self, events: int) -> None:
        """Nothing to prepare."""

    def compact(self, keep: Array) -> None:
        """Nothing is kept by position."""

    @property
    def arrays(self) -> tuple[None, ...]:
        """In place of a program's arrays."""
        return (None,) * 15

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
    loop: Callable[..., int]
    compiled: Callable[..., int]

    def __init__(self, setup: WindowSetup) -> None:
        self.setup = setup
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
            self.condition = ConditionProgram(expr, self.setup, self.log)
            self._run = type(self).compiled
        except NoProgram:
            self.condition = EvaluatedCondition(expr, self.setup, self.log)
            scope = {**globals(), "interpret": self.condition.holds}
            self._run = FunctionType(type(self).loop.__code__, scope)  # the same loop, not compiled

    def _bind(self, text: str) -> None:
        types = self.setup.types[: len(self.setup.names)]
        schema = Schema.of(*zip(self.setup.names, types, strict=True))
        self._take(bind_window_condition(text, schema))

    def run(self, rows: Rows, clock: Clock, instances: int, hashes: Array | None) -> Rows:
        needed = [a.attr for a in self.setup.args if isinstance(a, Ref)]
        rows = self.setup.without_nulls(rows, needed, "the window's expression is null")
        n = len(rows)
        if n == 0:
            return no_rows(self.setup.types)
        log = self.log
        at = log.add(rows, instances)
        out = Emission((2 + 2 * self.setup.findable) * (at + n) + 2 * n)
        now, bad = clock.at(rows.order_key), np.zeros(n, np.bool_)
        why = ""
        made = 0
        begin = self._begin(at)
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
            made = self._run(
                again, at, a, b, now, rows.order_key, rows.chunk, log.instance, bad, self.setup.findable, *begin,
                log.ts, log.next, log.alive, *(x for ends in zip(log.head, log.tail, strict=True) for x in ends), made,
                *out.arrays, *condition.arrays,
            )  # fmt: skip
            if isinstance(condition, EvaluatedCondition):
                why = condition.why or why
        if bad.any():
            self.setup.refuse(rows, bad, why)
        result = out.rows(made, log, rows.instance is not None)
        before, keep = log.end, np.flatnonzero(log.alive[: log.end])
        log.tidy()
        if log.end != before and self.condition is not None:
            self.condition.compact(keep)
        return result

    def _begin(self, at: int) -> tuple[Any, ...]:
        """Further arguments of this loop; `at` is the position of the first new event."""
        return ()

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


class ExpressionWindow(_ExpressionBase):
    """When a new event makes the condition false, the oldest leave until it is true again (the new one too, if need
    be)."""

    loop = staticmethod(slide)
    compiled = staticmethod(kernel(slide))


class ExpressionBatchWindow(_ExpressionBase):
    """An event that makes the condition false lets the batch out; it begins the next one, or ends this one where asked.

    With `stream.current.event` events pass at once and a batch only expires together. A join finds the batch that is
    being collected.
    """

    chains = 2
    loop = staticmethod(collect)
    compiled = staticmethod(kernel(collect))

    def __init__(self, setup: WindowSetup) -> None:
        flag = setup.args[1] if len(setup.args) > 1 else None
        self.flag = flag.attr if isinstance(flag, Ref) else None
        self.include = bool(setup.constant(1, False)) if self.flag is None else False
        self.streaming = bool(setup.constant(2, False))
        self.stamps = None if self.streaming else CURRENT
        super().__init__(setup)

    def _begin(self, at: int) -> tuple[Any, ...]:
        n = self.log.capacity
        includes = np.full(n, self.include) if self.flag is None else self.log.values(self.flag)
        return self.streaming, includes, np.zeros(1, np.int64)
