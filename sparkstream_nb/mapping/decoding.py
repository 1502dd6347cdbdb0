"""Messages as events, many at once."""

from __future__ import annotations

import base64
import binascii
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..engine.columnar.column_data import Array
from ..engine.expressions.java_values import RowFailure
from ..engine.state.node_batch import take_rows
from ..errors import Misuse, shown
from ..plan.connectors.mapping import (
    Avro,
    Binary,
    CsvSource,
    JsonSource,
    KeyValue,
    PassThrough,
    SourceMapping,
    TextSource,
    XmlSource,
)
from ..types import Schema
from .attribute_values import MessageError, Row, Values, arrays, convert_text, values
from .avro import AvroReader, parsed_schema
from .batch_readers import FEWEST, BatchReader, EventBatch, concat_batches, read_in_halves
from .binary import BinaryReader
from .csv_batch import csv_batch_reader
from .csv_reader import CsvReader
from .json_batch import json_batch_reader
from .json_reader import JsonPathReader, JsonReader
from .rejected_parts import BytesReader, FormatReader
from .text_reader import KeyValueReader, TextReader
from .xml_reader import XmlReader

KEPT = 2_000
"""Characters of a rejected message that are kept."""
_BOM = "\ufeff"
_BASE64 = b"base64:"
"""Prefix of the text of a rejected message of bytes."""
_CONTEXT = 30
"""Characters of a message before bytes that are not UTF-8, in the reason."""


@dataclass(frozen=True)
class RejectedMessage:
    """A message, or an event of one, that could not be read: the number of the message among those that were given, the
    reason in one line, its text (of bytes that are not UTF-8 their base64), cut after `KEPT` characters, and the
    transport properties of it that the mapping reads.
    """

    message: int
    reason: str
    text: str
    properties: Mapping[str, str] = field(default_factory=dict)


RefusedRow = tuple[int | None, Any, str]
"""The time (ms) of a row where it has one, its values, and why it is no event."""


@dataclass(frozen=True)
class Decoded:
    """The events of messages, in the messages' order.

    `columns` has one entry per attribute: an Arrow array of the type in `engine.columnar.column_data.ARROW`,
    or a list of Python values for type object. `message` (int64) is the number of the message that each event is of.
    `ts` (int64, ms) are the events' times, if the source gives them; `refused`: rows that are no events, each with its
    time (None: it has none), its values and the reason.
    """

    columns: list[Values]
    message: Array
    rejected: tuple[RejectedMessage, ...]
    ts: Array | None = None
    refused: tuple[RefusedRow, ...] = ()

    def __len__(self) -> int:
        return len(self.message)


class Decoder:
    """Decodes the messages of one source. It has no state: the result for a message depends on that message alone."""

    def __init__(
        self, schema: Schema, mapping: SourceMapping, reader: FormatReader | BytesReader, lines: BatchReader | None
    ) -> None:
        self.schema, self.mapping = schema, mapping
        self._reader, self._lines = reader, lines
        self._headers = [(i, h) for i, h in enumerate(mapping.headers) if h is not None]

    def decode(
        self,
        messages: Sequence[bytes],
        headers: Sequence[Mapping[str, str]] | None = None,
        *,
        begins: bool = False,
        fast: bool = True,
    ) -> Decoded:
        """The events of messages in UTF-8; a byte order mark is passed over. A message of text that is not UTF-8
        is rejected as a whole.

        `headers` are the transport properties of each message; None without any. `begins`: the first message
        is the first that the source receives; a CSV mapping with `header` passes over it. `fast=False` reads message
        by message, with the same results. Messages that cannot be read are in `rejected`; this never raises for them.
        Raises ValueError if `headers` are not one per message.
        """
        if headers is not None and len(headers) != len(messages):
            raise ValueError(f"{len(headers)} headers for {len(messages)} messages")
        try:
            return self._decode(messages, headers, begins, fast)
        except Exception:  # what no reader foresees: it is the error of one message, not of all
            return self._decode_alone(messages, headers, begins)

    def reject(self, number: int, reason: str, message: bytes) -> RejectedMessage:
        """A message that is not read, with the number that `RejectedMessage` has."""
        return RejectedMessage(number, reason, cut(self._text_of(message)))

    def _decode_alone(
        self, messages: Sequence[bytes], headers: Sequence[Mapping[str, str]] | None, begins: bool
    ) -> Decoded:
        """`decode`, message by message; one for which a reader fails is rejected."""
        parts: list[EventBatch] = []
        rejects: list[RejectedMessage] = []
        for i, message in enumerate(messages):
            have = None if headers is None else headers[i]
            try:
                decoded_message = self._decode(
                    [message], None if have is None else [have], begins and i == 0, fast=False
                )
            except Exception as e:
                why = f"it cannot be read: {type(e).__name__}: {' '.join(str(e).split())}"
                properties = {} if have is None else self._read_of(have)
                rejects.append(replace(self.reject(i, why, message), properties=properties))
                continue
            parts.append(EventBatch(decoded_message.columns, decoded_message.message + i))
            rejects += [replace(r, message=i) for r in decoded_message.rejected]
        events = concat_batches(self.schema, parts)
        return Decoded(list(events.columns), events.messages, tuple(rejects))

    def _decode(
        self, messages: Sequence[bytes], headers: Sequence[Mapping[str, str]] | None, begins: bool, fast: bool
    ) -> Decoded:
        rejects: list[RejectedMessage] = []
        numbers = list(range(1 if begins and self._skips_first else 0, len(messages)))
        properties: dict[int, list[object]] = {}
        if self._headers:
            numbers = self._with_properties(numbers, messages, headers, properties, rejects)
        events = self._read(messages, numbers, rejects, fast)
        columns = list(events.columns)
        for k, (i, _) in enumerate(self._headers):
            columns[i] = values(self.schema[i].type, [properties[m][k] for m in events.messages.tolist()])
        rejects.sort(key=lambda r: r.message)
        if headers is not None:
            rejects = [replace(r, properties=self._read_of(headers[r.message])) for r in rejects]
        return Decoded(columns, events.messages, tuple(rejects))

    @property
    def _skips_first(self) -> bool:
        return isinstance(self.mapping.format, CsvSource) and self.mapping.format.header

    def _with_properties(
        self,
        numbers: list[int],
        messages: Sequence[bytes],
        headers: Sequence[Mapping[str, str]] | None,
        properties: dict[int, list[object]],
        rejects: list[RejectedMessage],
    ) -> list[int]:
        """The messages whose transport properties are there and fit; `properties` gets the values."""
        for i in numbers:
            have: Mapping[str, str] = {} if headers is None else headers[i]
            try:
                properties[i] = [self._property(have, name, place) for place, name in self._headers]
            except MessageError as e:
                rejects.append(self.reject(i, str(e), messages[i]))
        return [i for i in numbers if i in properties]

    def _read_of(self, have: Mapping[str, str]) -> dict[str, str]:
        """The properties of a message that the mapping reads."""
        return {name: have[name] for _, name in self._headers if name in have}

    def _property(self, have: Mapping[str, str], name: str, place: int) -> object:
        a = self.schema[place]
        value = have.get(name)
        if value is None:
            if self.mapping.fail_on_missing:
                raise MessageError(f"it has no transport property '{name}' for {a.name}")
            return None
        return convert_text(a.type, value, a.name)

    def _read(
        self, messages: Sequence[bytes], numbers: list[int], rejects: list[RejectedMessage], fast: bool
    ) -> EventBatch:
        """The events of the messages with these numbers."""
        parts: list[EventBatch] = []
        left: Sequence[int] = numbers
        if fast and self._lines is not None and self._many(messages, numbers):
            all_messages = len(numbers) == len(messages)
            parts = read_in_halves(self._lines, messages if all_messages else [messages[i] for i in numbers])
        if parts:
            lines = concat_batches(self.schema, parts)
            at = np.array(numbers, np.int64)
            taken_already = np.zeros(len(at), np.bool_)
            taken_already[lines.messages] = True
            left = at[~taken_already].tolist()
            parts = [EventBatch(lines.columns, at[lines.messages])]
        if left or not parts:
            parts.append(self._one_by_one(messages, left, rejects))
        events = concat_batches(self.schema, parts)
        if len(parts) == 1:
            return events
        order = np.argsort(events.messages, kind="stable")
        return EventBatch([take_rows(c, order) for c in events.columns], events.messages[order])

    def _many(self, messages: Sequence[bytes], numbers: list[int]) -> bool:
        """True if there are enough messages for the batch reader, or CSV lines in them."""
        if len(numbers) >= FEWEST:
            return True
        return isinstance(self.mapping.format, CsvSource) and sum(messages[i].count(b"\n") for i in numbers) >= FEWEST

    def _text_of(self, message: bytes) -> str:
        """A message as a text, from which `message_of` makes it again."""
        if not isinstance(self._reader, BytesReader):
            with contextlib.suppress(UnicodeDecodeError):
                text = message.decode().removeprefix(_BOM)
                if not text.startswith(_BASE64.decode()):
                    return text
                message = text.encode()
                if message_of(text) == message:
                    return text
            return (_BASE64 + base64.b64encode(message)).decode()
        return (_BASE64 + base64.b64encode(_of_base64(message))).decode()

    def _one_by_one(
        self, messages: Sequence[bytes], numbers: Sequence[int], rejects: list[RejectedMessage]
    ) -> EventBatch:
        rows: list[Row] = []
        of: list[int] = []
        for i in numbers:
            try:
                if isinstance(self._reader, BytesReader):
                    reading = self._reader.read_bytes(_of_base64(messages[i]))
                else:
                    reading = self._reader.read(_decode_text(messages[i]))
            except MessageError as e:
                rejects.append(self.reject(i, str(e), messages[i]))
                continue
            rejects += [RejectedMessage(i, part.reason, cut(part.text)) for part in reading.bad]
            rows += reading.rows
            of += [i] * len(reading.rows)
        return EventBatch(arrays(self.schema, rows), np.array(of, np.int64))


def decoder(mapping: SourceMapping, schema: Schema) -> Decoder:
    """The decoder of messages for `mapping` and a stream with this schema.

    Raises Misuse for a pattern or a path that cannot be compiled, and for passThrough, which takes no messages.
    """
    reader: FormatReader | BytesReader
    lines: BatchReader | None = None
    try:
        match mapping.format:
            case JsonSource():
                reader = JsonReader(mapping, schema) if mapping.places is None else JsonPathReader(mapping, schema)
                lines = json_batch_reader(mapping, schema)
            case CsvSource():
                reader = CsvReader(mapping, schema)
                lines = csv_batch_reader(mapping, schema)
            case TextSource():
                reader = TextReader(mapping, schema)
            case KeyValue():
                reader = KeyValueReader(mapping, schema)
            case XmlSource():
                reader = XmlReader(mapping, schema)
            case Binary():
                reader = BinaryReader(schema)
            case Avro():
                inner = replace(mapping, format=JsonSource())
                plain = mapping.places is None
                reads = JsonReader(inner, schema) if plain else JsonPathReader(inner, schema)
                reader = AvroReader(parsed_schema(mapping.format, schema), reads)
            case PassThrough():
                raise Misuse("passThrough takes events and no messages: give the source a @map(type='json').")
    except RowFailure as e:
        raise Misuse(f"A mapping cannot be used: {e}.") from None
    return Decoder(schema, mapping, reader, lines)


def _of_base64(message: bytes) -> bytes:
    """A message that `RejectedMessage` has as a text, as it was."""
    if message.startswith(_BASE64):
        with contextlib.suppress(binascii.Error, ValueError):
            return base64.b64decode(message.removeprefix(_BASE64), validate=True)
    return message


def message_of(text: str) -> bytes:
    """The message whose text `RejectedMessage` has. A message of bytes that are not UTF-8 is kept in base64."""
    message = text.encode("utf-8", "replace")
    original = _of_base64(message)
    return message if is_utf8(original) and not original.startswith(_BASE64) else original


def is_utf8(data: bytes) -> bool:
    """True if bytes are a text in UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def why_not_utf8(data: bytes) -> str:
    """The place of the first byte that is not UTF-8, with the text before it. Raises ValueError if all are."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()[-_CONTEXT:]
        after = f" after {shown(before)}" if before else ""
        return f"not UTF-8 text: 0x{data[error.start]:02x} at byte {error.start + 1:,}{after}"
    raise ValueError("the bytes are UTF-8 text")


def _decode_text(message: bytes) -> str:
    """The text of a message. Raises MessageError for bytes that are not UTF-8."""
    try:
        return message.decode().removeprefix(_BOM)
    except UnicodeDecodeError:
        raise MessageError(why_not_utf8(message)) from None


def cut(text: str) -> str:
    """A message's text, as it is kept when it is rejected."""
    return text if len(text) <= KEPT else text[: KEPT - 1] + "…"
