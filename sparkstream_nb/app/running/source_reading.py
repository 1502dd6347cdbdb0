"""The reading of a feed's source: its columns and formats of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ... import argument_checks
from ...errors import Misuse, nearest
from ...ingest.column_matching import NO_COLUMN
from ...types import Schema
from .sent import columns_of_streams, source_columns

if TYPE_CHECKING:
    from ...sources.feeds import Shape


@dataclass(frozen=True)
class Reading:
    """The arguments of `App.feed` that say how its source is read; that method describes each."""

    time: str | None = None
    time_format: str | None = None
    time_zone: str | None = None
    columns: Mapping[str, str | None] | Sequence[str] | None = None
    decimal: str | None = None
    missing: Sequence[str] | None = None

    def shape(self, stream: str, schema: Schema) -> Shape:
        """The reading of a source of `stream`. Raises `Misuse` for an argument that is none."""
        from ...ingest import time_formats, value_formats
        from ...sources.feeds import Shape  # what only says how a feed is read loads nothing heavy

        for what in ("time", "time_format", "time_zone", "decimal"):
            argument_checks.optional_str(what, getattr(self, what))
        argument_checks.optional_str_list("missing", self.missing)
        if isinstance(self.columns, Mapping):
            argument_checks.optional_str_map("columns", {a: column or NO_COLUMN for a, column in self.columns.items()})
        else:
            argument_checks.optional_str_list("columns", self.columns)
        return Shape(
            stream,
            schema,
            self.time,
            source_columns(schema, self.columns),
            time_format=time_formats.TimeFormat.of(self.time_format, self.time_zone),
            values=value_formats.ValueFormat.of(self.decimal, self.missing),
        )

    def by_stream(self, schemas: Mapping[str, Schema]) -> dict[str, Reading]:
        """The reading of a source of each stream, with the `columns` of the attributes that the stream has. Raises
        `Misuse` for an attribute that no stream has."""
        if isinstance(self.columns, Mapping) and (len(schemas) > 1 or any("." in str(name) for name in self.columns)):
            columns_by_stream = columns_of_streams(schemas, self.columns)
            return {s: replace(self, columns=columns_by_stream[s]) for s in schemas}
        return dict.fromkeys(schemas, self)


def readings_of(
    schemas: Mapping[str, Schema],
    time: str | Mapping[str, str] | None = None,
    columns: Mapping[str, str | None] | Sequence[str] | None = None,
    **formats: Any,
) -> dict[str, Reading]:
    """The reading of a source of each stream. `time` names the column of event times, for all or by stream, `columns`
    the columns of attributes, each for the streams that have it or as `Stream.attribute` for one, and `formats` are
    other fields of `Reading`. Raises `Misuse` for a stream that is not fed, and an attribute that none has."""
    if isinstance(time, Mapping):
        for name in time:
            if name not in schemas:
                raise Misuse(nearest(f"time: no stream '{name}' is fed", name, schemas))
        readings = Reading(columns=columns, **formats).by_stream(schemas)
        return {s: replace(reading, time=time.get(s)) for s, reading in readings.items()}
    return Reading(time=time, columns=columns, **formats).by_stream(schemas)


AS_IT_IS = Reading()
"""Without event times, columns by the attributes' names, values as they are by default."""
