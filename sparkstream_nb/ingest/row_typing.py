"""Typed rows of a stream from the rows of tables, and the faults of the rows that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..engine.columnar.column_data import ARROW, Array
from ..errors import SparkStreamError, shown
from ..types import Attribute, Schema, Type
from .column_matching import NO_COLUMN
from .csvfile import MALFORMED, ROW
from .ingest import (
    BETWEEN_FAULTS,
    SPOILT,
    TEXT_OF_ROW,
    columns_for,
    convert,
    is_textual,
    mask_of,
    one,
    plain,
    python_value,
    read_times,
    readable,
    too_late,
)
from .time_formats import BY_DEFAULT, DoubtCounts, Doubts, TimeFormat
from .value_formats import AS_WRITTEN, ValueFormat

RejectedRow = tuple[int | None, list[Any] | dict[str, Any], str]
"""The time of a row where it can be read, its values, and the reason."""


@dataclass
class TypedRows:
    """The rows that fit: `ts` int64[n] ms (None without a time column) and one Arrow array per attribute; and the rows
    that do not: their time where it can be read, values as Python data in schema order (of one that is not whole its
    text, as `TEXT_OF_ROW`), and the reason. `doubts`: how many rows that fit have a time which clocks did not show
    once."""

    ts: Array | None
    columns: list[pa.Array]
    rejected: list[RejectedRow]
    doubts: DoubtCounts = field(default_factory=DoubtCounts)

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0


def type_rows(
    table: pa.Table | pa.RecordBatch, schema: Schema, reading: RowReading | None = None, *, keep: int = 10_000
) -> TypedRows:
    """Types the rows of `table` for a stream of `schema`.

    A column `csvfile.MALFORMED` says why a whole row could not be read. The reason of a row has all its faults, the
    fault of its time first. Of the rejected rows at most `keep` are kept with their values, the others as empty rows
    with their reason.
    """
    rows = _RowTyping(table, reading or RowReading())
    rows.reject_malformed()
    rows.read_event_times()
    columns = [rows.type_attribute(attribute) for attribute in schema]
    return rows.typed_rows(columns, keep)


@dataclass(frozen=True)
class RowReading:
    """The reading of a table's rows.

    `time` names the column of the event time, whose values have the `time_format`; an attribute of type long with this
    column has the time in ms. Other texts are as `values` says. `columns` names the source column of an attribute if it
    has another name; `NO_COLUMN`: it is null in all rows. `source_columns` are the columns to hint at, where the table
    has not all that the source has. Rows with times after `latest` (ms), or outside of `bounds`, are rejected.
    """

    time: str | None = None
    time_format: TimeFormat = BY_DEFAULT
    values: ValueFormat = AS_WRITTEN
    columns: Mapping[str, str] | None = None
    source_columns: Sequence[str] = ()
    latest: int | None = None
    bounds: TimeBounds | None = None


@dataclass(frozen=True)
class TimeBounds:
    """The first and the last time (ms) of rows that are taken, and the reason why one of another time is not."""

    first: int
    last: int
    reason: Callable[[int], str]


@dataclass(frozen=True)
class _TypedColumn:
    """An attribute's values: as the source has them, for rows that are rejected, and as the stream has them."""

    source: pa.Array
    values: pa.Array


class _RowTyping:
    """Rows of a table on their way to a stream: their faults and their event times."""

    def __init__(self, table: pa.Table | pa.RecordBatch, reading: RowReading) -> None:
        self._table, self._reading, self._names = table, reading, table.schema.names
        count = table.num_rows
        self._faults = _RowFaults(np.zeros(count, np.bool_), np.zeros(count, np.bool_))
        self._ts: Array | None = None
        self._misfit_times: Array | None = None
        self._doubts: Doubts | None = None

    def reject_malformed(self) -> None:
        """Rejects rows that could not be read."""
        if MALFORMED in self._names:
            whys = self._table.column(MALFORMED)
            self._faults.reject(mask_of(pc.is_valid(whys)), lambda i: str(whys[i].as_py()))
            self._faults.unreadable |= self._faults.bad

    def read_event_times(self) -> None:
        """Reads the column of event times, if there is one. Raises SparkStreamError where the table lacks it."""
        reading, reject = self._reading, self._faults.reject
        time, latest, bounds = reading.time, reading.latest, reading.bounds
        if time is None:
            return
        if time not in self._names:
            raise SparkStreamError(f"The feed has no column '{time}' of event times. {self._columns_for(time)}")
        moments, *_ = readable(one(self._table.column(time)))
        event_times = read_times(moments, reading.time_format)
        ts = self._ts = event_times.values
        self._misfit_times, self._doubts = event_times.misfits, event_times.doubts
        if self._misfit_times is not None:
            a_time = reading.time_format.a_time
            reject(self._misfit_times, lambda i: f"{time}: {shown(python_value(moments[i]))} is not {a_time}")
        if latest is not None:
            reject(ts > latest, lambda i: f"{time}: {too_late(int(ts[i]), latest)}")
        if bounds is not None:
            reject((ts < bounds.first) | (ts > bounds.last), lambda i: f"{time}: {bounds.reason(int(ts[i]))}")

    def _columns_for(self, name: str) -> str:
        return columns_for(name, self._reading.source_columns or self._names)

    def type_attribute(self, attribute: Attribute) -> _TypedColumn:
        """The values of an attribute; rows in which they do not fit are rejected."""
        name = (self._reading.columns or {}).get(attribute.name, attribute.name)
        if name == NO_COLUMN:
            return self._nulls(attribute.type)
        if self._ts is not None and name == self._reading.time and attribute.type is Type.LONG:
            return _TypedColumn(one(self._table.column(name)), pa.array(self._ts))
        if name not in self._names:
            missing = f"no column '{name}'. {self._columns_for(name)}"
            self._faults.reject(np.ones(self._table.num_rows, np.bool_), lambda _: missing)
            return self._nulls(attribute.type)
        source, spoilt, original = readable(one(self._table.column(name)), attribute.type)
        if spoilt is not None:
            self._faults.reject(spoilt, lambda _: f"{attribute.name}: {SPOILT}")
        plain_source = source
        if is_textual(source.type):
            source = self._reading.values.present(source)
            plain_source = self._reading.values.plain_numbers(source, attribute.type)
        values, misfits = convert(plain_source, attribute.type)
        if misfits is not None:
            self._faults.reject(misfits, _says(attribute.name, source, attribute.type))
        return _TypedColumn(original, values)

    def _nulls(self, type_: Type) -> _TypedColumn:
        n = self._table.num_rows
        return _TypedColumn(pa.nulls(n), pa.nulls(n, ARROW.get(type_, pa.null())))

    def typed_rows(self, columns: Sequence[_TypedColumn], keep: int) -> TypedRows:
        """The rows that fit and the others, with the values of `columns`."""
        faults, ts = self._faults, self._ts
        doubtful = DoubtCounts.of(self._doubts, ~faults.bad)
        arrays = [c.values for c in columns]
        if not faults.bad.any():
            return TypedRows(ts, arrays, [], doubtful)
        are_known = np.ones(self._table.num_rows, np.bool_) if self._misfit_times is None else ~self._misfit_times
        times = None if ts is None else (ts, are_known)
        texts = self._table.column(ROW) if ROW in self._names else None
        rejects = faults.list_rejected(times, [c.source for c in columns], texts, keep)
        good = np.flatnonzero(~faults.bad)
        return TypedRows(None if ts is None else ts[good], [a.take(pa.array(good)) for a in arrays], rejects, doubtful)


@dataclass
class _RowFaults:
    """The faults of rows: which rows are `bad`, which of them could not be read at all (`unreadable`), and why."""

    bad: Array
    unreadable: Array
    reasons: dict[int, list[str]] = field(default_factory=dict)

    def reject(self, mask: Array, reason: Callable[[int], str]) -> None:
        """Adds a fault of the rows of a mask. One that could not be read at all has that fault alone."""
        for i in np.flatnonzero(mask & ~self.unreadable).tolist():
            self.reasons.setdefault(i, []).append(reason(i))
        self.bad[mask] = True

    def list_rejected(
        self, times: tuple[Array, Array] | None, sources: Sequence[pa.Array], texts: pa.ChunkedArray | None, keep: int
    ) -> list[RejectedRow]:
        """The rejected rows, of which `keep` have their values. `times`: the event times, and which of them are known;
        `texts`: texts of rows that could not be read.
        """
        out: list[RejectedRow] = []
        for k, (i, reasons) in enumerate(sorted(self.reasons.items())):
            text = None if texts is None else texts[i].as_py()
            values: list[Any] | dict[str, Any] = []
            if k < keep:
                values = [plain(python_value(s[i])) for s in sources] if text is None else {TEXT_OF_ROW: text}
            time = int(times[0][i]) if times is not None and times[1][i] else None
            out.append((time, values, BETWEEN_FAULTS.join(reasons)))
        return out


def _says(name: str, source: pa.Array, type: Type) -> Callable[[int], str]:
    article = "an" if type is Type.INT else "a"
    return lambda i: f"{name}: {shown(python_value(source[i]))} is not {article} {type}"
