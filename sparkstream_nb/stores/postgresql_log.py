"""The changes of a table in PostgreSQL, read from its write-ahead log by logical replication.

The server decodes the log with pgoutput, its own output plug-in, for a publication that has the table, and keeps the
log for a replication slot until all before a position is confirmed. Transactions come whole, in the order of their
commits. A position is [the end of the last finished transaction, the commit of the unfinished one, the number of the
table's changes in it that were read]; the server sends an unfinished transaction again from its beginning.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg
from psycopg.conninfo import make_conninfo

from ..errors import StoreError, did_you_mean
from .address import Database
from .change_log import OPERATIONS, Change, ChangeLog, LogPortion, Operation
from .dialects import TLS_OPTIONS, known_options
from .pgoutput import Begin, Commit, LoggedRelation, Relation, RowChange, parse_message
from .wal_stream import WalStream, in_one_line

SLOT, PUBLICATION = "debezium", "dbz_publication"
"""Debezium's names of a slot and a publication."""
_WORTH_KEEPING = 16 << 20
"""Bytes of the log without a change of the table after which the position is kept: a segment of the log."""
_MOST_BYTES = 32 << 20
"""Bytes of messages that are read at once, about."""
_PACE = 1.0
"""Seconds between two questions for the end of the log."""
_CHECK_PACE = 60.0
"""Seconds between two looks whether the publication still has the table: it loses one that is dropped."""
_FREE_SECONDS = 2.0
"""The server needs a moment to notice that the former reader of a slot has ended."""
_NO_RIGHT = re.compile(r"(?i)(must be|permission denied).*(wal ?sender|replication slots)")
_SESSION = {
    "datestyle": "ISO", "timezone": "UTC", "intervalstyle": "iso_8601", "bytea_output": "hex", "lc_monetary": "C",
    "extra_float_digits": "1", "statement_timeout": "60s",
}  # fmt: skip


@dataclass(frozen=True)
class WalPlace:
    """A table of a database, `schema.table` if it is in another schema than the user's, the operations that are wanted,
    the slot, and the publication (None: Debezium's if it has the table, else one for this slot)."""

    database: Database
    table: str
    operations: frozenset[Operation]
    slot: str = SLOT
    publication: str | None = None


class _Table(NamedTuple):
    """A table as the catalogue has it."""

    schema: str
    name: str
    kind: str
    identity: str
    has_key: bool
    persistence: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


class PostgresLog(ChangeLog):
    """A `ChangeLog` of PostgreSQL's."""

    def __init__(self, place: WalPlace) -> None:
        super().__init__(place.database)
        self._where = place
        self._stream: WalStream | None = None
        self._table = _Table("", "", "r", "d", True, "p")
        self._relations: dict[int, LoggedRelation | None] = {}
        self._end = self._kept_end = 0
        """The end of the last finished transaction that was read, and the one that is on the disk."""
        self._open_transaction: Begin | None = None
        self._count = 0
        self._partial_transaction: tuple[int, int] = 0, 0
        """A transaction that was read in part, by its commit, and the number of its changes that were."""
        self._asked_at = float("-inf")
        self._publication = ""
        self._checked_at = float("-inf")
        self._cancel_event = threading.Event()

    @property
    def part(self) -> str:
        return f"{self._where.table}@{self._where.slot}"

    # ------------------------------------------------------------------------------------------------------- opening

    def _open(self, position: list[Any] | None) -> tuple[list[Any], str | None]:
        self._cancel_event.clear()
        self._connect()
        self._check_server()
        self._table = self._find_table()
        publication, warning = self._prepare_publication(is_new=position is None)
        start = self._prepare_slot(position)
        self._begin_at(position, start)
        self._publication, self._checked_at = publication, time.monotonic()
        options = f"proto_version '1', publication_names '{_quoted_name(publication).replace(chr(39), chr(39) * 2)}'"
        command = f"START_REPLICATION SLOT {_quoted_name(self._where.slot)} LOGICAL {lsn_text(start)} ({options})"
        try:
            self._stream = WalStream(self._conninfo(replication="database"), self.place, command)
        except StoreError as error:
            raise self._add_way_out(error) from None
        return self._position(), warning

    def _begin_at(self, position: list[Any] | None, start: int) -> None:
        self._relations, self._unread, self._log_end = {}, None, None
        self._open_transaction, self._count = None, 0
        self._end = self._kept_end = start
        self._partial_transaction = (0, 0) if position is None else (parse_lsn(position[1]), int(position[2]))

    def _connect(self) -> None:
        try:
            self._sql = psycopg.connect(self._conninfo(), autocommit=True)
        except psycopg.Error as error:
            raise StoreError(f"{self.place}: {in_one_line(str(error))}") from None

    def _conninfo(self, **more: str) -> str:
        d = self._where.database
        settings = " ".join(f"-c {name}={value}" for name, value in _SESSION.items())
        return make_conninfo(
            "", host=d.host, port=d.port, dbname=d.name, user=d.user, connect_timeout=10, client_encoding="UTF8",
            password=None if d.password is None else d.password.reveal(), options=settings, tcp_user_timeout=60_000,
            keepalives_idle=30, application_name="sparkstream", **known_options(d, TLS_OPTIONS), **more,
        )  # fmt: skip

    def _check_server(self) -> None:
        level, standby = self._row("SELECT current_setting('wal_level'), pg_is_in_recovery()")
        if standby:
            raise StoreError(f"{self.place} is a standby, which has no slots of its own: name the primary server")
        if level != "logical":
            raise StoreError(
                f"{self.place} writes wal_level={level}, which has no changes of rows: set wal_level=logical in "
                "postgresql.conf and restart the server"
            )

    def _find_table(self) -> _Table:
        schema, _, name = self._where.table.rpartition(".")
        rows = self._rows(
            "SELECT n.nspname, c.relname, c.relkind::text, c.relreplident::text, EXISTS (SELECT 1 FROM pg_index i "
            "WHERE i.indrelid = c.oid AND i.indisprimary), c.relpersistence::text, array_position("
            "current_schemas(false), n.nspname) AS near FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND (%(schema)s = '' AND n.nspname = ANY(current_schemas("
            "false)) OR lower(n.nspname) = lower(%(schema)s)) ORDER BY near",
            schema=schema,
        )
        candidates = [r for r in rows if r[1] == name] or [r for r in rows if r[1].lower() == name.lower()]
        exact = [r for r in candidates if r[0] == schema] or candidates
        if not exact or (exact[0][1] != name and len({r[1] for r in exact}) > 1):
            hint = did_you_mean(name, [r[1] for r in rows])
            message = f"{self.place} has no table '{self._where.table}'"
            raise StoreError(message if hint is None else f"{message}. {hint}")
        table = _Table(*exact[0][:6])
        if table.kind not in ("r", "p"):
            raise StoreError(f"'{self._where.table}' in {self.place} is no table, and the log has changes of tables")
        if table.persistence != "p":
            raise StoreError(f"table {table} in {self.place} is unlogged or temporary: the log has none of its changes")
        return table

    def _prepare_publication(self, *, is_new: bool) -> tuple[str, str | None]:
        """(the publication that has the table and the operations, a sentence if it lacked them since the last time)."""
        where, table = self._where, self._table
        slot_publication = f"{where.slot}_publication"[:63]
        names = [where.publication] if where.publication is not None else [PUBLICATION, slot_publication]
        rows = self._rows(
            "SELECT p.pubname, p.pubinsert, p.pubupdate, p.pubdelete, EXISTS (SELECT 1 FROM pg_publication_tables t "
            "WHERE t.pubname = p.pubname AND t.schemaname = %(schema)s AND t.tablename = %(name)s) "
            "FROM pg_publication p WHERE p.pubname = ANY(%(names)s)",
            schema=table.schema, name=table.name, names=names,
        )  # fmt: skip
        publications = {r[0]: dict(zip((*OPERATIONS, "table"), r[1:], strict=True)) for r in rows}
        self._check_identity()
        for name in names:
            if name in publications and all(publications[name][what] for what in ("table", *where.operations)):
                return name, None
        name = names[-1]
        operations = ", ".join(o for o in OPERATIONS if o in where.operations)
        root = ", publish_via_partition_root = true" if table.kind == "p" else ""
        options, target = f"publish = '{operations}'{root}", f"{_quoted_name(table.schema)}.{_quoted_name(table.name)}"
        if name not in publications:
            self._change_publication(
                f"CREATE PUBLICATION {_quoted_name(name)} FOR TABLE {target} WITH ({options})", name
            )
        elif where.publication is None:
            self._change_publication(f"ALTER PUBLICATION {_quoted_name(name)} SET TABLE {target}", name)
            self._change_publication(f"ALTER PUBLICATION {_quoted_name(name)} SET ({options})", name)
        else:
            raise StoreError(
                f"publication '{name}' in {self.place} lacks table {table}, or its {operations}: an owner of it runs "
                f"ALTER PUBLICATION {name} ADD TABLE {table}, or SET (publish = '{operations}')"
            )
        warning = f"publication '{name}' lacked {operations} of table {table} until now: those are not read"
        return name, None if is_new else warning

    def _has_table(self, publication: str) -> bool:
        query = (
            "SELECT 1 FROM pg_publication_tables WHERE pubname = %(publication)s AND schemaname = %(schema)s "
            "AND tablename = %(name)s"
        )
        return bool(self._rows(query, publication=publication, schema=self._table.schema, name=self._table.name))

    def _check_identity(self) -> None:
        table, operations = self._table, self._where.operations & {"update", "delete"}
        if operations and (table.identity == "n" or (table.identity == "d" and not table.has_key)):
            raise StoreError(
                f"table {table} in {self.place} has no primary key, and no other replica identity, without which "
                f"PostgreSQL refuses an {' or a '.join(sorted(operations, reverse=True))} of a published table: run "
                f"ALTER TABLE {table} REPLICA IDENTITY FULL"
            )

    def _change_publication(self, statement: str, name: str) -> None:
        try:
            self._rows(statement)
        except StoreError as error:
            raise StoreError(
                f"{error}. An owner of table {self._table} makes the publication: CREATE PUBLICATION {name} FOR TABLE "
                f"{self._table}"
            ) from None

    def _prepare_slot(self, position: list[Any] | None) -> int:
        """The position in the log from which the slot is read; a slot that is missing at first is made."""
        slot, place = self._where.slot, self.place
        row = self._free_slot()
        advice = "slot.name='another', with which the source begins with what is committed then"
        if row is None:
            if position is not None:
                raise StoreError(
                    f"slot '{slot}' of {place} is gone, and with it the changes after {position[0]}: give {advice}"
                )
            create = "SELECT lsn::text FROM pg_create_logical_replication_slot(%(slot)s, 'pgoutput')"
            try:
                return parse_lsn(self._row(create, slot=slot)[0])
            except StoreError as error:
                raise self._add_way_out(error) from None
        plugin, kind, database, active, confirmed_lsn, is_lost, flushed_lsn, current = row
        if kind != "logical" or plugin != "pgoutput" or database != current:
            slot_use = f"plug-in {plugin} in database {database}" if kind == "logical" else "physical replication"
            raise StoreError(
                f"slot '{slot}' of {place} is for {slot_use}, and this source reads pgoutput: give {advice}"
            )
        if active:
            raise StoreError(
                f"slot '{slot}' of {place} has another reader: a slot has one, so give each source a slot.name"
            )
        if is_lost:
            raise StoreError(
                f"the server has removed the log that slot '{slot}' of {place} needs (max_slot_wal_keep_size): run "
                f"SELECT pg_drop_replication_slot('{slot}'), and give {advice}"
            )
        if position is None:
            return parse_lsn(flushed_lsn)
        start = parse_lsn(position[0])
        if parse_lsn(confirmed_lsn) > start:
            raise StoreError(
                f"slot '{slot}' of {place} was read by another, or made again: it begins at {confirmed_lsn}, and this "
                f"source has read up to {position[0]}. Changes between are gone: give {advice}"
            )
        if start > parse_lsn(flushed_lsn):
            raise StoreError(
                f"the log of {place} ends at {flushed_lsn}, before {position[0]}, up to which this source has read it: "
                f"it is another server, or one that was restored. Give {advice}"
            )
        return start

    def _free_slot(self) -> Any:
        """The slot as the server has it, as soon as a reader that has just ended is gone; None if there is no slot."""
        deadline = time.monotonic() + _FREE_SECONDS
        while True:
            row = self._row(
                "SELECT plugin, slot_type, database, active, confirmed_flush_lsn::text, restart_lsn IS NULL, "
                "pg_current_wal_flush_lsn()::text, current_database() FROM pg_replication_slots "
                "WHERE slot_name = %(slot)s",
                slot=self._where.slot,
            )
            if row is None or not row[3] or time.monotonic() >= deadline or self._cancel_event.wait(0.02):
                return row

    def _add_way_out(self, error: StoreError) -> StoreError:
        """With the way out, where the user may not replicate."""
        text, user = str(error), self._where.database.user
        if _NO_RIGHT.search(text):
            return StoreError(f"{text}. Give the user the right: ALTER ROLE {user} REPLICATION")
        return error

    # ------------------------------------------------------------------------------------------------------- reading

    def read(self, seconds: float, most: int) -> LogPortion | None:
        stream = self._open_stream()
        began = time.monotonic()
        deadline = began + seconds
        changes: list[Change] = []
        size = 0
        while len(changes) < most and size < _MOST_BYTES:
            message = stream.next_message(deadline if not changes else 0.0)
            if message is None:
                break
            if isinstance(message, bytes):
                size += len(message)
                self._take_message(message, changes)
            elif self._open_transaction is None:
                self._end = max(self._end, message.end)
            if not changes and time.monotonic() >= deadline:
                break
        if changes or self._end - self._kept_end >= _WORTH_KEEPING:
            return LogPortion(changes, self._position())
        self._ask_for_end(began)
        return None

    def _take_message(self, data: bytes, changes: list[Change]) -> None:
        message = parse_message(data)
        if isinstance(message, RowChange):
            relation = self._relations.get(message.relation)
            if relation is None:
                return
            self._count += 1
            assert self._open_transaction is not None
            commit, skipped_count = self._partial_transaction
            if self._open_transaction.commit < commit or (
                self._open_transaction.commit == commit and self._count <= skipped_count
            ):
                return
            if message.operation in self._where.operations:
                changes.append(relation.change(message, self._open_transaction.commit_ms))
        elif isinstance(message, Begin):
            self._open_transaction, self._count = message, 0
        elif isinstance(message, Commit):
            self._open_transaction, self._end = None, max(self._end, message.end)
        elif isinstance(message, Relation):
            is_ours = (message.schema, message.name) == (self._table.schema, self._table.name)
            self._relations[message.id] = LoggedRelation(message, self._base_types(message)) if is_ours else None

    def _base_types(self, relation: Relation) -> dict[int, tuple[int, int]]:
        """The types behind the domains among the types of a table."""
        user_types = [oid for _, oid, _ in relation.columns if oid >= 16_384]
        if not user_types:
            return {}
        rows = self._rows(
            "WITH RECURSIVE t AS (SELECT oid AS domain, oid, typtype, typbasetype, typtypmod FROM pg_type WHERE oid = "
            "ANY(%(oids)s) UNION ALL SELECT t.domain, p.oid, p.typtype, p.typbasetype, CASE WHEN t.typtypmod >= 0 THEN "
            "t.typtypmod ELSE p.typtypmod END FROM t JOIN pg_type p ON p.oid = t.typbasetype) "
            "SELECT domain, oid, typtypmod FROM t WHERE typtype <> 'd' AND domain <> oid",
            oids=user_types,
        )
        return {int(domain): (int(oid), int(modifier)) for domain, oid, modifier in rows}

    def _position(self) -> list[Any]:
        transaction = self._open_transaction
        if transaction is None or transaction.commit < self._partial_transaction[0]:
            # Until it is met again, a transaction that was read in part stays in the position.
            commit, count = self._partial_transaction if self._partial_transaction[0] >= self._end else (0, 0)
        else:
            commit, count = transaction.commit, self._count
            if commit == self._partial_transaction[0]:
                count = max(count, self._partial_transaction[1])
        return [lsn_text(self._end), lsn_text(commit), count]

    def confirm(self, position: list[Any]) -> None:
        self._kept_end = parse_lsn(position[0])
        self._open_stream().confirm(self._kept_end)

    def keep_alive(self) -> None:
        if self._stream is not None:
            self._stream.keep_alive()

    def _ask_for_end(self, now: float) -> None:
        """Learn, now and then, where the log ends: that and what the server sends say whether all is read."""
        if now - self._asked_at >= _PACE:
            self._asked_at = now
            if self._log_end is None:
                (end,) = self._row("SELECT pg_current_wal_flush_lsn()::text")
                self._log_end = now, parse_lsn(end)
            self._open_stream().answer(ask=True)
        if now - self._checked_at >= _CHECK_PACE:
            self._checked_at = now
            if not self._has_table(self._publication):
                raise StoreError(f"publication '{self._publication}' in {self.place} has lost table {self._table}")
        if self._log_end is not None and self._stream is not None:
            at, end = self._log_end
            left = max(0, end - self._stream.end)
            self._note_unread(at, left)

    def why_not_logged(self, column: str) -> str:
        return f"the log has no former value of column '{column}': ALTER TABLE {self._table} REPLICA IDENTITY FULL"

    # ----------------------------------------------------------------------------------------------------- the rest

    def cancel(self) -> None:
        self._cancel_event.set()
        sql = self._sql
        if sql is not None:
            with contextlib.suppress(Exception):
                sql.cancel_safe(timeout=1)

    def _open_stream(self) -> WalStream:
        if self._stream is None:
            raise StoreError(f"{self.place} is closed")
        return self._stream

    def _row(self, query: str, **values: Any) -> Any:
        rows = self._rows(query, **values)
        return rows[0] if rows else None

    def _rows(self, query: str, **values: Any) -> list[Any]:
        if self._sql is None:
            raise StoreError(f"{self.place} is closed")
        try:
            cursor = self._sql.execute(query, values or None)
            return list(cursor.fetchall()) if cursor.description is not None else []
        except psycopg.Error as error:
            raise StoreError(f"{self.place}: {in_one_line(str(error))}") from None


def lsn_text(lsn: int) -> str:
    """A position in the log as PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def parse_lsn(text: str) -> int:
    """A position in the log that PostgreSQL has written."""
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)


def _quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
