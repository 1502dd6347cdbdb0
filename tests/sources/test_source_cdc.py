"""Tables of PostgreSQL and MariaDB that are polled: which rows are read, in which order, and from where on."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import sqlalchemy as sa

import servers
from sparkstream_nb.app.connectors.sources import _rows_as_json
from sparkstream_nb.lang.parser import parse
from sparkstream_nb.mapping.decoding import decoder
from sparkstream_nb.plan.connectors.mapping import SourceMapping
from sparkstream_nb.plan.connectors.mappings import source_mapping
from sparkstream_nb.sources import cdc, row_decoding
from sparkstream_nb.sources.cdc import CdcReader
from sparkstream_nb.sources.reader import PLACE, ReadMessages, SourceUnavailable
from sparkstream_nb.sources.row_decoding import typed_column
from sparkstream_nb.stores.address import Database, Secret, from_jdbc
from sparkstream_nb.stores.dialects import DIALECTS
from sparkstream_nb.stores.polling import PolledRow, PolledTable
from sparkstream_nb.types import Attribute, Schema, Type

SCHEMA = Schema((Attribute("id", Type.LONG), Attribute("k", Type.STRING)))
TYPES = {t.value: t for t in Type}


@pytest.fixture(params=sorted(servers.SERVERS), scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[servers.Server]:
    servers.skip_without(request.param)
    with servers.SERVERS[request.param]() as started:
        yield started


@dataclass
class World:
    """A server with a connection of another program, and the readers that a test has opened."""

    server: servers.Server
    engine: sa.Engine
    readers: list[CdcReader] = field(default_factory=list)

    @property
    def is_postgresql(self) -> bool:
        return self.server.database.kind == "postgresql"

    def run(self, *statements: str) -> None:
        with self.engine.begin() as c:
            c = c.execution_options(no_parameters=True)
            for statement in statements:
                c.exec_driver_sql(statement)

    def table(self, name: str, columns: str) -> None:
        self.run(f"DROP TABLE IF EXISTS {name}", f"CREATE TABLE {name} ({columns})")

    def reader(
        self,
        table: str,
        column: str = "id",
        mapping: SourceMapping | None = None,
        schema: Schema = SCHEMA,
        reached: dict[str, Any] | None = None,
        said: str | None = None,
        **database: Any,
    ) -> CdcReader:
        """A reader that is open, and said nothing else."""
        place = replace(self.server.database, **database)
        made = CdcReader(PolledTable(place, table, column), mapping or mapped(), schema, 0.0)
        self.readers.append(made)
        found = made.open(reached or {})
        assert found == said if said is None else said in (found or "")
        return made


@pytest.fixture
def world(server: servers.Server) -> Iterator[World]:
    engine = DIALECTS[server.database.kind].engine(server.database)
    found = World(server, engine)
    yield found
    for reader in found.readers:
        reader.close()
    engine.dispose()


def mapped(text: str = "@map(type='keyvalue')", schema: Schema = SCHEMA) -> SourceMapping:
    app = parse(f"@source(type='cdc', {text}) define stream S (k string);")
    return source_mapping(app.definitions[0].annotations[0].nested[0], schema)


def schema_of(**types: str) -> Schema:
    return Schema(tuple(Attribute(name, TYPES[type]) for name, type in types.items()))


def rows(taken: ReadMessages) -> list[tuple[Any, ...]]:
    return list(zip(*(c.to_pylist() for c in taken.events.columns), strict=True))


def begun(reader: CdcReader) -> dict[str, Any]:
    """Where a reader begins, as the journal keeps it."""
    taken = reader.read(0.0)
    assert taken is not None
    assert taken.lasting
    assert taken.received == 0
    assert len(taken.events) == 0
    reader.confirm(taken, {})
    return json.loads(json.dumps(taken.reached))  # type: ignore[no-any-return]


def all_of(reader: CdcReader, reached: dict[str, Any] | None = None) -> list[list[tuple[Any, ...]]]:
    """Everything that is there, by portions, each of them kept; `reached` is moved on."""
    out = []
    while (taken := reader.read(0.0)) is not None:
        assert not taken.events.rejected
        reader.confirm(taken, {})
        out.append(rows(taken))
        if reached is not None:
            reached |= json.loads(json.dumps(taken.reached))
    return out


def rejected(reader: CdcReader) -> list[tuple[str, str]]:
    taken = reader.read(0.0)
    assert taken is not None
    reader.confirm(taken, {})
    return [(r.reason, r.text) for r in taken.events.rejected]


def test_new_rows_come_in_the_order_of_the_column(world: World) -> None:
    world.table("orders", "k VARCHAR(9), ID INT")
    world.run("INSERT INTO orders VALUES ('old', 5), ('older', 4)")
    reader = world.reader("Orders" if world.is_postgresql else "orders")
    reached = begun(reader)
    assert list(reached) == [PLACE, f"{'Orders' if world.is_postgresql else 'orders'}.id"]
    assert all_of(reader) == []
    world.run("INSERT INTO orders VALUES ('c', 8), ('a', 6), ('never', NULL), ('b', 7), ('less', 3)")
    assert all_of(reader, reached) == [[(6, "a"), (7, "b"), (8, "c")]]
    world.run("INSERT INTO orders VALUES ('d', 9)", "UPDATE orders SET ID = 10 WHERE k = 'a'")
    other = world.reader("Orders" if world.is_postgresql else "orders", reached=reached)
    assert all_of(other) == [[(9, "d"), (10, "a")]]


def test_an_empty_table_is_read_whole(world: World) -> None:
    world.table("empty", "id INT, k VARCHAR(9)")
    reached = begun(world.reader("empty"))
    world.run("INSERT INTO empty VALUES (-7, 'a'), (NULL, 'n'), (2, 'b')")
    again = world.reader("empty", reached=reached)
    assert all_of(again, reached) == [[(-7, "a"), (2, "b")]]
    assert all_of(world.reader("empty", reached=reached)) == []


def test_what_was_not_kept_is_read_again(world: World) -> None:
    world.table("again", "id INT, k VARCHAR(9)")
    reader = world.reader("again")
    begun(reader)
    world.run("INSERT INTO again VALUES (1, 'a')")
    first, second = reader.read(0.0), reader.read(0.0)
    assert first is not None
    assert second is not None
    assert rows(first) == rows(second) == [(1, "a")]


def test_rows_of_equal_value_are_not_split(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cdc, "PORTION", 3)
    world.table("ties", "id INT, k VARCHAR(9)")
    reader = world.reader("ties")
    begun(reader)
    assert reader.behind() is None
    values = [1, 2, 3, 3, 3, 3, 3, 4, 5, 5, 6, 7, 8]
    world.run("INSERT INTO ties VALUES " + ", ".join(f"({v}, 'k{i}')" for i, v in enumerate(values)))
    taken = reader.read(0.0)
    assert taken is not None
    assert reader.behind() is None  # how much there is more is not known
    reader.confirm(taken, {})
    found = [rows(taken), *all_of(reader)]
    assert [[r[0] for r in portion] for portion in found] == [[1, 2], [3, 3, 3, 3, 3], [4], [5, 5], [6, 7], [8]]
    behind = reader.behind()
    assert behind is not None
    assert behind.parts == {"ties.id": 0}


def test_what_is_read_and_not_kept_is_behind(world: World) -> None:
    world.table("awaited", "id INT, k VARCHAR(9)")
    reader = world.reader("awaited")
    begun(reader)
    assert reader.read(0.0) is None
    first = reader.behind()
    world.run("INSERT INTO awaited VALUES (1, 'a')")
    since = time.monotonic()
    taken = reader.read(0.0)
    assert taken is not None
    assert reader.behind() == first  # of the poll before
    reader.confirm(taken, {})
    behind = reader.behind()
    assert behind is not None
    assert behind.at >= since


def test_texts_are_equal_where_the_database_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cdc, "PORTION", 2)
    kind = "VARCHAR(9)" if world.is_postgresql else "VARCHAR(9) COLLATE utf8mb4_general_ci"
    world.table("texts", f"id INT, k {kind}")
    reader = world.reader("texts", "k")
    reached = begun(reader)
    world.run("INSERT INTO texts VALUES (1, 'B'), (2, 'a'), (3, 'b'), (4, 'c')")
    expected = [["B", "a"], ["b", "c"]] if world.is_postgresql else [["a", "B", "b"], ["c"]]
    assert [sorted(k for _, k in portion) for portion in all_of(reader, reached)] == [sorted(e) for e in expected]
    world.run("INSERT INTO texts VALUES (5, 'C'), (6, 'd''; --')")
    assert [r[1] for p in all_of(world.reader("texts", "k", reached=reached)) for r in p] == ["d'; --"]


TIMES = {"postgresql": "TIMESTAMPTZ", "mariadb": "TIMESTAMP(6) NULL"}
COLUMNS = [
    ("BIGINT", ["3000000000", "9223372036854775807"]),
    ("DECIMAL(20, 3)", ["1.001", "1.002", "100"]),
    ("VARCHAR(9)", ["'S001'", "'S002'"]),
    ("{datetime}", ["'2024-01-31 10:00:00.000001'", "'2024-01-31 10:00:00.000002'"]),
    ("{zoned}", ["'2024-01-31 10:00:00.000001'", "'2024-03-31 02:30:00'"]),
    ("DATE", ["'2024-01-31'", "'2024-02-01'"]),
]


@pytest.mark.parametrize(("type", "values"), COLUMNS, ids=[t for t, _ in COLUMNS])
def test_each_type_of_column_has_a_position(world: World, type: str, values: list[str]) -> None:
    datetime = "TIMESTAMP" if world.is_postgresql else "DATETIME(6)"
    made = type.format(datetime=datetime, zoned=TIMES[world.server.database.kind])
    world.table("typed", f"id INT, at {made}")
    reached = begun(world.reader("typed", "at", schema=schema_of(id="int", at="string")))
    schema = schema_of(id="int", at="string")
    for i, value in enumerate(values):
        world.run(f"INSERT INTO typed VALUES ({i}, {value})")
        reader = world.reader("typed", "at", schema=schema, reached=reached)
        assert [[r[0] for r in p] for p in all_of(reader, reached)] == [[i]]
    assert all_of(world.reader("typed", "at", schema=schema, reached=reached)) == []
    assert begun(world.reader("typed", "at", schema=schema)) == reached  # the greatest value is the same position


def test_values_become_those_of_the_attributes(world: World) -> None:
    flag, small = ("BOOLEAN", "BOOLEAN") if world.is_postgresql else ("BOOLEAN", "BIT(1)")
    zoned = TIMES[world.server.database.kind]
    world.table(
        "typing",
        f"id INT, a INT, d DECIMAL(9, 2), f {'REAL' if world.is_postgresql else 'FLOAT'}, g DOUBLE PRECISION, "
        f"t TEXT, y {flag}, z {small}, at TIMESTAMP NULL, dt DATE, zoned {zoned}",
    )
    schema = schema_of(
        id="long", a="double", d="double", price="string", f="float", g="double", t="string", y="bool", z="bool",
        at="string", ms="long", dt="string", utc="long",
    )  # fmt: skip
    places = {name: name for name in schema.names} | {"price": "d", "ms": "at", "utc": "zoned"}
    attributes = ", ".join(f"{a}='{c.upper()}'" for a, c in places.items())
    mapping = mapped(f"@map(type='keyvalue', @attributes({attributes}))", schema)
    reader = world.reader("typing", mapping=mapping, schema=schema)
    begun(reader)
    true = "TRUE" if world.is_postgresql else "b'1'"
    at = "'2024-01-31 10:00:00+00'" if world.is_postgresql else "'2024-01-31 10:00:00'"
    world.run(
        "SET time_zone = '+00:00'" if not world.is_postgresql else "SET TIME ZONE 'UTC'",
        f"INSERT INTO typing VALUES (1, 7, 12.50, 1.5, 0.1, 'ü', TRUE, {true}, '2024-01-31 10:00:00', "
        f"'2024-02-29', {at})",
    )
    assert all_of(reader) == [
        [(1, 7.0, 12.5, "12.50", 1.5, 0.1, "ü", True, True, "2024-01-31 10:00:00.0", 1706695200000, "2024-02-29",
          1706695200000)]
    ]  # fmt: skip


def test_rows_that_do_not_fit_are_rejected(world: World) -> None:
    world.table("bad", "id BIGINT, k VARCHAR(9), v DECIMAL(30, 1), b BOOLEAN")
    schema = schema_of(id="long", k="string", v="int", b="bool")
    mapping = mapped(schema=schema)
    reader = world.reader("bad", schema=schema, mapping=mapping)
    begun(reader)
    world.run(
        "INSERT INTO bad VALUES (1, 'a', 1, TRUE), (2, 'b', 2.5, FALSE), (3, NULL, 3, TRUE), "
        "(4, 'd', 99999999999999999999, TRUE), (5, 'e', 5, FALSE)"
    )
    taken = reader.read(0.0)
    assert taken is not None
    assert rows(taken) == [(1, "a", 1, True), (5, "e", 5, False)]
    assert taken.received == 5
    assert taken.events.message.tolist() == [0, 4]
    assert [(r.message, r.reason) for r in taken.events.rejected] == [
        (1, "v: 2.5 is not an int"),
        (2, "it has no value in column 'k' for k"),
        (3, "v: 99999999999999999999.0 is not an int"),
    ]
    texts = [r.text for r in taken.events.rejected]
    assert json.loads(texts[0]) == {"id": 2, "k": "b", "v": "2.5", "b": False}
    assert json.loads(texts[1]) == {"id": 3, "v": 3, "b": True}
    read = decoder(_rows_as_json(schema, mapping), schema)
    assert read.decode([t.encode() for t in texts]).rejected[1].reason == "it has no '$['k']' for k"
    mended = read.decode([texts[0].replace('"2.5"', "2").encode(), texts[1].replace("{", '{"k": null, ').encode()])
    assert [c.to_pylist() for c in mended.columns] == [[2, 3], ["b", None], [2, 3], [False, True]]


ODD = [
    ("TIMESTAMP", ["'infinity'", "'-infinity'", "'0044-03-15 10:00:00 BC'", "'12024-01-01 00:00:00'"]),
    ("TIMESTAMPTZ", ["'infinity'", "'0044-03-15 10:00:00+00 BC'", "'12024-01-01 00:00:00+00'"]),
    ("DATE", ["'infinity'", "'-infinity'", "'0044-03-15 BC'", "'12024-01-01'"]),
    ("TIME", ["'24:00:00'"]),
    ("TIMETZ", ["'24:00:00+00'"]),
    ("INTERVAL", ["'100000000 years'"]),
    ("JSONB", ["('{\"n\": ' || repeat('9', 5000) || '}')::jsonb", "(repeat('[', 3000) || repeat(']', 3000))::jsonb"]),
]


@pytest.mark.parametrize(("type", "values"), ODD, ids=[t for t, _ in ODD])
@pytest.mark.parametrize("attribute", ["string", "long"])
def test_a_value_that_python_does_not_have_is_an_error_of_its_row(
    world: World, type: str, values: list[str], attribute: str
) -> None:
    if not world.is_postgresql:
        pytest.skip("values of PostgreSQL")
    schema = schema_of(id="long", v=attribute)
    world.table("odd", f"id BIGINT, v {type}")
    reader = world.reader("odd", schema=schema, mapping=mapped(schema=schema))
    begun(reader)
    world.run(*(f"INSERT INTO odd VALUES ({i}, {v})" for i, v in enumerate(values)))
    world.run(f"INSERT INTO odd VALUES ({len(values)}, NULL)")
    taken = reader.read(0.0)
    assert taken is not None
    assert [r.message for r in taken.events.rejected] == list(range(len(values) + 1))
    assert all("cannot be read: " in r.reason for r in taken.events.rejected[:-1])
    if type != "JSONB":
        assert json.loads(taken.events.rejected[0].text)["v"] == str(values[0]).strip("'")
    reader.confirm(taken, {})
    world.run("INSERT INTO odd VALUES (100, NULL)")
    assert [r for r, _ in rejected(reader)] == ["it has no value in column 'v' for v"]


def test_arrays_of_values_that_python_does_not_have(world: World) -> None:
    if not world.is_postgresql:
        pytest.skip("values of PostgreSQL")
    schema = schema_of(id="long", v="string")
    world.table("odd", "id BIGINT, v DATE[]")
    reader = world.reader("odd", schema=schema, mapping=mapped(schema=schema))
    begun(reader)
    world.run("INSERT INTO odd VALUES (1, '{infinity,2024-01-31}'), (2, '{2024-01-31}')")
    assert all_of(reader) == [[(1, '["infinity", "2024-01-31"]'), (2, '["2024-01-31"]')]]


ENDLESS = [
    ("NUMERIC", ["'NaN'", "'Infinity'"], ["'-Infinity'", "1", "2.5"]),
    ("NUMERIC(9, 2)", ["'NaN'"], ["1", "2.5"]),
    ("TIMESTAMP", ["'infinity'"], ["'-infinity'", "'0044-03-15 10:00:00 BC'", "'2024-01-31'", "'12024-01-01'"]),
    ("TIMESTAMPTZ", ["'infinity'"], ["'0044-03-15 10:00:00+00 BC'", "'2024-01-31+00'", "'12024-01-01+00'"]),
    ("DATE", ["'infinity'"], ["'-infinity'", "'0044-03-15 BC'", "'2024-01-31'", "'12024-01-01'", "'12024-01-02'"]),
]


@pytest.mark.parametrize(("type", "endless", "others"), ENDLESS, ids=[t for t, _, _ in ENDLESS])
def test_a_value_that_nothing_follows_is_no_position(
    world: World, type: str, endless: list[str], others: list[str]
) -> None:
    if not world.is_postgresql:
        pytest.skip("values of PostgreSQL")
    world.table("endless", f"at {type}, id BIGINT")
    schema = schema_of(id="long")
    first = world.reader("endless", "at", schema=schema)
    reached = begun(first)
    world.run(*(f"INSERT INTO endless VALUES ({v}, {-1 - i})" for i, v in enumerate(endless)))
    reader = world.reader("endless", "at", schema=schema, reached=reached)
    taken = reader.read(0.0)
    assert taken is not None
    assert taken.lasting
    assert all("which no row can come after" in r.reason for r in taken.events.rejected)
    told = {json.loads(r.text)["id"] for r in taken.events.rejected}
    assert told == {-1 - i for i in range(len(endless))}
    reader.confirm(taken, {})
    reached |= json.loads(json.dumps(taken.reached))
    assert reader.read(0.0) is None
    for i, value in enumerate(others):
        world.run(f"INSERT INTO endless VALUES ({value}, {i})")
        again = world.reader("endless", "at", schema=schema, reached=reached)
        assert all_of(again, reached) == [[(i,)]]
    assert all_of(world.reader("endless", "at", schema=schema, reached=reached)) == []
    assert begun(world.reader("endless", "at", schema=schema)) == reached
    world.run(f"INSERT INTO endless VALUES ({endless[0]}, 77)")
    again = world.reader("endless", "at", schema=schema, reached=reached)
    assert [json.loads(text) for _, text in rejected(again)] == [{"id": 77}]


def test_mysql_has_a_date_that_python_does_not_have(world: World) -> None:
    if world.is_postgresql:
        pytest.skip("a value of MySQL")
    world.table("zero", "id BIGINT, at DATE")
    schema = schema_of(id="long", at="string")
    reached = begun(world.reader("zero", "at", schema=schema, mapping=mapped(schema=schema)))
    for i, value in enumerate(["0000-00-00", "2024-01-31"]):
        world.run("SET sql_mode = ''", f"INSERT INTO zero VALUES ({i}, '{value}')")
        reader = world.reader("zero", "at", schema=schema, mapping=mapped(schema=schema), reached=reached)
        assert all_of(reader, reached) == [[(i, value)]]


def test_a_row_that_nothing_foresees_is_an_error_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(values: Sequence[Any], type: Type) -> Any:
        if "bad" in values:
            raise RuntimeError("no such thing")
        return typed(values, type)

    typed = typed_column
    monkeypatch.setattr(row_decoding, "typed_column", fails)
    world.table("unforeseen", "id BIGINT, k VARCHAR(9)")
    reader = world.reader("unforeseen")
    begun(reader)
    world.run("INSERT INTO unforeseen VALUES (1, 'a'), (2, 'bad'), (3, 'c')")
    taken = reader.read(0.0)
    assert taken is not None
    assert rows(taken) == [(1, "a"), (3, "c")]
    assert taken.events.message.tolist() == [0, 2]
    assert [(r.message, r.reason) for r in taken.events.rejected] == [
        (1, "the row cannot be read: RuntimeError: no such thing")
    ]


def test_nulls_where_they_are_allowed(world: World) -> None:
    world.table("nulls", "id BIGINT, k VARCHAR(9)")
    schema = schema_of(id="long", k="string", other="int")
    reader = world.reader(
        "nulls", schema=schema, mapping=mapped("@map(type='keyvalue', fail.on.missing.attribute='false')", schema)
    )
    begun(reader)
    world.run("INSERT INTO nulls VALUES (1, NULL)")
    assert all_of(reader) == [[(1, None, None)]]


WRONG = [
    ("nowhere", "id", "has no table 'nowhere'"),
    ("recs", "id", "has no table 'recs'. Did you mean 'recz'?"),
    ("recz", "idd", "has no column 'idd'. Did you mean 'id'?"),
    ("recz", "v", "rows are read by a whole number, a decimal"),
    ("other.recz", "id", "has no table 'other.recz'"),
    ("recz; DROP TABLE recz", "id", "has no table 'recz; DROP TABLE recz'"),
    ("recz", "id) OR (1=1", "has no column 'id) OR (1=1'"),
    ("recz WHERE 1=1 --", "id", "has no table"),
]


@pytest.mark.parametrize(("table", "column", "message"), WRONG)
def test_what_is_not_there_is_said(world: World, table: str, column: str, message: str) -> None:
    world.table("recz", "id INT, k VARCHAR(9), v DOUBLE PRECISION")
    with pytest.raises(SourceUnavailable) as error:
        world.reader(table, column)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    world.table("recz", "id INT")  # it is still there
    with pytest.raises(SourceUnavailable, match=r"table 'recz' in .* has no column 'k'"):
        world.reader("recz")


def test_names_are_only_names(world: World) -> None:
    q = '"' if world.is_postgresql else "`"
    table, column = f"{q}select %s 'x; --{q}", f"{q}Order By{q}"
    world.table(table, f"{column} INT, k VARCHAR(9)")
    schema = schema_of(n="int", k="string")
    mapping = mapped("@map(type='keyvalue', @attributes(n='order by', k='k'))", schema)
    reader = world.reader("select %s 'x; --", "Order By", mapping=mapping, schema=schema)
    begun(reader)
    world.run(f"INSERT INTO {table} VALUES (1, 'a')")
    assert all_of(reader) == [[(1, "a")]]


def test_another_schema(world: World) -> None:
    schema = "extra" if world.is_postgresql else world.server.database.name
    if world.is_postgresql:
        world.run("CREATE SCHEMA IF NOT EXISTS extra")
    world.table(f"{schema}.within", "id INT, k VARCHAR(9)")
    reader = world.reader(f"{schema}.within")
    begun(reader)
    world.run(f"INSERT INTO {schema}.within VALUES (1, 'a')")
    assert all_of(reader) == [[(1, "a")]]


def test_a_view(world: World) -> None:
    world.run("DROP VIEW IF EXISTS large")
    world.table("all_of_it", "id INT, k VARCHAR(9)")
    world.run("CREATE VIEW large AS SELECT id, k FROM all_of_it WHERE id > 1")
    reader = world.reader("large")
    begun(reader)
    world.run("INSERT INTO all_of_it VALUES (1, 'a'), (2, 'b')")
    assert all_of(reader) == [[(2, "b")]]


def test_a_wrong_password_is_not_shown(world: World) -> None:
    with pytest.raises(SourceUnavailable) as error:
        world.reader("orders", password=Secret("geheim-4711"))
    assert "siddhi" in str(error.value)
    assert "geheim" not in str(error.value)
    assert "geheim" not in repr(
        PolledTable(replace(world.server.database, password=Secret("geheim")), "t", "id").database
    )


def test_another_table_or_column_begins_anew(world: World) -> None:
    world.table("first_one", "id INT, k VARCHAR(9)")
    world.table("second_one", "id INT, k VARCHAR(9)")
    world.run("INSERT INTO first_one VALUES (5, 'a')", "INSERT INTO second_one VALUES (2, 'b')")
    reached = begun(world.reader("first_one"))
    reader = world.reader("second_one", reached=reached)
    here = str(world.server.database)
    assert begun(reader) == {PLACE: here, "first_one.id": None, "second_one.id": ["number", "2"]}
    world.run("INSERT INTO second_one VALUES (3, 'c')")
    assert all_of(reader) == [[(3, "c")]]


def test_a_column_of_another_type_begins_anew(world: World) -> None:
    world.table("changed", "id INT, k VARCHAR(9)")
    world.run("INSERT INTO changed VALUES (5, 'a')")
    reached = begun(world.reader("changed"))
    world.table("changed", "id VARCHAR(9), k VARCHAR(9)")
    world.run("INSERT INTO changed VALUES ('77', 'b')")
    reader = world.reader("changed", reached=reached, said="had values such as 5 and now has 77")
    assert begun(reader) == {"changed.id": ["text", "77"]}


class Table:
    """A table `trades` with rows of these ids, in a database that nobody asks."""

    name, column = "trades", "id"

    def __init__(self, database: Database, *ids: int) -> None:
        self.database, self.ids = database, ids

    def open(self, wanted: Sequence[str], *, all_needed: bool) -> None: ...

    def greatest(self) -> Any:
        return max(self.ids, default=None)

    def after(self, last: Any, most: int) -> tuple[list[PolledRow], bool]:
        return [PolledRow(i, (i, f"k{i}")) for i in self.ids if last is None or i > last], False

    def endless(self, most: int) -> list[PolledRow]:
        return []

    def close(self) -> None: ...


STAGING, LIVE = from_jdbc("jdbc:postgresql://staging/shop", "me"), from_jdbc("jdbc:postgresql://live/shop", "me")
OLD = {"trades.id": ["number", "7"]}
PLACES: list[tuple[Database, dict[str, Any], list[int], str | None]] = [
    (STAGING, {**OLD, PLACE: str(STAGING)}, [8, 9], None),
    (replace(STAGING, user="you", pool=1), {**OLD, PLACE: str(STAGING)}, [8, 9], None),
    (STAGING, OLD, [8, 9], None),  # of an app that knew no databases
    (LIVE, {**OLD, PLACE: str(STAGING)}, [10],
     f"it has read from {STAGING} until now: at {LIVE} it begins anew, behind id 9, and the entries up to that one "
     "are not read"),
]  # fmt: skip


@pytest.mark.parametrize(("database", "reached", "found", "said"), PLACES)
def test_a_position_is_of_one_database(
    database: Database, reached: dict[str, Any], found: list[int], said: str | None
) -> None:
    table: Any = Table(database, 5, 8, 9)
    reader = CdcReader(table, mapped(), SCHEMA, 0.0)
    assert reader.open(reached) == said
    kept = dict(reached)
    if reached.get(PLACE) != str(database):
        kept |= begun(reader)
    if said:
        table.ids = (*table.ids, 10)
    assert [i for p in all_of(reader, kept) for i, _ in p] == found
    assert kept[PLACE] == str(database)
    assert reader.open(kept) is None
    assert reader.read(0.0) is None


def test_another_database_whose_table_is_empty() -> None:
    reader = CdcReader(Table(LIVE), mapped(), SCHEMA, 0.0)  # type: ignore[arg-type]
    said = reader.open({**OLD, PLACE: str(STAGING)})
    assert said == f"it has read from {STAGING} until now: at {LIVE} it begins anew, with its table, which is empty"
    assert begun(reader) == {PLACE: str(LIVE), "trades.id": ["none", ""]}


def test_a_server_that_goes_and_comes_back(world: World) -> None:
    world.table("lasting", "id INT, k VARCHAR(9)")
    reader = world.reader("lasting")
    reached = begun(reader)
    world.run("INSERT INTO lasting VALUES (1, 'a')")
    assert all_of(reader, reached) == [[(1, "a")]]
    world.server.stop()
    with pytest.raises(SourceUnavailable):
        reader.read(0.0)
    with pytest.raises(SourceUnavailable):
        reader.open(reached)
    world.server.start()
    world.engine.dispose()
    world.run("INSERT INTO lasting VALUES (2, 'b')")
    assert reader.open(reached) is None
    assert all_of(reader) == [[(2, "b")]]


def test_a_table_that_is_dropped_and_made_again(world: World) -> None:
    world.table("renewed", "id INT, k VARCHAR(9)")
    reader = world.reader("renewed")
    reached = begun(reader)
    world.run("DROP TABLE renewed")
    with pytest.raises(SourceUnavailable):
        reader.read(0.0)
    with pytest.raises(SourceUnavailable, match="has no table 'renewed'"):
        reader.open(reached)
    world.table("renewed", "k VARCHAR(9), id INT")
    assert reader.open(reached) is None
    world.run("INSERT INTO renewed VALUES ('a', 1)")
    assert all_of(reader) == [[(1, "a")]]


def test_a_query_under_way_is_ended(world: World) -> None:
    world.table("locked", "id INT, k VARCHAR(9)")
    reader = world.reader("locked")
    begun(reader)
    failed: list[str] = []

    def read() -> None:
        try:
            reader.read(60.0)
        except SourceUnavailable as away:
            failed.append(str(away))

    with world.engine.connect() as c:
        c.exec_driver_sql("LOCK TABLE locked" if world.is_postgresql else "LOCK TABLES locked WRITE")
        thread = threading.Thread(target=read)
        thread.start()
        while reader._table._busy is None:
            time.sleep(0.01)
        time.sleep(0.1)
        reader.cancel()
        thread.join(10)
        assert not thread.is_alive()
        if not world.is_postgresql:
            c.exec_driver_sql("UNLOCK TABLES")
    assert len(failed) == 1


def test_a_pause_between_polls_is_kept(world: World) -> None:
    world.table("paused", "id INT, k VARCHAR(9)")
    table = PolledTable(world.server.database, "paused", "id")
    reader = CdcReader(table, mapped(), SCHEMA, 3600.0)
    world.readers.append(reader)
    reader.open({})
    begun(reader)
    assert reader.read(0.0) is None
    world.run("INSERT INTO paused VALUES (1, 'a')")
    assert reader.read(0.05) is None
    reader.cancel()
    began = time.monotonic()
    assert reader.read(60.0) is None
    assert time.monotonic() - began < 10
