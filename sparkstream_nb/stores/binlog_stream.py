"""The binary log of a server of MySQL or MariaDB, from a position on, read by mysql-replication in a thread of its own.

The library waits for the next event, so the thread does; a queue holds the server back. Its own reconnection is
switched off: it continues within a transaction, whose tables it does not know then.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication import event as event_types
from pymysqlreplication import row_event as row_event_types

from ..errors import StoreError
from ..masking import mask_passwords

_AHEAD = 1_000
"""Events that wait to be taken."""
_HEARTBEAT = 1.0
"""Seconds of silence after which the server shows that it is there."""
_WAIT = 0.2
_ROWS = {23: "insert", 24: "update", 25: "delete", 30: "insert", 31: "update", 32: "delete"}
_BEGIN = frozenset({33, 34, 162})
"""Events with which a transaction begins: its global id in MySQL, the one without an id, its global id in MariaDB."""
_UNKNOWN = {
    39: "binlog_row_value_options=PARTIAL_JSON", 40: "binlog_transaction_compression",
    **dict.fromkeys(range(165, 172), "log_bin_compress"),
}  # fmt: skip
"""Events that the library does not read, by what the server is told to write them with."""


@dataclass(frozen=True)
class LogPosition:
    """A place in the log: a file, and a number of bytes."""

    file: str
    at: int


@dataclass(frozen=True)
class FileBegins:
    """A file of the log, made at a time (s since 1970)."""

    made_at: int


@dataclass(frozen=True, eq=False)
class TableColumns:
    """The columns of the table in the rows that follow, as the library has them."""

    columns: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class RowBytes:
    """Rows of the table: `images` are the bitmaps of the columns that each of their images has."""

    operation: str
    data: bytes
    images: tuple[bytes, ...]
    seconds: int


@dataclass(frozen=True)
class LogItem:
    """An event of the log, None if it is of no use here, and the place behind it. A position is one between two
    transactions."""

    what: FileBegins | LogPosition | TableColumns | RowBytes | StoreError | None
    next_position: LogPosition


class BinlogStream:
    """The log from `start` on, for one table."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        server_name: str,
        start: LogPosition,
        table: tuple[str, str],
        server_id: int | None,
    ) -> None:
        """`settings` are PyMySQL's arguments, `server_name` is the server without user and password, `table` is its
        schema and name. `server_id` None: a number that no other replica is likely to have."""
        self._settings, self._server_name, self._table = dict(settings), server_name, table
        self._items: queue.Queue[LogItem] = queue.Queue(_AHEAD)
        self._stop_event = threading.Event()
        self._start = start
        self._server_id = server_id or random.randrange(1 << 20, 1 << 32)
        self._is_connected = False
        self._thread = threading.Thread(target=self._run, name="sparkstream-binlog", daemon=True)
        self._thread.start()

    def next_item(self, seconds: float) -> LogItem | None:
        """The next item; None if none came in time. Raises StoreError, with one line, where the server ends it."""
        try:
            item = self._items.get(timeout=seconds) if seconds > 0 else self._items.get_nowait()
        except queue.Empty:
            return None
        if isinstance(item.what, StoreError):
            raise item.what
        return item

    def close(self) -> None:
        """Let the thread end, which it does within a second or so, and closes its connections."""
        self._stop_event.set()

    def _run(self) -> None:
        reader = None
        try:
            reader = self._new_reader()
            while not self._stop_event.is_set():
                event = reader.fetchone()
                next_position = LogPosition(str(reader.log_file), int(reader.log_pos))
                self._put(LogItem(None if event is None else self._read_event(event, next_position), next_position))
        except StoreError as error:
            self._put(LogItem(error, self._start))
        except Exception as error:  # of PyMySQL, or of the library about an event
            self._put(LogItem(StoreError(f"{self._server_name}: {describe_mysql_error(error)}"), self._start))
        finally:
            if reader is not None:
                with contextlib.suppress(Exception):
                    reader.close()

    def _new_reader(self) -> Any:
        # It warns where columns have no names in the log; these are looked up here.
        logging.getLogger("pymysqlreplication").setLevel(logging.CRITICAL)
        events = [
            event_types.RotateEvent, event_types.FormatDescriptionEvent, event_types.XidEvent, event_types.GtidEvent,
            event_types.MariadbGtidEvent, event_types.HeartbeatLogEvent, event_types.NotImplementedEvent,
            row_event_types.TableMapEvent, row_event_types.WriteRowsEvent, row_event_types.UpdateRowsEvent,
            row_event_types.DeleteRowsEvent, row_event_types.PartialUpdateRowsEvent,
        ]  # fmt: skip
        schema, name = self._table
        return BinLogStreamReader(
            dict(self._settings), self._server_id, resume_stream=True, blocking=True, log_file=self._start.file,
            log_pos=self._start.at, only_events=events, filter_non_implemented_events=False, only_schemas=[schema],
            only_tables=[name], slave_heartbeat=_HEARTBEAT, enable_logging=False, pymysql_wrapper=self._connect,
        )  # fmt: skip

    def _connect(self, **settings: Any) -> Any:
        """A connection of the library's: one for the log, and one that it asks for the server's settings."""
        is_log = "db" not in settings
        if is_log and self._is_connected:
            raise StoreError(f"{self._server_name} ended the connection")
        database = settings.pop("db", None)
        connection = pymysql.connect(database=database, **settings)
        if is_log:
            self._is_connected = True
            # The log waits while the app is behind.
            with connection.cursor() as cursor:
                cursor.execute("SET SESSION net_write_timeout = 86400")
        return connection

    def _read_event(self, event: Any, next_position: LogPosition) -> Any:
        kind = event.event_type
        if kind in _ROWS:
            images = [event.columns_present_bitmap]
            if _ROWS[kind] == "update":
                images.append(event.columns_present_bitmap2)
            data = event.packet.read(event.event_size - event.packet.read_bytes)
            return RowBytes(_ROWS[kind], data, tuple(images), event.timestamp)
        if kind == 19:
            return TableColumns(tuple(event.columns))
        if kind == 4:
            return LogPosition(str(event.next_binlog), int(event.position))
        if kind == 16:
            return next_position
        if kind in _BEGIN:
            return LogPosition(next_position.file, next_position.at - event.packet.event_size)
        if kind == 15:
            return FileBegins(event.timestamp)
        if kind in _UNKNOWN:
            return StoreError(
                f"the log of {self._server_name} has events that are not read here, as {_UNKNOWN[kind]} is on: switch "
                "it off"
            )
        return None

    def _put(self, item: LogItem) -> None:
        while not self._stop_event.is_set():
            with contextlib.suppress(queue.Full):
                self._items.put(item, timeout=_WAIT)
                return


def describe_mysql_error(error: Exception) -> str:
    """An error of PyMySQL's, or of the library's, in one line, without passwords."""
    texts = [str(part) for part in error.args[1:]] if len(error.args) > 1 else [f"{type(error).__name__}: {error}"]
    return mask_passwords(" ".join(" ".join(texts).split()))
