"""The loops of some modules as plain Python, so that a fault in one needs no compiling. All others stay compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core.extending import _Intrinsic

from sparkstream_nb.engine.notation import kernels


def _load64(a: Any, at: int) -> np.uint64:
    return np.uint64(int.from_bytes(a[int(at) : int(at) + 8].tobytes(), "little"))


def _store64(a: Any, at: int, word: int) -> None:
    a[int(at) : int(at) + 8] = np.frombuffer(int(word).to_bytes(8, "little"), np.uint8)


def _number_of_five(a: Any, at: int, key: int) -> np.uint64:
    keys, numbers = a[int(at) : int(at) + 5], a[int(at) : int(at) + 8].view(np.uint32)[10:]
    found = np.flatnonzero(keys == key)
    return np.uint64(numbers[found[0]] if len(found) else 0)


# What `intrinsics.py` writes as machine code; only what loops of windows, joins and tables call.
_PLAIN: dict[str, Callable[..., Any]] = {
    "_prefetch": lambda array, index: None,
    "_either": lambda condition, one, other: one if condition else other,
    "_load64": _load64,
    "_store64": _store64,
    "_number_of_five": _number_of_five,
}


def run_as_python(modules: set[str]) -> None:
    """From now on `kernel` leaves functions of these modules, which must not be imported yet, as they are."""
    warnings.filterwarnings("ignore", category=RuntimeWarning)  # numbers that overflow are meant to
    _Intrinsic.__call__ = lambda self, *args: _PLAIN[self._name](*args)
    kernels._read, kernels._write = lambda *_: None, lambda *_: None  # what is kept of loops knows no faults
    compiled = kernels.kernel

    def kernel(
        function: Callable[..., Any], structs: dict[str, type] | None = None, **fixed: bool | int
    ) -> Callable[..., Any]:
        if modules.isdisjoint({function.__module__, *(cls.__module__ for cls in (structs or {}).values())}):
            return compiled(function, structs, **fixed)
        fixed = {name: value for name, value in fixed.items() if "." not in name}  # fields, which are there anyway
        return _bound(function, fixed) if fixed else function

    kernels.kernel = kernel


def _bound(function: Callable[..., Any], fixed: dict[str, Any]) -> Callable[..., Any]:
    names = function.__code__.co_varnames[: function.__code__.co_argcount]

    def call(*args: Any) -> Any:
        rest = iter(args)
        return function(*(fixed[n] if n in fixed else next(rest) for n in names))

    return call
