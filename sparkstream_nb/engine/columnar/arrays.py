"""Small array helpers that several operators share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


def wider(have: int) -> int:
    """The new capacity when `have` is not enough: double, or 1.5 times for large arrays. Always a multiple of four
    words, so that records of up to four words stay whole."""
    return 2 * have if have < 1 << 16 else have + have // 2 & ~3


def aligned_zeros(n: int, dtype: Any) -> Array:
    """`n` zeros of eight bytes each, aligned to a cache line."""
    words = np.zeros(n + 7, dtype)
    first = -(words.ctypes.data // 8) % 8
    return words[first : first + n]


def grown(array: Array, n: int, fill: Any = 0) -> Array:
    """`array` with room for at least `n` along its last axis; new places hold `fill`. Same array if it has room."""
    have = array.shape[-1]
    if have >= n:
        return array
    size = max(n, wider(have), 16)
    out = np.empty((*array.shape[:-1], size), array.dtype)
    out[..., :have], out[..., have:] = array, fill
    return out


def fill_at(array: Array, places: Array, fill: Any) -> None:
    """Write `fill` to those places along the last axis that the array has."""
    array[..., places[places < array.shape[-1]]] = fill


def arrow_of(values: Array, type: pa.DataType, null: Mask | None) -> pa.Array:
    """An Arrow array over the memory of `values` (a copy for booleans, which Arrow stores as bits). `pa.array` would
    process nulls one by one."""
    data = _bits(values) if pa.types.is_boolean(type) else pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(type, len(values), [None if null is None else _bits(~null), data])


def _bits(mask: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))
