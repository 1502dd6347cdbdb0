"""The changes of a table in MySQL or MariaDB, read from the binary log as a replica reads it.

A position is [file, bytes: the place between two transactions behind which changes are unread; the number of the
table's changes that were read behind it; the time at which the file was made, 0 if unknown]. The server does not know
it: it removes files by their age (`binlog_expire_logs_seconds`).
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pymysql

from ..errors import StoreError, did_you_mean
from .address import Database
from .binlog_rows import ADDRESSES, BinlogColumn, ColumnReader, column_reader, read_rows
from .binlog_stream import BinlogStream, FileBegins, LogItem, LogPosition, RowBytes, TableColumns, describe_mysql_error
from .change_log import Change, ChangeLog, LogPortion, LogTable, Operation
from .dialects import DIALECTS

_WORTH_KEEPING = 16 << 20
"""Bytes of the log without a change of the table after which the position is kept; another file is one too."""
_MOST_BYTES = 32 << 20
"""Bytes of rows that are read at once, about."""
_PACE = 1.0
"""Seconds between two questions for the end of the log."""
_OPEN_SECONDS = 20.0
_COLUMNS = (
    "SELECT column_name, data_type, column_type, character_set_name FROM information_schema.columns "
    "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position"
)
_CODES = {
    "tinyint": {1}, "smallint": {2}, "mediumint": {9}, "int": {3}, "bigint": {8}, "float": {4}, "double": {5},
    "decimal": {246}, "bit": {16}, "year": {13}, "date": {10, 14}, "time": {11, 19}, "datetime": {12, 18},
    "timestamp": {7, 17}, "char": {254}, "varchar": {15, 253}, "binary": {254}, "varbinary": {15, 253},
    "enum": {247}, "set": {248}, "json": {245, 252},
    **{f"{size}{kind}": {252} for size in ("tiny", "", "medium", "long") for kind in ("text", "blob")},
}  # fmt: skip
"""The codes that a type, by its name, may have in the log; others are not checked."""


@dataclass(frozen=True)
class BinlogPlace:
    """A table of a database, the operations that are wanted, the number of this replica (None: any), and a name that
    tells its position from that of another source of the same table."""

    database: Database
    table: str
    operations: frozenset[Operation]
    server_id: int | None = None
    server_name: str = ""


class MySqlLog(ChangeLog):
    """A `ChangeLog` of MySQL's and MariaDB's."""

    def __init__(self, place: BinlogPlace) -> None:
        super().__init__(place.database)
        self._where = place
        self._stream: BinlogStream | None = None
        self._table = place.table
        self._readers: tuple[LogTable, list[ColumnReader]] | None = None
        self._readers_by_columns: dict[tuple[BinlogColumn, ...], tuple[LogTable, list[ColumnReader]]] = {}
        self._catalogue: list[tuple[str, str, str, str | None]] | None = None
        """The current columns of the table; None: to be looked up."""
        self._end = self._kept_end = LogPosition("", 0)
        """The last place between two transactions, and the one that is on the disk."""
        self._read_position = self._end
        self._made_at = 0
        self._count = self._skipped_count = 0
        """The number of the table's changes behind `_end` that were read, and of them, by an earlier run."""
        self._asked_at = float("-inf")

    @property
    def part(self) -> str:
        return f"{self._where.table}@{self._where.server_name or 'binlog'}"

    # ------------------------------------------------------------------------------------------------------- opening

    def _open(self, position: list[Any] | None) -> tuple[list[Any], str | None]:
        settings = self._settings()
        try:
            self._sql = pymysql.connect(**settings, autocommit=True)
        except pymysql.Error as error:
            raise StoreError(f"{self.place}: {describe_mysql_error(error)}") from None
        self._check_server()
        self._table = self._find_table()
        start = self._find_end() if position is None else LogPosition(str(position[0]), int(position[1]))
        made_at = None if position is None else int(position[3])
        if position is not None:
            self._check_start(start)
        self._begin_at(position, start)
        table = (self._where.database.name, self._table)
        self._stream = BinlogStream(settings, self.place, start, table, self._where.server_id)
        deadline = time.monotonic() + _OPEN_SECONDS
        while True:
            item = self._stream.next_item(max(0.0, deadline - time.monotonic()))
            if item is None:
                raise StoreError(f"{self.place} does not send its log")
            if isinstance(item.what, FileBegins):
                break
        self._made_at = item.what.made_at
        if made_at and made_at != self._made_at:
            raise StoreError(
                f"file {start.file} of the log of {self.place} was made again, so that the changes behind the former "
                f"one cannot be read: {self._way_out()}"
            )
        return self._position(), None

    def _begin_at(self, position: list[Any] | None, start: LogPosition) -> None:
        self._readers, self._readers_by_columns, self._catalogue = None, {}, None
        self._log_end, self._unread = None, None
        self._end = self._kept_end = self._read_position = start
        self._count, self._skipped_count = 0, 0 if position is None else int(position[2])

    def _settings(self) -> dict[str, Any]:
        d = self._where.database
        return {
            "host": d.host, "port": d.port or 3306, "user": d.user, "charset": "utf8mb4",
            "password": "" if d.password is None else d.password.reveal(), "write_timeout": 60,
            "read_timeout": 60, **DIALECTS[d.kind].connect_args(d),
        }  # fmt: skip

    def _check_server(self) -> None:
        names = ("log_bin", "binlog_format", "log_bin_compress", "binlog_transaction_compression")
        rows = self._rows(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN {names}")
        variables = {str(name).lower(): str(value).upper() for name, value in rows}
        if variables.get("log_bin") != "ON":
            raise StoreError(
                f"{self.place} writes no binary log: start the server with log_bin, server_id and binlog_format=ROW"
            )
        if variables.get("binlog_format", "ROW") != "ROW":
            raise StoreError(
                f"{self.place} writes statements into its log, not rows: SET GLOBAL binlog_format='ROW', and let its "
                "programs connect again"
            )
        for name in ("log_bin_compress", "binlog_transaction_compression"):
            if variables.get(name) == "ON":
                raise StoreError(f"{self.place} compresses its log, which is not read here: SET GLOBAL {name}=OFF")

    def _find_table(self) -> str:
        table_name = self._where.table.rpartition(".")[2]
        rows = self._rows(
            "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = %s",
            self._where.database.name,
        )
        types = {str(name): str(type_) for name, type_ in rows}
        near = [name for name in types if name.lower() == table_name.lower()]
        name = table_name if table_name in types else near[0] if len(near) == 1 else None
        if name is None:
            hint = did_you_mean(table_name, [*types])
            message = f"{self.place} has no table '{self._where.table}'"
            raise StoreError(message if hint is None else f"{message}. {hint}")
        if "BASE TABLE" not in types[name] and "VERSIONED" not in types[name]:
            raise StoreError(f"'{self._where.table}' in {self.place} is no table, and the log has changes of tables")
        for column, _, type_, _ in self._look_up_columns(name):
            if "compressed" in type_.lower():
                raise StoreError(f"column '{column}' of table '{name}' is COMPRESSED, which is not read here")
        return name

    def _look_up_columns(self, table: str) -> list[tuple[str, str, str, str | None]]:
        rows = self._rows(_COLUMNS, self._where.database.name, table)
        return [(str(n), str(d).lower(), str(t), None if c is None else str(c)) for n, d, t, c in rows]

    def _find_end(self) -> LogPosition:
        """The place behind all that is committed."""
        try:
            rows = self._rows("SHOW MASTER STATUS")
        except StoreError as error:
            if "SQL syntax" not in str(error):
                raise
            # MySQL from 8.4 on
            rows = self._rows("SHOW BINARY LOG STATUS")
        if not rows:
            raise StoreError(f"{self.place} writes no binary log")
        return LogPosition(str(rows[0][0]), int(rows[0][1]))

    def _check_start(self, start: LogPosition) -> None:
        sizes = {str(row[0]): int(row[1]) for row in self._rows("SHOW BINARY LOGS")}
        if start.file not in sizes:
            raise StoreError(
                f"{self.place} has removed file {start.file} of its log (binlog_expire_logs_seconds), and with it "
                f"changes that were not read: {self._way_out()}"
            )
        if start.at > sizes[start.file]:
            raise StoreError(
                f"file {start.file} of the log of {self.place} ends at {sizes[start.file]}, before {start.at}, up to "
                f"which this source has read it: it is another server, or one that was restored: {self._way_out()}"
            )

    def _way_out(self) -> str:
        return "give database.server.name='another', with which the source begins with what is committed then"

    # ------------------------------------------------------------------------------------------------------- reading

    def read(self, seconds: float, most: int) -> LogPortion | None:
        stream, began = self._stream, time.monotonic()
        if stream is None:
            raise StoreError(f"{self.place} is closed")
        deadline = began + seconds
        changes: list[Change] = []
        size = 0
        self._catalogue = None
        while len(changes) < most and size < _MOST_BYTES:
            item = stream.next_item(0.0 if changes else max(0.0, deadline - time.monotonic()))
            if item is None:
                break
            if isinstance(item.what, RowBytes):
                size += len(item.what.data)
            self._take_item(item, changes)
            if not changes and time.monotonic() >= deadline:
                break
        has_moved = self._end.file != self._kept_end.file or self._end.at - self._kept_end.at >= _WORTH_KEEPING
        if changes or (has_moved and self._made_at):
            return LogPortion(changes, self._position())
        self._ask_for_end(began)
        return None

    def _take_item(self, item: LogItem, changes: list[Change]) -> None:
        what = item.what
        self._read_position = item.next_position
        if isinstance(what, RowBytes):
            self._take_rows(what, changes)
        elif isinstance(what, TableColumns):
            self._readers = self._readers_of(what)
        elif isinstance(what, LogPosition):
            self._pass_boundary(what)
        elif isinstance(what, FileBegins):
            self._made_at = what.made_at

    def _pass_boundary(self, position: LogPosition) -> None:
        # In a file of more than 4 GiB positions begin again from 0: until the next file the last one stays.
        if position == self._end or (position.file == self._end.file and position.at < self._end.at):
            return
        if position.file != self._end.file:
            self._made_at = 0  # until the beginning of that file comes
        self._end, self._count, self._skipped_count = position, 0, 0

    def _take_rows(self, rows: RowBytes, changes: list[Change]) -> None:
        if self._readers is None:
            raise StoreError(f"the log of {self.place} has rows of table '{self._table}' without its columns")
        table, readers = self._readers
        operation: Operation = rows.operation  # type: ignore[assignment]
        try:
            images = read_rows(rows.data, readers, rows.images)
        except (IndexError, ValueError) as error:
            raise StoreError(f"the log of {self.place} cannot be read: {error}") from None
        for row in images:
            self._count += 1
            if self._count <= self._skipped_count or operation not in self._where.operations:
                continue
            before = None if operation == "insert" else row[0]
            after = None if operation == "delete" else row[-1]
            changes.append(Change(operation, table, before, after, rows.seconds * 1_000))

    def _readers_of(self, event: TableColumns) -> tuple[LogTable, list[ColumnReader]]:
        columns = tuple(self._describe_columns(event.columns))
        readers_of_table = self._readers_by_columns.get(columns)
        if readers_of_table is None:
            try:
                readers = [column_reader(column) for column in columns]
            except ValueError as error:
                raise StoreError(f"table '{self._table}' in {self.place}: {error}") from None
            readers_of_table = self._readers_by_columns[columns] = LogTable(tuple(r.column for r in readers)), readers
        return readers_of_table

    def _describe_columns(self, columns: Sequence[Any]) -> list[BinlogColumn]:
        """The columns of an event, of which the log has the names (`binlog_row_metadata=FULL`), or else the catalogue
        as the table is now."""
        if columns and columns[0].name is not None:
            return [self._describe_named(c) for c in columns]
        now = self._current_columns()
        fits = len(now) == len(columns) and all(
            c.type in _CODES.get(type_, {c.type}) for c, (_, type_, _, _) in zip(columns, now, strict=True)
        )
        if not fits:
            raise StoreError(
                f"table '{self._table}' in {self.place} had other columns when it was changed, and the log has no "
                "names of them: SET GLOBAL binlog_row_metadata='FULL' before columns are changed, and "
                f"{self._way_out()}"
            )
        return [
            _column(c, name, "unsigned" in type_, kind if kind in ADDRESSES else charset, _members(type_))
            for c, (name, kind, type_, charset) in zip(columns, now, strict=True)
        ]

    def _describe_named(self, column: Any) -> BinlogColumn:
        """A column that has its name in the log."""
        charset, members = column.character_set_name, (column.enum_values or [""])[1:] or column.set_values or []
        if charset == "binary" or "" in members:
            # The log does not tell an address from bytes, and the library reads members as UTF-8 alone.
            for name, kind, type_, _ in self._current_columns():
                if name == column.name:
                    charset = kind if kind in ADDRESSES else charset
                    members = now if len(now := _members(type_)) == len(members) else members
        return _column(column, column.name, bool(column.unsigned), charset, members)

    def _current_columns(self) -> list[tuple[str, str, str, str | None]]:
        if self._catalogue is None:
            self._catalogue = self._look_up_columns(self._table)
        return self._catalogue

    def _position(self) -> list[Any]:
        return [self._end.file, self._end.at, max(self._count, self._skipped_count), self._made_at]

    def confirm(self, position: list[Any]) -> None:
        self._kept_end = LogPosition(position[0], position[1])

    def keep_alive(self) -> None:
        """Nothing: the server waits while the queue is full."""

    def _ask_for_end(self, now: float) -> None:
        """Learn, now and then, where the log ends: that and what was read say whether all is."""
        if self._log_end is None and now - self._asked_at >= _PACE:
            self._asked_at = now
            self._log_end = now, self._find_end()
        if self._log_end is not None:
            at, end = self._log_end
            same = end.file == self._read_position.file
            left = (
                max(0, end.at - self._read_position.at)
                if same
                else int(_number(end) > _number(self._read_position)) * end.at
            )
            self._note_unread(at, left)

    def why_not_logged(self, column: str) -> str:
        return f"the log has no value of column '{column}': SET GLOBAL binlog_row_image='FULL'"

    # ----------------------------------------------------------------------------------------------------- the rest

    def cancel(self) -> None:
        with self._sql_lock, contextlib.suppress(OSError, AttributeError):  # it is closed already
            self._sql._sock.shutdown(socket.SHUT_RDWR)

    def _rows(self, query: str, *values: Any) -> list[Any]:
        if self._sql is None:
            raise StoreError(f"{self.place} is closed")
        try:
            with self._sql.cursor() as cursor:
                cursor.execute(query, values or None)
                return list(cursor.fetchall())
        except (pymysql.Error, OSError) as error:
            text = f"{self.place}: {describe_mysql_error(error)}"
            if "privilege" in text:
                user = self._where.database.user
                text = f"{text}. Give the user the rights: GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}"
            raise StoreError(text) from None


def _column(
    column: Any, name: str, is_unsigned: bool, charset: str | None, members: Sequence[str] | None
) -> BinlogColumn:
    """A column of the library's as this package has it."""
    size = int(getattr(column, "length_size", 0) or getattr(column, "size", 0))
    longest = getattr(column, "max_length", None)
    if longest is not None:
        size = 2 if longest > 255 else 1
    digits = getattr(column, "precision", 0) or getattr(column, "bits", 0)
    decimals = getattr(column, "decimals", 0) or getattr(column, "fsp", 0)
    return BinlogColumn(
        name, column.type, size, digits, decimals, is_unsigned, charset or "binary", tuple(members or ())
    )


def _members(type_: str) -> tuple[str, ...]:
    """The members of `enum('a','b')` or `set('a','b')`, as the catalogue writes it; none of another type."""
    kind, _, rest = type_.partition("(")
    if kind not in ("enum", "set"):
        return ()
    return tuple(part.replace("''", "'") for part in rest[1:-2].split("','"))


def _number(position: LogPosition) -> int:
    """The number of a file of the log."""
    digits = position.file.rpartition(".")[2]
    return int(digits) if digits.isdecimal() else 0
