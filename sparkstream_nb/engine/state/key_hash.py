"""Hashes of the concatenated texts of values: as keys, and as Java's `String.hashCode`.

Strings of the dictionary are hashed once; no Python strings are created.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ...types import Type
from ..columnar.arrays import grown
from ..columnar.column_data import Array, Column, StringPool
from ..columnar.string_dictionary import text_buffers
from ..expressions.format_numbers import NUMBERS, number_texts
from ..expressions.java_texts import text
from ..notation.kernels import kernel

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
def _lay_on(table: Array, index: Array, wide: Array, java: Array) -> None:
    """Append text `index[i]` of the table to the text at row i."""
    for i in range(len(index)):
        k = index[i]
        wide[i] = wide[i] * table[1, k] + table[0, k]
        java[i] = (java[i] * table[3, k] + table[2, k]) & _MASK


class TextKeys:
    """Key numbers for the concatenated texts of columns."""

    def __init__(self, strings: StringPool) -> None:
        self.strings = strings
        self._table = np.zeros((4, 0), np.int64)
        self._table_end = 0

    def numbers(self, columns: Sequence[Column | None], n: int) -> tuple[Array, Array]:
        """(key numbers int64[n], Java's hashes int64[n], unsigned) of n rows; None is a column of nulls.

        Equal texts have equal numbers. The numbers of one text column are its codes, otherwise 64-bit hashes.
        """
        wide, java = np.zeros(n, np.int64), np.zeros(n, np.int64)
        for c in columns:
            if c is None:
                _lay_on(_table_of(["null"]), np.zeros(n, np.int64), wide, java)
            elif c.type is Type.STRING:
                _lay_on(*self._codes(c), wide, java)
            else:
                _lay_on(*_fingerprint_column(c), wide, java)
        if len(columns) == 1 and columns[0] is not None and columns[0].type is Type.STRING:
            return self._codes(columns[0])[1].astype(np.int64), java
        return wide, java

    def _codes(self, column: Column) -> tuple[Array, Array]:
        codes = column.values  # first, as a column may look its texts up only now
        if column.null is not None:
            codes = np.where(column.null, self.strings.code("null"), codes)
        if self._table_end < len(self.strings):
            fresh = _table_of(self.strings.texts[self._table_end :])
            self._table = grown(self._table, len(self.strings))
            self._table[:, self._table_end : len(self.strings)] = fresh
            self._table_end = len(self.strings)
        return self._table, codes


def _table_of(texts: Sequence[str]) -> Array:
    return _hash_array(pa.array([t.encode("utf-8", "surrogatepass") for t in texts], pa.binary()))


def _hash_array(texts: pa.Array) -> Array:
    offsets, data = text_buffers(texts)
    out = np.empty((4, len(texts)), np.int64)
    _hash_texts(data, offsets.astype(np.int64) - offsets[0], out)
    return out


def _fingerprint_column(column: Column) -> tuple[Array, Array]:
    """The table of a column's texts, row by row, and the place of each row's in it."""
    n = len(column)
    if column.type in NUMBERS:
        return _hash_array(number_texts(column).fill_null("null")), np.arange(n)
    values = column.values.tolist()
    nulls = column.nulls().tolist()
    return _table_of(["null" if no else text(column.type, v) for v, no in zip(values, nulls, strict=True)]), np.arange(
        n
    )
