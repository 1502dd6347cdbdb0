"""Text messages and key-value messages as events: one message at a time, as siddhi-map-text 2.1 reads it."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from ..engine.expressions.java_values import RowFailure
from ..engine.expressions.javaregex import compile_java, match_in_time
from ..errors import Misuse, shown
from ..plan.connectors.mapping import SourceMapping, TextGroup, TextSource
from ..types import Schema, Type
from .attribute_values import MessageError, Row, convert_text
from .rejected_parts import ParsedMessage, RejectedPart


class TextReader:
    """`name:"value",` on a line of its own by default; with patterns the first matches of their groups.

    Raises Misuse for an invalid regular expression, and for a group that it does not have.
    """

    def __init__(self, mapping: SourceMapping, schema: Schema) -> None:
        assert isinstance(mapping.format, TextSource)
        self.schema = schema
        self.format = mapping.format
        self.fail = mapping.fail_on_missing
        self.positions = {n: i for i, n in enumerate(schema.names)}
        self.patterns: dict[str, Any] = {}
        for name, pattern in self.format.patterns:
            try:
                self.patterns[name] = compile_java(pattern)
            except RowFailure as e:
                raise Misuse(f"regex.{name} of a text mapping: {e}") from None
        self.places = mapping.places
        for place in mapping.places or ():
            if isinstance(place, TextGroup) and place.number > self.patterns[place.pattern].groups:
                has = self.patterns[place.pattern].groups
                raise Misuse(
                    f"regex.{place.pattern} of a text mapping has {has} groups, and {place.number} is asked for."
                )

    def read(self, text: str) -> ParsedMessage:
        """The events of a message. Raises MessageError."""
        if not self.format.is_grouped:
            return ParsedMessage([self._event(text)])
        out = ParsedMessage([])
        newline = self.format.newline
        parts = text.split(self.format.delimiter + newline)
        while parts and not parts[-1]:
            parts.pop()
        for i, part in enumerate(parts):
            try:
                out.rows.append(self._event(part.removesuffix(newline) if i + 1 < len(parts) else part))
            except MessageError as e:
                out.bad.append(RejectedPart(str(e), part))
        if not parts:
            raise MessageError("it is empty")
        return out

    def _event(self, text: str) -> Row:
        return self._by_name(text) if self.places is None else self._by_pattern(text)

    def _by_pattern(self, text: str) -> Row:
        assert self.places is not None
        row: Row = []
        for a, place in zip(self.schema, self.places, strict=True):
            if not isinstance(place, TextGroup):
                row.append(None)
                continue
            try:
                match = match_in_time(self.patterns[place.pattern].search, text)
            except RowFailure as e:
                raise MessageError(f"{a.name}: {e}") from None
            group_text = None if match is None else match[place.number]
            if group_text is None and self.fail:
                raise MessageError(f"regex.{place.pattern} finds nothing for {a.name}")
            row.append(None if group_text is None else self._value(a.name, a.type, group_text))
        return row

    def _by_name(self, text: str) -> Row:
        lines = text.split("," + self.format.newline)
        while lines and not lines[-1]:
            lines.pop()
        size = len(self.schema)
        if len(lines) < size and self.fail:
            raise MessageError(f"it has {len(lines)} of {size} lines 'name:value,'")
        row: Row = [None] * size
        positions: set[int] = set()
        for line in lines:
            name, colon, value = line.partition(":")
            position = self.positions.get(name.strip()) if colon else None
            if position is None or position in positions:  # the first of a name counts
                continue
            positions.add(position)
            a, value = self.schema[position], value.strip()
            if a.type is Type.STRING:
                if len(value) < 2:
                    raise MessageError(f"{a.name}: {shown(value)} is not a text in quotes")
                row[position] = value[1:-1]
            else:
                row[position] = self._value(a.name, a.type, value)
        # What Siddhi compares is the length of a bit set: one more than the last attribute that was there.
        last = 1 + max(positions, default=-1)
        if self.fail and last < min(size, len(lines)):
            missing = ", ".join(n for n, i in self.positions.items() if i not in positions)
            raise MessageError(f"it lacks {missing}")
        return row

    def _value(self, name: str, type: Type, text: str) -> Any:
        return text if type is Type.STRING else convert_text(type, text.replace(",", "").strip(), name)


class KeyValueReader:
    """`key=value&key=value`, as forms on the web are sent. Siddhi's mapper takes maps, and bytes that Java wrote, which
    can run code of their sender and are not read here."""

    def __init__(self, mapping: SourceMapping, schema: Schema) -> None:
        self.schema = schema
        self.fail = mapping.fail_on_missing
        places = schema.names if mapping.places is None else mapping.places
        self.keys = [None if p is None else str(p) for p in places]

    def read(self, text: str) -> ParsedMessage:
        """The event of a message. Raises MessageError."""
        try:
            items = dict(parse_qsl(text, keep_blank_values=True, strict_parsing=True, errors="strict"))
        except UnicodeDecodeError as error:
            raise MessageError(f"not UTF-8 text: a value has %{error.object[error.start]:02X}") from None
        except ValueError:
            raise MessageError("not of the form key=value&key=value") from None
        row: Row = []
        for a, key in zip(self.schema, self.keys, strict=True):
            if key is None:
                row.append(None)
            elif key in items:
                row.append(convert_text(a.type, items[key], a.name))
            elif self.fail:
                raise MessageError(f"it has no '{key}' for {a.name}")
            else:
                row.append(None)
        return ParsedMessage([row])
