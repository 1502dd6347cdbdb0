"""JSON texts: read with each number as it is written, and written as Siddhi's libraries write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ..engine.expressions.java_texts import double_text, object_text
from ..engine.expressions.java_values import LONG_MAX, LONG_MIN, MOST_DIGITS, Long
from ..engine.expressions.jsontext import JsonError, read_smart
from ..limits import MOST_NESTED
from .attribute_values import MessageError


class IntegerToken(str):
    """A number without a point and an exponent, as it is written."""

    __slots__ = ()


class DecimalToken(str):
    """A number with a point or an exponent, as it is written."""

    __slots__ = ()


class JsonObject(dict[str, Any]):
    """An object, in which the last of two equal names counts; `name_count` is the number of names."""

    __slots__ = ("name_count",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.name_count = len(pairs)


def _no_constant(word: str) -> Any:
    raise ValueError(f"'{word}' is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=JsonObject,
    parse_int=IntegerToken,
    parse_float=DecimalToken,
    parse_constant=_no_constant,
    strict=True,
)


def parse_strict(text: str) -> Any:
    """A JSON text: `JsonObject`, lists, texts, `IntegerToken` and `DecimalToken` numbers, booleans, None.

    Raises MessageError.
    """
    try:
        document = _DECODER.decode(text)
    except RecursionError:
        raise MessageError(f"JSON nested deeper than {MOST_NESTED} levels") from None
    except json.JSONDecodeError as e:
        where = f"character {e.pos + 1}" if e.lineno == 1 else f"line {e.lineno}, character {e.colno}"
        raise MessageError(f"not JSON: {e.msg[:1].lower()}{e.msg[1:]} ({where})") from None
    except ValueError as e:
        raise MessageError(f"not JSON: {e}") from None
    if text.count("{") + text.count("[") > MOST_NESTED:
        _check_depth(document)
    return document


def parse_lenient(text: str) -> Any:
    """`parse_strict`, and if that fails, parsing as json-smart's permissive parser does it: quotes may be single or
    missing, and commas too many. Raises MessageError, with the strict reader's reason.
    """
    try:
        return parse_strict(text)
    except MessageError as strict:
        if not text.lstrip().startswith(("{", "[")):
            raise
        try:
            document = _mark_numbers(read_smart(text))
        except (JsonError, RecursionError, ValueError):
            raise strict from None
        _check_depth(document)
        return document


def _mark_numbers(value: Any) -> Any:
    """A value read by json-smart, with numbers as `parse_strict` has them."""
    if isinstance(value, dict):
        return JsonObject([(k, _mark_numbers(v)) for k, v in value.items()])
    if isinstance(value, list):
        return [_mark_numbers(v) for v in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return IntegerToken(int(value)) if isinstance(value, int) else DecimalToken(double_text(value))


def _check_depth(document: Any) -> None:
    level = [document]
    for _ in range(MOST_NESTED + 1):
        level = [
            part
            for container in level
            for part in (
                container.values() if isinstance(container, dict) else container if isinstance(container, list) else ()
            )
            if isinstance(part, dict | list)
        ]
        if not level:
            return
    raise MessageError(f"JSON nested deeper than {MOST_NESTED} levels")


def number(token: str) -> Any:
    """A number as a Java object: Integer, Long or Double. Raises MessageError for one that a long does not hold."""
    if isinstance(token, DecimalToken):
        return float(token)
    value = int(token) if len(token) <= MOST_DIGITS else LONG_MAX + 1
    if not LONG_MIN <= value <= LONG_MAX:
        raise MessageError("a whole number is more than a long holds")
    return value if -(2**31) <= value < 2**31 else Long(value)


def plain(value: Any) -> Any:
    """A value read as an object of an event: maps, lists, texts, numbers. Raises MessageError."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return number(value) if isinstance(value, IntegerToken | DecimalToken) else value


def number_text(token: str) -> str:
    """The text that json-smart has of a number: of one with at most 18 characters the double's, else all digits."""
    if isinstance(token, IntegerToken):
        return token
    return double_text(float(token)) if len(token) <= 18 else str(Decimal(token))


# ------------------------------------------------------------------------------------------------------------ writing

_CONTROL = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_BASE = {i: _CONTROL.get(chr(i), f"\\u{i:04x}") for i in range(32)} | {ord('"'): '\\"', ord("\\"): "\\\\"}
GSON = str.maketrans(_BASE | {0x2028: "\\u2028", 0x2029: "\\u2029"})
"""Characters that Gson escapes in a `JsonElement`."""
JACKSON = str.maketrans({k: v.upper().replace("\\U", "\\u") if "u" in v else v for k, v in _BASE.items()})
"""Characters that Jackson escapes."""
SMART = str.maketrans(
    _BASE
    | {i: f"\\u{i:04X}" for i in [*range(11), 11, *range(14, 32), *range(127, 160), *range(0x2000, 0x2100)]}
    | {ord(k): v for k, v in _CONTROL.items()}
    | {ord("/"): "\\/"}
)
"""Characters that json-smart escapes."""

Escapes = Mapping[int, str | int | None]


def write_json(value: Any, escapes: Escapes, *, nulls: bool = True) -> str:
    """A JSON text. `nulls`: whether maps show null."""
    if value is None:
        return "null"
    if isinstance(value, IntegerToken):
        return value
    if isinstance(value, DecimalToken):
        return double_text(float(value))
    if isinstance(value, str):
        return f'"{value.translate(escapes)}"'
    if isinstance(value, dict):
        items = [(k, v) for k, v in value.items() if nulls or v is not None]
        inner = ",".join(
            f'"{object_text(k).translate(escapes)}":{write_json(v, escapes, nulls=nulls)}' for k, v in items
        )
        return "{" + inner + "}"
    if isinstance(value, list | tuple | set | frozenset):
        return "[" + ",".join(write_json(v, escapes, nulls=nulls) for v in value) + "]"
    if isinstance(value, bool | int | float):
        return object_text(value)
    return f'"{object_text(value).translate(escapes)}"'


def valid(text: str) -> bool:
    """True if a text is JSON as Gson reads it, which is lenient: quotes may be single or missing."""
    try:
        parse_lenient(text)
    except MessageError:
        return False
    return True
