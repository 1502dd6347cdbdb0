"""Messages of PostgreSQL's output plug-in pgoutput, in version 1 of its protocol, and their values.

Their layout: "Logical Replication Message Formats" in PostgreSQL's manual. Values come as texts.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from . import debezium_values as values
from .change_log import NOT_LOGGED, Change, LogColumn, LogTable, Operation

EPOCH_MS = 946_684_800_000
"""PostgreSQL's times count from 2000-01-01."""
UNAVAILABLE = "__debezium_unavailable_value"
"""Debezium's value of a column that was not changed and is stored apart (TOAST): the log does not have it."""


@dataclass(frozen=True)
class Begin:
    """A transaction begins, whose commit is at `commit` in the log."""

    commit: int
    commit_ms: int


@dataclass(frozen=True)
class Commit:
    """A transaction ends; the log continues at `end`."""

    end: int


@dataclass(frozen=True, eq=False)
class RowChange:
    """A change of a row of the relation `relation`."""

    relation: int
    operation: Operation
    before: Sequence[Any] | None
    after: Sequence[Any] | None


@dataclass(frozen=True, eq=False)
class Relation:
    """A table as it is from now on; `keys` are true for the columns of its replica identity."""

    id: int
    schema: str
    name: str
    identity: str
    keys: tuple[bool, ...]
    columns: tuple[tuple[str, int, int], ...]
    """(name, oid of its type, modifier of its type)."""


class _Reader:
    """Reads the fields of a message one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 1

    def number(self, form: str) -> int:
        size = struct.calcsize(form)
        (value,) = struct.unpack_from(form, self._data, self._at)
        self._at += size
        return int(value)

    def letter(self) -> str:
        return chr(self.number("!B"))

    def text(self) -> str:
        end = self._data.index(b"\0", self._at)
        value = self._data[self._at : end].decode()
        self._at = end + 1
        return value

    def row(self) -> list[Any]:
        """The columns of a row: texts, None, and NOT_LOGGED for one that was not changed and is stored apart."""
        data, at = self._data, self._at + 2
        out: list[Any] = []
        for _ in range(self.number("!H")):
            kind = data[at]
            at += 1
            if kind == 0x6E:  # n
                out.append(None)
            elif kind == 0x75:  # u
                out.append(NOT_LOGGED)
            else:
                end = at + 4 + int.from_bytes(data[at : at + 4], "big")
                out.append(data[at + 4 : end].decode())
                at = end
        self._at = at
        return out


def parse_message(data: bytes) -> Begin | Commit | Relation | RowChange | None:
    """A message; None for one that says nothing of rows, as a truncation, which Debezium passes over too."""
    r, kind = _Reader(data), data[:1]
    if kind == b"I":
        return RowChange(_relation_and_letter(r)[0], "insert", None, r.row())
    if kind == b"U":
        relation, letter = _relation_and_letter(r)
        before = None
        if letter != "N":
            before = r.row()
            r.letter()
        after = r.row()
        return RowChange(relation, "update", before, after)
    if kind == b"D":
        return RowChange(_relation_and_letter(r)[0], "delete", r.row(), None)
    if kind == b"B":
        commit, micros = r.number("!Q"), r.number("!q")
        return Begin(commit, EPOCH_MS + micros // 1_000)
    if kind == b"C":
        r.number("!B")
        r.number("!Q")
        return Commit(r.number("!Q"))
    if kind == b"R":
        id_, schema, name, identity = r.number("!I"), r.text(), r.text(), r.letter()
        columns, keys = [], []
        for _ in range(r.number("!H")):
            keys.append(bool(r.number("!B") & 1))
            columns.append((r.text(), r.number("!I"), r.number("!i")))
        return Relation(id_, schema or "pg_catalog", name, identity, tuple(keys), tuple(columns))
    return None


def _relation_and_letter(r: _Reader) -> tuple[int, str]:
    return r.number("!I"), r.letter()


class LoggedRelation:
    """The changes of a table, of the rows of its messages. `base_types` has the type and its modifier behind types that
    are domains, by their oid."""

    def __init__(self, relation: Relation, base_types: Mapping[int, tuple[int, int]]) -> None:
        self._relation = relation
        self.table = LogTable(
            tuple(_column(name, *base_types.get(oid, (oid, modifier))) for name, oid, modifier in relation.columns)
        )

    def change(self, row: RowChange, commit_ms: int) -> Change:
        """A change, with the former values that the log has or that follow from it."""
        keys, full = self._relation.keys, self._relation.identity == "f"
        before, after = row.before, row.after
        if before is not None and not full:
            before = [v if key else NOT_LOGGED for v, key in zip(before, keys, strict=True)]
        elif before is None and after is not None and row.operation == "update":
            # Without the former row the key is the one of the new row.
            before = [v if key and not full else NOT_LOGGED for v, key in zip(after, keys, strict=True)]
        if after is not None and NOT_LOGGED in after:
            former_values = before if before is not None else [NOT_LOGGED] * len(after)
            after = [f if v is NOT_LOGGED else v for v, f in zip(after, former_values, strict=True)]
            after = [UNAVAILABLE if v is NOT_LOGGED else v for v in after]
        return Change(row.operation, self.table, before, after, commit_ms)


def _column(name: str, oid: int, modifier: int) -> LogColumn:
    read, default = _TYPES.get(oid, (str, ""))
    if oid in _WITH_DECIMALS:
        read = values.reader_in_ms(read, modifier if modifier >= 0 else 6)
    if oid == _BIT:
        # Longer ones have no attribute that takes them as WSO2's source gives them; here they are texts.
        read, default = (lambda text: text == "1", False) if modifier == 1 else (str, "")
    return LogColumn(name, _or_unavailable(read), default)


def _or_unavailable(read: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: text if text == UNAVAILABLE else read(text)


_BIT = 1560
_TYPES: Mapping[int, tuple[Callable[[str], Any], Any]] = {
    16: (lambda text: text == "t", False),
    17: (lambda text: bytes.fromhex(text[2:]), 0),
    20: (int, 0), 21: (int, 0), 23: (int, 0), 26: (int, 0),
    700: (float, 0.0), 701: (float, 0.0), 1700: (Decimal, 0), 790: (values.read_money, 0),
    1082: (values.read_date, 0), 1083: (values.read_time, 0), 1114: (values.read_timestamp, 0),
    1184: (values.read_zoned_timestamp, ""), 1266: (values.read_zoned_time, ""), 1186: (values.read_interval, 0),
}  # fmt: skip
"""By the oid of a type in PostgreSQL's catalogue: the reader of its texts, and Debezium's kind of default. The others
are texts."""
_WITH_DECIMALS = frozenset({1083, 1114})
"""Types whose modifier is the number of decimals of their seconds."""
