"""Merges the ordered rows of several writers (k-way merge)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..notation.intrinsics import either
from ..notation.kernels import kernel
from .arrays import Array


@kernel
def _merge(left: Array, order: Array, right: Array, base: int, keys: Array, out: Array) -> None:
    """Merges numbers that rise, `left` before `right` where they are equal, into `keys`; `out` says where they come
    from: as `order` says, or j behind `base`. Without a branch on which is next, as no processor can guess that."""
    n, m, one = np.uint64(len(left)), np.uint64(len(right)), np.uint64(1)
    i, j = np.uint64(0), np.uint64(0)
    while i < n and j < m:
        a, b = left[i], right[j]
        later = b < a
        keys[i + j] = either(later, b, a)
        out[i + j] = either(later, np.int64(base + np.int64(j)), order[i])
        i += np.uint64(not later)
        j += np.uint64(later)
    while i < n:
        keys[i + j], out[i + j] = left[i], order[i]
        i += one
    while j < m:
        keys[i + j], out[i + j] = right[j], base + np.int64(j)
        j += one


def merge_order(runs: Sequence[Array]) -> Array:
    """The stable merge order (int64 indices into the concatenated `runs`) of ascending int64 runs, at least one; equal
    numbers of earlier runs come first."""
    keys, order = runs[0], np.arange(len(runs[0]))
    for run in runs[1:]:
        n = len(keys) + len(run)
        all_keys, places = np.empty(n, np.int64), np.empty(n, np.int64)
        _merge(keys, order, run, len(keys), all_keys, places)
        keys, order = all_keys, places
    return order
