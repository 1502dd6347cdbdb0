"""CSV messages as events: one message at a time, as siddhi-map-csv 2.1 reads it (Commons CSV's default format)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..errors import shown
from ..plan.connectors.mapping import CsvSource, SourceMapping
from ..types import Attribute, Schema
from .attribute_values import MessageError, Row, convert_text
from .rejected_parts import ParsedMessage, RejectedPart


def places_of(mapping: SourceMapping, schema: Schema) -> list[int | None]:
    """The column of each attribute: as given, else in the stream's order; None for values from elsewhere."""
    if mapping.places is None:
        return list(range(len(schema)))
    return [p if isinstance(p, int) else None for p in mapping.places]


class CsvReader:
    """Every line of a message is an event; lines that are empty are none."""

    def __init__(self, mapping: SourceMapping, schema: Schema) -> None:
        assert isinstance(mapping.format, CsvSource)
        self.schema = schema
        self.fail = mapping.fail_on_missing
        self.places = places_of(mapping, schema)
        self.least_columns = 1 + max((p for p in self.places if p is not None), default=-1)
        self.delimiter = mapping.format.delimiter
        # As Siddhi does with tabs: Commons CSV's TDF takes away white space around values.
        self.trims = self.delimiter == "\t"
        d = re.escape(self.delimiter)
        space = "[ ]*" if self.trims else ""
        self.opening = re.compile(f'{space}"')
        self.field = re.compile(rf'{space}"((?:[^"]|"")*+)"[^\S\r\n{d[-1] if self.trims else ""}]*(?={d}|[\r\n]|\Z)')
        self.plain = re.compile(rf"(?:(?!{d})[^\r\n])*+")

    def read(self, text: str) -> ParsedMessage:
        """The events of a message. Raises MessageError."""
        out = ParsedMessage([])
        for fields, line in self._records(text):
            if len(fields) < self.least_columns:
                raise MessageError(f"a line has {len(fields)} of the {self.least_columns} columns: {shown(line)}")
            try:
                out.rows.append(self._row(fields))
            except MessageError as e:
                out.bad.append(RejectedPart(str(e), line))
        return out

    def _row(self, fields: list[str]) -> Row:
        places = zip(self.schema, self.places, strict=True)
        return [None if place is None else self._value(a, fields[place]) for a, place in places]

    def _value(self, a: Attribute, text: str) -> Any:
        try:
            return convert_text(a.type, text, a.name)
        except MessageError:
            if self.fail:
                raise
            return None

    def _records(self, text: str) -> Iterator[tuple[list[str], str]]:
        """Fields and text of each line that is not empty."""
        at, n, wide = 0, len(text), len(self.delimiter)
        while at < n:
            if text[at] in "\r\n":
                at += 1
                continue
            start, fields = at, []
            while True:
                value, at = self._field(text, at)
                fields.append(value)
                if not text.startswith(self.delimiter, at):
                    break
                at += wide
            yield fields, text[start:at]

    def _field(self, text: str, at: int) -> tuple[str, int]:
        """The value at a place, and where it ends."""
        if self.opening.match(text, at):
            match_in_quotes = self.field.match(text, at)
            if match_in_quotes is None:
                raise MessageError("a quote does not end where its value does")
            return match_in_quotes[1].replace('""', '"'), match_in_quotes.end()
        match = self.plain.match(text, at)
        assert match is not None
        return match[0].strip(" ") if self.trims else match[0], match.end()
