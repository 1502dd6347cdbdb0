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
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from ..errors import StoreError, shown
from ..mapping.decoding import Decoded, RejectedMessage, cut
from ..plan.connectors.mapping import SourceMapping
from ..stores.polling import PolledRow, PolledTable
from ..stores.unread import UnreadValue
from ..types import Schema
from .reader import PLACE, Behind, ReadMessages, SourceUnavailable
from .row_decoding import RowDecoder, as_text

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
        self._table, self._every = table, every
        self._rows = RowDecoder(schema, mapping)
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
            self._table.open(self._rows.keys, all_needed=self._rows.fails_on_null)
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
            self._begun = ReadMessages(self._rows.empty(), 0, begins, lasting=True)
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
        self._begun = ReadMessages(self._rows.empty(), 0, moved, lasting=True) if moved else None
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
                    return ReadMessages(
                        self._rows.decode([r.values for r in rows]),
                        len(rows),
                        {self._part: position(last)},
                        token=rows[-1],
                    )
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
            RejectedMessage(i, why.format(shown(str(row.at))), cut(self._rows.text(row.values)))
            for i, row in enumerate(fresh)
        )
        found = Decoded(self._rows.empty().columns, np.empty(0, np.int64), rejected)
        return ReadMessages(
            found, len(fresh), {self._endless: list(digests)}, lasting=True, token=_ReportedRows(digests)
        )


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
