"""Java's arithmetic and comparison on numpy arrays.

Rules of Siddhi's `executor.math.*` and `executor.condition.compare.*`: both sides are computed in the promoted type; a
division or remainder by zero is null in every type; integers wrap and divide truncating toward zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...types import Type
from ..columnar.column_data import DTYPES, Array, Column, Mask
from ..notation.intrinsics import fused
from ..notation.kernels import kernel

Kernel = Callable[[Array, Array], Array]


def is_constant(values: Array) -> bool:
    """True if an array repeats one value by a stride of 0, as constants do here."""
    return values.strides == (0,)


def is_constant_column(column: Column) -> bool:
    """`is_constant` for a column; lazy columns are not constant."""
    return type(column) is Column and is_constant(column.values)


def as_type(values: Array, type: Type) -> Array:
    """Numbers in the dtype of `type`; not copied if they have it, constants stay constants."""
    dtype = DTYPES[type]
    if values.dtype == dtype:
        return values
    if is_constant(values):
        return np.broadcast_to(values[:1].astype(dtype), values.shape) if len(values) else values.astype(dtype)
    return values.astype(dtype)


def narrow(values: Array, type: Type) -> Array:
    """Java's conversion of numbers to INT or LONG: floats are clipped and truncated, NaN is 0, longs wrap."""
    dtype = DTYPES[type]
    if values.dtype.kind != "f":
        return values.astype(dtype)
    info = np.iinfo(dtype)
    wide = values.astype(np.float64)
    if len(wide) and wide.min() > info.min and wide.max() < info.max:  # a NaN is neither
        return wide.astype(np.int64).astype(dtype)
    # 2**63-1 has no double of its own: the comparison is with 2**63, and those above are set apart.
    high = wide >= float(info.max)
    low = wide <= float(info.min)
    out: Array = np.where(high | low | np.isnan(wide), 0.0, wide).astype(np.int64).astype(dtype)
    out[high] = info.max
    out[low] = info.min
    return out


def either(a: Mask | None, b: Mask | None) -> Mask | None:
    """Rows null on either side."""
    if a is None:
        return b
    return a if b is None else a | b


@kernel
def _chosen(mask: Mask, yes: Array, no: Array, out: Array) -> None:
    for i in range(len(out)):
        a, b = yes[i], no[i]
        out[i] = a if mask[i] else b


_MANY = 4096
"""Number of rows below which a loop is not worth compiling. numpy's `where` branches, and mispredicts half of random
data.
"""
_WORDS = {1: np.int8, 4: np.int32, 8: np.int64}


def choose(mask: Array, yes: Array, no: Array) -> Array:
    """`yes` where `mask`, else `no`, branch-free: arrays of the same dtype and length as `mask`."""
    if len(mask) < _MANY or yes.dtype.hasobject:
        result: Array = np.where(mask, yes, no)
        return result
    word, out = _WORDS[yes.itemsize], np.empty(len(mask), yes.dtype)
    arrays = [np.ascontiguousarray(a) for a in (mask, yes, no)]
    _chosen(arrays[0], arrays[1].view(word), arrays[2].view(word), out.view(word))
    return out


def _divide(x: Array, y: Array) -> Array:
    if x.dtype.kind == "f":
        out: Array = x / y
        return out
    by = _divisor(y)
    q: Array = x // (y if by is None else by)
    if by is None:
        q += (q * y != x) & ((x ^ y) < 0)
    elif x.min() < 0:
        q += (q * by != x) & (x < 0)
    return q


@kernel
def _remainders(x: Array, y: Array, out: Array) -> None:
    """`fmod` of doubles. The quotient, cut to a whole number, is right or one too many, as its rounding may cross a
    whole number only upwards; the remainder is a double either way, so that it is computed without rounding.
    """
    last = len(y) - 1
    for i in range(len(x)):
        a, b = x[i], y[min(i, last)]
        q = np.trunc(a / b)
        if abs(q) < 2.0**52 and abs(b) < np.inf:
            r = fused(-q, b, a)
            if (r < 0 and a > 0) or (r > 0 and a < 0):
                r += np.copysign(b, a)
            out[i] = np.copysign(r, a)
        else:  # or NaN
            out[i] = np.fmod(a, b)


def _remainder(x: Array, y: Array) -> Array:
    by = _divisor(y)
    if x.dtype == np.float64 and len(x) >= _MANY:
        out = np.empty(len(x))
        _remainders(np.ascontiguousarray(x), y[:1].copy() if is_constant(y) else np.ascontiguousarray(y), out)
        return out
    if by is None or x.dtype.kind == "f":
        return np.fmod(x, y)
    rest: Array = x - _divide(x, y) * by
    return rest


def _divisor(y: Array) -> Any:
    """The positive number that `y` repeats, by which numpy divides integers fast; else None."""
    return y[0] if is_constant(y) and len(y) and y[0] > 0 else None


ARITHMETIC: Mapping[str, Kernel] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": _divide,
    "%": _remainder,
}

COMPARISON: Mapping[str, Kernel] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def compute(op: str, x: Array, y: Array, null: Mask | None) -> tuple[Array, Mask | None]:
    """`x op y` for arrays of one dtype, with the null mask of the result (null where `null` is, or by zero).

    Callers silence numpy's warnings about division by zero (`np.errstate`); its results there are not used.
    """
    if op in "/%":
        if is_constant(y):
            zero: Mask | None = np.ones(len(y), np.bool_) if len(y) and y[0] == 0 else None
        else:
            zero = y == 0
        if zero is not None and zero.any():
            null = zero if null is None else null | zero
    out = ARITHMETIC[op](x, y)
    if null is not None:
        out[null] = 0
    return out, null


def common_type(op: str, left: Type, right: Type) -> Type:
    """The type in which two numbers are compared.

    Java's promotion, except that `==` and `!=` of a long and a float are decided as doubles
    (`EqualCompareConditionExpressionExecutorLongFloat` and its mirror).
    """
    pair = {left, right}
    if Type.DOUBLE in pair or (pair == {Type.LONG, Type.FLOAT} and op in ("==", "!=")):
        return Type.DOUBLE
    if Type.FLOAT in pair:
        return Type.FLOAT
    return Type.LONG if Type.LONG in pair else Type.INT


@kernel
def long_minus(a: int, b: int) -> int:
    """a - b as Siddhi takes it away from a long sum (`SumAttributeAggregatorExecutor.AggregatorStateLong`): through a
    double, and back with Java's saturation."""
    d = float(a) - float(b)
    if d >= 9223372036854775807.0:
        return int(np.int64(9223372036854775807))
    if d <= -9223372036854775808.0:
        return int(np.int64(-9223372036854775808))
    return int(np.int64(d))
