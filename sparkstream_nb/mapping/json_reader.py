"""JSON messages as events: one message at a time, as siddhi-map-json 5.2 does it.

Siddhi has three readers. A message by default that is one object is read by Jackson, strictly: each name must be an
attribute, and each value of a JSON type that its attribute takes. A message by default that is an array is read by
Gson: values are converted from their texts, further names are ignored. With paths json-smart reads, and values are
converted from their texts too. An error in an array fails the whole message, except a missing attribute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engine.expressions.java_values import Float, RowFailure, to_float32
from ..engine.expressions.jsonpath import JsonNames, NotFound, compile_path, read
from ..engine.expressions.jsontext import map_leaves, write_gson
from ..errors import shown
from ..plan.connectors.mapping import JsonSource, SourceMapping
from ..types import Attribute, Schema, Type
from .attribute_values import MessageError, Row, convert_text
from .json_text import (
    JACKSON,
    SMART,
    DecimalToken,
    IntegerToken,
    JsonObject,
    number,
    number_text,
    parse_lenient,
    parse_strict,
    plain,
    write_json,
)
from .rejected_parts import ParsedMessage, RejectedPart

_EVENT = "event"


class JsonReader:
    """Reads messages by default, in which names are the attributes' names."""

    def __init__(self, mapping: SourceMapping, schema: Schema) -> None:
        self.schema = schema
        self.positions = {n: i for i, n in enumerate(schema.names)}
        self.fail = mapping.fail_on_missing

    def read(self, text: str) -> ParsedMessage:
        """The events of a message. Raises MessageError."""
        if text.lstrip()[:1] == "[":
            return self._array(parse_lenient(text))
        document = parse_strict(text)
        if not isinstance(document, JsonObject):
            raise MessageError(f"not an object or an array of objects: {shown(text)}")
        return ParsedMessage([self._single(document)])

    def _single(self, document: JsonObject) -> Row:
        items: dict[str, Any] = document
        name_count = document.name_count
        while items:
            first = next(iter(items))
            if first.lower() != _EVENT:
                break
            inner = items[first]
            rest = {k: v for k, v in items.items() if k != first}
            if not isinstance(inner, JsonObject):
                name_count, items = name_count - 1, rest
                break
            name_count += inner.name_count - 1
            items = inner | rest
        row: Row = [None] * len(self.schema)
        for name, value in items.items():
            position = self.positions.get(name)
            if position is None:
                raise MessageError(f"the stream has no attribute {shown(name)}")
            if value is not None:
                row[position] = _strict(self.schema[position], value)
        if self.fail and name_count != len(self.schema):
            missing = [n for n in self.schema.names if n not in items]
            raise MessageError(f"it lacks {', '.join(missing)}" if missing else "a name occurs in it twice")
        return row

    def _array(self, document: list[Any]) -> ParsedMessage:
        out = ParsedMessage([])
        for item in document:
            if not isinstance(item, JsonObject):
                raise MessageError(f"an item of the array is not an object: {shown(_text(item) or 'null')}")
            inside = item.get(_EVENT) if _EVENT in item else item
            if not isinstance(inside, JsonObject):
                raise MessageError(f"'event' is not an object: {shown(_text(inside) or 'null')}")
            if len(inside) < len(self.schema) and (self.fail or inside is item):
                missing = ", ".join(n for n in self.schema.names if n not in inside)
                out.bad.append(RejectedPart(f"it lacks {missing}", write_json(item, JACKSON)))
                continue
            out.rows.append([self._of_array(a, inside) for a in self.schema])
        return out

    def _of_array(self, a: Attribute, item: JsonObject) -> Any:
        if a.name not in item:
            return None
        value = item[a.name]
        while isinstance(value, list) and len(value) == 1:
            value = value[0]
        if value is None or isinstance(value, dict | list):
            raise MessageError(
                f"{a.name}: {shown(write_json(value, JACKSON))} in an array of events is not a text or a number"
            )
        text = value if isinstance(value, str) else _text(value)
        return convert_text(a.type, text, a.name)


def _text(value: Any) -> str:
    """Text of a JSON value other than null."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else write_json(value, JACKSON)


def _strict(a: Attribute, value: Any) -> Any:
    """A value of a message by default, which is not null. Raises MessageError."""
    kind = a.type
    is_integer, is_decimal = isinstance(value, IntegerToken), isinstance(value, DecimalToken)
    if kind is Type.STRING:
        return write_json(value, JACKSON) if isinstance(value, dict | list) else str(_text(value))
    if kind is Type.OBJECT:
        if is_integer:
            return convert_text(Type.INT, value, a.name)
        return Float(to_float32(float(value))) if is_decimal else plain(value)
    if kind is Type.BOOL and isinstance(value, bool):
        return value
    if kind in (Type.INT, Type.LONG) and is_integer:
        return convert_text(kind, value, a.name)
    if kind is Type.DOUBLE and is_decimal:
        return float(value)
    if kind is Type.FLOAT and (is_integer or is_decimal):
        return to_float32(float(value))
    text = write_json(value, JACKSON)
    if kind is Type.DOUBLE and is_integer:
        raise MessageError(
            f"{a.name}: {text[:60]} is a whole number, and a double is written with a point: {text[:60]}.0"
        )
    raise MessageError(f"{a.name}: the JSON value {text[:60]} is not {'an' if kind is Type.INT else 'a'} {kind}")


class JsonPathReader:
    """Reads messages with a JSON path for each attribute."""

    def __init__(self, mapping: SourceMapping, schema: Schema) -> None:
        assert isinstance(mapping.format, JsonSource)
        assert mapping.places is not None
        self.schema = schema
        self.fail = mapping.fail_on_missing
        self.enclosing = None if mapping.format.enclosing == "$" else mapping.format.enclosing
        self.places = [None if p is None else (str(p), getter(str(p))) for p in mapping.places]
        if self.enclosing is not None:
            getter(self.enclosing)

    def read(self, text: str) -> ParsedMessage:
        """The events of a message. Raises MessageError."""
        document = map_leaves(parse_lenient(text), _wrap_number)
        if self.enclosing is not None:
            try:
                document = read(document, self.enclosing)
            except NotFound:
                document = None
            except RowFailure as e:
                raise MessageError(str(e)) from None
            if document is None:
                raise MessageError(f"it has no '{self.enclosing}'")
        if not isinstance(document, list):
            if document is None:
                raise MessageError("it is null")
            return ParsedMessage([self._event(document)])
        out = ParsedMessage([])
        for item in document:
            if item is None:
                raise MessageError("an item of the array is null")
            try:
                out.rows.append(self._event(item))
            except _Lacks as e:
                out.bad.append(RejectedPart(str(e), write_json(map_leaves(item, _token), JACKSON)))
        return out

    def _event(self, document: Any) -> Row:
        row: Row = []
        for a, place in zip(self.schema, self.places, strict=True):
            if place is None:
                row.append(None)
                continue
            try:
                value = place[1](document)
            except NotFound:
                if self.fail:
                    raise _Lacks(f"it has no '{place[0]}' for {a.name}") from None
                value = None
            except RowFailure as e:
                raise MessageError(f"{a.name}: {e}") from None
            row.append(None if value is None else convert_text(a.type, _path_text(value), a.name))
        return row


class _Lacks(MessageError):
    """An attribute is missing, which fails one event and not its message."""


class _Number(float):
    """A number of a document that paths are read in: a double for comparisons, and its text."""

    token: str


class _Int(int):
    """`_Number` for a whole number."""

    token: str


def _wrap_number(value: Any) -> Any:
    """A leaf of a document as paths are read in: numbers compare, and know their texts."""
    if isinstance(value, IntegerToken):
        integer = _Int(value) if len(value) <= 4000 else _Int(0)
        integer.token = value
        return integer
    if isinstance(value, DecimalToken):
        decimal = _Number(value)
        decimal.token = number_text(value)
        return decimal
    return value


def _token(value: Any) -> Any:
    """The other way round, for `written`."""
    return IntegerToken(value.token) if isinstance(value, _Int | _Number) else value


def _path_text(value: Any) -> str:
    """Text of a value at a path: a map as Gson's JSON, a list as json-smart's."""
    if isinstance(value, str):
        return value
    if isinstance(value, _Int | _Number):
        return value.token
    if isinstance(value, dict):
        return write_gson(map_leaves(value, _plain))
    if isinstance(value, list):
        return write_json(map_leaves(value, _token), SMART)
    return write_json(value, SMART)


def _plain(value: Any) -> Any:
    if isinstance(value, _Int):
        return number(IntegerToken(value.token))
    return float(value) if isinstance(value, _Number) else value


def getter(path: str) -> Callable[[Any], Any]:
    """A function that reads the value at a path: it raises NotFound and RowFailure. Raises RowFailure itself for an
    invalid path.
    """
    parts = compile_path(path)
    if not all(isinstance(p, JsonNames) and len(p.names) == 1 for p in parts):
        return lambda document: read(document, path)
    names = [p.names[0] for p in parts if isinstance(p, JsonNames)]

    def walk(value: Any) -> Any:
        for name in names:
            if not isinstance(value, dict) or name not in value:
                raise NotFound
            value = value[name]
        return value

    return walk
