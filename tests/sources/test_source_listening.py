"""Changes of tables of PostgreSQL that are listened to: which come, with which values, and from where on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

import servers
from sparkstream_nb.lang.parser import parse
from sparkstream_nb.plan.connectors.mapping import SourceMapping
from sparkstream_nb.plan.connectors.mappings import source_mapping
from sparkstream_nb.sources import listening
from sparkstream_nb.sources.listening import ListeningReader
from sparkstream_nb.sources.reader import PLACE, ReadMessages, SourceUnavailable
from sparkstream_nb.stores import postgresql_log
from sparkstream_nb.stores.address import Secret
from sparkstream_nb.stores.dialects import DIALECTS
from sparkstream_nb.stores.postgresql_log import PostgresLog, WalPlace
from sparkstream_nb.types import Attribute, Schema, Type
from tests.sources.test_intake import until

TYPES = {t.value: t for t in Type}
ALL = "insert,update,delete"


@pytest.fixture(params=["postgresql"], scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[servers.Server]:
    servers.skip_without(request.param)
    with servers.SERVERS[request.param]() as started:
        yield started


@dataclass
class Source:
    """A reader with its position, as the journal keeps it."""

    reader: ListeningReader
    reached: dict[str, Any] = field(default_factory=dict)
    said: str | None = None

    def open(self) -> Source:
        self.said = self.reader.open(self.reached)
        return self

    def take(self, seconds: float = 5.0) -> ReadMessages | None:
        """What comes next; nothing of it is kept."""
        return self.reader.read(seconds)

    def keep(self, taken: ReadMessages) -> list[tuple[Any, ...]]:
        """Keeps what came, and gives its events."""
        self.reached.update(json.loads(json.dumps(taken.reached)))
        self.reached = {part: at for part, at in self.reached.items() if at is not None}
        self.reader.confirm(taken, {})
        return rows(taken)

    def begin(self) -> Source:
        """Keeps where it begins."""
        taken = self.take(0.0)
        assert taken is not None
        assert (taken.received, taken.lasting) == (0, True)
        self.keep(taken)
        return self

    def events(self, count: int) -> list[tuple[Any, ...]]:
        """The next events, of which there are `count`, each kept."""
        out: list[tuple[Any, ...]] = []
        while len(out) < count:
            taken = self.take()
            assert taken is not None, out
            assert not taken.events.rejected, taken.events.rejected
            out += self.keep(taken)
        assert len(out) == count
        return out

    def rejected(self) -> list[tuple[str, str]]:
        """The reasons and texts of the next messages, of which none is an event."""
        taken = self.take()
        assert taken is not None
        assert self.keep(taken) == []
        return [(r.reason, r.text) for r in taken.events.rejected]


def rows(taken: ReadMessages) -> list[tuple[Any, ...]]:
    return list(zip(*(c.to_pylist() for c in taken.events.columns), strict=True))


def schema_of(**types: str) -> Schema:
    return Schema(tuple(Attribute(name, TYPES[type]) for name, type in types.items()))


def mapped(schema: Schema, options: str = "", **attributes: str) -> SourceMapping:
    pairs = ", ".join(f"{attribute}='{key}'" for attribute, key in attributes.items())
    named = f", @attributes({pairs})" if attributes else ""
    text = f"@source(type='cdc', @map(type='keyvalue'{options}{named})) define stream S (k string);"
    return source_mapping(parse(text).definitions[0].annotations[0].nested[0], schema)


@dataclass
class World:
    """A server with a connection of another program, and the readers that a test has opened."""

    server: servers.Server
    engine: sa.Engine
    readers: list[ListeningReader] = field(default_factory=list)

    def run(self, *statements: str) -> None:
        """Runs statements in one transaction."""
        with self.engine.begin() as c:
            c = c.execution_options(no_parameters=True)
            for statement in statements:
                c.exec_driver_sql(statement)

    def value(self, query: str) -> Any:
        with self.engine.connect() as c:
            return c.exec_driver_sql(query).scalar()

    def source(
        self,
        table: str,
        schema: Schema,
        operation: str = "insert",
        mapping: SourceMapping | None = None,
        reached: dict[str, Any] | None = None,
        **place: Any,
    ) -> Source:
        """A source that is not open yet; `place` are fields of its `WalPlace` and of its database."""
        database = replace(self.server.database, **{k: place.pop(k) for k in ("user", "password") if k in place})
        operations = frozenset(operation.split(","))
        where = WalPlace(**{"database": database, "table": table, "operations": operations, "slot": table, **place})
        reader = ListeningReader(PostgresLog(where), mapping or mapped(schema), schema, with_defaults="," in operation)
        self.readers.append(reader)
        return Source(reader, reached if reached is not None else {})


@pytest.fixture
def world(server: servers.Server) -> Iterator[World]:
    engine = DIALECTS["postgresql"].engine(server.database)
    there = World(server, engine)
    yield there
    for reader in there.readers:
        reader.close()
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as c:
        for (name,) in c.exec_driver_sql("SELECT slot_name FROM pg_replication_slots").all():
            drop_slot(there, name)
        for (name,) in c.exec_driver_sql("SELECT pubname FROM pg_publication").all():
            c.exec_driver_sql(f'DROP PUBLICATION "{name}"')
    engine.dispose()


@pytest.fixture
def table(world: World) -> str:
    """A table with the columns id, its key, and k."""
    name = f"t_{uuid4().hex[:12]}"
    world.run(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, k TEXT)")
    return name


ROW = schema_of(id="long", k="string")
BOTH = schema_of(id="long", k="string", before_id="long", before_k="string")


def test_inserts_of_the_table_come_from_now_on(world: World, table: str) -> None:
    world.run(f"INSERT INTO {table} VALUES (0, 'before')")
    source = world.source(table, ROW).open().begin()
    world.run(f"CREATE TABLE other_{table} (id BIGINT PRIMARY KEY, k TEXT)")
    world.run(f"INSERT INTO other_{table} VALUES (7, 'other')", f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
    world.run(f"UPDATE {table} SET k = 'c' WHERE id = 1", f"DELETE FROM {table} WHERE id = 2")
    world.run(f"TRUNCATE {table}", f"INSERT INTO {table} VALUES (3, 'é☃𝄞')")
    assert source.events(3) == [(1, "a"), (2, "b"), (3, "é☃𝄞")]


def test_updates_have_both_rows_where_the_log_has_them(world: World, table: str) -> None:
    world.run(f"ALTER TABLE {table} REPLICA IDENTITY FULL", f"INSERT INTO {table} VALUES (1, 'a')")
    source = world.source(table, BOTH, "update").open().begin()
    world.run(f"UPDATE {table} SET k = 'b'", f"UPDATE {table} SET id = 2", f"DELETE FROM {table}")
    assert source.events(2) == [(1, "b", 1, "a"), (2, "b", 1, "b")]


def test_the_former_key_is_known_without_the_former_row(world: World, table: str) -> None:
    world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    schema = schema_of(id="long", k="string", before_id="long")
    source = world.source(table, schema, "update").open().begin()
    world.run(f"UPDATE {table} SET k = 'b'", f"UPDATE {table} SET id = 2")
    assert source.events(2) == [(1, "b", 1), (2, "b", 1)]


def test_a_former_value_that_the_log_lacks_is_an_error_with_the_way_out(world: World, table: str) -> None:
    world.run(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
    source = world.source(table, BOTH, "update").open().begin()
    world.run(f"UPDATE {table} SET k = 'c' WHERE id = 1")
    assert source.rejected() == [
        (
            "the log has no former value of column 'k': ALTER TABLE public." + table + " REPLICA IDENTITY FULL",
            '{"id": 1, "k": "c", "before_id": 1}',
        )
    ]
    world.run(f"ALTER TABLE {table} REPLICA IDENTITY FULL", f"UPDATE {table} SET k = 'd' WHERE id = 1")
    assert source.events(1) == [(1, "d", 1, "c")]


def test_deletes_have_the_former_row(world: World, table: str) -> None:
    world.run(f"ALTER TABLE {table} REPLICA IDENTITY FULL", f"INSERT INTO {table} VALUES (1, 'a')")
    schema = schema_of(before_id="long", before_k="string")
    source = world.source(table, schema, "delete").open().begin()
    world.run(f"INSERT INTO {table} VALUES (2, 'b')", f"DELETE FROM {table}")
    assert source.events(2) == [(1, "a"), (2, "b")]


def test_several_operations_have_defaults_and_say_which_they_are(world: World, table: str) -> None:
    world.run(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    schema = schema_of(op="string", id="long", k="string", before_id="long", before_k="string", at="long", now="long")
    mapping = mapped(
        schema, op="trp:operation", id="id", k="k", before_id="before_id", before_k="before_k", at="trp:at", now="trp:x"
    )
    source = world.source(table, schema, ALL, mapping).open().begin()
    began = world.value("SELECT (extract(epoch FROM now()) * 1000)::bigint")
    world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    world.run(f"UPDATE {table} SET k = 'b'")
    world.run(f"DELETE FROM {table}")
    events = source.events(3)
    assert [e[:5] for e in events] == [
        ("insert", 1, "a", 0, ""),
        ("update", 1, "b", 1, "a"),
        ("delete", 0, "", 1, "b"),
    ]
    assert all(began - 1_000 <= e[5] <= e[6] + 1_000 for e in events)


def test_one_operation_has_no_defaults(world: World, table: str) -> None:
    source = world.source(table, BOTH).open().begin()
    world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    ((reason, text),) = source.rejected()
    assert (reason, text) == ("the insert has no value of 'before_id'", '{"id": 1, "k": "a"}')


def test_nulls(world: World, table: str) -> None:
    nulls = mapped(ROW, ", fail.on.missing.attribute='false'")
    source = world.source(table, ROW, mapping=nulls).open().begin()
    strict = world.source(table, ROW, slot=f"{table}_2").open().begin()
    world.run(f"INSERT INTO {table} VALUES (1, NULL)")
    assert source.events(1) == [(1, None)]
    assert strict.rejected() == [("the insert has no value of 'k'", '{"id": 1}')]


VALUES: list[tuple[str, str, str, Any]] = [
    ("boolean", "true", "bool", True),
    ("smallint", "-32768", "int", -32768),
    ("bigint", "-9223372036854775808", "long", -(2**63)),
    ("oid", "4294967295", "long", 4294967295),
    ("real", "1.5", "float", 1.5),
    ("double precision", "'-Infinity'", "double", float("-inf")),
    ("numeric(20,3)", "-12345678901234567.125", "double", -12345678901234567.125),
    ("numeric(20,3)", "1.500", "string", "1.500"),
    ("numeric", "123456789012345678", "long", 123456789012345678),
    ("numeric", "0.25", "double", 0.25),
    ("money", "-1234.50", "double", -1234.5),
    ("char(4)", "'ab'", "string", "ab  "),
    ("varchar(9)", "'日本 ''x'''", "string", "日本 'x'"),
    ("uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "string", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("jsonb", """'{"b": [1, null]}'""", "string", '{"b": [1, null]}'),
    ("date", "'1969-12-31'", "int", -1),
    ("date", "'0044-03-15 BC'", "long", -735160),
    ("date", "'12024-02-29'", "int", 3672207),
    ("time", "'23:59:59.000001'", "long", 86_399_000_001),
    ("time(3)", "'00:00:01.5'", "int", 1_500),
    ("time", "'24:00:00'", "long", 86_400_000_000),
    ("timetz", "'01:00:00.5+02'", "string", "23:00:00.5Z"),
    ("timestamp", "'1969-12-31 23:59:59.999999'", "long", -1),
    ("timestamp", "'2300-01-01 00:00:00'", "long", 10_413_792_000_000_000),
    ("timestamp(3)", "'1969-12-31 23:59:59.999'", "long", -1),
    ("timestamp(0)", "'2024-01-31 10:00:00'", "long", 1_706_695_200_000),
    ("timestamptz", "'2024-01-31 10:00:00.25+01:30'", "string", "2024-01-31T08:30:00.25Z"),
    ("timestamptz", "'1815-06-18 11:35:00+00'", "string", "1815-06-18T11:35:00Z"),
    ("interval", "'1 year 2 mons 3 days -00:00:01.5'", "long", 37_076_398_500_000),
    ("bit(1)", "B'1'", "bool", True),
    ("inet", "'10.0.0.1/8'", "string", "10.0.0.1/8"),
    ("integer[]", "'{1,NULL}'", "string", "{1,NULL}"),
]


@pytest.mark.parametrize(("type_", "literal", "attribute", "value"), VALUES, ids=lambda v: str(v)[:30])
def test_values(world: World, type_: str, literal: str, attribute: str, value: Any) -> None:
    name = f"t_{uuid4().hex[:12]}"
    world.run(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, v {type_})")
    source = world.source(name, schema_of(v=attribute)).open().begin()
    world.run(f"INSERT INTO {name} VALUES (1, {literal})")
    assert source.events(1) == [(value,)]


def test_values_of_domains_and_enums(world: World, table: str) -> None:
    world.run(
        f"CREATE DOMAIN small_{table} AS timestamp(3)", f"CREATE DOMAIN smaller_{table} AS small_{table}",
        f"CREATE TYPE mood_{table} AS ENUM ('ok', 'sad')",
        f"ALTER TABLE {table} ADD at smaller_{table}, ADD mood mood_{table}",
    )  # fmt: skip
    source = world.source(table, schema_of(at="long", mood="string")).open().begin()
    world.run(f"INSERT INTO {table} VALUES (1, 'a', '1970-01-01 00:00:00.007', 'sad')")
    assert source.events(1) == [(7, "sad")]


WRONG: list[tuple[str, str, str, str]] = [
    ("timestamp", "'infinity'", "long", "v: 'infinity' cannot be read: infinity has no number"),
    ("date", "'-infinity'", "int", "v: '-infinity' cannot be read: -infinity has no number"),
    ("text", "'x'", "long", "v: 'x' is not a long"),
    ("bigint", "9223372036854775807", "int", "v: 9223372036854775807 is not an int"),
    ("bytea", "'\\x00ff'", "string", "v: "),
]


@pytest.mark.parametrize(("type_", "literal", "attribute", "reason"), WRONG, ids=lambda v: str(v)[:30])
def test_a_value_that_does_not_fit_is_an_error_of_its_change(
    world: World, type_: str, literal: str, attribute: str, reason: str
) -> None:
    name = f"t_{uuid4().hex[:12]}"
    world.run(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, v {type_})")
    source = world.source(name, schema_of(id="long", v=attribute)).open().begin()
    world.run(f"INSERT INTO {name} VALUES (1, {literal})")
    ((found, text),) = source.rejected()
    assert found.startswith(reason)
    assert json.loads(text)["id"] == 1


def test_a_text_stored_apart_that_did_not_change(world: World, table: str) -> None:
    world.run(f"ALTER TABLE {table} ADD big TEXT, ALTER big SET STORAGE EXTERNAL")
    world.run(f"INSERT INTO {table} VALUES (1, 'a', repeat('x', 10000))")
    source = world.source(table, schema_of(k="string", big="string"), "update").open().begin()
    world.run(f"UPDATE {table} SET k = 'b'")
    world.run(f"ALTER TABLE {table} REPLICA IDENTITY FULL", f"UPDATE {table} SET k = 'c'")
    assert source.events(2) == [("b", "__debezium_unavailable_value"), ("c", "x" * 10_000)]


def test_columns_that_come_and_go(world: World, table: str) -> None:
    nulls = mapped(schema := schema_of(ID="long", k="string", n="int"), ", fail.on.missing.attribute='false'")
    source = world.source(table, schema, mapping=nulls).open().begin()
    world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    world.run(f"ALTER TABLE {table} ADD n INT, DROP k", f"INSERT INTO {table} VALUES (2, 5)")
    assert source.events(2) == [(1, "a", None), (2, None, 5)]


# ------------------------------------------------------------------------------------------------------- exactly once


@contextmanager
def killed(source: Source) -> Iterator[None]:
    """The process of the source ends, and another one has its journal."""
    source.reader.close()
    yield
    source.open()


def test_what_was_not_kept_comes_again(world: World, table: str) -> None:
    source = world.source(table, ROW).open().begin()
    world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    world.run(f"INSERT INTO {table} VALUES (2, 'b')")
    assert source.take() is not None
    with killed(source):
        world.run(f"INSERT INTO {table} VALUES (3, 'c')")
    assert source.events(3) == [(1, "a"), (2, "b"), (3, "c")]
    with killed(source):
        world.run(f"INSERT INTO {table} VALUES (4, 'd')")
    assert source.events(1) == [(4, "d")]


@pytest.mark.parametrize("portion", [1, 7, 1000])
def test_a_transaction_that_was_read_in_part_continues_in_its_middle(
    world: World, table: str, monkeypatch: pytest.MonkeyPatch, portion: int
) -> None:
    monkeypatch.setattr(listening, "PORTION", portion)
    source = world.source(table, schema_of(op="string", id="long"), ALL, mapped(
        schema_of(op="string", id="long"), op="trp:operation", id="id"
    )).open().begin()  # fmt: skip
    world.run(f"INSERT INTO {table} VALUES (100, 'x')")
    world.run(
        f"INSERT INTO {table} SELECT i, 'a' FROM generate_series(0, 9) AS i", f"DELETE FROM {table} WHERE id = 4",
        f"INSERT INTO {table} SELECT i, 'b' FROM generate_series(10, 19) AS i",
    )  # fmt: skip
    world.run(f"INSERT INTO {table} VALUES (200, 'y')")
    events: list[tuple[Any, ...]] = []
    restarts = 0
    while len(events) < 23:
        taken = source.take()
        if taken is None:
            continue
        events += source.keep(taken)
        if restarts < 6:  # at once, with more on its way
            restarts += 1
            with killed(source):
                pass
    ids = [100, *range(10), 0, *range(10, 20), 200]
    assert events == [("insert" if i != 11 else "delete", id_) for i, id_ in enumerate(ids)]
    assert source.take(0.05) is None


def test_the_server_may_remove_only_what_is_on_the_disk(world: World, table: str) -> None:
    source = world.source(table, ROW).open().begin()
    confirmed = f"SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = '{table}'"
    begun = world.value(confirmed)
    world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    taken = source.take()
    assert taken is not None
    assert world.value(confirmed) == begun
    source.keep(taken)
    (end, _, _) = source.reached[source.reader._log.part]
    until(lambda: world.value(confirmed) == end)


def test_the_log_of_others_is_let_go(world: World, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql_log, "_WORTH_KEEPING", 10_000)
    source = world.source(table, ROW).open().begin()
    world.run(f"CREATE TABLE other_{table} (t TEXT)", f"INSERT INTO other_{table} SELECT repeat('x', 99) FROM "
              "generate_series(1, 500)")  # fmt: skip
    for _ in range(100):
        taken = source.take(0.1)
        if taken is not None:
            break
    assert taken is not None
    assert (taken.received, taken.lasting) == (0, True)
    source.keep(taken)
    (end, _, _) = source.reached[source.reader._log.part]
    query = f"SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = '{table}'"
    until(lambda: world.value(query) == end)
    world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    with killed(source):
        pass
    assert source.events(1) == [(1, "a")]


def test_it_says_when_all_is_read(world: World, table: str) -> None:
    source = world.source(table, ROW).open().begin()
    world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    assert source.events(1) == [(1, "a")]
    for _ in range(100):
        assert source.take(0.1) is None
        behind = source.reader.behind()
        if behind is not None and behind.parts == {f"{table}@{table}": 0}:
            return
    raise AssertionError(behind)


# -------------------------------------------------------------------------------------------------- errors and ways out


def refused(source: Source) -> str:
    with pytest.raises(SourceUnavailable) as error:
        source.open()
    text = str(error.value)
    assert "\n" not in text
    return text


def drop_slot(world: World, name: str) -> None:
    """Drops a slot as soon as the server has noticed that its reader is gone."""
    until(lambda: not world.value(f"SELECT active FROM pg_replication_slots WHERE slot_name = '{name}'"))
    world.value(f"SELECT pg_drop_replication_slot('{name}')")


def test_a_slot_that_is_gone(world: World, table: str) -> None:
    source = world.source(table, ROW).open().begin()
    source.reader.close()
    drop_slot(world, table)
    text = refused(source)
    assert f"slot '{table}' of {world.server.database} is gone, and with it the changes after " in text
    assert "give slot.name='another'" in text
    other = world.source(table, ROW, slot=f"{table}_2", reached=source.reached).open().begin()
    world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    assert other.events(1) == [(1, "a")]
    assert [*other.reached] == [PLACE, f"{table}@{table}_2"]


def test_a_slot_that_was_made_again_or_read_by_another(world: World, table: str) -> None:
    source = world.source(table, ROW).open().begin()
    source.reader.close()
    drop_slot(world, table)
    world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    with world.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as c:
        c.exec_driver_sql(f"SELECT pg_create_logical_replication_slot('{table}', 'pgoutput')")
    assert "Changes between are gone: give slot.name='another'" in refused(source)


def test_a_slot_for_another_plugin(world: World, table: str) -> None:
    with world.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as c:
        c.exec_driver_sql(f"SELECT pg_create_logical_replication_slot('{table}', 'test_decoding')")
    text = refused(world.source(table, ROW))
    assert "is for plug-in test_decoding in database postgres, and this source reads pgoutput" in text


def test_a_slot_whose_log_the_server_has_removed(world: World, table: str) -> None:
    source = world.source(table, ROW).open().begin()
    source.reader.close()
    with world.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as c:
        c.exec_driver_sql("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
        c.exec_driver_sql("SELECT pg_reload_conf()")
        try:
            for _ in range(100):
                c.exec_driver_sql("SELECT pg_logical_emit_message(false, 'x', 'x'), pg_switch_wal()")
                c.exec_driver_sql("CHECKPOINT")
                if world.value("SELECT restart_lsn IS NULL FROM pg_replication_slots"):
                    break
        finally:
            c.exec_driver_sql("ALTER SYSTEM RESET max_slot_wal_keep_size")
            c.exec_driver_sql("SELECT pg_reload_conf()")
    assert f"run SELECT pg_drop_replication_slot('{table}'), and give slot.name='another'" in refused(source)


def test_a_source_that_starts_over_begins_with_what_comes_then(world: World, table: str) -> None:
    world.source(table, ROW).open().begin().reader.close()
    world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    source = world.source(table, ROW)
    source.open()
    source.begin()
    world.run(f"INSERT INTO {table} VALUES (2, 'b')")
    assert source.events(1) == [(2, "b")]


def test_a_slot_that_another_reads(world: World, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql_log, "_FREE_SECONDS", 0.0)
    world.source(table, ROW).open().begin()
    assert "has another reader: a slot has one, so give each source a slot.name" in refused(world.source(table, ROW))


def test_a_server_that_was_restored(world: World, table: str) -> None:
    source = world.source(table, ROW).open().begin()
    source.reader.close()
    source.reached[f"{table}@{table}"] = ["FFF/0", "0/0", 0]
    until(lambda: "before FFF/0, up to which this source has read it" in refused(source))


def test_another_database(world: World, table: str) -> None:
    source = world.source(
        table, ROW, reached={PLACE: "postgresql://elsewhere/d", f"{table}@{table}": ["1/0", "0/0", 0]}
    )
    source.open().begin()
    assert "it has read from postgresql://elsewhere/d until now" in (source.said or "")
    assert source.reached[PLACE] == str(world.server.database)


def test_a_table_without_a_key(world: World, table: str) -> None:
    world.run(f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey")
    text = refused(world.source(table, BOTH, "update,delete"))
    assert f"run ALTER TABLE public.{table} REPLICA IDENTITY FULL" in text
    assert world.value("SELECT count(*) FROM pg_publication") == 0
    source = world.source(table, ROW).open().begin()
    world.run(f"INSERT INTO {table} VALUES (1, 'a'), (1, 'a')", f"UPDATE {table} SET k = 'b'")
    assert source.events(2) == [(1, "a"), (1, "a")]


@pytest.mark.parametrize(
    ("name", "statement", "message"),
    [
        ("no_such", "SELECT 1", "has no table 'no_such'"),
        ("v_{t}", "CREATE VIEW v_{t} AS SELECT 1 AS id", "is no table"),
        ("u_{t}", "CREATE UNLOGGED TABLE u_{t} (id INT)", "is unlogged or temporary"),
    ],
)
def test_tables_without_a_log(world: World, table: str, name: str, statement: str, message: str) -> None:
    world.run(statement.format(t=table))
    assert message in refused(world.source(name.format(t=table), ROW, slot=table))


def test_a_wrong_password_is_not_shown(world: World, table: str) -> None:
    text = refused(world.source(table, ROW, password=Secret("geheim")))
    assert "password authentication failed" in text
    assert "geheim" not in text


def test_a_user_without_the_right(world: World, table: str) -> None:
    world.run(f"CREATE ROLE r_{table} LOGIN PASSWORD 'geheim'", f"GRANT SELECT ON {table} TO r_{table}")
    user = {"user": f"r_{table}", "password": Secret("geheim")}
    assert f"CREATE PUBLICATION {table}_publication FOR TABLE public.{table}" in refused(
        world.source(table, ROW, **user)
    )
    world.run(f"CREATE PUBLICATION {table}_publication FOR TABLE {table}")
    text = refused(world.source(table, ROW, **user))
    assert f"ALTER ROLE r_{table} REPLICATION" in text
    world.run(f"ALTER ROLE r_{table} REPLICATION")
    source = world.source(table, ROW, **user).open().begin()
    world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    assert source.events(1) == [(1, "a")]


def test_publications(world: World, table: str) -> None:
    world.run(f"CREATE PUBLICATION mine_{table} FOR TABLE {table} WITH (publish = 'insert')")
    text = refused(world.source(table, BOTH, "update", publication=f"mine_{table}"))
    assert f"publication 'mine_{table}' in {world.server.database} lacks table public.{table}, or its update" in text
    world.source(table, ROW, publication=f"mine_{table}").open().begin()
    assert world.value("SELECT string_agg(pubname, ' ') FROM pg_publication") == f"mine_{table}"
    world.run(f"CREATE PUBLICATION dbz_publication FOR TABLE {table}")
    world.source(table, ROW, slot=f"{table}_2").open().begin()
    world.source(table, BOTH, "delete", slot=f"{table}_3").open().begin()
    assert world.value("SELECT count(*) FROM pg_publication") == 2


def test_a_table_that_left_its_publication(world: World, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = world.source(table, ROW).open().begin()
    source.reader.close()
    world.run(
        f"DROP TABLE {table}", f"CREATE TABLE {table} (id BIGINT, k TEXT)", f"INSERT INTO {table} VALUES (1, 'a')"
    )
    source.open()
    assert source.said == (
        f"publication '{table}_publication' lacked insert of table public.{table} until now: those are not read"
    )
    world.run(f"INSERT INTO {table} VALUES (2, 'b')")
    assert source.events(1) == [(2, "b")]
    monkeypatch.setattr(postgresql_log, "_CHECK_PACE", 0.0)
    world.run(f"DROP TABLE {table}", f"CREATE TABLE {table} (id BIGINT, k TEXT)")
    with pytest.raises(SourceUnavailable, match=f"has lost table public.{table}"):
        take_for_ever(source)


def test_tables_in_other_schemas_and_partitions(world: World, table: str) -> None:
    world.run(
        f"CREATE SCHEMA s_{table}", f'CREATE TABLE s_{table}."Odd ""Name" (id BIGINT, k TEXT) PARTITION BY RANGE (id)',
        f'CREATE TABLE s_{table}.p1 PARTITION OF s_{table}."Odd ""Name" FOR VALUES FROM (0) TO (10)',
    )  # fmt: skip
    source = world.source(f's_{table}.odd "name', ROW, slot=table).open().begin()
    world.run(f'INSERT INTO s_{table}."Odd ""Name" VALUES (1, \'a\')')
    assert source.events(1) == [(1, "a")]


def take_for_ever(source: Source) -> None:
    while True:
        source.take(0.1)


def test_a_server_that_ends_and_comes_back(server: servers.Server, world: World, table: str) -> None:
    source = world.source(table, ROW).open().begin()
    world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    assert source.events(1) == [(1, "a")]
    world.engine.dispose()
    server.stop()
    with pytest.raises(SourceUnavailable, match=r"postgresql://127\.0\.0\.1"):
        take_for_ever(source)
    server.start()
    world.run(f"INSERT INTO {table} VALUES (2, 'b')")
    source.open()
    assert source.events(1) == [(2, "b")]
