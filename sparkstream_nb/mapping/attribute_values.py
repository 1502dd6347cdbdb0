"""Values of messages as values of attributes, as Siddhi's mappers convert them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from ..engine.columnar.column_data import ARROW
from ..engine.expressions.java_values import parse_bool, parse_double, parse_float, parse_int, parse_long
from ..errors import shown
from ..types import Schema, Type

Values: TypeAlias = "pa.Array | list[Any]"
"""The values of one attribute: an Arrow array of its type in `ARROW`, or a list of Python values for OBJECT."""

Row: TypeAlias = list[Any]
"""The Python values of one event, by attribute; None for null."""


class MessageError(Exception):
    """A message, or a part of one, is no event; the message says why, in one line."""


_PARSE: Mapping[Type, Callable[[str], Any]] = {
    Type.BOOL: parse_bool,
    Type.INT: parse_int,
    Type.LONG: parse_long,
    Type.FLOAT: parse_float,
    Type.DOUBLE: parse_double,
}


def misfit(name: str, type: Type, value: object) -> str:
    """Why a value is none of the attribute `name`."""
    return f"{name}: {shown(value)} is not {'an' if type is Type.INT else 'a'} {type}"


def convert_text(type: Type, text: str, name: str) -> Any:
    """A text as a value of `type`, as by Siddhi's `AttributeConverter`: a string and an object are the text.

    Raises MessageError, which names the attribute `name`.
    """
    parse = _PARSE.get(type)
    if parse is None:
        return text
    value = parse(text)
    if value is None:
        raise MessageError(misfit(name, type, text))
    return value


def arrays(schema: Schema, rows: Sequence[Row]) -> list[Values]:
    """Rows as columns."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    return [values(a.type, list(c)) for a, c in zip(schema, columns, strict=True)]


def values(type: Type, items: list[Any]) -> Values:
    """Python values as a column."""
    if type is Type.OBJECT:
        return items
    if type is Type.STRING:
        try:
            return pa.array(items, pa.string())
        except UnicodeEncodeError:  # half a character, which Java writes as "?"
            return pa.array([None if i is None else i.encode("utf-8", "replace") for i in items], pa.binary()).cast(
                pa.string()
            )
    return pa.array(items, ARROW[type])


def join_columns(parts: Sequence[Values]) -> Values:
    """Columns of one attribute, one after the other."""
    if isinstance(parts[0], list):
        return [v for part in parts for v in part]
    return pa.concat_arrays(parts)
