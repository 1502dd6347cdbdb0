"""The bodies of messages, as Siddhi's sink mappers write them: the text of each event, and messages of several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.compute as pc

from ..engine.expressions.java_texts import text
from ..plan.connectors.mapping import CsvSink, JsonSink, KeyValue, SinkMapping, Template, TextSink, XmlSink
from ..types import Schema, Type
from .attribute_values import MessageError, Row, Values
from .column_texts import joined_texts, rewrite_matches, value_texts
from .json_text import GSON, valid, write_json
from .xml_tree import parse_xml

_UNDEFINED = "undefined"
"""Text that siddhi-map-json writes for null, unless `enable.null.attribute.value` is given."""

Pieces = list["str | pa.Array"]
"""Parts of the texts of events, in order: texts that all have in common, and a text for each."""


class BodyWriter(ABC):
    """Writes messages of one format. Whole columns give the same texts as single events. `encoding`: that of its
    texts, latin-1 if they are bytes. `writes_times`: events are written with their times, by `event_at`."""

    encoding = "utf-8"
    writes_times = False

    def __init__(self, mapping: SinkMapping, schema: Schema) -> None:
        self.schema = schema
        self.payload = mapping.payload[0][1] if mapping.payload else None
        self.null = "null"
        self.filled = None if self.payload is None else filler(self.payload, schema, self.null)

    def event(self, row: Row) -> str:
        """The text of one event."""
        return self.default(row) if self.filled is None else self.filled(row)

    def event_at(self, row: Row, ts: int) -> str:
        """The text of one event with its time (ms since 1970)."""
        return self.event(row)

    def texts(self, columns: Sequence[Values]) -> list[str] | None:
        """The text of each event, at least one, by whole columns; None if that does not work."""
        arrays = [c for c in columns if isinstance(c, pa.Array)]
        if len(arrays) < len(columns):
            return None
        pieces = self.pieces(arrays) if self.payload is None else self._filled_pieces(self.payload, arrays)
        return None if pieces is None else joined_texts(pieces, len(columns[0]))

    def _filled_pieces(self, template: Template, columns: Sequence[pa.Array]) -> Pieces:
        return [
            p if isinstance(p, str) else pc.fill_null(value_texts(self.schema[p].type, columns[p]), self.null)
            for p in template.parts
        ]

    @abstractmethod
    def default(self, row: Row) -> str:
        """The text of one event without a payload."""

    def pieces(self, columns: Sequence[pa.Array]) -> Pieces | None:
        """The pieces of events without a payload; None if columns are not written as a whole."""
        return None

    def body(self, texts: Sequence[str]) -> str:
        """The message of events with these texts, at least one."""
        return "".join(texts)

    def problem(self, body: str) -> str | None:
        """Why a body must not be sent, or None."""
        return None


Filled = Callable[[Row], str]


def filler(template: Template, schema: Schema, null: str = "null") -> Filled:
    """A function that fills a template in; `null` is the text of null."""
    types = schema.types

    def fill_template(row: Row) -> str:
        out = []
        for part in template.parts:
            if isinstance(part, str):
                out.append(part)
            else:
                out.append(null if row[part] is None else text(types[part], row[part]))
        return "".join(out)

    return fill_template


class JsonBodyWriter(BodyWriter):
    """`{"event":{...}}`, of several events a list of them; with a payload the texts that it gives."""

    def __init__(self, mapping: SinkMapping, schema: Schema) -> None:
        super().__init__(mapping, schema)
        assert isinstance(mapping.format, JsonSink)
        self.format = mapping.format
        self.null = "null" if self.format.nulls else _UNDEFINED
        if self.payload is not None:
            self.filled = filler(self.payload, schema, self.null)
        self.null_value = "null" if self.format.nulls else f'"{_UNDEFINED}"'
        self.names = [f'"{n.translate(GSON)}":' for n in schema.names]
        self.before = "".join(f'{{"{n.translate(GSON)}":' for n in self.format.enclosing)
        self.after = "}" * len(self.format.enclosing)

    def body(self, texts: Sequence[str]) -> str:
        """See `BodyWriter`."""
        comma = "," if self.payload is None else ",\n"
        inside = texts[0] if len(texts) == 1 else f"[{comma.join(texts)}]"
        return self.before + inside + self.after

    def problem(self, body: str) -> str | None:
        """See `BodyWriter`."""
        return "it is not JSON" if self.format.validate and not valid(body) else None

    def default(self, row: Row) -> str:
        """See `BodyWriter`."""
        items = [
            name + text
            for name, a, value in zip(self.names, self.schema, row, strict=True)
            if (text := self._value(a.type, value)) is not None
        ]
        return '{"event":{' + ",".join(items) + "}}"

    def _value(self, type: Type, value: Any) -> str | None:
        """A value as JSON; None if it is left out, as Siddhi does with objects that are not maps, or empty ones."""
        if value is None:
            return self.null_value
        if type is Type.STRING:
            return f'"{value.translate(GSON)}"'
        if type is not Type.OBJECT:
            return text(type, value)
        if isinstance(value, dict):
            return write_json(value, GSON, nulls=self.format.nulls) if value else None
        return write_json(value, GSON) if isinstance(value, str | bool | int | float) else None

    def pieces(self, columns: Sequence[pa.Array]) -> Pieces:
        """See `BodyWriter`."""
        out: Pieces = []
        before = '{"event":{'
        for name, a, column in zip(self.names, self.schema, columns, strict=True):
            texts = value_texts(a.type, column)
            if a.type is Type.STRING:
                texts = rewrite_matches(texts, r'["\\\x00-\x1f\x{2028}\x{2029}]', lambda t: t.translate(GSON))
                texts = pc.binary_join_element_wise('"', texts, '"', "")
            out += [before + name, pc.fill_null(texts, self.null_value)]
            before = ","
        return [*out, "}}"]


class CsvBodyWriter(BodyWriter):
    """A line per event, with quotes where Commons CSV writes them."""

    def __init__(self, mapping: SinkMapping, schema: Schema) -> None:
        super().__init__(mapping, schema)
        assert isinstance(mapping.format, CsvSink)
        self.delimiter = mapping.format.delimiter
        self.columns = mapping.format.columns

    def header(self) -> str:
        """The line with the attributes' names."""
        return self._line([self.schema[c].name for c in self.columns])

    def default(self, row: Row) -> str:
        """See `BodyWriter`."""
        types = self.schema.types
        return self._line([None if row[c] is None else text(types[c], row[c]) for c in self.columns])

    def pieces(self, columns: Sequence[pa.Array]) -> Pieces | None:
        """See `BodyWriter`."""
        if len(self.delimiter) > 1 or self.delimiter in "+-.\\" or self.delimiter.isalnum():  # it may be in numbers
            return None
        out: Pieces = []
        for i, c in enumerate(self.columns):
            texts = value_texts(self.schema[c].type, columns[c])
            if self.schema[c].type is Type.STRING:
                odd = rf'^$|^[\x00-#]|[\x00- ]$|["\r\n\x{{{ord(self.delimiter):x}}}]'
                texts = rewrite_matches(texts, odd, self._first if i == 0 else self._later)
            out += [pc.fill_null(texts, "null"), self.delimiter if i + 1 < len(self.columns) else "\n"]
        return out

    def _line(self, values: Sequence[str | None]) -> str:
        texts = ["null" if v is None else self._quote_value(v, i == 0) for i, v in enumerate(values)]
        return self.delimiter.join(texts) + "\n"

    def _first(self, value: str) -> str:
        return self._quote_value(value, True)

    def _later(self, value: str) -> str:
        return self._quote_value(value, False)

    def _quote_value(self, value: str, first: bool) -> str:
        """`QuoteMode.MINIMAL`: a value is quoted if a reader needs it, also because of its first and last characters;
        an empty one as the first of a line.
        """
        plain = (
            value[0] > "#" and value[-1] > " " and not any(c in value for c in ('"', "\r", "\n", self.delimiter))
            if value
            else not first
        )
        return value if plain else '"' + value.replace('"', '""') + '"'


class TextBodyWriter(BodyWriter):
    """`name:"value",` on a line of its own, or the payload."""

    def __init__(self, mapping: SinkMapping, schema: Schema) -> None:
        super().__init__(mapping, schema)
        assert isinstance(mapping.format, TextSink)
        newline = mapping.format.newline
        self.comma = "," + newline
        self.between = newline + mapping.format.delimiter + newline

    def body(self, texts: Sequence[str]) -> str:
        """See `BodyWriter`."""
        return self.between.join(texts)

    def default(self, row: Row) -> str:
        """See `BodyWriter`."""
        return self.comma.join(
            f'{a.name}:"{v}"' if a.type is Type.STRING and v is not None else f"{a.name}:{text(a.type, v)}"
            for a, v in zip(self.schema, row, strict=True)
        )


class KeyValueBodyWriter(BodyWriter):
    """`key=value&key=value`, as forms on the web are sent; null has no key."""

    def __init__(self, mapping: SinkMapping, schema: Schema) -> None:
        super().__init__(mapping, schema)
        assert isinstance(mapping.format, KeyValue)
        all_attributes = tuple((n, Template((i,), i)) for i, n in enumerate(schema.names))
        self.items = [(key, t.column, filler(t, schema)) for key, t in mapping.payload or all_attributes]
        self.payload = self.filled = None  # it has several

    def default(self, row: Row) -> str:
        """See `BodyWriter`."""
        pairs = [
            (key, fill_template(row))
            for key, position, fill_template in self.items
            if position is None or row[position] is not None
        ]
        return urlencode(pairs, errors="replace")


class XmlBodyWriter(BodyWriter):
    """`<events><event>...</event></events>`, or the payload within the enclosing element.

    Siddhi writes values as they are, so that "<" in one breaks the message; here they are escaped by default. A payload
    is a text that its author decides on.
    """

    def __init__(self, mapping: SinkMapping, schema: Schema) -> None:
        super().__init__(mapping, schema)
        assert isinstance(mapping.format, XmlSink)
        self.format = mapping.format

    def body(self, texts: Sequence[str]) -> str:
        """See `BodyWriter`."""
        return self.format.opening + "".join(texts) + self.format.closing

    def problem(self, body: str) -> str | None:
        """See `BodyWriter`."""
        if self.payload is None or not self.format.validate:
            return None
        try:
            parse_xml(body)
        except MessageError as e:
            return str(e)
        return None

    def default(self, row: Row) -> str:
        """See `BodyWriter`."""
        items = [
            f'<{a.name} xsi:nil="true"/>' if v is None else f"<{a.name}>{_xml(text(a.type, v))}</{a.name}>"
            for a, v in zip(self.schema, row, strict=True)
        ]
        return f"<event>{''.join(items)}</event>"


_NO_XML: Mapping[int, str] = {
    i: "\ufffd" for i in [*range(32), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)] if chr(i) not in "\t\n\r"
}
"""Characters that XML cannot hold, and their replacements."""


def _xml(value: str) -> str:
    """A text as XML. A carriage return is spelt out, because readers make line breaks of it."""
    return escape(value.translate(_NO_XML), {"\r": "&#13;"})
