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
from .reader import PLACE, Behind, ReadMessages, SourceReader, SourceUnavailable
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


class CdcReader(SourceReader):
    """A `Reader` of the rows of a table, which is polled every `every` seconds. `mapping` names the columns of the
    attributes of `schema`; by default they have the attributes' names.
    """

    def __init__(self, table: PolledTable, mapping: SourceMapping, schema: Schema, every: float) -> None:
        self._table, self._every = table, every
        self._rows = RowDecoder(schema, mapping)
        self._part = f"{table.name}.{table.column}"
        self._endless = f"{self._part}@endless"
        self._last: Any = None
        self._reported_digests: tuple[str, ...] = ()
        self._first_messages: ReadMessages | None = None
        self._more = False
        self._began = self._last_journaled_poll = _LONG_AGO
        """When the last poll began that was answered, and the last one of which all is in the inbox (s of the monotonic
        clock)."""
        self._due = _LONG_AGO
        self._cancel_event = threading.Event()

    def open(self, positions: Mapping[str, Any]) -> str | None:
        self._cancel_event.clear()
        self._first_messages, self._more, self._last_journaled_poll, self._due = None, False, _LONG_AGO, _LONG_AGO
        try:
            self._table.open(self._rows.keys, all_needed=self._rows.fails_on_null)
            greatest = self._table.greatest()
            endless = _digests(self._table.endless(MOST_ENDLESS))
        except StoreError as error:
            raise SourceUnavailable(str(error)) from None
        here, previous_place = str(self._table.database), positions.get(PLACE)
        elsewhere = previous_place is not None and previous_place != here
        stored_position = None if elsewhere else positions.get(self._part)
        if stored_position is None:
            self._last, self._reported_digests = greatest, endless
            # Another table or column that was polled before has no place any more.
            begins = {**dict.fromkeys(positions), PLACE: here, self._part: position(greatest)}
            if endless:
                begins[self._endless] = list(endless)
            self._first_messages = ReadMessages(self._rows.empty(), 0, begins, lasting=True)
            return f"it has read from {previous_place} until now: {_anew(self._table, greatest)}" if elsewhere else None
        self._last, self._reported_digests = value_at(stored_position), tuple(positions.get(self._endless) or ())
        note: str | None = None
        changes: dict[str, Any] = {} if previous_place == here else {PLACE: here}
        if self._last is not None and greatest is not None and not _comparable(self._last, greatest):
            note = (
                f"{self._part} had values such as {self._last} and now has {greatest}: it is read from behind that one"
            )
            self._last = greatest
            changes[self._part] = position(greatest)
        self._first_messages = ReadMessages(self._rows.empty(), 0, changes, lasting=True) if changes else None
        return note

    def read(self, seconds: float) -> ReadMessages | None:
        if self._first_messages is not None:
            first, self._first_messages = self._first_messages, None
            return first
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
                if not self._more and (endless_rows := self._endless_rows()) is not None:
                    return endless_rows
            now = time.monotonic()
            if now >= end or self._cancel_event.wait(max(min(end, self._due) - now, 0.0)):
                return None

    def confirm(self, messages: ReadMessages, refusals: Mapping[int, str]) -> None:
        if isinstance(messages.token, PolledRow):
            self._last, self._last_journaled_poll = messages.token.at, self._began
        elif isinstance(messages.token, _ReportedRows):
            self._reported_digests = messages.token.digests

    def behind(self) -> Behind | None:
        """Nothing where the last poll found all; how many rows there are more is not asked for, as it would be counted
        row by row."""
        return (
            None
            if self._more or self._last_journaled_poll == _LONG_AGO
            else Behind(self._last_journaled_poll, {self._part: 0})
        )

    def close(self) -> None:
        self._table.close()

    def cancel(self) -> None:
        self._cancel_event.set()
        self._table.cancel()

    def _poll(self) -> list[PolledRow]:
        began = time.monotonic()
        try:
            rows, self._more = self._table.after(self._last, PORTION)
        except StoreError as error:
            raise SourceUnavailable(str(error)) from None
        self._began = began
        if not rows:
            self._last_journaled_poll = began
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
        new.subtract(self._reported_digests)
        fresh = []
        for row, digest in zip(rows, digests, strict=True):
            if new[digest] > 0:
                new[digest] -= 1
                fresh.append(row)
        if not fresh:
            self._reported_digests = digests
            return None
        why = f"{self._table.column} is {{}}, which no row can come after: rows are read in the order of that column"
        rejects = tuple(
            RejectedMessage(i, why.format(shown(str(row.at))), cut(self._rows.text(row.values)))
            for i, row in enumerate(fresh)
        )
        events = Decoded(self._rows.empty().columns, np.empty(0, np.int64), rejects)
        return ReadMessages(
            events, len(fresh), {self._endless: list(digests)}, lasting=True, token=_ReportedRows(digests)
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
    start = f"behind {table.column} {greatest}, and the entries up to that one are not read"
    return f"at {table.database} it begins anew, {start}"


def position(value: Any) -> list[str]:
    """A value of a polling column as plain data for the journal; None is the beginning of a table without values."""
    if value is None:
        return ["none", ""]
    if isinstance(value, UnreadValue):
        return ["unread", value.text]
    return [kind_of(value), value.isoformat() if isinstance(value, dt.date) else str(value)]


def value_at(position: Sequence[str]) -> Any:
    """The value that `position` made plain data of."""
    kind, text = position
    match kind:
        case "none":
            return None
        case "number":
            is_integer = text.lstrip("-").isdecimal() and len(text) < _MOST_DIGITS
            return int(text) if is_integer else Decimal(text)
        case "unread":
            return UnreadValue(text)
        case "time":
            return dt.datetime.fromisoformat(text)
        case "date":
            return dt.date.fromisoformat(text)
    return text
