"""Java semantics of single values: boxed types inside objects, parsing of numbers (`java_texts` writes them), casts.

An OBJECT column holds Python values. A Java Integer is `int`, a Double is `float`; a Long and a Float are `Long` and
`Float`, so that `instanceOfLong` and `json` texts stay exact. Other code treats them as plain numbers.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from ...types import Type
from ..columnar.error_routing import ErrorObject

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1


class Long(int):
    """A boxed `java.lang.Long`."""

    __slots__ = ()


class Float(float):
    """A boxed `java.lang.Float`; its value is exactly that of a 32-bit float."""

    __slots__ = ()


class RowFailure(Exception):
    """A function fails for these arguments: the row fails with this message."""


def wrap_int(value: int) -> int:
    """`value` as a Java int, wrapped."""
    return (value + 2**31) % 2**32 - 2**31


def to_float32(value: float) -> float:
    """`value` rounded to a Java float."""
    with np.errstate(all="ignore"):
        return float(np.float32(value))


def box(type: Type, value: Any) -> Any:
    """A column's Python value as the boxed value that an object holds."""
    if value is None:
        return None
    if type is Type.LONG:
        return Long(value)
    if type is Type.FLOAT:
        return Float(value)
    return value


def with_whole_characters(value: Any) -> Any:
    """An object's value whose texts have a question mark for each half of a surrogate pair, as Java writes it."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {with_whole_characters(k): with_whole_characters(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return type(value)(map(with_whole_characters, value))
    return value


def boxes(type: Type, values: list[Any]) -> list[Any]:
    """`box` of each."""
    return [box(type, v) for v in values] if type in (Type.LONG, Type.FLOAT) else values


def type_of(value: Any) -> Type:
    """The SiddhiQL type of a boxed value; OBJECT where it has no other."""
    if isinstance(value, bool):
        return Type.BOOL
    if isinstance(value, Long):
        return Type.LONG
    if isinstance(value, int):
        return Type.INT if INT_MIN <= value <= INT_MAX else Type.LONG
    if isinstance(value, Float):
        return Type.FLOAT
    if isinstance(value, float):
        return Type.DOUBLE
    if isinstance(value, str) and not isinstance(value, ErrorObject):
        return Type.STRING
    return Type.OBJECT


# -------------------------------------------------------------------------------------------------------- from text

MOST_DIGITS = 4_000
"""Digits that Python makes a number of; a long has 19, and zeros before them are rare."""
_INTEGER = re.compile(r"[+-]?\d+")  # digits of any script, as Character.digit
_FLOATING = re.compile(r"([+-]?)(?:(NaN|Infinity)|((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFdD]?)", re.ASCII)
_HEX = re.compile(r"([+-]?)(0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+)[fFdD]?", re.ASCII)


def parse_integer(text: str, low: int, high: int) -> int | None:
    """`Integer.parseInt`/`Long.parseLong` within `low`..`high`; None if Java raises NumberFormatException."""
    if not _INTEGER.fullmatch(text) or len(text) > MOST_DIGITS:
        return None
    value = int(text)
    return value if low <= value <= high else None


def parse_int(text: str) -> int | None:
    """`Integer.parseInt`, or None."""
    return parse_integer(text, INT_MIN, INT_MAX)


def parse_long(text: str) -> int | None:
    """`Long.parseLong`, or None."""
    return parse_integer(text, LONG_MIN, LONG_MAX)


def parse_double(text: str) -> float | None:
    """`Double.parseDouble`, or None; takes white space around, a suffix f or d, NaN, Infinity, hexadecimal."""
    text = text.strip("".join(map(chr, range(33))))
    if match := _FLOATING.fullmatch(text):
        sign, word, number = match.groups()
        value = float(number) if number else math.nan if word == "NaN" else math.inf
        return -value if sign == "-" else value
    if match := _HEX.fullmatch(text):
        value = float.fromhex(match.group(2))
        return -value if match.group(1) == "-" else value
    return None


def parse_float(text: str) -> float | None:
    """`Float.parseFloat`, or None."""
    value = parse_double(text)
    return None if value is None else to_float32(value)


def parse_bool(text: str) -> bool:
    """`Boolean.parseBoolean`."""
    return text.lower() == "true"
