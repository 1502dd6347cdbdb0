"""The shape of a feed's source, as `Reading` says how it is read."""

from __future__ import annotations

from collections.abc import Mapping

from ... import argument_checks
from ...ingest.column_matching import NO_COLUMN
from ...ingest.time_formats import TimeFormat
from ...ingest.value_formats import ValueFormat
from ...sources.feeds import Shape
from ...types import Schema
from .sent import source_columns
from .source_reading import Reading


def shape_of(reading: Reading, stream: str, schema: Schema) -> Shape:
    """The reading of a source of `stream`. Raises `Misuse` for an argument that is none."""
    for what in ("time", "time_format", "time_zone", "decimal"):
        argument_checks.optional_str(what, getattr(reading, what))
    argument_checks.optional_str_list("missing", reading.missing)
    if isinstance(reading.columns, Mapping):
        argument_checks.optional_str_map("columns", {a: column or NO_COLUMN for a, column in reading.columns.items()})
    else:
        argument_checks.optional_str_list("columns", reading.columns)
    return Shape(
        stream,
        schema,
        reading.time,
        source_columns(schema, reading.columns),
        time_format=TimeFormat.of(reading.time_format, reading.time_zone),
        values=ValueFormat.of(reading.decimal, reading.missing),
    )
