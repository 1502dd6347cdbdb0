"""The messages that a sink makes of a stream's committed outputs, in an order that a crash does not change."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..engine.columnar.column_data import Array
from ..journal.result_codec import column_values, is_object
from ..mapping import DroppedMessage, EventPositions, Message, encoder
from ..mapping.attribute_values import Values
from ..plan.connectors import mapping as formats
from ..types import Schema, Type

CHUNK = 5_000
"""Events that are encoded at once, and that one message has at most."""

_STAMPS = 3
"""The columns of outputs before the attributes: node, step, time."""


@dataclass(frozen=True)
class _MessageKind:
    content_type: str
    extension: str
    breaks: bool = False
    """True if a message ends with a line break of its own."""


_KINDS: Mapping[type[formats.SinkFormat], _MessageKind] = {
    formats.JsonSink: _MessageKind("application/json", "json"),
    formats.CsvSink: _MessageKind("text/csv", "csv", breaks=True),
    formats.TextSink: _MessageKind("text/plain", "txt"),
    formats.KeyValue: _MessageKind("application/x-www-form-urlencoded", "txt"),
    formats.XmlSink: _MessageKind("application/xml", "xml"),
    formats.Avro: _MessageKind("application/octet-stream", "avro"),
    formats.Binary: _MessageKind("application/octet-stream", "bin"),
    formats.PassThrough: _MessageKind("application/octet-stream", "bin"),
}


@dataclass(frozen=True)
class UnwrittenEvents(EventPositions):
    """Events of which no message can be made."""

    events: Sequence[int]
    reason: str


Made: TypeAlias = "Message | UnwrittenEvents"


class MessageWriter:
    """Makes messages of outputs as `mapping` says. `templates` are texts with `{{attribute}}` in them, by name, whose
    values for a message are its `properties`."""

    def __init__(
        self, mapping: formats.SinkMapping, schema: Schema, templates: Mapping[str, str] | None = None
    ) -> None:
        self.mapping, self.schema = mapping, schema
        self._encoder = encoder(mapping, schema, templates or {})
        kind = _KINDS[type(mapping.format)]
        self.content_type, self.extension, self.breaks = kind.content_type, kind.extension, kind.breaks

    @property
    def head(self) -> bytes:
        """The first line of a file, with its line break; empty for none."""
        header = self._encoder.header()
        return b"" if header is None else header.body

    def cuts(self, table: pa.Table) -> Array:
        """Places at which a table of outputs may be cut, as ascending numbers of rows that end with all of them: events
        of one group stay together.

        A group is a node's output in one step of the app: for one event, for several that were sent at once, or
        for a tick of the clock. Siddhi's chunks are not kept with the outputs; steps are, and do not depend on crashes
        or on how the input was cut into micro-batches.
        """
        n = table.num_rows
        if not self.mapping.is_grouped:
            return np.arange(1, n + 1)
        return np.append(_changes(table), n)

    def write(self, table: pa.Table) -> list[Made]:
        """The messages of outputs (columns: node, step, time, attributes), in order of their first events.

        Each event is in one of them. Events of a group are one message where the mapping groups them, unless their
        properties differ, or they are more than `CHUNK`.
        """
        columns = attribute_columns(table)
        odd = self._odd(columns)
        if not odd:
            return self._encode_rows(table, columns, np.arange(table.num_rows))
        left = np.setdiff1d(np.arange(table.num_rows), np.fromiter(odd, np.int64))
        rest = table.take(pa.array(left))
        messages = self._encode_rows(rest, attribute_columns(rest), left)
        messages += [UnwrittenEvents((i,), reason) for i, reason in odd.items()]
        return sorted(messages, key=lambda m: m.first)

    def _encode_rows(self, table: pa.Table, columns: Sequence[Values], numbers: Array) -> list[Made]:
        """The messages of a table whose rows have these `numbers`."""
        if not len(numbers):
            return []
        groups = np.zeros(len(numbers), np.int64)
        if self.mapping.is_grouped:
            groups[_changes(table)] = 1
        dropped_messages: list[DroppedMessage] = []
        times = table.column(2).to_numpy().astype(np.int64)
        messages = self._encoder.encode(columns, times, np.cumsum(groups), dropped_messages, CHUNK)
        plain = bool(numbers[-1] == len(numbers) - 1)
        out: list[Made] = (
            list(messages)
            if plain
            else [Message(m.body, numbers[list(m.events)].tolist(), m.properties) for m in messages]
        )
        for d in dropped_messages:
            events = numbers[list(d.message.events)].tolist()
            out.append(UnwrittenEvents(events, f"the event cannot be written: {d.reason}"))
        return sorted(out, key=lambda m: m.first)

    def _odd(self, columns: Sequence[Values]) -> dict[int, str]:
        """The events with a value that the format does not have, with the reason."""
        if isinstance(self.mapping.format, formats.Binary):
            return _nulls(self.schema, columns)
        if not isinstance(self.mapping.format, formats.JsonSink) or self.mapping.payload:
            return {}
        out: dict[int, str] = {}
        for a, column in zip(self.schema, columns, strict=True):
            for i, value in _not_json(a.type, column):
                out.setdefault(i, f"the event cannot be written as JSON: {a.name}: JSON has no {value}")
        return out


def attribute_columns(table: pa.Table) -> list[Values]:
    """The attributes of outputs (columns: node, step, time, attributes)."""
    fields = list(table.schema)[_STAMPS:]
    return [
        column_values(c, f) if is_object(f) else c.combine_chunks()
        for c, f in zip(table.columns[_STAMPS:], fields, strict=True)
    ]


def _changes(table: pa.Table) -> Array:
    """The rows, except the first, with which a group begins."""
    node, step = (table.column(i).to_numpy() for i in (0, 1))
    return np.flatnonzero((np.diff(node) != 0) | (np.diff(step) != 0)) + 1


def _nulls(schema: Schema, columns: Sequence[Values]) -> dict[int, str]:
    """The events with a null that is no text, which a binary message does not have, with the reason."""
    out: dict[int, str] = {}
    for a, column in zip(schema, columns, strict=True):
        if a.type is not Type.STRING and isinstance(column, pa.Array) and column.null_count:
            for i in np.flatnonzero(np.asarray(column.is_null())).tolist():
                why = f"{a.name} is null, and a binary message has no null {a.type}"
                out.setdefault(i, f"the event cannot be written: {why}")
    return out


def _not_json(type: Type, column: Values) -> Iterator[tuple[int, float]]:
    """The numbers of a column that JSON does not have, with their positions."""
    if isinstance(column, list):
        for i, value in enumerate(column):
            odd = next(_odd_numbers(value), None)
            if odd is not None:
                yield i, odd
    elif type in (Type.FLOAT, Type.DOUBLE):
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        odd = pc.fill_null(pc.invert(pc.is_finite(array)), False).to_numpy(zero_copy_only=False)
        yield from ((i, array[i].as_py()) for i in np.flatnonzero(odd).tolist())


def _odd_numbers(value: Any) -> Iterator[float]:
    """NaN and the infinities in an object."""
    level = [value]
    while level:
        one = level.pop()
        if isinstance(one, dict):
            level += one.values()
        elif isinstance(one, list | tuple | set | frozenset):
            level += one
        elif isinstance(one, float) and not math.isfinite(one):
            yield one
