"""Numbers that stand for the texts of values, laid end to end: as keys, and as Java's `String.hashCode`.

No text is made into a Python string: dictionary texts are hashed once, numbers digit by digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..types import Type
from .arrays import grown
from .columns import Array, Column, Strings
from .expressions.values import text
from .jit import kernel

_FACTOR = np.int64(-7046029254386353131)
_MASK = np.int64(0xFFFFFFFF)


@kernel
def _hash_texts(data: Array, ends: Array, out: Array) -> None:
    """Hashes UTF-8 texts (`ends[i]` is where text i begins) into the columns of `out`: the key number and Java's hash
    of each, each followed by the power by which that of a text before it is multiplied."""
    for i in range(len(ends) - 1):
        wide, wide_power = np.int64(0), np.int64(1)
        java, java_power = np.int64(0), np.int64(1)
        a = ends[i]
        low = np.int64(-1)  # the second unit of a pair
        while a < ends[i + 1] or low >= 0:
            unit: Any = low
            low = np.int64(-1)
            if unit < 0:
                c = np.int64(data[a])
                if c < 0x80:
                    unit = c
                    a += 1
                elif c < 0xE0:
                    unit = (c & 0x1F) << 6 | np.int64(data[a + 1] & 0x3F)
                    a += 2
                else:
                    unit = (c & 0xF) << 12 | np.int64(data[a + 1] & 0x3F) << 6 | np.int64(data[a + 2] & 0x3F)
                    a += 3
                    if c >= 0xF0:
                        unit = ((unit & 0x7FFF) << 6 | np.int64(data[a] & 0x3F)) - 0x10000
                        low = 0xDC00 + (unit & 0x3FF)
                        unit = 0xD800 + (unit >> 10)
                        a += 1
            wide = wide * _FACTOR + unit + 1
            wide_power = wide_power * _FACTOR
            java = (java * 31 + unit) & _MASK
            java_power = (java_power * 31) & _MASK
        out[0, i] = wide
        out[1, i] = wide_power
        out[2, i] = java
        out[3, i] = java_power


@kernel
def _hash_numbers(values: Array, real: bool, out: Array, other: Array) -> None:
    """As `_hash_texts` for numbers; `other` marks those left out, which take more than plain decimals to write.

    A double's text is that of the least number of decimals whose quotient is the double itself; up to 2^53 and 10^22
    that division is exact enough to be the one that reading the text would do.
    """
    digits = np.empty(24, np.int64)
    for i in range(len(values)):
        decimals = 0
        if real:
            v = float(values[i])
            size = abs(v)
            negative = v < 0 or (v == 0 and np.signbit(v))
            scale = 1.0
            m = np.int64(size) if size < 1e7 else np.int64(0)
            while decimals < 9 and float(m) / scale != size:
                decimals += 1
                scale *= 10.0
                m = np.int64(np.rint(size * scale)) if size < 1e7 else np.int64(0)
            if float(m) / scale != size or not (1e-3 <= size < 1e7 or size == 0):
                other[i] = True
                continue
            if decimals == 0:
                decimals = 1
                m *= 10
        else:
            m = np.int64(values[i])
            negative = m < 0
            if m == -9223372036854775808:
                other[i] = True
                continue
            m = abs(m)
        n = 0
        while m > 0 or n <= decimals:
            if n == decimals and real and n > 0 and digits[n - 1] >= 0:
                digits[n] = -2  # the point
                n += 1
                decimals = -1
            digits[n] = m % 10
            m //= 10
            n += 1
        if negative:
            digits[n] = -3
            n += 1
        wide, wide_power = np.int64(0), np.int64(1)
        java, java_power = np.int64(0), np.int64(1)
        for j in range(n - 1, -1, -1):
            unit = digits[j] + 48
            wide = wide * _FACTOR + unit + 1
            wide_power = wide_power * _FACTOR
            java = (java * 31 + unit) & _MASK
            java_power = (java_power * 31) & _MASK
        out[0, i] = wide
        out[1, i] = wide_power
        out[2, i] = java
        out[3, i] = java_power


@kernel
def _lay_on(table: Array, index: Array, wide: Array, java: Array) -> None:
    """Lays text `index[i]` of the table behind what stands at row i."""
    for i in range(len(index)):
        k = index[i]
        wide[i] = wide[i] * table[1, k] + table[0, k]
        java[i] = (java[i] * table[3, k] + table[2, k]) & _MASK


class TextKeys:
    """Key numbers for the texts of columns, laid end to end."""

    def __init__(self, strings: Strings) -> None:
        self.strings = strings
        self._table = np.zeros((4, 0), np.int64)
        self._known = 0

    def numbers(self, columns: Sequence[Column | None], n: int) -> tuple[Array, Array]:
        """(key numbers int64[n], Java's hashes int64[n], unsigned) of n rows; None stands for a column of nulls.

        Equal texts have equal numbers. Those of one text column are its codes; of others they are 64-bit hashes.
        """
        wide, java = np.zeros(n, np.int64), np.zeros(n, np.int64)
        for c in columns:
            if c is None:
                _lay_on(_table_of(["null"]), np.zeros(n, np.int64), wide, java)
            elif c.type is Type.STRING:
                _lay_on(*self._codes(c), wide, java)
            else:
                _lay_on(*_printed(c), wide, java)
        if len(columns) == 1 and columns[0] is not None and columns[0].type is Type.STRING:
            return self._codes(columns[0])[1].astype(np.int64), java
        return wide, java

    def _codes(self, column: Column) -> tuple[Array, Array]:
        codes = column.values  # first, as a column may look its texts up only now
        if column.null is not None:
            codes = np.where(column.null, self.strings.code("null"), codes)
        if self._known < len(self.strings):
            fresh = _table_of(self.strings.texts[self._known :])
            self._table = grown(self._table, len(self.strings))
            self._table[:, self._known : len(self.strings)] = fresh
            self._known = len(self.strings)
        return self._table, codes


def _table_of(texts: Sequence[str]) -> Array:
    out = np.empty((4, len(texts)), np.int64)
    data = [t.encode("utf-8", "surrogatepass") for t in texts]
    ends = np.cumsum([0, *(len(d) for d in data)])
    _hash_texts(np.frombuffer(b"".join(data) or b" ", np.uint8), ends, out)
    return out


def _printed(column: Column) -> tuple[Array, Array]:
    """The table of a column's texts, row by row, and the place of each row's in it; the last text is that of null."""
    n, values = len(column), column.values
    table = np.empty((4, n + 1), np.int64)
    table[:, n:] = _table_of(["null"])
    index = np.arange(n) if column.null is None else np.where(column.null, n, np.arange(n))
    other = np.zeros(n, np.bool_)
    if column.type in (Type.INT, Type.LONG, Type.DOUBLE):
        _hash_numbers(values, column.type is Type.DOUBLE, table, other)
    else:
        other[:] = True
    if other.any():
        at = np.flatnonzero(other)
        told = values[at].tolist()
        table[:, at] = _table_of(["null" if v is None else text(column.type, v) for v in told])
    return table, index
