"""Sent and fed events, in the order of a stream's attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import Misuse, SparkStreamError, did_you_mean, nearest
from ...ingest.column_matching import NO_COLUMN
from ...types import Schema
from ...wording import choose_words


def source_columns(schema: Schema, columns: Mapping[str, str | None] | Sequence[str] | None) -> dict[str, str]:
    """The source column of each attribute that has one of another name; `NO_COLUMN` of one that is null."""
    if not columns:
        return {}
    if not isinstance(columns, Mapping):
        return dict(zip(schema.names, columns, strict=False))
    for name in columns:
        if name not in schema.names:
            raise Misuse(nearest(f"columns: there is no attribute '{name}'", name, schema.names))
    return {name: column or NO_COLUMN for name, column in columns.items()}


def columns_of_streams(
    streams: Mapping[str, Schema], columns: Mapping[str, str | None] | None
) -> dict[str, dict[str, str | None]]:
    """By stream, the source columns of those attributes that it has. `Stream.attribute` is of one stream, and counts
    before `attribute`, which is of all. Raises `Misuse` for one that none has."""
    names = dict.fromkeys(name for schema in streams.values() for name in schema.names)
    columns_by_stream: dict[str, dict[str, str | None]] = {s: {} for s in streams}
    option = choose_words("--map", "columns")
    for name, column in sorted((columns or {}).items(), key=lambda item: "." in item[0]):
        stream, dot, attribute = name.rpartition(".")
        if not dot and name not in names:
            raise Misuse(nearest(f"{option}: no stream that is fed has an attribute '{name}'", name, names))
        if dot and stream not in streams:
            raise Misuse(nearest(f"{option}: no stream '{stream}' is fed", stream, streams))
        if dot and attribute not in streams[stream].names:
            attributes = streams[stream].names
            raise Misuse(nearest(f"{option}: stream {stream} has no attribute '{attribute}'", attribute, attributes))
        for s in [stream] if dot else streams:
            if attribute in streams[s].names:
                columns_by_stream[s][attribute] = column
    return columns_by_stream


def recording_path(source: Any) -> Path | None:
    """The path of a recording, where one is given in place of a stream; None for anything else."""
    if isinstance(source, Path) or (isinstance(source, str) and source.endswith(".parquet")):
        return Path(source)
    return None


def sources_of(stream: str | Mapping[str, Any], source: Any) -> list[tuple[str, Any]]:
    """(stream, source) pairs of the first two arguments of `App.feed`. Raises `Misuse` if they are none."""
    if isinstance(stream, Mapping):
        if source is not None:
            raise Misuse("feed takes a stream and its source, or a dict of sources by stream, not both")
        pairs = [
            (s, x)
            for s, stream_source in stream.items()
            for x in (stream_source if isinstance(stream_source, list | tuple) else [stream_source])
        ]
        if not pairs:
            raise Misuse("there is nothing to feed: the dict of sources by stream is empty")
        return pairs
    pairs = [(stream, x) for x in (source if isinstance(source, list | tuple) else [source])]
    if not pairs:
        raise Misuse(f"there is nothing to feed {stream} with: the list of sources is empty")
    return pairs


def row_of(stream: str, schema: Schema, values: Any) -> list[Any]:
    """An event's values in the order of `schema`. Raises SparkStreamError for too few or too many, and for a dict that
    lacks attributes or has unknown ones."""
    if isinstance(values, Mapping):
        for name in values:
            if name not in schema.names:
                hint = did_you_mean(str(name), schema.names) or ""
                raise SparkStreamError(f"{stream} has no attribute '{name}'. {hint}".strip())
        missing = [n for n in schema.names if n not in values]
        if missing:
            raise SparkStreamError(f"{stream}: the event lacks {', '.join(missing)}.")
        return [values[n] for n in schema.names]
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise SparkStreamError(f"{stream}: an event is a list of values {schema} or a dict by attribute.")
    if len(values) != len(schema):
        many = f"{len(schema)} value{'' if len(schema) == 1 else 's'}"
        problem = f"{stream} takes {many} {schema}, not {len(values)}"
        raise SparkStreamError(f"{problem}: write null for a missing value.")
    return [*values]
