"""Changes of tables of MariaDB that are listened to: which come, with which values, and from where on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

import servers
from sparkstream_nb.plan.connectors.mapping import SourceMapping
from sparkstream_nb.sources import listening
from sparkstream_nb.sources.listening import ListeningReader
from sparkstream_nb.sources.reader import PLACE, SourceUnavailable
from sparkstream_nb.stores import mysql_log
from sparkstream_nb.stores.address import Secret
from sparkstream_nb.stores.dialects import DIALECTS
from sparkstream_nb.stores.mysql_log import BinlogPlace, MySqlLog
from sparkstream_nb.types import Schema
from tests.sources.test_intake import until
from tests.sources.test_source_listening import ALL, BOTH, ROW, Source, mapped, refused, schema_of, take_for_ever


@pytest.fixture(params=["mariadb"], scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[servers.Server]:
    servers.skip_without(request.param)
    with servers.SERVERS[request.param]() as started:
        yield started


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
        """A source that is not open yet; `place` are fields of its `BinlogPlace` and of its database."""
        database = replace(self.server.database, **{k: place.pop(k) for k in ("user", "password") if k in place})
        where = BinlogPlace(database, table, frozenset(operation.split(",")), **place)  # type: ignore[arg-type]
        reader = ListeningReader(MySqlLog(where), mapping or mapped(schema), schema, with_defaults="," in operation)
        self.readers.append(reader)
        return Source(reader, reached if reached is not None else {})


@pytest.fixture(params=["MINIMAL", "FULL"])
def world(server: servers.Server, request: pytest.FixtureRequest) -> Iterator[World]:
    """With and without the names of columns in the log."""
    engine = DIALECTS["mariadb"].engine(server.database)
    there = World(server, engine)
    there.run(f"SET GLOBAL binlog_row_metadata = '{request.param}'")
    engine.dispose()  # sessions have the setting of their beginning
    yield there
    for reader in there.readers:
        reader.close()
    engine.dispose()


@pytest.fixture
def table(world: World) -> str:
    """A table with the columns id, its key, and k."""
    name = f"t_{uuid4().hex[:12]}"
    world.run(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, k VARCHAR(99) CHARACTER SET utf8mb4)")
    return name


def test_changes_of_the_table_come_from_now_on(world: World, table: str) -> None:
    world.run(f"INSERT INTO {table} VALUES (0, 'before')")
    schema = schema_of(op="string", id="long", k="string", before_id="long", before_k="string")
    mapping = mapped(schema, op="trp:operation", id="id", k="k", before_id="before_id", before_k="before_k")
    source = world.source(table, schema, ALL, mapping).open().begin()
    world.run(
        f"CREATE TABLE other_{table} (id BIGINT PRIMARY KEY, k TEXT)", f"INSERT INTO other_{table} VALUES (7, 'x')"
    )
    world.run(f"INSERT INTO {table} VALUES (1, 'é☃𝄞'), (2, '')", f"UPDATE {table} SET k = 'c' WHERE id < 2")
    world.run(f"DELETE FROM {table} WHERE id = 2", f"TRUNCATE {table}")
    assert source.events(5) == [
        ("insert", 1, "é☃𝄞", 0, ""),
        ("insert", 2, "", 0, ""),
        ("update", 0, "c", 0, "before"),
        ("update", 1, "c", 1, "é☃𝄞"),
        ("delete", 0, "", 2, ""),
    ]


def test_one_operation_has_no_defaults(world: World, table: str) -> None:
    source = world.source(table, BOTH, "update").open().begin()
    world.run(f"INSERT INTO {table} VALUES (1, 'a')", f"UPDATE {table} SET k = 'b'")
    assert source.events(1) == [(1, "b", 1, "a")]
    deletes = world.source(table, BOTH, "delete").open().begin()
    world.run(f"DELETE FROM {table}")
    assert [reason for reason, _ in deletes.rejected()] == ["the delete has no value of 'id'"]


VALUES: list[tuple[str, str, str, Any]] = [
    ("BOOLEAN", "TRUE", "bool", True),
    ("TINYINT(1)", "-1", "int", -1),
    ("SMALLINT UNSIGNED", "65535", "int", 65535),
    ("MEDIUMINT", "-8388608", "int", -(2**23)),
    ("INT UNSIGNED", "4294967295", "long", 2**32 - 1),
    ("BIGINT", "-9223372036854775808", "long", -(2**63)),
    ("BIGINT UNSIGNED", "9223372036854775807", "long", 2**63 - 1),
    ("FLOAT", "0.1", "double", 0.1),
    ("FLOAT", "16777217", "double", 16777216.0),
    ("DOUBLE", "-1e308", "double", -1e308),
    ("DECIMAL(20,3)", "-12345678901234567.125", "string", "-12345678901234567.125"),
    ("DECIMAL(65,30)", "0.000000000000000000000000000001", "string", "1E-30"),
    ("DECIMAL(5,0)", "-99999", "int", -99999),
    ("DECIMAL(4,4)", "0.0625", "double", 0.0625),
    ("CHAR(4)", "'ab'", "string", "ab"),
    ("CHAR(200) CHARACTER SET utf8mb4", "'日本'", "string", "日本"),
    ("VARCHAR(300) CHARACTER SET latin1", "'é€'", "string", "é€"),
    ("VARCHAR(9) CHARACTER SET utf16", "'a𝄞'", "string", "a𝄞"),
    ("LONGTEXT CHARACTER SET utf8mb4", "REPEAT('ü', 70000)", "string", "ü" * 70_000),
    ("JSON", """'{"b": [1, null]}'""", "string", '{"b": [1, null]}'),
    ("ENUM('a','it''s, b')", "'it''s, b'", "string", "it's, b"),
    ("SET('x','y','z')", "'z,x'", "string", "x,z"),
    ("ENUM('ä','b') CHARACTER SET latin1", "'ä'", "string", "ä"),
    ("UUID", "'123e4567-e89b-12d3-a456-426655440000'", "string", "123e4567-e89b-12d3-a456-426655440000"),
    ("INET6", "'::1'", "string", "::1"),
    ("VARCHAR(9) COLLATE utf8mb4_uca1400_ai_ci", "'日本'", "string", "日本"),
    ("INT AS (id + 1) VIRTUAL", "DEFAULT", "int", 2),
    ("SET('x','y')", "''", "string", ""),
    ("BIT(1)", "b'1'", "bool", True),
    ("BIT(12)", "b'100000000001'", "int", 2049),
    ("YEAR", "2155", "int", 2155),
    ("DATE", "'1969-12-31'", "int", -1),
    ("DATE", "'1000-01-01'", "int", -354285),
    ("DATE", "'9999-12-31'", "int", 2932896),
    ("TIME", "'-838:59:59'", "long", -3_020_399_000_000),
    ("TIME(6)", "'-00:00:00.000001'", "long", -1),
    ("TIME(2)", "'23:59:59.25'", "long", 86_399_250_000),
    ("DATETIME", "'1969-12-31 23:59:59'", "long", -1_000),
    ("DATETIME(3)", "'1969-12-31 23:59:59.999'", "long", -1),
    ("DATETIME(6)", "'1969-12-31 23:59:59.999999'", "long", -1),
    ("DATETIME(5)", "'9999-12-31 23:59:59.99999'", "long", 253402300799999990),
    ("TIMESTAMP", "'2024-01-31 10:00:00'", "string", "2024-01-31T10:00:00Z"),
    ("TIMESTAMP(3)", "'2024-01-31 10:00:00.25'", "string", "2024-01-31T10:00:00.250Z"),
]


@pytest.mark.parametrize(("type_", "literal", "attribute", "value"), VALUES, ids=lambda v: str(v)[:30])
def test_values(world: World, type_: str, literal: str, attribute: str, value: Any) -> None:
    name = f"t_{uuid4().hex[:12]}"
    world.run(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, v {type_})")
    source = world.source(name, schema_of(id="long", v=attribute)).open().begin()
    world.run("SET time_zone = '+00:00'", f"INSERT INTO {name} VALUES (1, {literal})")
    assert source.events(1) == [(1, value)]


WRONG: list[tuple[str, str, str, str]] = [
    ("DATE", "'2024-02-31'", "int", "v: '5fd00f' cannot be read: 2024-02-31 is no date"),
    ("VARBINARY(9)", "x'00ff'", "string", "v: "),
    ("BIGINT UNSIGNED", "18446744073709551615", "long", "v: 18446744073709551615 is not a long"),
    ("TEXT", "'x'", "long", "v: 'x' is not a long"),
]


@pytest.mark.parametrize(("type_", "literal", "attribute", "reason"), WRONG, ids=lambda v: str(v)[:30])
def test_a_value_that_does_not_fit_is_an_error_of_its_change(
    world: World, type_: str, literal: str, attribute: str, reason: str
) -> None:
    name = f"t_{uuid4().hex[:12]}"
    world.run(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, v {type_})")
    source = world.source(name, schema_of(id="long", v=attribute)).open().begin()
    world.run("SET sql_mode = 'ALLOW_INVALID_DATES'", f"INSERT INTO {name} VALUES (1, {literal})")
    ((text, _),) = source.rejected()
    assert text.startswith(reason)
    world.engine.dispose()  # with its sql_mode


def test_nulls(world: World, table: str) -> None:
    source = world.source(table, ROW, mapping=mapped(ROW, ", fail.on.missing.attribute='false'")).open().begin()
    world.run(f"INSERT INTO {table} VALUES (1, NULL)")
    assert source.events(1) == [(1, None)]


def test_a_date_of_zeros_is_null(world: World, table: str) -> None:
    world.run(f"ALTER TABLE {table} ADD d DATE, ADD t DATETIME, ADD s TIMESTAMP")
    schema = schema_of(d="int", t="long", s="string")
    source = world.source(table, schema, mapping=mapped(schema, ", fail.on.missing.attribute='false'")).open().begin()
    world.run("SET sql_mode = ''", f"INSERT INTO {table} VALUES (1, 'a', 0, 0, 0)")
    assert source.events(1) == [(None, None, None)]
    world.engine.dispose()


def test_columns_that_come_and_go(world: World, table: str) -> None:
    nulls = mapped(schema := schema_of(ID="long", k="string", n="int"), ", fail.on.missing.attribute='false'")
    source = world.source(table, schema, mapping=nulls).open().begin()
    world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    assert source.events(1) == [(1, "a", None)]
    world.run(f"ALTER TABLE {table} ADD n INT, DROP k")
    world.run(f"INSERT INTO {table} VALUES (2, 5)")
    assert source.events(1) == [(2, None, 5)]


def test_a_row_image_without_all_columns(world: World, table: str) -> None:
    world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    source = world.source(table, BOTH, "update").open().begin()
    world.run("SET binlog_row_image = 'MINIMAL'", f"UPDATE {table} SET k = 'b'")
    ((reason, _),) = source.rejected()
    assert reason.endswith("SET GLOBAL binlog_row_image='FULL'")
    world.engine.dispose()


# ------------------------------------------------------------------------------------------------------- exactly once


@contextmanager
def killed(source: Source) -> Iterator[None]:
    """The process of the source ends, and another one has its journal."""
    source.reader.close()
    yield
    source.open()


@pytest.mark.parametrize("portion", [1, 7, 1000])
@pytest.mark.parametrize("storage", ["InnoDB", "Aria"])
def test_a_transaction_that_was_read_in_part_continues_in_its_middle(
    world: World, table: str, monkeypatch: pytest.MonkeyPatch, portion: int, storage: str
) -> None:
    monkeypatch.setattr(listening, "PORTION", portion)
    world.run(f"ALTER TABLE {table} ENGINE = {storage}", f"CREATE TABLE other_{table} (id INT)")
    schema = schema_of(op="string", id="long")
    source = world.source(table, schema, ALL, mapped(schema, op="trp:operation", id="id")).open().begin()
    world.run(f"INSERT INTO {table} VALUES (100, 'x')")
    first, second = (", ".join(f"({i}, 1)" for i in ids) for ids in (range(10), range(10, 20)))
    world.run(
        f"INSERT INTO {table} VALUES {first}", f"INSERT INTO other_{table} VALUES (5)",
        f"DELETE FROM {table} WHERE id = 4", f"INSERT INTO {table} VALUES {second}",
    )  # fmt: skip
    world.run("FLUSH BINARY LOGS", f"INSERT INTO {table} VALUES (200, 'y')")
    events: list[tuple[Any, ...]] = []
    restarts = 0
    while len(events) < 23:
        taken = source.take()
        if taken is None:
            continue
        events += source.keep(taken)
        if restarts < 6:
            restarts += 1
            with killed(source):
                pass
    ids = [100, *range(10), 0, *range(10, 20), 200]
    assert events == [("insert" if i != 11 else "delete", id_) for i, id_ in enumerate(ids)]
    taken = source.take(0.1)
    assert taken is None or taken.received == 0


def test_what_was_not_kept_comes_again(world: World, table: str) -> None:
    source = world.source(table, ROW).open().begin()
    world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    assert source.take() is not None
    with killed(source):
        world.run(f"INSERT INTO {table} VALUES (2, 'b')")
    assert source.events(2) == [(1, "a"), (2, "b")]


def test_the_log_of_others_is_let_go(world: World, table: str) -> None:
    source = world.source(table, ROW).open().begin()
    world.run("FLUSH BINARY LOGS")
    taken = source.take()
    while taken is None:
        taken = source.take()
    assert (taken.received, taken.lasting) == (0, True)
    source.keep(taken)
    with killed(source):
        world.run("PURGE BINARY LOGS TO '" + source.reached[f"{table}@binlog"][0] + "'")
        world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    assert source.events(1) == [(1, "a")]


def test_it_says_when_all_is_read(world: World, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mysql_log, "_PACE", 0.0)
    source = world.source(table, ROW).open().begin()
    world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    assert source.events(1) == [(1, "a")]
    for _ in range(100):
        assert source.take(0.1) is None
        behind = source.reader.behind()
        if behind is not None and behind.parts == {f"{table}@binlog": 0}:
            return
    raise AssertionError(behind)


# -------------------------------------------------------------------------------------------------- errors and ways out

ANOTHER = "give database.server.name='another', with which the source begins with what is committed then"


def test_a_log_that_was_removed(world: World, table: str) -> None:
    source = world.source(table, ROW).open().begin()
    source.reader.close()
    world.run(f"INSERT INTO {table} VALUES (1, 'a')", "FLUSH BINARY LOGS")
    file = source.reached[f"{table}@binlog"][0]

    def is_removed() -> bool:
        """The server keeps a file that a reader has until it has noticed that it is gone."""
        world.run("PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")
        with world.engine.connect() as c:
            return file not in {row[0] for row in c.exec_driver_sql("SHOW BINARY LOGS")}

    until(is_removed)
    text = refused(source)
    assert f"has removed file {file} of its log" in text
    assert text.endswith(ANOTHER)
    other = world.source(table, ROW, reached=source.reached, server_name="another").open().begin()
    world.run(f"INSERT INTO {table} VALUES (2, 'b')")
    assert other.events(1) == [(2, "b")]
    assert [*other.reached] == [PLACE, f"{table}@another"]


def test_a_log_that_was_made_again(world: World, table: str) -> None:
    source = world.source(table, ROW).open().begin()
    source.reader.close()
    file, at, count, made = source.reached[f"{table}@binlog"]
    source.reached[f"{table}@binlog"] = [file, at, count, made - 1]
    assert "was made again, so that the changes behind the former one cannot be read" in refused(source)
    source.reached[f"{table}@binlog"] = [file, at + 10_000_000, count, made]
    assert f"before {at + 10_000_000}, up to which this source has read it" in refused(source)


def test_columns_that_changed_before_they_were_read(world: World, table: str) -> None:
    source = world.source(table, ROW).open().begin()
    with killed(source):
        world.run(f"INSERT INTO {table} VALUES (1, 'a')")
        world.run(f"ALTER TABLE {table} ADD n INT")
    if world.value("SELECT @@GLOBAL.binlog_row_metadata") == "FULL":
        assert source.events(1) == [(1, "a")]
        return
    with pytest.raises(SourceUnavailable, match="SET GLOBAL binlog_row_metadata='FULL' before columns are changed"):
        take_for_ever(source)


@pytest.mark.parametrize(
    ("setting", "value", "former", "message"),
    [
        ("binlog_format", "'MIXED'", "'ROW'", "SET GLOBAL binlog_format='ROW'"),
        ("log_bin_compress", "ON", "OFF", "SET GLOBAL log_bin_compress=OFF"),
    ],
)
def test_a_log_that_cannot_be_read(
    world: World, table: str, setting: str, value: str, former: str, message: str
) -> None:
    world.run(f"SET GLOBAL {setting} = {value}")
    try:
        assert message in refused(world.source(table, ROW))
    finally:
        world.run(f"SET GLOBAL {setting} = {former}")


def test_rows_that_are_compressed_later(world: World, table: str) -> None:
    source = world.source(table, ROW).open().begin()
    world.run("SET GLOBAL log_bin_compress = ON, GLOBAL log_bin_compress_min_len = 10")
    try:
        world.run(f"INSERT INTO {table} VALUES (1, REPEAT('a', 90))")
        with pytest.raises(SourceUnavailable, match="as log_bin_compress is on: switch it off"):
            take_for_ever(source)
    finally:
        world.run("SET GLOBAL log_bin_compress = OFF")


def test_tables_without_a_log(world: World, table: str) -> None:
    assert "has no table 'no_such'" in refused(world.source("no_such", ROW))
    world.run(f"CREATE VIEW v_{table} AS SELECT 1 AS id")
    assert "is no table" in refused(world.source(f"v_{table}", ROW))
    world.run(f"CREATE TABLE c_{table} (id INT, k TEXT COMPRESSED)")
    assert f"column 'k' of table 'c_{table}' is COMPRESSED" in refused(world.source(f"c_{table}", ROW))


def test_a_wrong_password_is_not_shown(world: World, table: str) -> None:
    text = refused(world.source(table, ROW, password=Secret("geheim")))
    assert "Access denied for user" in text
    assert "geheim" not in text


def test_a_user_without_the_right(world: World, table: str) -> None:
    world.run(f"CREATE USER r_{table} IDENTIFIED BY 'geheim'", f"GRANT SELECT ON siddhi.* TO r_{table}")
    user = {"user": f"r_{table}", "password": Secret("geheim")}
    assert f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO r_{table}" in refused(
        world.source(table, ROW, **user)
    )
    world.run(f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO r_{table}")
    source = world.source(table, ROW, **user).open().begin()
    world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    assert source.events(1) == [(1, "a")]


def test_a_server_that_ends_and_comes_back(server: servers.Server, world: World, table: str) -> None:
    source = world.source(table, ROW).open().begin()
    world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    assert source.events(1) == [(1, "a")]
    world.engine.dispose()
    server.stop()
    with pytest.raises(SourceUnavailable, match="mariadb://"):
        take_for_ever(source)
    server.start()
    world.run(f"INSERT INTO {table} VALUES (2, 'b')")
    source.open()
    assert source.events(1) == [(2, "b")]
