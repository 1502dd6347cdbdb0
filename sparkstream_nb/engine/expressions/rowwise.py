"""Functions over single values, applied once per distinct combination of arguments.

A batch has few distinct strings and many rows, so a function on Python values is called for each combination of
argument values once, and its answers are mapped back over the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...plan.nodes import Call
from ...types import Type
from ..columns import Array, Column
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
        return lambda env: apply(function, [a(env) for a in args], type, env)

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


def apply(function: Plain, columns: Sequence[Column], type: Type, env: Env) -> Column:
    """`function` over the rows of `columns` (env.n rows), as a column of `type`; failing rows are marked in `env`."""
    if env.active is not None and not env.active.all():
        rows = np.flatnonzero(env.active)
        part, failures = _apply([c.take(rows) for c in columns], function, type, env, len(rows))
        out = Column.all_null(type, env.n)
        assert out.null is not None
        out.values[rows] = part.values
        out.null[rows] = part.nulls()
    else:
        rows = None
        out, failures = _apply(columns, function, type, env, env.n)
    for message, where in failures.items():
        mask = np.zeros(env.n, np.bool_)
        mask[where if rows is None else rows[where]] = True
        env.fail(mask, message)
    return out


def _apply(columns: Sequence[Column], function: Plain, type: Type, env: Env, n: int) -> tuple[Column, dict[str, Array]]:
    first, inverse = distinct(columns, env, n)
    values: list[Any] = []
    failed: dict[str, list[int]] = {}
    inputs = [c.take(first).to_list(env.strings) for c in columns]
    for i, args in enumerate(zip(*inputs, strict=True) if inputs else [()] * len(first)):
        try:
            values.append(function(*args))
        except Failure as e:
            values.append(None)
            failed.setdefault(str(e), []).append(i)
    out = Column.of(type, values, env.strings)
    if inverse is not None:
        out = out.take(inverse)
    where = {m: np.array(i) if inverse is None else np.flatnonzero(np.isin(inverse, i)) for m, i in failed.items()}
    return out, where


def distinct(columns: Sequence[Column], env: Env, n: int) -> tuple[Array, Array | None]:
    """One row of each distinct combination, and for each row the number of its combination (None: each is its own)."""
    varying = [c for c in columns if not is_constant(c.values)]
    if n <= 1 or (n <= SMALL and varying) or any(c.type is Type.OBJECT for c in varying):
        return np.arange(n), None
    if not varying:
        return np.zeros(1, np.int64), np.zeros(n, np.int64)
    if len(varying) == 1 and varying[0].type is Type.STRING:
        return _numbered(varying[0].values, 1, len(env.strings) + 1)
    keys, size = _codes(varying[0], env)
    for column in varying[1:]:
        more, width = _codes(column, env)
        if size * width > _dense(n):
            keys, size = _compact(keys, size)
            more, width = _compact(more, width)
        keys = keys * width + more
        size *= width
    if size > _dense(n):
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        return first, inverse
    return _numbered(keys, 0, size)


@kernel
def _number(codes: Array, shift: int, number: Array, first: Array, out: Array) -> int:
    """Numbers for codes + shift, in the order in which they come; `first` receives the row of each new one."""
    size = 0
    for i in range(len(codes)):
        c = np.uint64(codes[i] + shift)
        k = number[c]
        if k < 0:
            k = size
            number[c] = k
            first[k] = i
            size += 1
        out[i] = k
    return size


def _numbered(codes: Array, shift: int, size: int) -> tuple[Array, Array]:
    """(the first row of each code, each row's number among them); codes + shift are below `size`."""
    first, out = np.empty(min(size, len(codes)), np.int64), np.empty(len(codes), np.int64)
    found = _number(codes, shift, np.full(size, -1, np.int64), first, out)
    return first[:found], out


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


def _codes(column: Column, env: Env) -> tuple[Array, int]:
    """int64 codes 0 ≤ c < size that tell the values of a column apart, null among them."""
    values = column.values
    if column.type is Type.STRING:
        return values.astype(np.int64) + 1, len(env.strings) + 1
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
