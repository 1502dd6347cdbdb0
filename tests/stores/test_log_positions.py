"""Positions in the logs of PostgreSQL and MySQL, without a server: whatever is cut and begun again, each change comes
once."""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sparkstream_nb.stores import mysql_log, pgoutput, postgresql_log
from sparkstream_nb.stores.address import from_jdbc
from sparkstream_nb.stores.binlog_stream import FileBegins, LogItem, LogPosition, RowBytes, TableColumns
from sparkstream_nb.stores.change_log import NOT_LOGGED, ChangeLog
from sparkstream_nb.stores.mysql_log import BinlogPlace, MySqlLog
from sparkstream_nb.stores.pgoutput import Begin, Commit, LoggedRelation, Relation, RowChange, parse_message
from sparkstream_nb.stores.postgresql_log import PostgresLog, WalPlace, lsn_text, parse_lsn
from sparkstream_nb.stores.wal_stream import Progress

INT8, TEXT = 20, 25


def text_row(*values: str | None) -> bytes:
    """A row as pgoutput writes it; "?" is a value that was not changed and is stored apart."""
    out = struct.pack("!H", len(values))
    for value in values:
        if value is None or value == "?":
            out += b"n" if value is None else b"u"
        else:
            out += b"t" + struct.pack("!I", len(value.encode())) + value.encode()
    return out


def relation(id_: int, name: str, identity: str = "d") -> bytes:
    head = b"R" + struct.pack("!I", id_) + b"public\0" + name.encode() + b"\0" + identity.encode()
    columns = b"\1id\0" + struct.pack("!Ii", INT8, -1) + b"\0k\0" + struct.pack("!Ii", TEXT, -1)
    return head + struct.pack("!H", 2) + columns


def begin(commit: int) -> bytes:
    return b"B" + struct.pack("!QqI", commit, 86_400_000_000, 1)


def commit(at: int, end: int) -> bytes:
    return b"C" + struct.pack("!BQQq", 0, at, end, 0)


def insert(id_: int, number: int) -> bytes:
    return b"I" + struct.pack("!I", id_) + b"N" + text_row(str(number), "x")


def test_messages() -> None:
    assert parse_message(begin(7)) == Begin(7, 946_771_200_000)
    assert parse_message(commit(7, 9)) == Commit(9)
    described = parse_message(relation(5, "t"))
    assert isinstance(described, Relation)
    assert (described.schema, described.name, described.keys) == ("public", "t", (True, False))
    assert described.columns == (("id", INT8, -1), ("k", TEXT, -1))
    assert parse_message(b"T" + b"\0" * 9) is None
    assert parse_message(b"Y" + b"\0" * 9) is None


@pytest.mark.parametrize(
    ("message", "identity", "before", "after"),
    [
        (b"N" + text_row("2", "b"), "d", ["2", NOT_LOGGED], ["2", "b"]),
        (b"K" + text_row("1", None) + b"N" + text_row("2", None), "d", ["1", NOT_LOGGED], ["2", None]),
        (b"O" + text_row("1", "a") + b"N" + text_row("1", "?"), "f", ["1", "a"], ["1", "a"]),
        (b"N" + text_row("1", "?"), "d", ["1", NOT_LOGGED], ["1", pgoutput.UNAVAILABLE]),
    ],
)
def test_updates(message: bytes, identity: str, before: list[Any], after: list[Any]) -> None:
    described, row = parse_message(relation(5, "t", identity)), parse_message(b"U" + struct.pack("!I", 5) + message)
    assert isinstance(described, Relation)
    assert isinstance(row, RowChange)
    change = LoggedRelation(described, {}).change(row, 0)
    assert (change.operation, change.before, change.after) == ("update", before, after)


@given(st.integers(0, 2**64 - 1))
def test_positions_as_texts(lsn: int) -> None:
    assert parse_lsn(lsn_text(lsn)) == lsn


# ---------------------------------------------------------------------------------------------- cuts and new beginnings

TRANSACTIONS = st.lists(st.lists(st.booleans(), max_size=6), max_size=8)
"""The changes of each transaction: true for one of the table that is listened to."""
RUNS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3), st.booleans()), min_size=1, max_size=12)
"""Of each run of a source: the changes that are read at once, the portions that it reads, and whether the last one is
lost with the process."""


def read_all(log: ChangeLog, runs: list[tuple[int, int, bool]]) -> list[Any]:
    """What a source that is killed after each run has kept in the end."""
    events: list[Any] = []
    position, _ = log.open(None)
    for most, portions, is_lost in [*runs, (100, 100, False)]:
        log.open(position)
        for n in range(portions):
            portion = log.read(5.0, most)  # nothing waits here
            if portion is None:
                continue
            if is_lost and n == portions - 1:
                break
            events += [change.table.columns[0].read(change.after[0]) for change in portion.changes]  # type: ignore[index]
            position = portion.position
            log.confirm(position)
    return events


def numbers_of(transactions: list[list[bool]]) -> list[int]:
    """The numbers of the changes of the table, which count all changes."""
    flags = [is_ours for changes in transactions for is_ours in changes]
    return [n for n, is_ours in enumerate(flags) if is_ours]


@dataclass
class FakeWal:
    """The stream of a server with these transactions: each has its commit at 100, 200, ... and ends 10 behind it."""

    transactions: list[list[bool]]
    start: int
    is_slow: bool
    end: int = 0

    def __post_init__(self) -> None:
        self._messages = self._list_messages()

    def _list_messages(self) -> Any:
        number = 0
        yield relation(1, "t")
        yield relation(2, "other")
        for i, changes in enumerate(self.transactions):
            at = 100 * (i + 1)
            sent = at >= self.start
            if sent and self.is_slow:
                yield Progress(at)
                yield None  # there is nothing more for a moment
            if sent:
                yield begin(at)
            for is_ours in changes:
                if sent:
                    yield insert(1 if is_ours else 2, number)
                number += 1
            if sent:
                yield commit(at, at + 10)
                yield Progress(at + 20)

    def next_message(self, deadline: float) -> Any:
        return next(self._messages, None)

    def answer(self, *, ask: bool = False) -> None: ...

    def confirm(self, position: int) -> None: ...

    def close(self) -> None: ...


@given(TRANSACTIONS, RUNS, st.sampled_from([1, 1_000]))
@example([[True], [True, True]], [(1, 2, False), (1, 1, False), (1, 1, False)], 1)  # the log ends at a commit
def test_a_source_of_postgresql(
    transactions: list[list[bool]], runs: list[tuple[int, int, bool]], worth_keeping: int
) -> None:
    slow = itertools.cycle([False, True])

    class Log(PostgresLog):
        def _open(self, position: list[Any] | None) -> tuple[list[Any], str | None]:
            self._table = postgresql_log._Table("public", "t", "r", "d", True, "p")
            start = 0 if position is None else parse_lsn(position[0])
            self._begin_at(position, start)
            self._stream = FakeWal(transactions, start, next(slow))  # type: ignore[assignment]
            return self._position(), None

        def _row(self, query: str, **values: Any) -> Any:
            return ("0/0",)

        def _has_table(self, publication: str) -> bool:
            return True

    place = WalPlace(from_jdbc("jdbc:postgresql://h/d"), "t", frozenset(["insert"]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgresql_log, "_WORTH_KEEPING", worth_keeping)
        assert read_all(Log(place), runs) == numbers_of(transactions)


@dataclass
class FakeBinlog:
    """The log of a server with these transactions, a file for each two of them."""

    transactions: list[list[bool]]
    start: LogPosition

    def __post_init__(self) -> None:
        self._items = self._list_items()

    def _list_items(self) -> Any:
        column = SimpleNamespace(
            type=8, name="id", unsigned=False, character_set_name=None, enum_values=None, set_values=None
        )
        number = 0
        at = LogPosition("log.1", 4)
        yield LogItem(FileBegins(1), self.start)
        for i, changes in enumerate(self.transactions):
            if i and i % 2 == 0:
                at = LogPosition(f"log.{i // 2 + 1}", 4)
                if self._follows(at):
                    yield LogItem(at, at)
                    yield LogItem(FileBegins(i // 2 + 1), at)
            sent = self._follows(at)
            if sent:
                yield LogItem(at, at)
                yield LogItem(TableColumns((column,)), at)
            for is_ours in changes:
                if sent and is_ours:
                    yield LogItem(RowBytes("insert", b"\0" + struct.pack("<q", number), (b"\1",), 0), at)
                number += 1
            at = LogPosition(at.file, at.at + 10)
            if sent and i % 3:  # others end where the next one begins
                yield LogItem(at, at)

    def _follows(self, at: LogPosition) -> bool:
        return (mysql_log._number(at), at.at) >= (mysql_log._number(self.start), self.start.at)

    def next_item(self, seconds: float) -> Any:
        return next(self._items, None)

    def close(self) -> None: ...


@given(TRANSACTIONS, RUNS, st.sampled_from([1, 1_000]))
def test_a_source_of_mysql(
    transactions: list[list[bool]], runs: list[tuple[int, int, bool]], worth_keeping: int
) -> None:
    class Log(MySqlLog):
        def _open(self, position: list[Any] | None) -> tuple[list[Any], str | None]:
            start = LogPosition("log.1", 4) if position is None else LogPosition(position[0], position[1])
            self._begin_at(position, start)
            self._stream = FakeBinlog(transactions, start)  # type: ignore[assignment]
            return self._position(), None

        def _find_end(self) -> LogPosition:
            return LogPosition("log.1", 0)

    place = BinlogPlace(from_jdbc("jdbc:mysql://h/d"), "t", frozenset(["insert"]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mysql_log, "_WORTH_KEEPING", worth_keeping)
        assert read_all(Log(place), runs) == numbers_of(transactions)
