"""Configures malloc to keep freed memory in the process, as consecutive micro-batches need arrays of the same size."""

from __future__ import annotations

import ctypes
import functools
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Options of glibc's `mallopt`."""

_ARRAY, _KEPT = 1 << 28, 1 << 29
"""Arrays up to the first size come from the heap, and the heap keeps up to the second when they are freed (bytes)."""


@functools.cache
def keep_freed_memory() -> None:
    """Configure the C library not to give memory back to the system between batches, if possible.

    Pages that were given back are cleared by the system when they are asked for again, which costs more than most
    operators do with them.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # no other C library has it
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _ARRAY)
        mallopt(_TRIM_THRESHOLD, _KEPT)
