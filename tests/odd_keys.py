"""Keys that a text or a bit pattern could take for another: the odd values of each type, and what tells two apart."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from sparkstream_nb.types import Type

OTHER_NAN: float = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]
"""A NaN with other bits than Java's."""

_REALS = [0.0, -0.0, 1.0, math.nan, OTHER_NAN, math.inf, -math.inf, None]
ODD_VALUES: dict[Type, list[Any]] = {
    Type.STRING: [
        "", "null", "NULL", "NaN", "0.0", "-0.0", "a", "b", "a:-:b", ":-:", "::", "-", "a\x00", "\U0001f600", "\u00e9",
        "e\u0301", None,
    ],
    Type.INT: [0, 1, 2**31 - 1, -(2**31), None],
    Type.LONG: [0, 1, 2**31, 2**63 - 1, -(2**63), -(2**63) + 1, None],
    Type.FLOAT: [*_REALS, 2.0**-149, 3.4028234663852886e38],
    Type.DOUBLE: [*_REALS, 5e-324, 1.7976931348623157e308],
    Type.BOOL: [True, False, None],
}  # fmt: skip


def values_of(type: Type) -> st.SearchStrategy[Any]:
    """Odd values of a type."""
    return st.sampled_from(ODD_VALUES[type])


def identity(value: Any, *, null_is_text: bool = False) -> Any:
    """The key of a value, which Python compares: Java's boxed values are equal where these are. A null string is the
    text 'null' where keys are texts: None, and 'null' of type string, are one with `null_is_text`."""
    if value is None:
        return "null" if null_is_text else None
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    return value


def counts(rows: Sequence[Sequence[Any]], *, null_is_text: bool = False) -> dict[tuple[Any, ...], int]:
    """The number of rows with each key."""
    out: dict[tuple[Any, ...], int] = {}
    for row in rows:
        key = tuple(identity(v, null_is_text=null_is_text) for v in row)
        out[key] = out.get(key, 0) + 1
    return out
