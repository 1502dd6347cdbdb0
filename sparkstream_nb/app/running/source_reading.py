"""The reading of a feed's source: its columns and formats of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ... import argument_checks
from ...types import Schema
from .sent import source_columns

if TYPE_CHECKING:
    from ...sources.feeds import Shape


@dataclass(frozen=True)
class Reading:
    """The arguments of `App.feed` that say how its source is read; that method describes each."""

    time: str | None = None
    time_format: str | None = None
    time_zone: str | None = None
    columns: Mapping[str, str] | Sequence[str] | None = None
    decimal: str | None = None
    missing: Sequence[str] | None = None

    def shape(self, stream: str, schema: Schema) -> Shape:
        """The reading of a source of `stream`. Raises `Misuse` for an argument that is none."""
        from ...ingest.time_formats import TimeFormat
        from ...ingest.value_formats import ValueFormat
        from ...sources.feeds import Shape  # what only says how a feed is read loads nothing heavy

        for what in ("time", "time_format", "time_zone", "decimal"):
            argument_checks.optional_str(what, getattr(self, what))
        argument_checks.optional_str_list("missing", self.missing)
        if isinstance(self.columns, Mapping):
            argument_checks.optional_str_map("columns", self.columns)
        else:
            argument_checks.optional_str_list("columns", self.columns)
        return Shape(
            stream,
            schema,
            self.time,
            source_columns(schema, self.columns),
            written=TimeFormat.of(self.time_format, self.time_zone),
            values=ValueFormat.of(self.decimal, self.missing),
        )


AS_IT_IS = Reading()
"""Without event times, columns by the attributes' names, values as they are by default."""
