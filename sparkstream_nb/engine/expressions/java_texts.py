"""Java's texts of values: `toString` of numbers, truth values and collections."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...types import Type
from .java_values import type_of
from .objects import walk


def _format_float(digits: str, exponent: int, negative: bool) -> str:
    """Java's form of 0.d1d2d3... * 10**exponent: plain from 10**-3 to 10**7, else with `E`."""
    if -3 < exponent <= 7:
        if exponent <= 0:
            text = "0." + "0" * -exponent + digits
        else:
            integer_part = digits[:exponent].ljust(exponent, "0")
            text = integer_part + "." + (digits[exponent:] or "0")
    else:
        text = digits[0] + "." + (digits[1:] or "0") + "E" + str(exponent - 1)
    return "-" + text if negative else text


def _special(value: float) -> str | None:
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    return None


def _digits(shortest: str) -> tuple[str, int, bool]:
    mantissa, _, power = shortest.partition("e")
    negative = mantissa.startswith("-")
    digits = mantissa.lstrip("-").replace(".", "")
    return digits.rstrip("0") or "0", int(power) + 1, negative


def double_text(value: float) -> str:
    """`Double.toString`, in the shortest form that reads back (as since JDK 19)."""
    if 1e-3 <= abs(value) < 1e7:  # Python writes these as Java does
        return repr(float(value))
    return _special(value) or _format_float(*_digits(np.format_float_scientific(value, unique=True, trim="-")))


def float_text(value: float) -> str:
    """`Float.toString` of a value that is a 32-bit float."""
    text = np.format_float_scientific(np.float32(value), unique=True, trim="-")
    return _special(value) or _format_float(*_digits(text))


_TEXTS: Mapping[Type, Callable[[Any], str]] = {
    Type.STRING: str,
    Type.INT: str,
    Type.LONG: str,
    Type.FLOAT: float_text,
    Type.DOUBLE: double_text,
    Type.BOOL: lambda v: "true" if v else "false",
}


def text(type: Type, value: Any) -> str:
    """`String.valueOf` of a value of `type`; "null" for None."""
    if value is None:
        return "null"
    if type is Type.OBJECT:
        return object_text(value)
    return _TEXTS[type](value)


def object_text(value: Any) -> str:
    """`toString` of a boxed value: `[a, b]` for lists and sets, `{k=v}` for maps."""
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{object_text(k)}={object_text(value[k])}" for k in walk(value)) + "}"
    if isinstance(value, list | tuple | set | frozenset):
        return "[" + ", ".join(map(object_text, walk(value))) + "]"
    kind = type_of(value)
    return str(value) if kind is Type.OBJECT else _TEXTS[kind](value)
