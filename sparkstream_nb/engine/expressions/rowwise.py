"""Functions over single values, applied once per distinct combination of arguments.

A batch has few distinct strings and many rows, so a function on Python values is called for each combination of
argument values once, and its answers are mapped back over the rows. What it says of a text alone is kept for later
batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...plan.nodes import Call, Const
from ...types import Type
from ..arrays import grown
from ..columns import Array, Column, Strings, concat
from ..jit import kernel
from .arithmetic import is_constant
from .env import Context, Env, Evaluator
from .values import Failure, box

Builder = Callable[[Call, Sequence[Evaluator], Context], Evaluator]
"""Makes the evaluator of a call from the call (types and constants) and the evaluators of its arguments."""

Plain = Callable[..., Any]
"""A function on Python values, None for null; answers None for null; raises `Failure` to fail the row."""

SMALL = 16
"""Batches up to this size are not searched for equal rows."""


def rowwise(function: Plain) -> Builder:
    """A builder for a function whose answer depends on its arguments alone."""
    return typed(lambda call: function)


def typed(make: Callable[[Call], Plain]) -> Builder:
    """As `rowwise`, for a function that depends on the types or constants of the call."""

    def build(call: Call, args: Sequence[Evaluator], context: Context) -> Evaluator:
        function, type = make(call), call.type
        varying = [i for i, a in enumerate(call.args) if not isinstance(a, Const)]
        known = None
        if len(varying) == 1 and call.args[varying[0]].type is Type.STRING and type is not Type.OBJECT:
            known = _Answers(varying[0])
        return lambda env: apply(function, [a(env) for a in args], type, env, known)

    return build


def boxed(function: Plain) -> Builder:
    """As `rowwise`, for a function over objects: longs and floats arrive boxed (`Long`, `Float`)."""

    def make(call: Call) -> Plain:
        special = [(i, a.type) for i, a in enumerate(call.args) if a.type in (Type.LONG, Type.FLOAT)]
        if not special:
            return function

        def unboxed(*args: Any) -> Any:
            values = list(args)
            for i, kind in special:
                values[i] = box(kind, values[i])
            return function(*values)

        return unboxed

    return typed(make)


def eager(kernel: Callable[[list[Column], Env, Call], Column]) -> Builder:
    """A builder for a function over whole columns."""

    def build(call: Call, args: Sequence[Evaluator], context: Context) -> Evaluator:
        return lambda env: kernel([a(env) for a in args], env, call)

    return build


def apply(
    function: Plain, columns: Sequence[Column], type: Type, env: Env, known: _Answers | None = None
) -> Column:  # fmt: skip
    """`function` over the rows of `columns` (env.n rows), as a column of `type`; failing rows are marked in `env`.
    `known` are its answers so far, where it is about one text."""
    if env.active is not None and not env.active.all():
        rows = np.flatnonzero(env.active)
        part, failures = _apply([c.take(rows) for c in columns], function, type, env, len(rows), known)
        out = Column.all_null(type, env.n)
        assert out.null is not None
        out.values[rows] = part.values
        out.null[rows] = part.nulls()
    else:
        rows = None
        out, failures = _apply(columns, function, type, env, env.n, known)
    for message, where in failures.items():
        mask = np.zeros(env.n, np.bool_)
        mask[where if rows is None else rows[where]] = True
        env.fail(mask, message)
    return out


def _apply(
    columns: Sequence[Column], function: Plain, type: Type, env: Env, n: int, known: _Answers | None
) -> tuple[Column, dict[str, Array]]:  # fmt: skip
    """The answers for `n` rows, and by message the rows that failed."""
    inverse: Array | None
    if known is not None:
        answers, failed, inverse = known.over(columns, function, type, env.strings)
    else:
        first, inverse = distinct(columns, env.strings, n)
        answers, failed = asked(function, [c.take(first) for c in columns], len(first), type, env.strings)
    out = answers if inverse is None else answers.take(inverse)
    where = {m: np.array(i) if inverse is None else np.flatnonzero(np.isin(inverse, i)) for m, i in failed.items()}
    return out, where


def asked(
    function: Plain, columns: Sequence[Column], n: int, type: Type, strings: Strings
) -> tuple[Column, dict[str, list[int]]]:  # fmt: skip
    """`function` called for each of `n` rows; by message the rows that failed."""
    values: list[Any] = []
    failed: dict[str, list[int]] = {}
    inputs = [c.to_list(strings) for c in columns]
    for i, args in enumerate(zip(*inputs, strict=True) if inputs else [()] * n):
        try:
            values.append(function(*args))
        except Failure as e:
            values.append(None)
            failed.setdefault(str(e), []).append(i)
    return Column.of(type, values, strings), failed


class _Answers:
    """What a function of one text, and of constants besides, has answered: one answer for each text of the node that it
    was asked about. `which` of its arguments is the text."""

    def __init__(self, which: int) -> None:
        self._which = which
        self._strings: Strings | None = None
        self._places = np.zeros(0, np.int32)
        """By code plus one, as null has an answer too: its place in `_answers`, -1 before there is one."""
        self._answers = Column.empty(Type.BOOL)
        self._failed: dict[str, list[int]] = {}

    def over(
        self, columns: Sequence[Column], function: Plain, type: Type, strings: Strings
    ) -> tuple[Column, dict[str, list[int]], Array]:  # fmt: skip
        """(answers, by message those that are failures, the place among the answers of each row's)."""
        if self._strings is not strings:
            self._strings, self._answers, self._failed = strings, Column.empty(type), {}
            self._places = np.zeros(0, np.int32)
        codes, had = columns[self._which].values, len(self._answers)
        self._places = grown(self._places, len(strings) + 1, -1)
        first, places = _numbered(codes, 1, self._places, had)
        if len(first):
            answers, failed = asked(function, [c.take(first) for c in columns], len(first), type, strings)
            self._answers = concat([self._answers, answers])
            for message, rows in failed.items():
                self._failed.setdefault(message, []).extend(had + r for r in rows)
        return self._answers, self._failed, places


def distinct(columns: Sequence[Column], strings: Strings, n: int) -> tuple[Array, Array | None]:
    """One row of each distinct combination, and for each row the number of its combination (None: each is its own)."""
    varying = [c for c in columns if not is_constant(c.values)]
    if n <= 1 or (n <= SMALL and varying) or any(c.type is Type.OBJECT for c in varying):
        return np.arange(n), None
    if not varying:
        return np.zeros(1, np.int64), np.zeros(n, np.int64)
    if len(varying) == 1 and varying[0].type is Type.STRING:
        return _numbered(varying[0].values, 1, np.full(len(strings) + 1, -1, np.int32))
    keys, size = _codes(varying[0], strings)
    for column in varying[1:]:
        more, width = _codes(column, strings)
        if size * width > _dense(n):
            keys, size = _compact(keys, size)
            more, width = _compact(more, width)
        keys = keys * width + more
        size *= width
    if size > _dense(n):
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        return first, inverse
    return _numbered(keys, 0, np.full(size, -1, np.int32))


@kernel
def _number(codes: Array, shift: int, number: Array, known: int, first: Array, out: Array) -> int:
    """The numbers of codes + shift, new ones in the order in which they come, after the `known`; `first` receives the
    row of each new one, of which there are as many as this returns."""
    new = 0
    for i in range(len(codes)):
        c = np.uint64(codes[i] + shift)
        k: Any = np.int64(number[c])
        if k < 0:
            k = known + new
            number[c] = k
            first[new] = i
            new += 1
        out[i] = k
    return new


def _numbered(codes: Array, shift: int, number: Array, known: int = 0) -> tuple[Array, Array]:
    """(the first row of each code that has no number, each row's number). `number` holds the numbers of codes + shift,
    of which so many are `known`, the others -1, and gets those that it lacks."""
    first, out = np.empty(min(len(number), len(codes)), np.int64), np.empty(len(codes), np.int64)
    return first[: _number(codes, shift, number, known, first, out)], out


def _dense(n: int) -> int:
    """Up to which number of codes a table of all of them is the cheapest way to look at `n` rows."""
    return 4 * n + 1024


def _compact(keys: Array, size: int) -> tuple[Array, int]:
    """Codes renumbered so that each occurs: at most as many as there are rows."""
    if size > _dense(len(keys)):
        present, inverse = np.unique(keys, return_inverse=True)
        return inverse, len(present)
    at = np.zeros(size, np.int64)
    at[keys] = 1
    total = np.cumsum(at)
    return total[keys] - 1, int(total[-1])


def _codes(column: Column, strings: Strings) -> tuple[Array, int]:
    """int64 codes 0 ≤ c < size that tell the values of a column apart, null among them."""
    values = column.values
    if column.type is Type.STRING:
        return values.astype(np.int64) + 1, len(strings) + 1
    if column.type is Type.BOOL:
        codes = values.astype(np.int64)
        return (codes, 2) if column.null is None else (codes + 2 * column.null, 3)
    if values.dtype.kind == "f":
        values = np.ascontiguousarray(values).view(np.int64 if values.dtype.itemsize == 8 else np.int32)
    low, high = int(values.min()), int(values.max())
    if high - low < _dense(len(values)):
        codes, size = values.astype(np.int64) - low, high - low + 1
    else:
        _, codes = np.unique(values, return_inverse=True)
        size = len(values)
    if column.null is not None:
        codes = np.where(column.null, size, codes)
        size += 1
    return codes, size
