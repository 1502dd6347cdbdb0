"""Mappings of apps' texts, and what they make of messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparkstream_nb.lang import tree
from sparkstream_nb.mapping import Decoded, Message, decoder, encoder
from sparkstream_nb.mapping.attribute_values import arrays
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.connectors.mapping import SinkMapping, SourceMapping
from sparkstream_nb.plan.connectors.mappings import sink_mapping, source_mapping
from sparkstream_nb.types import Schema

STOCK = "symbol string, price float, volume long"


def _map(end: str, text: str, attributes: str) -> tuple[tree.Annotation, Schema]:
    plan = compile_app(f"@{end}(type='inMemory', topic='t', {text}) define stream S ({attributes});")
    stream = plan.streams["S"]
    mapping = stream.annotations[0].nested[0]
    return mapping, stream.source.schema


def source(text: str, attributes: str = STOCK) -> tuple[SourceMapping, Schema]:
    """The mapping `@map(...)` of a source, and its stream's schema."""
    mapping, schema = _map("source", text, attributes)
    return source_mapping(mapping, schema), schema


def sink(text: str, attributes: str = STOCK) -> tuple[SinkMapping, Schema]:
    """The mapping `@map(...)` of a sink, and its stream's schema."""
    mapping, schema = _map("sink", text, attributes)
    return sink_mapping(mapping, schema), schema


def events(decoded: Decoded) -> list[list[Any]]:
    """The events as lists of values."""
    columns = [c if isinstance(c, list) else c.to_pylist() for c in decoded.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def decode(text: str, attributes: str, *messages: str | bytes, **options: Any) -> Decoded:
    """What a source's mapping makes of messages."""
    mapping, schema = source(text, attributes)
    raw = [m.encode() if isinstance(m, str) else m for m in messages]
    return decoder(mapping, schema).decode(raw, **options)


def encode(text: str, attributes: str, rows: list[list[Any]], *, chunk: list[int] | None = None) -> list[Message]:
    """What a sink's mapping makes of events."""
    mapping, schema = sink(text, attributes)
    numbers = None if chunk is None else np.array(chunk)
    return encoder(mapping, schema).encode(arrays(schema, rows), np.zeros(len(rows), np.int64), numbers)


def bodies(text: str, attributes: str, rows: list[list[Any]], *, chunk: list[int] | None = None) -> list[str]:
    """The texts of `encode`."""
    return [m.body.decode() for m in encode(text, attributes, rows, chunk=chunk)]
