"""Values of cells by their types: read, compared with what an app gave, and written."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..types import Type
from .model import Cell
from .siddhitest_errors import AppTestError
from .siddhitest_parser import is_keyword

DOUBLE_TOLERANCE = 1e-9
"""Two doubles are equal if they differ by this share of the larger one."""
FLOAT_TOLERANCE = 1e-6
"""Two floats are equal if they differ by this share of the larger one."""
ZERO_TOLERANCE = 1e-12
"""Two numbers this close to each other are equal."""
_RANGES = {Type.INT: 31, Type.LONG: 63}


def read_value(cell: Cell, type: Type) -> Any:
    """The value of a cell of this type; None for null. Raises AppTestError, at the cell, for a text that is none."""
    text = cell.text
    if text == "null" and not cell.in_quotes:
        return None
    if type is Type.STRING:
        return text
    if type is Type.OBJECT:
        return _read_object(cell)
    if type is Type.BOOL:
        if text not in ("true", "false"):
            raise _no_value(cell, type, "Write true, false or null.")
        return text == "true"
    if type in _RANGES:
        bits = _RANGES[type]
        if not re.fullmatch(r"[+-]?0*\d{1,20}", text) or not -(2**bits) <= int(text) < 2**bits:
            raise _no_value(cell, type, f"Write a whole number of {bits + 1} bits, or null.")
        return int(text)
    try:
        return float(text)
    except ValueError:
        raise _no_value(cell, type, "Write a number such as 350.0, NaN, Infinity, or null.") from None


def _no_value(cell: Cell, type: Type, hint: str) -> AppTestError:
    article = "an" if type in (Type.INT, Type.OBJECT) else "a"
    return AppTestError(f"'{cell.text}' is not {article} {type}", cell.span, hint=hint)


def _read_object(cell: Cell) -> Any:
    """An object: JSON, or a text as it is."""
    try:
        return json.loads(cell.text)
    except RecursionError:
        raise AppTestError("the object is nested too deeply", cell.span, hint="Write a flatter one.") from None
    except ValueError:
        return cell.text


def is_equal(expected: Any, actual: Any, type: Type) -> bool:
    """True if the value of a cell equals that of an app: floats and doubles within their tolerance."""
    if expected is None or actual is None:
        return expected is None and actual is None
    if type is Type.OBJECT:
        return bool(_plain(expected) == _plain(actual))
    if type in (Type.FLOAT, Type.DOUBLE):
        if math.isnan(expected) or math.isnan(actual):
            return math.isnan(expected) and math.isnan(actual)
        share = FLOAT_TOLERANCE if type is Type.FLOAT else DOUBLE_TOLERANCE
        return math.isclose(expected, actual, rel_tol=share, abs_tol=ZERO_TOLERANCE)
    return bool(expected == actual)


def _plain(value: Any) -> Any:
    """An object as JSON would have it."""
    return json.loads(json.dumps(value, default=str))


def write_value(value: Any, type: Type, *, first: bool = False) -> str:
    """The text of a cell that holds the value. `first`: the first cell of a row, which is no keyword."""
    if value is None:
        return "null"
    if type is Type.BOOL:
        return "true" if value else "false"
    if type is Type.FLOAT:
        return _write_number(float(value), str(np.float32(value)))
    if type is Type.DOUBLE:
        return _write_number(float(value), repr(float(value)))
    if type in _RANGES:
        return str(int(value))
    if type is Type.OBJECT:
        text = json.dumps(value, default=str, ensure_ascii=False)
        return write_text(text, first=first)
    return write_text(str(value), first=first)


def _write_number(value: float, text: str) -> str:
    return "NaN" if math.isnan(value) else text.replace("inf", "Infinity") if math.isinf(value) else text


def write_text(text: str, *, first: bool = False) -> str:
    """A text as a cell: in double quotes where it would mean something else without."""
    plain = (
        text == text.strip()
        and text not in ("", "null")
        and not re.search(r'["|\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|(?:^|\s)#', text)
        and not (first and is_keyword(text))
    )
    if plain:
        return text
    json_text = json.dumps(text, ensure_ascii=False)
    return re.sub("[\x7f-\x9f\u2028\u2029\ud800-\udfff]", lambda m: f"\\u{ord(m[0]):04x}", json_text)


def write_rows(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: cells below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [" | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]
