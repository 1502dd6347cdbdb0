"""Events as the bytes of messages: Siddhi's default JSON, and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...engine.expressions.values import text
from ...types import Schema, Type


@dataclass(frozen=True)
class Message:
    """The bytes of `count` events from number `first` of those that were encoded together. `properties` are values of
    the first of them, as texts, that a sink needs beside the body."""

    body: bytes
    first: int
    count: int = 1
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Unmapped:
    """Event number `first` has a value that the format cannot hold."""

    first: int
    reason: str
    count: int = 1


class Encoder(Protocol):
    """Makes messages of events."""

    content_type: str
    """The MIME type of a message."""
    extension: str
    """That of a file's name."""
    head: bytes
    """The first line of a file, without a line break; empty for none."""

    def encode(self, columns: Sequence[Sequence[Any]], ts: Sequence[int]) -> list[Message | Unmapped]:
        """The messages of events in order: `columns` have the Python values of each attribute, `ts` the times (ms)."""
        ...


def encoder_of(mapping: str, options: Mapping[str, str], schema: Schema) -> Encoder:
    """The encoder of an `@map` of type `mapping`, for the events of a stream."""
    if mapping == "json":
        return JsonEncoder(schema)
    return CsvEncoder(schema, options.get("delimiter", ","), options.get("header", "false").lower() == "true")


class JsonEncoder:
    """`{"event":{"symbol":"IBM","price":75.6}}` for each event, as Siddhi's JSON mapper writes it by default."""

    content_type, extension, head = "application/json", "json", b""

    def __init__(self, schema: Schema) -> None:
        self._keys = [json.dumps(name, ensure_ascii=False) for name in schema.names]
        self._types = schema.types

    def encode(self, columns: Sequence[Sequence[Any]], ts: Sequence[int]) -> list[Message | Unmapped]:
        out: list[Message | Unmapped] = []
        for i, values in enumerate(zip(*columns, strict=True)):
            try:
                parts = (f"{k}:{_json(t, v)}" for k, t, v in zip(self._keys, self._types, values, strict=True))
                out.append(Message(f'{{"event":{{{",".join(parts)}}}}}'.encode(), i))
            except (ValueError, TypeError, RecursionError) as error:
                out.append(Unmapped(i, f"the event cannot be written as JSON: {error}"))
        return out


def _json(type: Type, value: Any) -> str:
    """A value as JSON text. Raises ValueError for numbers, and TypeError for objects, that JSON does not have."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"JSON has no {value}")
        return text(type, value) if type in (Type.FLOAT, Type.DOUBLE) else json.dumps(value)
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


class CsvEncoder:
    """A line for each event, by RFC 4180, with values as Siddhi writes them as texts; nothing for null."""

    content_type, extension = "text/csv", "csv"

    def __init__(self, schema: Schema, delimiter: str = ",", header: bool = False) -> None:
        self._types, self._delimiter = schema.types, delimiter
        self.head = self._line(schema.names) if header else b""

    def encode(self, columns: Sequence[Sequence[Any]], ts: Sequence[int]) -> list[Message | Unmapped]:
        out: list[Message | Unmapped] = []
        for i, values in enumerate(zip(*columns, strict=True)):
            try:
                line = ["" if v is None else text(t, v) for t, v in zip(self._types, values, strict=True)]
                out.append(Message(self._line(line), i))
            except (ValueError, TypeError, RecursionError, csv.Error) as error:
                out.append(Unmapped(i, f"the event cannot be written as CSV: {error}"))
        return out

    def _line(self, values: Sequence[str]) -> bytes:
        out = io.StringIO()
        csv.writer(out, delimiter=self._delimiter, lineterminator="").writerow(values)
        return out.getvalue().encode()
