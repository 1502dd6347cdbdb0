"""Listens to the log of a database for the changes of a table: mode listening of siddhi-io-cdc.

The position of the source is the one in the log, kept with the events. The server may remove the log before a position
once that is on the disk here. A source begins behind all that is committed when the database is first reached: WSO2's
source passes over the rows of Debezium's first snapshot.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import StoreError
from ..plan.connectors.incoming import CHANGE_PROPERTIES
from ..plan.connectors.mapping import SourceMapping
from ..stores.change_log import NOT_LOGGED, Change, ChangeLog, LogPortion, LogTable
from ..stores.unread import UnreadValue
from ..types import Schema
from .reader import PLACE, Behind, ReadMessages, SourceReader, SourceUnavailable
from .row_decoding import RowDecoder

PORTION = 10_000
"""Changes that are read at once."""
BEFORE = "before_"
"""The key of a former value is the name of its column with this prefix."""
_Read = Callable[[Change], Any]


class ListeningReader(SourceReader):
    """A `Reader` of the changes that `log` has. `mapping` names the keys of the attributes of `schema`, which are the
    columns' names, with `before_` for their former values; by default they are the attributes' names.

    `with_defaults`: a side of a change that does not exist, as the row before an insert, has default values. That is so
    where a source listens to several operations.
    """

    def __init__(self, log: ChangeLog, mapping: SourceMapping, schema: Schema, *, with_defaults: bool) -> None:
        self._log, self._with_defaults = log, with_defaults
        self._rows = RowDecoder(schema, mapping)
        self._keys = _number_properties(mapping.headers, self._rows.keys)
        self._readers: dict[LogTable, list[_Read]] = {}
        self._first_messages: ReadMessages | None = None
        self._cancel_event = threading.Event()

    def open(self, positions: Mapping[str, Any]) -> str | None:
        self._cancel_event.clear()
        here, previous_place = self._log.place, positions.get(PLACE)
        elsewhere = previous_place is not None and previous_place != here
        stored_position = None if elsewhere else positions.get(self._log.part)
        self._readers = {}
        try:
            position, note = self._log.open(stored_position)
        except StoreError as error:
            raise SourceUnavailable(str(error)) from None
        self._first_messages = None
        if stored_position is None:
            # Another table or slot that was read before has no place any more.
            begins = {**dict.fromkeys(positions), PLACE: here, self._log.part: position}
            self._first_messages = ReadMessages(self._rows.empty(), 0, begins, lasting=True, token=position)
        if elsewhere:
            return (
                f"it has read from {previous_place} until now: at {here} it begins with what is committed from now on"
            )
        return note

    def read(self, seconds: float) -> ReadMessages | None:
        if self._first_messages is not None:
            first, self._first_messages = self._first_messages, None
            return first
        if self._cancel_event.is_set():
            return None
        try:
            portion = self._log.read(seconds, PORTION)
        except StoreError as error:
            raise SourceUnavailable(str(error)) from None
        return None if portion is None else self._messages(portion)

    def _messages(self, portion: LogPortion) -> ReadMessages:
        changes, positions = portion.changes, {self._log.part: portion.position}
        if not changes:
            return ReadMessages(self._rows.empty(), 0, positions, lasting=True, token=portion.position)
        rows: list[list[Any]] = []
        table, readers = None, []
        for change in changes:
            if change.table is not table:
                table, readers = change.table, self._readers_of(change.table)
            rows.append([read(change) for read in readers])
        missing = {
            (i, n) for i, row in enumerate(rows) for n, value in enumerate(row) if value is NOT_LOGGED
        }  # fmt: skip
        for i, n in missing:
            rows[i][n] = None

        def why_null(i: int, n: int) -> str:
            key = self._rows.keys[n]
            if (i, n) in missing:
                return self._log.why_not_logged(key.removeprefix(BEFORE))
            return f"the {changes[i].operation} has no value of '{key}'"

        events = self._rows.decode(rows, why_null)
        # A change has no event where the operation is not listened to, but never here: the log leaves those out.
        return ReadMessages(events, len(changes), positions, lasting=True, token=portion.position)

    def _readers_of(self, table: LogTable) -> list[_Read]:
        readers = self._readers.get(table)
        if readers is None:
            if len(self._readers) > 100:  # of a table whose columns change all the time
                self._readers.clear()
            readers = [self._reader_of(table, key) for key in self._keys]
            self._readers[table] = readers
        return readers

    def _reader_of(self, table: LogTable, key: str | int) -> _Read:
        """The function that reads the value of a key, or a numbered transport property, of a change of `table`."""
        if isinstance(key, int):
            return _PROPERTIES[key]
        names = [column.name for column in table.columns]
        # As in siddhi-io-cdc's map, where a column may be called like another one's former value.
        at = _index_of(names, key)
        is_before = at is None and key.lower().startswith(BEFORE)
        if is_before:
            at = _index_of(names, key[len(BEFORE) :])
        if at is None:
            return lambda change: None
        column, index, default = table.columns[at], at, table.columns[at].default if self._with_defaults else None

        def read(change: Change) -> Any:
            side = change.before if is_before else change.after
            if side is None:
                return default
            value = side[index]
            if value is None or value is NOT_LOGGED:
                return value
            try:
                return column.read(value)
            except (ValueError, ArithmeticError) as error:
                text = value.hex() if isinstance(value, bytes) else str(value)
                return UnreadValue(text, " ".join(str(error).split()))

        return read

    def confirm(self, messages: ReadMessages, refusals: Mapping[int, str]) -> None:
        if isinstance(messages.token, list):
            try:
                self._log.confirm(messages.token)
            except StoreError as error:
                raise SourceUnavailable(str(error)) from None

    def busy(self, *, full: bool) -> None:
        if full:
            try:
                self._log.keep_alive()
            except StoreError as error:
                raise SourceUnavailable(str(error)) from None

    def behind(self) -> Behind | None:
        unread = self._log.unread()
        return None if unread is None else Behind(unread[0], {self._log.part: unread[1]})

    def close(self) -> None:
        self._log.close()

    def cancel(self) -> None:
        self._cancel_event.set()
        self._log.cancel()


_PROPERTIES: Sequence[_Read] = (
    lambda change: change.operation,
    lambda change: change.commit_ms,
    lambda change: int(time.time() * 1_000),
)
assert len(_PROPERTIES) == CHANGE_PROPERTIES
"""Transport properties by their number: the operation, the time of the commit, and the time at which it is read (ms).
siddhi-io-cdc gives them in this order to the attributes that ask for one, whatever name they give it."""


def _number_properties(headers: Sequence[str | None], keys: Sequence[str]) -> list[str | int]:
    """The key of each attribute, or the number of its transport property."""
    out: list[str | int] = []
    number = 0
    for header, key in zip(headers, keys, strict=True):
        out.append(key if header is None else number)
        number += header is not None
    return out


def _index_of(names: Sequence[str], key: str) -> int | None:
    """The number of the column that a key names, in any case of letters where only one column is meant."""
    if key in names:
        return names.index(key)
    near = [i for i, name in enumerate(names) if name.lower() == key.lower()]
    return near[0] if len(near) == 1 else None
