"""Changes of a table as a database's log has them: the part that is common to all databases."""

from __future__ import annotations

import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .address import Database

Operation = Literal["insert", "update", "delete"]
OPERATIONS: tuple[Operation, ...] = ("insert", "update", "delete")


class _NotLogged:
    """The type of `NOT_LOGGED`."""

    def __repr__(self) -> str:
        return "NOT_LOGGED"


NOT_LOGGED = _NotLogged()
"""A value that the row has or had, and that the log does not have."""


@dataclass(frozen=True)
class LogColumn:
    """A column of a logged table. `read` makes a value of what the log has, which is not null, and raises ValueError
    and ArithmeticError. `default` is what siddhi-io-cdc gives for the side of a change that does not exist, the row
    before an insert, where a source listens to several operations."""

    name: str
    read: Callable[[Any], Any]
    default: Any


@dataclass(frozen=True, eq=False)
class LogTable:
    """The columns of a table at the time of a change. Changes between two changes of its columns share one."""

    columns: tuple[LogColumn, ...]


@dataclass(frozen=True, eq=False)
class Change:
    """A change of one row. `before` and `after` have what the log has of each column of `table`, null as None; None for
    a side that does not exist. `commit_ms` is the time of the commit (ms since 1970)."""

    operation: Operation
    table: LogTable
    before: Sequence[Any] | None
    after: Sequence[Any] | None
    commit_ms: int


@dataclass(frozen=True)
class LogPortion:
    """Changes that were read at once, and the position behind them, plain data for the journal."""

    changes: list[Change]
    position: list[Any]


class ChangeLog(ABC):
    """The log of a database server, read for one table. Used by one thread, except `cancel`. All methods except `close`
    and `cancel` raise StoreError, with one line, if the database cannot be reached or refuses.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql: Any = None
        """The connection for queries."""
        self._stream: Any = None
        """The connection that sends the log; None if it is closed."""
        self._sql_lock = threading.Lock()
        """Held while `close` takes the connection away, which `cancel` may use."""
        self._unread: tuple[float, int] | None = None
        self._log_end: tuple[float, Any] | None = None
        """The time (s of the monotonic clock) and the end of the log then; None once all of it is read."""

    @property
    def place(self) -> str:
        """The server and its database, without user and password."""
        return str(self._database)

    @property
    @abstractmethod
    def part(self) -> str:
        """The key of the position in the journal. A position of another key is not this log's."""

    def open(self, position: list[Any] | None) -> tuple[list[Any], str | None]:
        """Continue behind `position`; None: behind all that is committed now. Returns the position, and a sentence if
        something between is not read.

        Raises StoreError, with the way out, if the log no longer has what follows `position`.
        """
        self.close()
        try:
            return self._open(position)
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _open(self, position: list[Any] | None) -> tuple[list[Any], str | None]:
        """`open` of a closed one, which may fail half-way."""

    @abstractmethod
    def read(self, seconds: float, most: int) -> LogPortion | None:
        """Read about `most` changes at once, or those that are there; None if none came within `seconds`. A portion
        without changes is a position that is worth keeping, as the server can remove the log before it."""

    @abstractmethod
    def confirm(self, position: list[Any]) -> None:
        """Tell the server that all before `position` is on the disk here."""

    @abstractmethod
    def keep_alive(self) -> None:
        """Show the server that this reader is there, though it does not read now."""

    def unread(self) -> tuple[float, int] | None:
        """A time (s of the monotonic clock), and the bytes of the log that were not read then; None: not known yet."""
        return self._unread

    def _note_unread(self, at: float, left: int) -> None:
        """Notes that `left` bytes of the log as it was `at` a time are not read."""
        self._unread = at, left
        if not left:
            self._log_end = None

    @abstractmethod
    def why_not_logged(self, column: str) -> str:
        """The reason, with the way out, for which the log lacks a former value of `column`."""

    def close(self) -> None:
        """Close the connections; `open` may follow."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
        with self._sql_lock:
            sql, self._sql = self._sql, None
        if sql is not None:
            with contextlib.suppress(Exception):
                sql.close()

    @abstractmethod
    def cancel(self) -> None:
        """End a query that is under way, from another thread."""
