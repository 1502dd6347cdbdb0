"""Avro messages (siddhi-map-avro): records in Avro's binary encoding, without schema or header, by a schema of the app.

A record is read as the JSON that it is, by the rules of a JSON mapping, and written from such JSON.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

from ..errors import Misuse
from ..plan.connectors.mapping import Avro, SinkMapping
from ..types import Schema, Type
from .attribute_values import MessageError, Row
from .body_writers import BodyWriter
from .rejected_parts import FormatReader, ParsedMessage

_TYPES = {
    Type.STRING: "string", Type.INT: "int", Type.LONG: "long", Type.FLOAT: "float", Type.DOUBLE: "double",
    Type.BOOL: "boolean",
}  # fmt: skip


def _fastavro() -> Any:
    """The library, which is optional. Raises `Misuse` where it is not installed."""
    try:
        import fastavro
    except ImportError:
        raise Misuse("The mapping avro needs fastavro: pip install 'sparkstream-nb[avro]'.") from None
    return fastavro


def parsed_schema(format_: Avro, schema: Schema) -> Any:
    """The schema of a mapping as fastavro takes it; without one, a record of the stream's attributes. Raises Misuse for
    one that is none."""
    fastavro = _fastavro()
    if not format_.schema:
        fields = [{"name": a.name, "type": _TYPES[a.type]} for a in schema]
        return fastavro.parse_schema({"type": "record", "name": format_.record, "fields": fields})
    try:
        return fastavro.parse_schema(json.loads(format_.schema))
    except Exception as error:  # of several kinds, also KeyError
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise Misuse(f"the schema of an avro mapping is no Avro schema: {why}") from None


class AvroReader:
    """Reads records; `reads` makes events of their JSON."""

    def __init__(self, avro_schema: Any, reads: FormatReader) -> None:
        self._schema, self._reads = avro_schema, reads

    def read_bytes(self, message: bytes) -> ParsedMessage:
        """The events of a message. Raises MessageError if it is not a record of the schema."""
        fastavro = _fastavro()
        source = io.BytesIO(message)
        try:
            record = fastavro.schemaless_reader(source, self._schema, None)
        except Exception as error:  # of many kinds, for bytes that are none
            why = " ".join(str(error).split())[:200] or type(error).__name__
            raise MessageError(f"it is no Avro message of this schema: {why}") from None
        left = len(message) - source.tell()
        if left:
            raise MessageError(f"it is no Avro message of this schema: {left:,} bytes are left behind the record")
        return self._reads.read(json.dumps(record, ensure_ascii=False, default=_plain))


class _UnwrittenRecord(str):
    """The text of an event of which no record can be made: why."""


class AvroWriter(BodyWriter):
    """Writes records, as texts of latin-1."""

    encoding = "latin-1"

    def __init__(self, mapping: SinkMapping, schema: Schema) -> None:
        super().__init__(mapping, schema)
        assert isinstance(mapping.format, Avro)
        self._avro = parsed_schema(mapping.format, schema)

    def texts(self, columns: Sequence[Any]) -> None:
        """See `BodyWriter`: records are written one by one."""

    def event(self, row: Row) -> str:
        """See `BodyWriter`."""
        if self.filled is None:
            return self._encode_record(dict(zip(self.schema.names, row, strict=True)))
        try:
            return self._encode_record(json.loads(self.filled(row)))
        except (ValueError, RecursionError):
            return _UnwrittenRecord("its payload is not JSON")

    def default(self, row: Row) -> str:
        """See `BodyWriter`."""
        return self.event(row)

    def body(self, texts: Sequence[str]) -> str:
        """See `BodyWriter`."""
        return texts[0]

    def problem(self, body: str) -> str | None:
        """See `BodyWriter`."""
        return str(body) if isinstance(body, _UnwrittenRecord) else None

    def _encode_record(self, record: Any) -> str:
        fastavro = _fastavro()
        out = io.BytesIO()
        try:
            fastavro.schemaless_writer(out, self._avro, record, strict=True)
        except Exception as error:  # of many kinds
            why = " ".join(str(error).split())[:200] or type(error).__name__
            return _UnwrittenRecord(f"it is no record of the schema: {why}")
        return out.getvalue().decode("latin-1")


def _plain(value: Any) -> Any:
    """A value that JSON lacks, in Avro's JSON encoding: bytes as texts of latin-1."""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
