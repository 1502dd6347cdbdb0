"""How the engine's hot loops are compiled: one place for numba's options.

Compiled code is kept in numba's cache beside the modules (or in `NUMBA_CACHE_DIR`), so that a loop is compiled once per
machine, not once per process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compiles a loop over arrays. To a type checker the function stays what it is."""
    return cast(F, njit(cache=True)(function))
