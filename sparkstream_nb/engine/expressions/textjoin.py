"""Concatenates strings row by row, without intermediate copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..columnar.column_data import Array, Column, StringPool
from ..columnar.string_dictionary import string_array, text_buffers
from ..notation.intrinsics import load64, store64
from ..notation.kernels import kernel

_MOST_BYTES = 2**31 - 1
_NO_CODES = np.zeros(0, np.int32)


@kernel
def _place(offsets: Array, codes: Array, base: int, begins: Array, sizes: Array) -> Any:
    """Find the start and length of each row's text, from the offsets of texts that begin at `base`. Row i has text
    `codes[i]` (-1: none), or i without codes. Returns the total length.
    """
    shift = base - np.int64(offsets[0])
    total = np.int64(0)
    for i in range(len(begins)):
        k = np.int64(codes[i]) if len(codes) else np.int64(i)
        begins[i], sizes[i] = 0, 0
        if k >= 0:
            at = np.int64(offsets[k])
            begins[i], sizes[i] = at + shift, np.int64(offsets[k + 1]) - at
        total += sizes[i]
    return total


@kernel
def _lay(data: Array, begins: Array, sizes: Array, ends: Array, out: Array) -> None:
    """Copies the texts of each row, one after the other, and notes where each row ends. Eight bytes are copied at once:
    bytes behind a text's end are overwritten later, or lie behind the last end.
    """
    at = np.int64(0)
    for i in range(len(ends) - 1):
        for p in range(len(begins)):
            a, n = np.int64(begins[p, i]), np.int64(sizes[p, i])
            for k in range(0, n, 8):
                word = load64(data, a + k)
                store64(out, at + k, word)
            at += n
        ends[i + 1] = at


def join_texts(parts: Sequence[Column | str], n: int, strings: StringPool) -> pa.Array | None:
    """The concatenation of `parts` for each of `n` rows; nulls are empty. Invalid if `strings.halves` is true
    afterwards; None if the result is too long for one array."""
    begins, sizes = np.empty((len(parts), n), np.int64), np.empty((len(parts), n), np.int32)
    buffers: list[Array] = []
    base = total = 0
    for p, part in enumerate(parts):
        codes = _NO_CODES
        if isinstance(part, str):
            codes, array = np.zeros(n, np.int32), pa.array([part])
        elif part.many or len(strings) > n:
            array = part.texts(strings)
            if array.null_count:
                array = array.fill_null("")
        else:
            codes, array = part.values, strings.to_arrow(part.values[:0]).dictionary
        offsets, data = text_buffers(array)
        data = data[: int(offsets[-1]) - int(offsets[0])]
        total += _place(offsets, codes, base, begins[p], sizes[p])
        buffers.append(data)
        base += len(data)
    if total > _MOST_BYTES:
        return None
    ends, out = np.zeros(n + 1, np.int32), np.empty(total + 8, np.uint8)
    _lay(np.concatenate([*buffers, np.zeros(8, np.uint8)]), begins, sizes, ends, out)
    return string_array(ends, out)
