"""The smallest change of a number, and the smallest part of some items, for which a test succeeds (`works`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from ...types import Type

_STEPS = 40
"""The number of steps, each twice as long as the last, in the search for a number that works."""
_BISECTIONS = 80
_INTEGERS = (Type.INT, Type.LONG)
_Item = TypeVar("_Item")


def neighbour(value: float, up: bool, type: Type) -> float:
    """The next greater or smaller value of a numeric type."""
    if type in _INTEGERS:
        return value + 1 if up else value - 1
    infinity = math.inf if up else -math.inf
    if type is Type.FLOAT:
        return float(np.nextafter(np.float32(value), np.float32(infinity)))
    return math.nextafter(value, infinity)


def nearest_number(
    start: float, targets: Iterable[float], type: Type, works: Callable[[float], bool], *, far: bool = True
) -> float | None:  # fmt: skip
    """The number nearest to `start` that works; `start` does not. It is one of the targets, one of their neighbours, or
    between; `far`: else one found by steps of growing length. None if there is none."""
    convert = int if type in _INTEGERS else float
    target_numbers = {convert(t) for t in targets if math.isfinite(t)}
    beside = {neighbour(t, up, type) for t in target_numbers for up in (True, False)}
    candidates = sorted((target_numbers | beside) - {start}, key=lambda n: abs(n - start))
    scale = max([1.0, *(abs(t) * 0.01 for t in target_numbers), abs(start) * 0.01])
    steps = [convert(start + sign * scale * 2**k) for k in range(_STEPS if far else 0) for sign in (1, -1)]
    failures = {True: start, False: start}
    for candidate in (*candidates, *steps):
        if abs(candidate) > _most(type):
            continue
        if works(candidate):
            return _towards(start, failures[candidate > start], candidate, type, works)
        failures[candidate > start] = candidate
    return None


def _towards(start: float, failure: float, success: float, type: Type, works: Callable[[float], bool]) -> float:
    """The number that works nearest to one that fails, between this and another that works."""
    last = neighbour(success, success < start, type)
    if last == start or not works(last):
        return success
    for _ in range(_BISECTIONS):
        middle = (failure + success) / 2 if type not in _INTEGERS else (int(failure) + int(success)) // 2
        if middle in (failure, success):
            break
        if works(middle):
            success = middle
        else:
            failure = middle
    return _short(failure, success, works)


def _short(failure: float, success: float, works: Callable[[float], bool]) -> float:
    """The number of fewest digits close to a bound that works."""
    if isinstance(success, int):
        return success
    for digits in range(1, 12):
        factor = 10.0**digits
        short_number = (math.ceil if success > failure else math.floor)(round(success * factor, 3)) / factor
        if abs(short_number - success) <= 1e-6 * max(1.0, abs(success)) and works(short_number):
            return short_number
    return success


def _most(type: Type) -> float:
    return {Type.INT: 2**31 - 1, Type.LONG: 2**62, Type.FLOAT: 3e38}.get(type, 1e300)


def smallest_part(items: Sequence[_Item], works: Callable[[Sequence[_Item]], bool]) -> list[_Item] | None:
    """A part of the items that works, and fails without any one of its items; None if all items together fail. (Zeller
    and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002: `ddmin`.)"""
    if not items or not works(items):
        return None
    part, pieces = list(items), 2
    while len(part) > 1:
        size = math.ceil(len(part) / pieces)
        chunks = [part[i : i + size] for i in range(0, len(part), size)]
        smaller = next((c for c in chunks if len(c) < len(part) and works(c)), None)
        if smaller is None and pieces > 2:
            rests = ([x for c in chunks if c is not chunk for x in c] for chunk in chunks)
            smaller = next((r for r in rests if r and works(r)), None)
            pieces = max(pieces - 1, 2) if smaller is not None else pieces
        elif smaller is not None:
            pieces = 2
        if smaller is not None:
            part = smaller
        elif pieces >= len(part):
            break
        else:
            pieces = min(len(part), pieces * 2)
    return part
