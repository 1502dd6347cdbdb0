"""Scalar functions of other packages, as the engine calls them: their answers are checked, and what they raise for an
event is that event's error alone."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ...plan.nodes import Call
from ...types import Type
from ..columnar.column_data import ARROW, Column, Mask, StringPool
from .java_values import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, RowFailure
from .rowwise import Builder, Plain, Whole, rowwise_typed

_BOUNDS = {Type.INT: (INT_MIN, INT_MAX), Type.LONG: (LONG_MIN, LONG_MAX)}


def by_row(function: Plain, *, nulls: bool) -> Builder:
    """A function of the values of one event. Unless it takes `nulls`, it is null where an argument is."""

    def of_values(*args: Any) -> Any:
        return None if not nulls and any(a is None for a in args) else function(*args)

    return rowwise_typed(lambda call: _check_answers(of_values, call))


def by_arrow(function: Callable[..., Any], *, nulls: bool) -> Builder:
    """A function of Arrow arrays, one for each argument, of the same length; it answers one of that length."""

    def over(arrays: Sequence[pa.Array], call: Call) -> pa.Array:
        answer = function(*arrays)
        if isinstance(answer, pa.Scalar):
            answer = pa.array([answer.as_py()] * len(arrays[0]), answer.type)
        if isinstance(answer, pa.ChunkedArray):
            answer = answer.combine_chunks()
        return pa.array(answer).cast(ARROW[call.type])

    return _over_columns(over, nulls=nulls)


def by_numpy(function: Callable[..., Any]) -> Builder:
    """A function of numpy arrays of numbers or bools, one for each argument; it is null where an argument is."""

    def over(arrays: Sequence[pa.Array], call: Call) -> pa.Array:
        answer = np.asarray(function(*(a.to_numpy(zero_copy_only=False) for a in arrays)))
        if answer.ndim == 0:
            answer = np.full(len(arrays[0]), answer)
        return pa.array(answer).cast(ARROW[call.type])

    return _over_columns(over, nulls=False)


def _over_columns(over: Callable[[Sequence[pa.Array], Call], pa.Array], *, nulls: bool) -> Builder:
    """A builder for a function over Arrow arrays. Where it raises an error, it is asked again for each event."""

    def answer(arrays: list[pa.Array], call: Call) -> pa.Array:
        """The answers; null where an argument is, unless the function takes `nulls`."""
        n = len(arrays[0])
        rows = None
        if not nulls and any(a.null_count for a in arrays):
            rows = np.flatnonzero(np.logical_and.reduce([a.is_valid().to_numpy(zero_copy_only=False) for a in arrays]))
            arrays = [a.take(pa.array(rows)) for a in arrays]
        size = len(arrays[0])
        answers = over(arrays, call)
        if len(answers) != size:
            raise RowFailure(f"'{call.function}' answered {len(answers):,} values for {size:,} events")
        if rows is None:
            return answers
        places = np.full(n, -1, np.int64)
        places[rows] = np.arange(size)
        return answers.take(pa.array(places, mask=places < 0))

    def one(call: Call) -> Plain:
        types = [ARROW[a.type] for a in call.args]

        def of_values(*args: Any) -> Any:
            return answer([pa.array([v], t) for v, t in zip(args, types, strict=True)], call)[0].as_py()

        return of_values

    def whole(call: Call) -> Whole:
        def of_columns(columns: Sequence[Column], strings: StringPool) -> tuple[Column, Mask | None] | None:
            arrays = [c.texts(strings) if c.type is Type.STRING else c.to_arrow(strings) for c in columns]
            if strings.halves:
                return None
            try:
                return Column.from_arrow(call.type, answer(arrays, call), strings), None
            except Exception:  # of which event it is comes out one by one
                return None

        return of_columns

    return rowwise_typed(one, whole)


def _check_answers(function: Plain, call: Call) -> Plain:
    """`function`, whose answer has to be of the call's type."""
    type, key = call.type, call.function
    to_value = _OF_TYPE.get(type)

    def answer(*args: Any) -> Any:
        value = function(*args)
        if value is None or to_value is None:
            return value
        of_type = to_value(value)
        bounds = _BOUNDS.get(type)
        if of_type is None or (bounds is not None and not bounds[0] <= of_type <= bounds[1]):
            raise RowFailure(f"'{key}' answered {value!r:.60}, which is no {type}")
        return of_type

    return answer


def _text(value: Any) -> str | None:
    return str(value) if isinstance(value, str) else None


def _bool(value: Any) -> bool | None:
    return bool(value) if isinstance(value, bool | np.bool_) else None


def _whole(value: Any) -> int | None:
    return None if isinstance(value, bool) or not isinstance(value, numbers.Integral) else int(value)


def _real(value: Any) -> float | None:
    return None if isinstance(value, bool) or not isinstance(value, numbers.Real) else float(value)


_OF_TYPE: dict[Type, Callable[[Any], Any]] = {
    Type.STRING: _text, Type.BOOL: _bool, Type.INT: _whole, Type.LONG: _whole, Type.FLOAT: _real, Type.DOUBLE: _real,
}  # fmt: skip
