"""Polls a table of an SQL server for rows whose polling column is greater than the last value that was read.

The position of the source is that value. It begins behind the greatest value that the table has when it is first
reached, as siddhi-io-cdc's `DefaultPollingStrategy` does, and that beginning is kept at once, with the name of its
database: a source whose address is changed to another one starts over there. Which rows are new is for the database to
say (`stores.polling`); rows of equal values are entered together. A value that nothing follows, as NaN, is never a
position: its row becomes an error, once, and the digests of the reported rows are part of the position.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from ..engine.columnar.column_data import ARROW, Array
from ..errors import StoreError, shown
from ..ingest import ingest
from ..mapping.attribute_values import misfit
from ..mapping.decoding import Decoded, RejectedMessage, cut
from ..plan.connectors.mapping import SourceMapping
from ..stores.polling import PolledRow, PolledTable
from ..stores.unread import UnreadValue
from ..types import Schema, Type
from .reader import PLACE, Behind, ReadMessages, SourceUnavailable

PORTION = 10_000
"""Rows that are read at once, and those that have the polling value of the last one."""
MOST_ENDLESS = 1_000
"""Maximum number of reported rows with a value that nothing follows."""
_LONG_AGO = float("-inf")


_MOST_DIGITS = 4_000
"""Python makes no int of many more."""


@dataclass(frozen=True)
class _ReportedRows:
    """The token of reported rows: the digests of all such rows."""

    digests: tuple[str, ...]


class CdcReader:
    """A `Reader` of the rows of a table, which is polled every `every` seconds. `mapping` names the columns of the
    attributes of `schema`; by default they have the attributes' names.
    """

    def __init__(self, table: PolledTable, mapping: SourceMapping, schema: Schema, every: float) -> None:
        self._table, self._schema, self._every = table, schema, every
        self._fails_on_null = mapping.fail_on_missing
        places = schema.names if mapping.places is None else mapping.places
        self._columns = tuple(str(p) for p in places)
        self._part = f"{table.name}.{table.column}"
        self._endless = f"{self._part}@endless"
        self._last: Any = None
        self._told: tuple[str, ...] = ()
        self._begun: ReadMessages | None = None
        self._more = False
        self._began = self._entered = _LONG_AGO
        """When the last poll began that was answered, and the last one of which all is in the inbox (s of the monotonic
        clock)."""
        self._due = _LONG_AGO
        self._cancelled = threading.Event()

    def open(self, reached: Mapping[str, Any]) -> str | None:
        self._cancelled.clear()
        self._begun, self._more, self._entered, self._due = None, False, _LONG_AGO, _LONG_AGO
        try:
            self._table.open(self._columns, all_needed=self._fails_on_null)
            greatest = self._table.greatest()
            endless = _digests(self._table.endless(MOST_ENDLESS))
        except StoreError as error:
            raise SourceUnavailable(str(error)) from None
        here, former = str(self._table.database), reached.get(PLACE)
        elsewhere = former is not None and former != here
        kept = None if elsewhere else reached.get(self._part)
        if kept is None:
            self._last, self._told = greatest, endless
            # Another table or column that was polled before has no place any more.
            begins = {**dict.fromkeys(reached), PLACE: here, self._part: position(greatest)}
            if endless:
                begins[self._endless] = list(endless)
            self._begun = ReadMessages(self._decode_none(), 0, begins, lasting=True)
            return f"it has read from {former} until now: {_anew(self._table, greatest)}" if elsewhere else None
        self._last, self._told = value_at(kept), tuple(reached.get(self._endless) or ())
        said: str | None = None
        moved: dict[str, Any] = {} if former == here else {PLACE: here}
        if self._last is not None and greatest is not None and not _comparable(self._last, greatest):
            said = (
                f"{self._part} had values such as {self._last} and now has {greatest}: it is read from behind that one"
            )
            self._last = greatest
            moved[self._part] = position(greatest)
        self._begun = ReadMessages(self._decode_none(), 0, moved, lasting=True) if moved else None
        return said

    def read(self, seconds: float) -> ReadMessages | None:
        if self._begun is not None:
            begun, self._begun = self._begun, None
            return begun
        end = time.monotonic() + seconds
        while True:
            if time.monotonic() >= self._due:
                rows = self._poll()
                if rows:
                    last = rows[-1].at
                    return ReadMessages(self._events(rows), len(rows), {self._part: position(last)}, token=rows[-1])
                if not self._more and (told := self._endless_rows()) is not None:
                    return told
            now = time.monotonic()
            if now >= end or self._cancelled.wait(max(min(end, self._due) - now, 0.0)):
                return None

    def kept(self, taken: ReadMessages, refused: Mapping[int, str]) -> None:
        if isinstance(taken.token, PolledRow):
            self._last, self._entered = taken.token.at, self._began
        elif isinstance(taken.token, _ReportedRows):
            self._told = taken.token.digests

    def busy(self, *, full: bool) -> None:
        pass

    def behind(self) -> Behind | None:
        """Nothing where the last poll found all; how many rows there are more is not asked for, as it would be counted
        row by row."""
        return None if self._more or self._entered == _LONG_AGO else Behind(self._entered, {self._part: 0})

    def close(self) -> None:
        self._table.close()

    def cancel(self) -> None:
        self._cancelled.set()
        self._table.cancel()

    def _poll(self) -> list[PolledRow]:
        began = time.monotonic()
        try:
            rows, self._more = self._table.after(self._last, PORTION)
        except StoreError as error:
            raise SourceUnavailable(str(error)) from None
        self._began = began
        if not rows:
            self._entered = began
        self._due = _LONG_AGO if self._more else began + self._every
        return rows

    def _endless_rows(self) -> ReadMessages | None:
        """The rows with a value that nothing follows, and that were not reported; None if there are none."""
        try:
            rows = self._table.endless(MOST_ENDLESS)
        except StoreError as error:
            raise SourceUnavailable(str(error)) from None
        digests = _digests(rows)
        new = Counter(digests)
        new.subtract(self._told)
        fresh = []
        for row, digest in zip(rows, digests, strict=True):
            if new[digest] > 0:
                new[digest] -= 1
                fresh.append(row)
        if not fresh:
            self._told = digests
            return None
        why = f"{self._table.column} is {{}}, which no row can come after: rows are read in the order of that column"
        rejected = tuple(
            RejectedMessage(i, why.format(shown(str(row.at))), cut(self._text(self._alone(row), row)))
            for i, row in enumerate(fresh)
        )
        found = Decoded(self._decode_none().columns, np.empty(0, np.int64), rejected)
        return ReadMessages(
            found, len(fresh), {self._endless: list(digests)}, lasting=True, token=_ReportedRows(digests)
        )

    # ---------------------------------------------------------------------------------------------- rows as events

    def _decode_none(self) -> Decoded:
        return Decoded([pa.array([], ARROW[a.type]) for a in self._schema], np.empty(0, np.int64), ())

    def _events(self, rows: Sequence[PolledRow]) -> Decoded:
        """Rows as events, those that do not fit rejected. An exception for a row is its error alone."""
        try:
            return self._decode_rows(rows)
        except Exception:  # a value of a kind that nothing here foresees
            found = [self._decoded_alone(i, row) for i, row in enumerate(rows)]
        columns = [pa.concat_arrays(parts) for parts in zip(*(f.columns for f in found), strict=True)]
        message = np.concatenate([f.message for f in found])
        return Decoded(columns, message, tuple(r for f in found for r in f.rejected))

    def _decoded_alone(self, number: int, row: PolledRow) -> Decoded:
        try:
            found = self._decode_rows([row])
        except Exception as error:
            why = f"the row cannot be read: {type(error).__name__}: {' '.join(str(error).split())}"
            empty = self._decode_none()
            return Decoded(empty.columns, empty.message, (RejectedMessage(number, why, cut(repr(row.values))),))
        return Decoded(found.columns, found.message + number, tuple(replace(r, message=number) for r in found.rejected))

    def _decode_rows(self, rows: Sequence[PolledRow]) -> Decoded:
        """Rows as events. One that has a null, unless that is allowed, or a value that does not fit is rejected; its
        text is the JSON of its attributes, without one that is null and must not be."""
        values = list(zip(*(r.values for r in rows), strict=True))
        columns: list[Any] = []
        wrong: dict[int, str] = {}
        for a, name, column in zip(self._schema, self._columns, values, strict=True):
            if self._fails_on_null:
                for i in [i for i, v in enumerate(column) if v is None]:
                    wrong.setdefault(i, f"it has no value in column '{name}' for {a.name}")
            typed, failed = typed_column(column, a.type)
            columns.append(typed)
            for i in [] if failed is None else np.flatnonzero(failed).tolist():
                wrong.setdefault(i, _misfit(a.name, a.type, column[i]))
        message = np.arange(len(rows), dtype=np.int64)
        if not wrong:
            return Decoded(columns, message, ())
        rejected = tuple(
            RejectedMessage(i, wrong[i], cut(self._text([c[i].as_py() for c in columns], rows[i])))
            for i in sorted(wrong)
        )
        left = np.setdiff1d(message, np.fromiter(wrong, np.int64))
        return Decoded([c.take(pa.array(left)) for c in columns], left, rejected)

    def _alone(self, row: PolledRow) -> list[Any]:
        """The values of a row that fit, by attribute; None for the others."""
        return [typed_column([v], a.type)[0][0].as_py() for a, v in zip(self._schema, row.values, strict=True)]

    def _text(self, typed: Sequence[Any], row: PolledRow) -> str:
        """A row as JSON: fitting values as in the event, the rest as a text."""
        found = {
            a.name: as_text(given) if value is None and given is not None else value
            for a, value, given in zip(self._schema, typed, row.values, strict=True)
            if given is not None or not self._fails_on_null
        }
        return json.dumps(found, ensure_ascii=False)


# ------------------------------------------------------------------------------------------------------------ values


def typed_column(values: Sequence[Any], type: Type) -> tuple[pa.Array, Array | None]:
    """A driver's values as a column, and a mask of the values that do not fit (null there); None if all do.

    Values are converted as in feeds (`ingest.convert`). A truth value may be a number, as in MySQL, and a
    text is written as Java's `toString` writes it.
    """
    if type is Type.STRING:
        bad = np.array([isinstance(v, bytes | UnreadValue) for v in values], np.bool_)
        texts = [None if v is None or isinstance(v, bytes | UnreadValue) else as_text(v) for v in values]
        return pa.array(texts, pa.string()), bad if bad.any() else None
    if type is Type.BOOL:
        values = [_TRUTH.get(v, v) if isinstance(v, int | bytes) else v for v in values]
    try:
        return _convert_values(values, type)
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError):  # values of several kinds, or too large ones
        found = [_alone(v, type) for v in values]
    bad = np.array([f is None and v is not None for f, v in zip(found, values, strict=True)], np.bool_)
    return pa.array(found, ARROW[type]), bad if bad.any() else None


_TRUTH: Mapping[Any, bool] = {0: False, 1: True, b"\0": False, b"\1": True}
"""Truth values of MySQL's TINYINT and BIT(1)."""


def _convert_values(values: Sequence[Any], type: Type) -> tuple[pa.Array, Array | None]:
    source = pa.array(values)
    kind = source.type
    if pa.types.is_time(kind) or pa.types.is_duration(kind) or pa.types.is_binary(kind):  # these are no numbers
        return pa.nulls(len(source), ARROW[type]), ~np.asarray(source.is_null())
    return ingest.convert(source, type)


def _misfit(name: str, type: Type, value: Any) -> str:
    """Why a value is none of the attribute `name`."""
    if isinstance(value, UnreadValue):
        return f"{name}: {shown(value.text)} cannot be read: {value.why}"
    return misfit(name, type, value)


def _alone(value: Any, type: Type) -> Any:
    """One value as one of `type`; None if it does not fit."""
    try:
        typed, _ = _convert_values([value], type)
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError):
        return None
    return typed[0].as_py()


def as_text(value: Any) -> str:
    """A value as the text that JDBC's class for it gives: a time as `2024-01-31 10:00:00.0`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        fraction = f"{value.microsecond:06}".rstrip("0") or "0"
        return f"{value.replace(tzinfo=None).isoformat(' ', 'seconds')}.{fraction}"
    if isinstance(value, dt.timedelta):  # MySQL's TIME
        return str(value).zfill(8)
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


# ---------------------------------------------------------------------------------------------------------- positions


def kind_of(value: Any) -> str:
    """Kind of values that one can be compared with, as a word."""
    if isinstance(value, int | Decimal):
        return "number"
    if isinstance(value, dt.datetime):
        return "time"
    return "date" if isinstance(value, dt.date) else "text"


def _comparable(last: Any, greatest: Any) -> bool:
    """True if two values of a polled column can be of one type. One that Python does not have may be of each."""
    return UnreadValue in (type(last), type(greatest)) or kind_of(last) == kind_of(greatest)


def _digests(rows: Sequence[PolledRow]) -> tuple[str, ...]:
    """Digest of the contents of each row."""
    texts = ("\0".join(as_text(v) for v in (row.at, *row.values)) for row in rows)
    return tuple(hashlib.blake2b(t.encode("utf-8", "replace"), digest_size=8).hexdigest() for t in texts)


def _anew(table: PolledTable, greatest: Any) -> str:
    """Message that a table is read from behind its greatest value."""
    if greatest is None:
        return f"at {table.database} it begins anew, with its table, which is empty"
    behind = f"behind {table.column} {greatest}, and the entries up to that one are not read"
    return f"at {table.database} it begins anew, {behind}"


def position(value: Any) -> list[str]:
    """A value of a polling column as plain data for the journal; None is the beginning of a table without values."""
    if value is None:
        return ["none", ""]
    if isinstance(value, UnreadValue):
        return ["unread", value.text]
    return [kind_of(value), value.isoformat() if isinstance(value, dt.date) else str(value)]


def value_at(kept: Sequence[str]) -> Any:
    """The value that `position` made plain data of."""
    kind, text = kept
    match kind:
        case "none":
            return None
        case "number":
            whole = text.lstrip("-").isdecimal() and len(text) < _MOST_DIGITS
            return int(text) if whole else Decimal(text)
        case "unread":
            return UnreadValue(text)
        case "time":
            return dt.datetime.fromisoformat(text)
        case "date":
            return dt.date.fromisoformat(text)
    return text
