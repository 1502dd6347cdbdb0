"""Small array helpers that several operators share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


def wider(have: int) -> int:
    """How much room to make where `have` is not enough: twice as much, and half as much again of what is large. Records
    of up to four words stay whole."""
    return 2 * have if have < 1 << 16 else have + have // 2 & ~3


def lined(n: int, dtype: Any) -> Array:
    """`n` zeros of eight bytes each, which begin with a line of the cache."""
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
