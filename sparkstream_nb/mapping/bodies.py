"""The bodies of messages, as Siddhi's sink mappers write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import urlencode
from xml.sax.saxutils import escape

from ..engine.expressions.values import text
from ..plan.mapping import CsvSink, JsonSink, KeyValueSink, SinkMapping, Template, TextSink, XmlSink
from ..types import Schema, Type
from .jsontexts import GSON, valid, written
from .values import Row, Unfit
from .xmltree import read_xml

_UNDEFINED = "undefined"
"""What siddhi-map-json writes for null, unless `enable.null.attribute.value` is given."""


class Body(Protocol):
    """Writes messages of one format."""

    def of(self, rows: Sequence[Row]) -> str:
        """The body of the message of these events, at least one."""
        ...

    def problem(self, body: str) -> str | None:
        """Why a body must not be sent, or None."""
        ...


Filled = Callable[[Row], str]


def filler(template: Template, schema: Schema, null: str = "null") -> Filled:
    """What fills a template in; `null` is the text of null."""
    types = schema.types

    def filled(row: Row) -> str:
        out = []
        for part in template.parts:
            if isinstance(part, str):
                out.append(part)
            else:
                out.append(null if row[part] is None else text(types[part], row[part]))
        return "".join(out)

    return filled


class JsonBody:
    """`{"event":{...}}`, of several events a list of them; with a payload the texts that it gives."""

    def __init__(self, mapping: SinkMapping, schema: Schema) -> None:
        assert isinstance(mapping.format, JsonSink)
        self.format = mapping.format
        self.schema = schema
        self.names = [f'"{n.translate(GSON)}":' for n in schema.names]
        null = "null" if self.format.nulls else _UNDEFINED
        self.filled = filler(mapping.payload[0][1], schema, null) if mapping.payload else None
        self.before = "".join(f'{{"{n.translate(GSON)}":' for n in self.format.enclosing)
        self.after = "}" * len(self.format.enclosing)

    def of(self, rows: Sequence[Row]) -> str:
        """See `Body`."""
        texts = [(self.filled or self._event)(row) for row in rows]
        comma = "," if self.filled is None else ",\n"
        inside = texts[0] if len(texts) == 1 else f"[{comma.join(texts)}]"
        return self.before + inside + self.after

    def problem(self, body: str) -> str | None:
        """See `Body`."""
        return "it is not JSON" if self.format.validate and not valid(body) else None

    def _event(self, row: Row) -> str:
        items = [
            name + shown
            for name, a, value in zip(self.names, self.schema, row, strict=True)
            if (shown := self._value(a.type, value)) is not None
        ]
        return '{"event":{' + ",".join(items) + "}}"

    def _value(self, type: Type, value: Any) -> str | None:
        """A value as JSON; None where it is left out, as Siddhi does with objects that are not maps, or empty ones."""
        if value is None:
            return "null" if self.format.nulls else f'"{_UNDEFINED}"'
        if type is Type.STRING:
            return f'"{value.translate(GSON)}"'
        if type is not Type.OBJECT:
            return text(type, value)
        if isinstance(value, dict):
            return written(value, GSON, nulls=self.format.nulls) if value else None
        return written(value, GSON) if isinstance(value, str | bool | int | float) else None


class CsvBody:
    """A line per event, with quotes where Commons CSV writes them."""

    def __init__(self, mapping: SinkMapping, schema: Schema) -> None:
        assert isinstance(mapping.format, CsvSink)
        self.delimiter = mapping.format.delimiter
        self.columns = mapping.format.columns
        self.schema = schema

    def header(self) -> str:
        """The line with the attributes' names."""
        return self._line([self.schema[c].name for c in self.columns])

    def of(self, rows: Sequence[Row]) -> str:
        """See `Body`."""
        types = self.schema.types
        return "".join(
            self._line([None if row[c] is None else text(types[c], row[c]) for c in self.columns]) for row in rows
        )

    def problem(self, body: str) -> str | None:
        """See `Body`."""
        return None

    def _line(self, values: Sequence[str | None]) -> str:
        shown = ["null" if v is None else self._quoted(v, i == 0) for i, v in enumerate(values)]
        return self.delimiter.join(shown) + "\n"

    def _quoted(self, value: str, first: bool) -> str:
        """`QuoteMode.MINIMAL`: a value is quoted if a reader could not tell it otherwise, by its first and last
        characters too; an empty one as the first of a line."""
        plain = (
            value[0] > "#" and value[-1] > " " and not any(c in value for c in ('"', "\r", "\n", self.delimiter))
            if value
            else not first
        )
        return value if plain else '"' + value.replace('"', '""') + '"'


class TextBody:
    """`name:"value",` on a line of its own, or what the payload gives."""

    def __init__(self, mapping: SinkMapping, schema: Schema) -> None:
        assert isinstance(mapping.format, TextSink)
        newline = mapping.format.newline
        self.schema = schema
        self.comma = "," + newline
        self.between = newline + mapping.format.delimiter + newline
        self.filled = filler(mapping.payload[0][1], schema) if mapping.payload else self._event

    def of(self, rows: Sequence[Row]) -> str:
        """See `Body`."""
        return self.between.join(map(self.filled, rows))

    def problem(self, body: str) -> str | None:
        """See `Body`."""
        return None

    def _event(self, row: Row) -> str:
        return self.comma.join(
            f'{a.name}:"{v}"' if a.type is Type.STRING and v is not None else f"{a.name}:{text(a.type, v)}"
            for a, v in zip(self.schema, row, strict=True)
        )


class KeyValueBody:
    """`key=value&key=value`, as forms on the web are sent; null has no key."""

    def __init__(self, mapping: SinkMapping, schema: Schema) -> None:
        assert isinstance(mapping.format, KeyValueSink)
        whole = tuple((n, Template((i,), i)) for i, n in enumerate(schema.names))
        self.items = [(key, t.whole, filler(t, schema)) for key, t in mapping.payload or whole]

    def of(self, rows: Sequence[Row]) -> str:
        """See `Body`."""
        (row,) = rows
        found = [(key, filled(row)) for key, whole, filled in self.items if whole is None or row[whole] is not None]
        return urlencode(found, errors="replace")

    def problem(self, body: str) -> str | None:
        """See `Body`."""
        return None


class XmlBody:
    """`<events><event>...</event></events>`, or what the payload gives within the enclosing element.

    Siddhi writes values as they are, so that "<" in one breaks the message; here they are escaped by default. A payload
    is a text that its author decides on.
    """

    def __init__(self, mapping: SinkMapping, schema: Schema) -> None:
        assert isinstance(mapping.format, XmlSink)
        self.format = mapping.format
        self.schema = schema
        self.custom = bool(mapping.payload)
        self.filled = filler(mapping.payload[0][1], schema) if mapping.payload else self._event

    def of(self, rows: Sequence[Row]) -> str:
        """See `Body`."""
        return self.format.opening + "".join(map(self.filled, rows)) + self.format.closing

    def problem(self, body: str) -> str | None:
        """See `Body`."""
        if not (self.custom and self.format.validate):
            return None
        try:
            read_xml(body)
        except Unfit as e:
            return str(e)
        return None

    def _event(self, row: Row) -> str:
        items = [
            f'<{a.name} xsi:nil="true"/>' if v is None else f"<{a.name}>{_xml(text(a.type, v))}</{a.name}>"
            for a, v in zip(self.schema, row, strict=True)
        ]
        return f"<event>{''.join(items)}</event>"


_NO_XML: Mapping[int, str] = {
    i: "\ufffd" for i in [*range(32), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)] if chr(i) not in "\t\n\r"
}
"""Characters that XML cannot hold, and what stands for them."""


def _xml(value: str) -> str:
    """A text as XML. A carriage return is spelt out, because readers make line breaks of it."""
    return escape(value.translate(_NO_XML), {"\r": "&#13;"})
