"""The reading of a feed's source: its columns and formats of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...errors import Misuse, nearest
from ...types import Schema
from .sent import columns_of_streams


@dataclass(frozen=True)
class Reading:
    """The arguments of `App.feed` that say how its source is read; that method describes each."""

    time: str | None = None
    time_format: str | None = None
    time_zone: str | None = None
    columns: Mapping[str, str | None] | Sequence[str] | None = None
    decimal: str | None = None
    missing: Sequence[str] | None = None

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
