"""`set` expressions over the table's own attributes, for buffered writes (`table_log`).

A value that depends on the previous write of its key (`set T.high = maximum(T.high, price)`) cannot be computed over
whole columns. The parts that do not refer to the table are; the rest is a program (`bytecode`) that runs for one write
after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...plan.nodes import TABLE, Expr, Ref, walk
from ...types import Type
from ..columnar.column_data import DTYPES, Array, Column
from ..columnar.eventlog import EventLog
from ..columnar.rows import CURRENT
from ..expressions import Env, Evaluator, compile_expr
from ..expressions.bytecode import END, EVENT, FIRST, LOAD, REALS, Codes, NoProgram, ProgramMemory, interpret
from ..notation.kernels import kernel, struct
from ..state.services import Services
from .write_order import KEEP, MADE, NOTHING, WriteOrder

_NARROWER = {
    Type.LONG: (Type.INT,), Type.FLOAT: (Type.INT, Type.LONG), Type.DOUBLE: (Type.INT, Type.LONG, Type.FLOAT),
}  # fmt: skip
"""Narrower types that count as a type without conversion."""


def reads_table(e: Expr) -> bool:
    """True if the expression reads the row that it changes."""
    return any(isinstance(x, Ref) and x.slot == TABLE for x in walk(e))


def makeable(e: Expr, type: Type) -> bool:
    """True if a program can compute a value of `type`."""
    try:
        _SetCodes(lambda text: 0, 0).compile_assignment(e, type)
    except NoProgram:
        return False
    return True


class _SetCodes(Codes):
    """Bytecode slots of a `set` clause: EVENT is the incoming row, FIRST the stored row. Columns: the table's `attrs`
    attributes, then precomputed subexpressions that do not read the table.
    """

    def __init__(self, code: Callable[[str], int], attrs: int) -> None:
        super().__init__(code)
        self.attrs = attrs
        self.derived_exprs: list[Expr] = []

    def compile_assignment(self, e: Expr, type: Type) -> list[int]:
        """Codes that push `e` as a value of `type`."""
        if e.type is not type and e.type not in _NARROWER.get(type, ()):
            raise NoProgram
        return self.push_as(e, type) if type.numeric else self.push(e)

    def leaf(self, e: Expr) -> list[int] | None:
        if e.type is Type.OBJECT:
            raise NoProgram
        if not reads_table(e):
            self.derived_exprs.append(e)
            return [LOAD, EVENT, self.attrs + len(self.derived_exprs) - 1]
        return [LOAD, FIRST, e.attr] if isinstance(e, Ref) else None


@struct
@dataclass(slots=True)
class _Items:
    """The items of all queries: which each query has (`of`: from the first to the one behind the last), the attribute
    that each sets, and where its codes begin; `involved_attrs`: the attributes that a program reads or sets.
    """

    of: Array
    attr: Array
    code: Array
    codes: Array
    involved_attrs: Array


@struct
@dataclass(slots=True)
class _Inputs:
    """By writer, its action on each attribute (`masks`), the `query` whose programs it runs, -1 if none, and the
    position of its events in the columns of parts without the table (`starts`). The first `old_count` positions are of
    rows that were there before; `now` is the position of the row under each key, -1 for none.
    """

    masks: Array
    query: Array
    starts: Array
    old_count: int
    now: Array
    no_times: Array


@kernel
def _run(order: WriteOrder, base: int, inputs: _Inputs, items: _Items, memory: ProgramMemory) -> None:
    """The values of all versions, from position `base` of the log on, in the order of the writes. `memory` has, by
    attribute, the values of the rows that were there before, and behind them the values of the versions.
    """
    for j in range(len(order.key)):
        v = order.after[j]
        if v == NOTHING:
            continue
        k = order.key[j]
        before = inputs.now[k] if k >= 0 else -1
        at = -1
        if v >= base:
            at = inputs.old_count + v - base
            if before >= 0:
                w = order.writer[j] if len(order.writer) else 0
                for a in items.involved_attrs:
                    if inputs.masks[w, a] in (KEEP, MADE):
                        memory.words[a, at] = memory.words[a, before]
                        memory.nulls[a, at] = memory.nulls[a, before]
                query = inputs.query[w]
                if query >= 0:
                    event = inputs.starts[w] + (order.row[j] if len(order.row) else j)
                    for item in range(items.of[query, 0], items.of[query, 1]):
                        codes = items.codes[items.code[item] :]
                        interpret(CURRENT, 0, event, at, at, inputs.no_times, codes, memory)
                        memory.words[items.attr[item], at] = memory.stack[0]
                        memory.nulls[items.attr[item], at] = memory.null[0]
        if k >= 0:
            inputs.now[k] = at


class SetPrograms:
    """The programs of all queries that change a table of these types."""

    def __init__(self, types: Sequence[Type], services: Services) -> None:
        self.types, self._services = tuple(types), services
        self._codes = _SetCodes(services.strings.code, len(self.types))
        self._words: list[int] = []
        self._items: list[tuple[int, int]] = []
        """The attribute that is set, and where its codes begin."""
        self._queries: list[tuple[int, int]] = []
        """The items of each, from the first to the one behind the last."""
        self._involved_attrs: set[int] = set()

    def add(self, changes: Sequence[tuple[int, Expr]]) -> tuple[int, list[Evaluator]]:
        """Add one query's `set` clause, in order: returns its number, and the evaluators of the subexpressions that do
        not read the table.
        """
        self._codes.derived_exprs = []
        begin = len(self._items)
        for attr, e in changes:
            self._items.append((attr, len(self._words)))
            self._words += [*self._codes.compile_assignment(e, self.types[attr]), END]
            self._involved_attrs |= {attr, *(x.attr for x in walk(e) if isinstance(x, Ref) and x.slot == TABLE)}
        self._queries.append((begin, len(self._items)))
        return len(self._queries) - 1, [compile_expr(e, self._services.context) for e in self._codes.derived_exprs]

    def run(
        self,
        set_inputs: Sequence[SetInputs | None],
        masks: Array,
        order: WriteOrder,
        base: int,
        by_key: Array,
        log: EventLog,
    ) -> None:
        """Set the values that programs compute in the versions in `log` from position `base` on. By writer: the inputs
        of its programs (`set_inputs`), and its action on each attribute (`masks`). `by_key` are the positions by key
        before.
        """
        key = order.key
        changes = np.zeros(len(by_key), np.bool_)
        changes[key[key >= 0]] = True
        keys = np.flatnonzero(changes & (by_key >= 0))
        now = np.full(len(by_key), -1, np.int64)
        now[keys] = np.arange(len(keys))
        positions = np.concatenate([by_key[keys], np.arange(base, log.end)])
        attrs, parts = len(self.types), max((len(m.parts) for m in set_inputs if m is not None), default=0)
        starts = np.cumsum([0, *(0 if m is None else m.rows for m in set_inputs)])
        memory = ProgramMemory(self._codes.constants, len(self._words), attrs + parts)
        memory.words = words = np.zeros((attrs + parts, max(len(positions), int(starts[-1]))), np.int64)
        memory.nulls = nulls = np.zeros(words.shape, np.bool_)
        involved_attrs = sorted(self._involved_attrs)
        for a in involved_attrs:
            column = log.column(a, positions)
            _put(column, words[a, : len(positions)], nulls[a])
        for start, m in zip(starts, set_inputs, strict=False):
            for i, column in enumerate(() if m is None else m.parts):
                _put(column, words[attrs + i, start : start + len(column)], nulls[attrs + i, start:])
        item_rows = np.array(self._items, np.int64)
        items = _Items(
            np.array(self._queries, np.int64), item_rows[:, 0].copy(), item_rows[:, 1].copy(),
            np.array(self._words, np.int64), np.array(involved_attrs, np.int64),
        )  # fmt: skip
        query = np.array([-1 if m is None else m.query for m in set_inputs], np.int64)
        inputs = _Inputs(masks, query, starts, len(keys), now, np.zeros(0, np.int64))
        _run(order, base, inputs, items, memory)
        for a in sorted({a for a, _ in self._items}):
            type, null = self.types[a], nulls[a, len(keys) : len(positions)]
            values = (memory.reals if type in REALS else words)[a, len(keys) : len(positions)].astype(DTYPES[type])
            values[null] = -1 if type is Type.STRING else 0
            log.assign(a, positions[len(keys) :], Column(type, values, null if null.any() else None))


@dataclass(frozen=True, slots=True)
class SetInputs:
    """Inputs of the `set` programs of one `Writes`: the programs of `query`, and for each of the `rows` the values of
    its subexpressions that do not read the table.
    """

    query: int
    parts: list[Column]
    rows: int

    @staticmethod
    def over(env: Env, query: int, parts: Sequence[Evaluator]) -> SetInputs:
        return SetInputs(query, [e(env) for e in parts], env.n)


def _put(column: Column, words: Array, nulls: Array) -> None:
    """The values of a column as words."""
    (words.view(np.float64) if column.type in REALS else words)[:] = column.values
    if column.null is not None:
        nulls[: len(column)] = column.null
