"""Events as messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..engine.columnar.column_data import Array
from ..errors import Misuse, nearest
from ..plan.connectors.mapping import (
    Avro,
    Binary,
    CsvSink,
    JsonSink,
    KeyValue,
    PassThrough,
    SinkFormat,
    SinkMapping,
    Template,
    TextSink,
    XmlSink,
)
from ..plan.connectors.mappings import template
from ..types import Schema
from .attribute_values import Row, Values
from .avro import AvroWriter
from .batch_readers import FEWEST
from .binary import BinaryWriter
from .body_writers import (
    BodyWriter,
    CsvBodyWriter,
    JsonBodyWriter,
    KeyValueBodyWriter,
    TextBodyWriter,
    XmlBodyWriter,
    filler,
)
from .column_texts import normalize_column


class EventPositions:
    """Base of what some events of a stream become: `events` are their positions, ascending."""

    events: Sequence[int]

    @property
    def first(self) -> int:
        """The position of its first event."""
        return self.events[0]

    @property
    def count(self) -> int:
        """Number of its events."""
        return len(self.events)


@dataclass(frozen=True)
class Message(EventPositions):
    """A message: its body in UTF-8, and the positions of its events, ascending.

    `properties` are the sink's dynamic options (`topic='{{symbol}}'`), filled in for these events.
    """

    body: bytes
    events: Sequence[int]
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DroppedMessage:
    """A message that is not sent, because the mapping asks for checks and it does not pass."""

    message: Message
    reason: str


class Encoder:
    """Encodes the events of one sink. It has no state."""

    def __init__(self, mapping: SinkMapping, schema: Schema, writer: BodyWriter, options: Mapping[str, str]) -> None:
        self.mapping, self.schema = mapping, schema
        self._writer = writer
        self._options = {k: filler(_template(k, v, schema), schema) for k, v in options.items()}

    def header(self) -> Message | None:
        """The message that goes before the first event of all, of a CSV mapping with `header`; else None."""
        if isinstance(self.mapping.format, CsvSink) and self.mapping.format.header:
            assert isinstance(self._writer, CsvBodyWriter)
            return Message(_bytes(self._writer.header()), ())
        return None

    def encode(
        self,
        columns: Sequence[Values],
        ts: Array,
        chunk: Array | None = None,
        dropped_messages: list[DroppedMessage] | None = None,
        most: int | None = None,
    ) -> list[Message]:
        """The messages of events, in Siddhi's order.

        `columns` are Arrow arrays or lists, one per attribute, `ts` (int64) the events' times in ms since 1970. `chunk`
        numbers the chunk of each event, ascending; None: they are one chunk. If the mapping groups events, the events
        of a chunk with equal `properties` are one message, or several with `most` events at most. Messages that must
        not be sent are appended to `dropped_messages`. Raises ValueError if lengths differ.
        """
        n = len(ts)
        if len(columns) != len(self.schema) or any(len(c) != n for c in columns):
            raise ValueError(f"{[len(c) for c in columns]} values for {n} events {self.schema}")
        columns = [normalize_column(a.type, c) for a, c in zip(self.schema, columns, strict=True)]
        texts = self._writer.texts(columns) if n >= FEWEST else None
        rows: list[Row] = _rows_of(columns) if texts is None or self._options else []
        if texts is None:
            texts = self._write_events(rows, ts)
        out: list[Message] = []
        for places, properties in self._groups(n, rows, chunk):
            size = (most or len(places)) if self.mapping.is_grouped else 1
            for start in range(0, len(places), size):
                part = places[start : start + size]
                body = self._writer.body([texts[p] for p in part])
                message = Message(_bytes(body, self._writer.encoding), part, properties)
                reason = self._writer.problem(body)
                if reason is None:
                    out.append(message)
                elif dropped_messages is not None:
                    dropped_messages.append(DroppedMessage(message, reason))
        return out

    def _write_events(self, rows: Sequence[Row], ts: Array) -> list[str]:
        """The text of each event, one after the other."""
        if self._writer.writes_times:
            return [self._writer.event_at(row, t) for row, t in zip(rows, ts.tolist(), strict=True)]
        return [self._writer.event(row) for row in rows]

    def _groups(
        self, n: int, rows: Sequence[Row], chunk: Array | None
    ) -> Iterator[tuple[list[int], Mapping[str, str]]]:  # fmt: skip
        """The events of each chunk that have equal properties, and these; `rows` are only needed with options."""
        if n == 0:
            return
        cuts = [] if chunk is None else (np.flatnonzero(np.diff(chunk)) + 1).tolist()
        for start, end in zip([0, *cuts], [*cuts, n], strict=True):
            if not self._options:
                yield list(range(start, end)), {}
                continue
            groups: dict[tuple[str, ...], list[int]] = {}
            for i in range(start, end):
                key = tuple(fill_template(rows[i]) for fill_template in self._options.values())
                groups.setdefault(key, []).append(i)
            for key, places in groups.items():
                yield places, dict(zip(self._options, key, strict=True))


def _rows_of(columns: Sequence[Values]) -> list[Row]:
    lists = [c if isinstance(c, list) else c.to_pylist() for c in columns]
    return [list(r) for r in zip(*lists, strict=True)]


_WRITERS: Mapping[type[SinkFormat], Callable[[SinkMapping, Schema], BodyWriter]] = {
    JsonSink: JsonBodyWriter,
    CsvSink: CsvBodyWriter,
    TextSink: TextBodyWriter,
    KeyValue: KeyValueBodyWriter,
    XmlSink: XmlBodyWriter,
    Binary: BinaryWriter,
    Avro: AvroWriter,
}


def encoder(mapping: SinkMapping, schema: Schema, options: Mapping[str, str] | None = None) -> Encoder:
    """The encoder of events for `mapping` and a stream with this schema. `options` are the sink's own, of which those
    with `{{attribute}}` in them depend on the event; they become the messages' `properties`.

    Raises Misuse for passThrough, which makes no messages, and for an attribute that the stream does not have.
    """
    if isinstance(mapping.format, PassThrough):
        raise Misuse("passThrough makes no messages of events: give the sink a @map(type='json').")
    writer = _WRITERS[type(mapping.format)](mapping, schema)
    return Encoder(mapping, schema, writer, options or {})


def _template(option: str, value: str, schema: Schema) -> Template:
    try:
        parsed_template = template(value, schema)
    except KeyError as e:
        name = str(e.args[0])
        raise Misuse(nearest(f"'{option}': the stream has no attribute '{name}'", name, schema.names)) from None
    # An option that is called as an attribute is a text all the same.
    return Template((value,)) if parsed_template.column is not None else parsed_template


def _bytes(text: str, encoding: str = "utf-8") -> bytes:
    return text.encode(encoding, "replace")
