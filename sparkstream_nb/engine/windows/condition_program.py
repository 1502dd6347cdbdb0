"""Conditions over a window's contents as small programs for a compiled loop.

A part of the condition that names one event alone (and no aggregate) is a *derived column*: it is evaluated over the
rows when they come and kept beside the events. A part that combines several events or aggregates is a sequence of codes
(`bytecode`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...plan.nodes import Agg, Call, EventRef, Expr, Ref, walk
from ...types import Type
from ..columnar.arrays import grown
from ..columnar.column_data import Array, Column
from ..columnar.error_routing import may_fail
from ..columnar.eventlog import EventLog
from ..expressions import Env, compile_expr
from ..expressions.bytecode import (
    AGGREGATE,
    AVG,
    COUNT,
    END,
    LOAD,
    MAX,
    MIN,
    OWN,
    REALS,
    SUM,
    TIME,
    Codes,
    NoProgram,
    ProgramMemory,
    interpret,
)
from ..notation.kernels import inlined, struct
from .window_protocol import WindowSetup

_AGGREGATES = {"count": COUNT, "sum": SUM, "avg": AVG, "min": MIN, "max": MAX}
_UNSTEADY = frozenset({"eventTimestamp", "currentTimeMillis", "UUID"})
"""Functions whose answer depends on when they are asked."""


@struct
class ConditionProgram(Codes):
    """A condition as codes, the derived columns of the events in a log, and the state of its aggregators.

    Raises NoProgram if the condition cannot be compiled to codes.
    """

    memory: ProgramMemory

    def __init__(self, condition: Expr, setup: WindowSetup, log: EventLog) -> None:
        super().__init__(setup.strings.code)
        self.setup, self.log = setup, log
        self._derived_exprs: list[Expr] = []
        self._aggregates = 0
        self.codes = np.array([*self.push(condition), END], np.int64)
        self._evaluators = [compile_expr(e, setup.context) for e in self._derived_exprs]
        self.memory = ProgramMemory(self.constants, len(self.codes), len(self._derived_exprs), self._aggregates)
        self.evaluated_end = 0

    # ------------------------------------------------------------------------------------------------------- codes

    def leaf(self, e: Expr) -> list[int] | None:
        if isinstance(e, Call) and e.function == "eventTimestamp":
            (event,) = e.args or (EventRef(Type.OBJECT, OWN),)
            assert isinstance(event, EventRef)
            return [TIME, event.slot]
        slot = _only_slot(e)
        if slot is None:
            return None
        if e.type is Type.OBJECT:
            raise NoProgram
        self._derived_exprs.append(e)
        return [LOAD, slot, len(self._derived_exprs) - 1]

    def aggregate(self, e: Agg) -> list[int]:
        what = _AGGREGATES.get(e.function)
        if what is None or (e.args and not e.args[0].type.numeric) or any(_unsteady(a) for a in e.args):
            raise NoProgram
        number = self._aggregates
        self._aggregates += 1
        if what == COUNT:
            return [AGGREGATE, what, number, 0]
        (arg,) = e.args
        type = Type.DOUBLE if what == AVG else arg.type
        return [*self.push_as(arg, type), AGGREGATE, what, number, int(type in REALS)]

    # -------------------------------------------------------------------------------------------------- at run time

    @inlined
    def holds(self, kind: int, now: int, event: int, first: int, last: int, ts: Array) -> int:
        """`bytecode.interpret`."""
        return interpret(kind, now, event, first, last, ts, self.codes, self.memory)

    def room(self, events: int) -> None:
        """Evaluates the derived columns of the log's newest events, and makes room for `events` further queue
        places."""
        log, memory = self.log, self.memory
        end = log.end
        if self._derived_exprs and self.evaluated_end < end:
            memory.words, memory.nulls = grown(memory.words, log.capacity), grown(memory.nulls, log.capacity, False)
            index = np.arange(self.evaluated_end, end)
            env = Env(
                len(index), self.setup.strings, log.ts[index], log.ts[index],
                lambda ref: Column(Type.BOOL, np.ones(len(index), np.bool_)) if isinstance(ref, EventRef)
                else log.column(ref.attr, index),
            )  # fmt: skip
            for i, evaluate in enumerate(self._evaluators):
                column = evaluate(env)
                real = column.type in REALS
                target = memory.reals if real else memory.words
                target[i, self.evaluated_end : end] = column.values
                memory.nulls[i, self.evaluated_end : end] = False if column.null is None else column.null
        self.evaluated_end = end
        if self._aggregates:
            for a in range(self._aggregates):
                head, tail = memory.ends[a]
                memory.queue[a, : tail - head] = memory.queue[a, head:tail].copy()
                memory.ends[a] = 0, tail - head
            memory.queue = grown(memory.queue, int(memory.ends[:, 1].max()) + events)

    def compact(self, keep: Array) -> None:
        """The log keeps only positions `keep`."""
        memory = self.memory
        if self._derived_exprs:
            memory.words, memory.nulls = memory.words[:, keep], memory.nulls[:, keep]
        self.evaluated_end = len(keep)

    def state(self) -> Any:
        memory = self.memory
        queues = [memory.queue[a, head:tail] for a, (head, tail) in enumerate(memory.ends.tolist())]
        return {"total": memory.total, "count": memory.count, "queues": queues}

    def load(self, state: Any) -> None:
        memory = self.memory
        memory.total, memory.count = state["total"].copy(), state["count"].copy()
        for a, values in enumerate(state["queues"]):
            memory.queue = grown(memory.queue, len(values))
            memory.queue[a, : len(values)] = values
            memory.ends[a] = 0, len(values)


def _unsteady(e: Expr) -> bool:
    return may_fail(e) or any(isinstance(x, Call) and x.function in _UNSTEADY for x in walk(e))


def _only_slot(e: Expr) -> int | None:
    """The slot of the only event that `e` names, where it can be evaluated when that event comes; else None."""
    slots = {x.slot for x in walk(e) if isinstance(x, Ref | EventRef)}
    if len(slots) != 1 or _unsteady(e) or any(isinstance(x, Agg) for x in walk(e)):
        return None
    return slots.pop()
