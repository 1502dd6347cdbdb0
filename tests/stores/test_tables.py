"""Tables of apps in databases: a node's micro-batch over `runners.tables`, repeated, contended, refused."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from sparkstream_nb.errors import StoreError
from sparkstream_nb.journal.checkpoints import LocalFiles
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.table_requests import TableChanges, Term, layout_of
from sparkstream_nb.runners.database_tables import BatchOf, NodeTables, with_tables
from sparkstream_nb.runners.packed_tables import pack_tables
from sparkstream_nb.stores.address import Database, Secret
from sparkstream_nb.stores.dialects import DIALECTS
from sparkstream_nb.stores.tables import SqlTables

from .conftest import Databases
from .trades import LIKE_A_PARAMETER

KINDS = ["sqlite", "postgresql", "mariadb"]
STORE = "@store(type='rdbms', jdbc.url='jdbc:sqlite:unused'{})"
COLUMNS = "(name string, i int, l long, f float, d double, b bool)"
ROWS = [
    ("a", 1, 2**62, 1.100000023841858, 0.1, True),
    ("A", -1, -(2**63), None, -0.0, False),
    ("é'; drop", None, None, 3.5, 1e300, None),
]


def table(definition: str) -> Any:
    """The layout of a table, defined behind its `@store`."""
    plan = compile_app(definition)
    (found,) = plan.tables.values()
    return layout_of(found, plan.properties)


KEYED = table(STORE.format("") + f"@primaryKey('name') @index('i') define table Keyed {COLUMNS};")
PLAIN = table(STORE.format("") + f"define table Plain {COLUMNS};")


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, databases: Databases, tmp_path: Path) -> Database:
    found = databases(request.param, tmp_path)
    SqlTables(found, [KEYED, PLAIN]).prepare()
    return found


Batch = Callable[..., Any]


@pytest.fixture
def batch(database: Database, tmp_path: Path) -> Batch:
    """Runs a function over `NodeTables` as the micro-batch of a number."""

    def run(number: int, work: Callable[[NodeTables], Any], node: int = 0) -> Any:
        blob = pack_tables([(database, (KEYED, PLAIN))])
        return with_tables(blob, BatchOf("run", node, str(number)), LocalFiles(tmp_path), work)

    return run


def written(*changes: TableChanges) -> Callable[[NodeTables], None]:
    return lambda tables: tables.end(changes)


def read(name: str, *wanted: tuple[Term, ...]) -> Callable[[NodeTables], list[Any]]:
    """Reads rows; all of the table where none is `wanted`."""

    def work(tables: NodeTables) -> list[Any]:
        rows = sorted(tables.fetch(name, wanted or None), key=repr)
        tables.end([])
        return rows

    return work


def by_name(name: str) -> tuple[Term, ...]:
    return (Term(0, "==", name),)


def test_rows_come_back_as_they_were(batch: Batch) -> None:
    for i, name in enumerate(("Keyed", "Plain")):
        batch(3 * i, written(TableChanges(name, [], ROWS)))
        found = batch(3 * i + 1, read(name))
        assert found == sorted(ROWS, key=repr)
        assert [[type(v) for v in row] for row in found] == [[type(v) for v in row] for row in sorted(ROWS, key=repr)]


def test_only_wanted_rows_come(batch: Batch) -> None:
    batch(0, written(TableChanges("Keyed", [], [(f"k{i}", i, i, None, i / 2, None) for i in range(1000)])))
    many = [by_name(f"k{i}") for i in range(0, 1000, 2)]
    assert len(batch(1, read("Keyed", *many))) == 500
    between = (Term(2, ">=", 10), Term(4, "<", 6.0))
    assert [r[0] for r in batch(2, read("Keyed", between))] == ["k10", "k11"]
    assert batch(3, read("Keyed", by_name("' or 1=1 --"), by_name("nul\0"))) == []


def test_names_are_not_parameters(databases: Databases, tmp_path: Path, database: Database) -> None:
    definition = f"@primaryKey('100%d') define table Odd (`100%d` string, `{LIKE_A_PARAMETER}` int);"
    odd = table(STORE.format(", table.name='50%s'") + definition)
    SqlTables(database, [odd]).prepare()
    blob = pack_tables([(database, (odd,))])

    def batch(number: int, work: Callable[[NodeTables], Any]) -> Any:
        return with_tables(blob, BatchOf("run", 0, str(number)), LocalFiles(tmp_path), work)

    many = [(f"k%s{i}", i) for i in range(3000)]
    batch(0, written(TableChanges("Odd", [], many[:1])))
    batch(1, written(TableChanges("Odd", [], many)))
    assert batch(2, read("Odd", by_name("k%s7"))) == [("k%s7", 7)]
    batch(3, written(TableChanges("Odd", [("k%s7",)], [])))
    assert len(batch(4, read("Odd"))) == 2999


def test_rows_are_replaced_and_removed(batch: Batch) -> None:
    batch(0, written(TableChanges("Keyed", [], ROWS), TableChanges("Plain", [], [*ROWS, *ROWS])))
    other = ("a", 9, 9, 9.5, 9.0, None)
    batch(1, written(TableChanges("Keyed", [("A",), ("none",)], [other]), TableChanges("Plain", ROWS[:2], [ROWS[0]])))
    assert batch(2, read("Keyed")) == sorted([other, ROWS[2]], key=repr)
    assert batch(3, read("Plain")) == sorted([ROWS[0], ROWS[2], ROWS[2]], key=repr)


def test_a_repeated_batch_reads_what_it_read_and_changes_nothing(batch: Batch) -> None:
    def count(tables: NodeTables) -> list[Any]:
        rows = tables.fetch("Keyed", [by_name("a")])
        tables.end([TableChanges("Keyed", [], [("a", (rows[0][1] if rows else 0) + 1, *[None] * 4)])])
        return [*rows]

    assert batch(0, count) == []
    assert batch(0, count) == []
    assert batch(1, count) == [("a", 1, None, None, None, None)]
    batch(0, written(TableChanges("Keyed", [], [("a", 50, *[None] * 4)])), node=1)
    assert batch(1, count) == [("a", 1, None, None, None, None)]
    assert batch(2, count) == [("a", 50, None, None, None, None)]


def test_a_batch_that_only_reads_reads_the_same_again(batch: Batch) -> None:
    assert batch(0, read("Plain")) == []
    batch(0, written(TableChanges("Plain", [], ROWS)), node=1)
    assert batch(0, read("Plain")) == []
    assert len(batch(1, read("Plain"))) == 3


def test_a_batch_that_was_cut_off_reads_anew(batch: Batch) -> None:
    """Its changes are not there, so nobody has seen what it made of what it read."""

    class CutOff(Exception):
        pass

    def cut(tables: NodeTables) -> None:
        tables.fetch("Plain", None)
        tables._keep(True)
        raise CutOff

    with pytest.raises(CutOff):
        batch(0, cut)
    batch(0, written(TableChanges("Plain", [], ROWS)), node=1)
    assert len(batch(0, read("Plain"))) == 3


def test_nodes_that_write_at_once_lose_nothing(batch: Batch) -> None:
    def count(tables: NodeTables) -> None:
        rows = tables.fetch("Keyed", [by_name("a")])
        tables.end([TableChanges("Keyed", [], [("a", (rows[0][1] if rows else 0) + 1, *[None] * 4)])])

    failures: list[BaseException] = []

    def node(number: int) -> None:
        try:
            for i in range(40):
                batch(i, count, node=number)
        except BaseException as e:
            failures.append(e)
            raise

    threads = [threading.Thread(target=node, args=(n,)) for n in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert failures == []
    assert [r[1] for r in batch(99, read("Keyed"))] == [120]


def test_what_the_database_cannot_hold_is_told(database: Database, tmp_path: Path) -> None:
    short = table(STORE.format(", field.length='name:3'") + "define table Short (name string, d double);")
    tables = SqlTables(database, [short])
    tables.prepare()
    source = NodeTables([tables], BatchOf("run", 0, "0"), LocalFiles(tmp_path))
    assert source.unfit("Short", ("abc", 1.0)) is None
    assert source.unfit("Short", ("abcd", 1.0)) == "'name' has 4 characters, and its column in Short holds 3"
    nul, nan = source.unfit("Short", ("a\0", 1.0)), source.unfit("Short", ("a", math.nan))
    assert (nul is not None) == (database.kind == "postgresql")
    assert (nan is not None) == (database.kind != "postgresql")
    tables.close()


def test_a_table_of_another_shape_is_refused(database: Database) -> None:
    for wanted in (
        table(STORE.format(", table.name='Keyed'") + "define table T (name string, i string, more int);"),
        table(STORE.format(", table.name='Keyed'") + "@primaryKey('i') define table T (name string, i int);"),
    ):
        with pytest.raises(StoreError, match="does not fit table 'T' of the app") as raised:
            SqlTables(database, [wanted]).prepare()
        assert "primary key is name, not" in str(raised.value).lower()


def test_indexes_over_one_attribute_and_over_several(database: Database) -> None:
    """As apps that WSO2 ships have them; names that are too long for the database are cut."""
    long = "a_name_of_a_table_that_somebody_made_as_long_as_it_can_be"
    indexes = "@primaryKey('k', 'n') @Index('n', 'name') @index('v') @index('name', 'v', 'n')"
    wanted = table(
        STORE.format(f", table.name='{long}'") + indexes + "define table T (k string, n int, name string, v long);"
    )
    tables = SqlTables(database, [wanted])
    tables.prepare()
    tables.prepare()
    tables.close()
    engine = DIALECTS[database.kind].engine(database)
    inspector = sa.inspect(engine)
    assert inspector.get_pk_constraint(long)["constrained_columns"] == ["k", "n"]
    found = sorted([*x["column_names"]] for x in inspector.get_indexes(long))
    assert found == [["n", "name"], ["name", "v", "n"], ["v"]]
    engine.dispose()


def test_a_table_that_is_there_is_used_as_it_is(database: Database, tmp_path: Path) -> None:
    """With further columns, as other programs may need them, and in another order."""
    engine = DIALECTS[database.kind].engine(database)
    with engine.begin() as c:
        c.execute(sa.text("CREATE TABLE there (more INTEGER, v BIGINT, k VARCHAR(20) PRIMARY KEY)"))
        c.execute(sa.text("INSERT INTO there VALUES (7, 1, 'a')"))
    there = table(STORE.format(", table.name='there'") + "@primaryKey('k') define table T (k string, v long);")
    tables = SqlTables(database, [there])
    tables.prepare()
    source = NodeTables([tables], BatchOf("run", 0, "0"), LocalFiles(tmp_path))
    assert source.fetch("T", None) == [("a", 1)]
    source.end([TableChanges("T", [], [("a", 2), ("b", 3)])])
    with engine.connect() as c:
        assert sorted(c.execute(sa.text("SELECT k, v, more FROM there")).all()) == [("a", 2, 7), ("b", 3, None)]
    engine.dispose()
    tables.close()


def test_a_password_is_not_shown(database: Database) -> None:
    if database.is_file:
        return
    wrong = replace(database, password=Secret("hunter2-hunter2"))
    with pytest.raises(StoreError, match="cannot be opened") as raised:
        SqlTables(wrong, [KEYED]).prepare()
    assert "hunter2" not in str(raised.value)


def test_a_file_that_one_process_alone_can_open_is_refused() -> None:
    with pytest.raises(StoreError, match=r"Use PostgreSQL, MySQL, MariaDB or SQLite \(jdbc:sqlite:FILE\)"):
        SqlTables(Database("duckdb", "store.duckdb"), [KEYED])
