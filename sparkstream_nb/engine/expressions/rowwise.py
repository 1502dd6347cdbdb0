"""Functions over single values, applied once per distinct combination of arguments.

A batch has few distinct strings and many rows, so a Python function is called once for each combination of argument
values, and its results are mapped back to the rows. Results of functions of one string are cached for later batches. If
there are nearly as many combinations as rows, a second form over whole columns (`Whole`) is faster; it must give the
same results, and leaves the rows that it cannot handle to the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...limits import Limits
from ...plan.nodes import Call, Const
from ...types import Type
from ..columnar.arrays import grown
from ..columnar.column_data import Array, Column, Mask, StringPool, Texts, concat
from ..columnar.string_dictionary import text_buffers
from .distinct_rows import distinct, number_codes
from .env import Context, Env, Evaluator
from .function_checks import reason_of, within
from .java_values import box

Builder = Callable[[Call, Sequence[Evaluator], Context], Evaluator]
"""Creates the evaluator of a call from the call (types and constants) and the evaluators of its arguments."""

Plain = Callable[..., Any]
"""A function on Python values, None for null; answers None for null; raises `RowFailure` to fail the row."""

Whole = Callable[[Sequence[Column], StringPool], tuple[Column, Mask | None] | None]
"""The same function over whole columns: its results, and the rows that it leaves to the plain form (None: no row).
None: it leaves all rows."""

MANY = 100
"""The number of rows from which on the whole-column form is faster."""


def rowwise(function: Plain, column_form: Callable[[Call], Whole | None] | None = None) -> Builder:
    """A builder for a function whose answer depends on its arguments alone. `column_form` gives the whole-column form
    of a call, if there is one."""
    return rowwise_typed(lambda call: function, column_form)


def rowwise_typed(make: Callable[[Call], Plain], column_form: Callable[[Call], Whole | None] | None = None) -> Builder:
    """`rowwise` for a function that depends on the types or constants of the call."""

    def build(call: Call, args: Sequence[Evaluator], context: Context) -> Evaluator:
        function, type = within(context.limits, make(call)), call.type
        varying = [i for i, a in enumerate(call.args) if not isinstance(a, Const)]
        cache = None
        if len(varying) == 1 and call.args[varying[0]].type is Type.STRING and type is not Type.OBJECT:
            cache = _Answers(varying[0])
        over = None if column_form is None else _whole_within(context.limits, column_form(call))
        return lambda env: apply(function, [a(env) for a in args], type, env, cache, over)

    return build


def _whole_within(limits: Limits, over_columns: Whole | None) -> Whole | None:
    """`over_columns`, leaving rows whose text would be too long to the plain form, which raises the error."""
    if over_columns is None:
        return None

    def call_within(columns: Sequence[Column], strings: StringPool) -> tuple[Column, Mask | None] | None:
        result = over_columns(columns, strings)
        if result is None or not isinstance(result[0], Texts) or not result[0].many:
            return result
        texts, left = result[0].texts(strings), result[1]
        offsets, _ = text_buffers(texts)
        if int(offsets[-1]) - int(offsets[0]) <= limits.characters:  # bytes of all of them: that is quick to tell
            return result
        long = pc.greater(pc.utf8_length(texts), limits.characters).fill_null(False).to_numpy(zero_copy_only=False)
        return result[0], long if left is None else left | long

    return call_within


def rowwise_boxed(function: Plain, column_form: Callable[[Call], Whole | None] | None = None) -> Builder:
    """`rowwise` for a function over objects: longs and floats arrive boxed (`Long`, `Float`)."""
    return rowwise_typed(lambda call: box_arguments(function, call), column_form)


def box_arguments(function: Plain, call: Call) -> Plain:
    """Wraps `function` so that it boxes its arguments."""
    special = [(i, a.type) for i, a in enumerate(call.args) if a.type in (Type.LONG, Type.FLOAT)]
    if not special:
        return function

    def call_unboxed(*args: Any) -> Any:
        values = list(args)
        for i, kind in special:
            values[i] = box(kind, values[i])
        return function(*values)

    return call_unboxed


def eager(kernel: Callable[[list[Column], Env, Call], Column]) -> Builder:
    """A builder for a function over whole columns."""

    def build(call: Call, args: Sequence[Evaluator], context: Context) -> Evaluator:
        return lambda env: kernel([a(env) for a in args], env, call)

    return build


def apply(
    function: Plain, columns: Sequence[Column], type: Type, env: Env, cache: _Answers | None = None,
    over_columns: Whole | None = None,
) -> Column:  # fmt: skip
    """`function` over the rows of `columns` (env.n rows), as a column of `type`; failing rows are marked in `env`.
    `cache` is its cache, if it has one string argument."""

    def ask(columns: Sequence[Column], n: int) -> Asked:
        return call_by_row(function, columns, n, type, env.strings, over_columns)

    if env.active is not None and not env.active.all():
        rows = np.flatnonzero(env.active)
        part, failures = _apply(
            [c.take(rows) for c in columns], ask, env.strings, len(rows), cache, over_columns is not None
        )
        out = Column.all_null(type, env.n)
        assert out.null is not None
        out.values[rows] = part.values
        out.null[rows] = part.nulls()
    else:
        rows = None
        out, failures = _apply(columns, ask, env.strings, env.n, cache, over_columns is not None)
    for message, where in failures.items():
        mask = np.zeros(env.n, np.bool_)
        mask[where if rows is None else rows[where]] = True
        env.fail(mask, message)
    return out


Asked = tuple[Column, dict[str, list[int]]]
"""Answers, and by message the rows that failed."""


def _apply(
    columns: Sequence[Column], ask: Callable[[Sequence[Column], int], Asked], strings: StringPool, n: int,
    cache: _Answers | None, swift: bool,
) -> tuple[Column, dict[str, Array]]:  # fmt: skip
    """The answers for `n` rows, and by message the rows that failed. `swift`: to ask costs no more than to look for
    rows that are equal."""
    inverse: Array | None
    if cache is not None and not (swift and columns[cache.which].many):
        answers, failures, inverse = cache.over(columns, ask, strings)
    else:
        first, inverse = distinct(columns, strings, n, if_cheap=swift)
        answers, failures = ask(columns if inverse is None else [c.take(first) for c in columns], len(first))
    out = answers if inverse is None else answers.take(inverse)
    where = {m: np.array(i) if inverse is None else np.flatnonzero(np.isin(inverse, i)) for m, i in failures.items()}
    return out, where


def call_by_row(
    function: Plain, columns: Sequence[Column], n: int, type: Type, strings: StringPool,
    over_columns: Whole | None = None,
) -> Asked:  # fmt: skip
    """Calls `function` for each of `n` rows except those that `over_columns` handles."""
    result = over_columns(columns, strings) if over_columns is not None and n >= MANY else None
    if result is not None:
        answers, left = result
        if left is None or not left.any():
            return answers, {}
        rows = np.flatnonzero(left)
        others, failures = call_by_row(function, [c.take(rows) for c in columns], len(rows), type, strings)
        return _put(answers, left, others, strings), {m: rows[i].tolist() for m, i in failures.items()}
    values: list[Any] = []
    failures = {}
    inputs = [c.to_list(strings) for c in columns]
    for i, args in enumerate(zip(*inputs, strict=True) if inputs else [()] * n):
        try:
            values.append(function(*args))
        except Exception as e:  # whatever one event raises is that event's error
            values.append(None)
            failures.setdefault(reason_of(e), []).append(i)
    return Column.of(type, values, strings), failures


def _put(column: Column, rows: Mask, others: Column, strings: StringPool) -> Column:
    """`column` with `others` in its `rows`."""
    if column.many:
        texts = others.texts(strings)
        if not strings.halves:
            return Texts(pc.replace_with_mask(column.texts(strings), pa.array(rows), texts), strings, many=True)
    values, null = column.values.copy(), column.nulls().copy()
    values[rows], null[rows] = others.values, others.nulls()
    return Column(column.type, values, null)


class _Answers:
    """Cache of the results of a function of one text and constants: one result for each text of the node that was
    passed. `which` of its arguments is the text.
    """

    def __init__(self, which: int) -> None:
        self.which = which
        self._strings: StringPool | None = None
        self._places = np.zeros(0, np.int32)
        """By code plus one, as null has an answer too: its place in `_answers`, -1 before there is one."""
        self._answers: Column | None = None
        self._failures: dict[str, list[int]] = {}

    def over(
        self, columns: Sequence[Column], ask: Callable[[Sequence[Column], int], Asked], strings: StringPool
    ) -> tuple[Column, dict[str, list[int]], Array]:  # fmt: skip
        """(answers, by message those that are failures, the place among the answers of each row's)."""
        if self._strings is not strings:
            self._strings, self._answers, self._failures = strings, None, {}
            self._places = np.zeros(0, np.int32)
        codes, had = columns[self.which].values, 0 if self._answers is None else len(self._answers)
        self._places = grown(self._places, len(strings) + 1, -1)
        first, places = number_codes(codes, 1, self._places, had)
        if len(first) or self._answers is None:
            answers, failures = ask([c.take(first) for c in columns], len(first))
            column = Column(answers.type, answers.values, answers.null)
            self._answers = column if self._answers is None else concat([self._answers, column])
            for message, rows in failures.items():
                self._failures.setdefault(message, []).extend(had + r for r in rows)
        return self._answers, self._failures, places
