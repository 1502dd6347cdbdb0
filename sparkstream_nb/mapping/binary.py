"""Siddhi's binary messages (siddhi-map-binary): a count, then of each event its time and its values.

Numbers are big-endian, a text is its bytes after their number, and one of no bytes is null; other nulls there are not.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ..plan.connectors.mapping import SinkMapping
from ..types import Schema, Type
from .attribute_values import MessageError, Row
from .body_writers import BodyWriter
from .rejected_parts import ParsedMessage

_FIXED = {Type.INT: ">i", Type.LONG: ">q", Type.FLOAT: ">f", Type.DOUBLE: ">d"}
MOST_EVENTS = 1_000_000


class BinaryReader:
    """Reads binary messages."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def read_bytes(self, message: bytes) -> ParsedMessage:
        """The events of a message. Raises MessageError if it does not have the stream's attributes."""
        rows: list[Row] = []
        try:
            (count,) = struct.unpack_from(">i", message, 0)
            if not 0 <= count <= MOST_EVENTS:
                raise MessageError(f"it is no binary message of this stream: it says that it has {count:,} events")
            at = 4
            for _ in range(count):
                row, at = self._event(message, at + 8)
                rows.append(row)
        except struct.error:
            raise MessageError("it is no binary message of this stream: it ends within an event") from None
        if at != len(message):
            left = len(message) - at
            raise MessageError(f"it is no binary message of this stream: {left:,} bytes are left behind its events")
        return ParsedMessage(rows)

    def _event(self, message: bytes, at: int) -> tuple[Row, int]:
        row: Row = []
        for a in self.schema:
            if a.type is Type.BOOL:
                (value,) = struct.unpack_from(">b", message, at)
                row.append(value == 1)
                at += 1
            elif a.type is Type.STRING:
                (size,) = struct.unpack_from(">i", message, at)
                text = message[at + 4 : at + 4 + size] if size >= 0 else b""
                if size < 0 or len(text) < size:
                    raise MessageError(f"it is no binary message of this stream: {a.name} has {size:,} bytes")
                try:
                    row.append(text.decode() if size else None)
                except UnicodeDecodeError:
                    raise MessageError(f"{a.name} is no UTF-8 text") from None
                at += 4 + size
            else:
                form = _FIXED[a.type]
                row.append(struct.unpack_from(form, message, at)[0])
                at += struct.calcsize(form)
        return row, at


class BinaryWriter(BodyWriter):
    """Writes binary messages, as texts of latin-1."""

    encoding = "latin-1"
    writes_times = True

    def __init__(self, mapping: SinkMapping, schema: Schema) -> None:
        super().__init__(mapping, schema)

    def default(self, row: Row) -> str:
        """See `BodyWriter`."""
        return self.event_at(row, 0)

    def event_at(self, row: Row, ts: int) -> str:
        """See `BodyWriter`."""
        out = [struct.pack(">q", ts)]
        for a, value in zip(self.schema, row, strict=True):
            if a.type is Type.BOOL:
                out.append(b"\1" if value else b"\0")
            elif a.type is Type.STRING:
                text = b"" if value is None else value.encode("utf-8", "replace")
                out += [struct.pack(">i", len(text)), text]
            else:
                out.append(struct.pack(_FIXED[a.type], value))
        return b"".join(out).decode("latin-1")

    def body(self, texts: Sequence[str]) -> str:
        """See `BodyWriter`."""
        return struct.pack(">i", len(texts)).decode("latin-1") + "".join(texts)
