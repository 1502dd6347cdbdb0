"""SQL over relations of apps and over frames, by a DuckDB in memory of its own: it reads, and writes nothing.

A catalog is a database of DuckDB's, with a view for each relation. Only relations that a query names are read; of the
others DuckDB knows the columns alone.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Protocol

import duckdb
import pandas as pd
import pyarrow as pa

from ..errors import Misuse, nearest

_LOOK_SECONDS = 0.1
"""Time between two looks at the progress of a query (s)."""
_BATCH_ROWS = 100_000
READING_WORDS = ("from", "select", "with", "pivot", "unpivot", "values", "describe", "summarize", "show", "table")
"""The first words of queries that read."""
_RESERVED = ("memory", "system", "temp")
"""Databases that a DuckDB has from the beginning."""
_NO_EXTENSIONS = {"autoload_known_extensions": "false", "autoinstall_known_extensions": "false"}
"""Without them, DuckDB reaches no addresses."""


@dataclass(frozen=True)
class Relation:
    """Rows that a query may name, in a schema of a catalog; an empty `schema` is the catalog itself."""

    schema: str
    name: str
    columns: pa.Schema = field(compare=False)


@dataclass(frozen=True, eq=False)
class CatalogRows:
    """The rows of relations, and sentences about them."""

    rows: Mapping[Relation, pa.Table]
    remarks: Sequence[str] = ()


class Catalog(Protocol):
    """The relations of an app, or of another thing that is called `name`."""

    @property
    def name(self) -> str: ...

    @property
    def relations(self) -> Sequence[Relation]:
        """All relations."""
        ...

    def read(self, relations: Sequence[Relation]) -> CatalogRows:
        """The rows of relations, all at one moment."""
        ...


@dataclass(frozen=True)
class SqlQuery:
    """A query, the `catalogs` that it may name, and `frames` by name: pandas or Arrow tables, or what gives them. Names
    of relations of the catalog called `home` need no catalog or schema before them. At most `limit` rows are taken."""

    text: str
    catalogs: Sequence[Catalog] = ()
    frames: Mapping[str, Any] = field(default_factory=dict)
    home: str | None = None
    limit: int = 1_000_000


@dataclass(frozen=True, eq=False)
class SqlRows:
    """The rows of an answer; `is_cut`: the query has more than its limit. `remarks`: sentences about how it was
    understood."""

    table: pa.Table
    is_cut: bool
    remarks: Sequence[str]


@dataclass(frozen=True)
class _Word:
    """An identifier of a query, or a text in quotes, in small letters. `is_qualified`: a dot stands before it."""

    text: str
    is_qualified: bool


class SqlSession:
    """One query over relations and frames. `tell` is called with its progress, from 0 to 1, now and then."""

    def __init__(self, query: SqlQuery, tell: Callable[[float], None] = lambda share: None) -> None:
        self._query, self._tell = query, tell
        self._remarks: list[str] = []

    def run(self) -> SqlRows:
        """The answer. Raises `Misuse` for a query that writes, for several, and for one that DuckDB refuses; an
        interrupt ends the query."""
        _check_reads(self._query.text)
        try:
            return self._run()
        except RuntimeError as error:
            if str(error) == "Query interrupted":  # DuckDB's calls say so in place of Python
                raise KeyboardInterrupt from None
            raise

    def _run(self) -> SqlRows:
        with duckdb.connect(config={**_NO_EXTENSIONS, "temp_directory": tempfile.gettempdir()}) as connection:
            with contextlib.suppress(duckdb.InvalidInputException):  # in a notebook without ipywidgets
                connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
            self._add_catalogs(connection)
            self._add_frames(connection)
            try:
                table, is_cut = self._fetch(connection)
            except duckdb.Error as error:
                raise Misuse(self._explain(error)) from None
        return SqlRows(table, is_cut, self._remarks)

    # ------------------------------------------------------------------------------------------------------ relations

    def _add_catalogs(self, connection: duckdb.DuckDBPyConnection) -> None:
        for catalog, name in zip(self._query.catalogs, _catalog_names(self._query.catalogs), strict=True):
            relations = catalog.relations
            schemas = [f"{quote(name)}.{quote(s)}" for s in dict.fromkeys(r.schema or "main" for r in relations)]
            connection.execute(f"ATTACH ':memory:' AS {quote(name)}")
            connection.execute("".join(f"CREATE SCHEMA IF NOT EXISTS {schema};" for schema in schemas))
            self._add_views(connection, catalog, name, relations)
            if catalog.name == self._query.home:
                path = ",".join(schemas).replace("'", "''")
                connection.execute(f"SET search_path = '{path}'")

    def _add_views(
        self, connection: duckdb.DuckDBPyConnection, catalog: Catalog, name: str, relations: Sequence[Relation]
    ) -> None:
        """The views of a catalog that is called `name` here."""
        names = _relation_names(relations)
        chosen = [r for r, n in zip(relations, names, strict=True) if self._is_named(n)]
        catalog_rows = catalog.read(chosen) if chosen else CatalogRows({})
        self._remarks += catalog_rows.remarks
        for relation, relation_name in zip(relations, names, strict=True):
            table = catalog_rows.rows.get(relation)
            remarks = [] if table is None else self._remarks
            path = (name, relation.schema or "main", relation_name)
            _add_view(connection, path, relation.columns.empty_table() if table is None else table, remarks)
            if relation_name != relation.name:
                clash = f"{name}.{relation.schema} has two names that are one to SQL: '{relation.name}'"
                remarks.append(f"{clash} is {quote(relation_name)}")

    def _add_frames(self, connection: duckdb.DuckDBPyConnection) -> None:
        home = next((c for c in self._query.catalogs if c.name == self._query.home), None)
        own_names = {} if home is None else {r.name.lower(): r for r in home.relations}
        for name, value in self._query.frames.items():
            if _Word(name.lower(), False) not in self._words:
                continue
            if (relation := own_names.get(name.lower())) is not None:
                place = ".".join(filter(None, (self._query.home, relation.schema, relation.name)))
                self._remarks.append(f"{name} is {place}, not the variable of that name")
                continue
            rows = rows_of(value)
            if rows is not None:
                connection.register(name, rows)

    def _is_named(self, name: str) -> bool:
        return any(word.text == name.lower() for word in self._words)

    @cached_property
    def _words(self) -> set[_Word]:
        return set(_words_of(self._query.text))

    # --------------------------------------------------------------------------------------------------------- answer

    def _fetch(self, connection: duckdb.DuckDBPyConnection) -> tuple[pa.Table, bool]:
        """The rows, fetched on a thread of their own, so that an interrupt comes through."""
        answers: list[tuple[pa.Table, bool]] = []
        errors: list[BaseException] = []
        end = threading.Event()  # an interrupted Thread.join takes its thread for ended in Python 3.11

        def fetch() -> None:
            try:
                answers.append(_first_rows(connection, self._query.text, self._query.limit))
            except BaseException as error:  # raised below, in the caller's thread
                errors.append(error)
            end.set()

        thread = threading.Thread(target=fetch, name="sql", daemon=True)
        try:
            thread.start()
            while not end.wait(_LOOK_SECONDS):
                share = connection.query_progress()
                if share > 0:
                    self._tell(share / 100)
        except KeyboardInterrupt:
            connection.interrupt()
            while thread in threading.enumerate() and not end.wait(_LOOK_SECONDS):
                connection.interrupt()  # the first is lost where the query has not begun
            raise
        if errors:
            raise errors[0]
        return answers[0]

    def _explain(self, error: duckdb.Error) -> str:
        """DuckDB's message, with the names that there are where it knows none."""
        message = str(error).strip()
        kind, colon, rest = message.partition(" Error: ")
        text = rest if colon and kind.isalpha() else message
        if " requires the extension " in text:
            return f"{text.partition(' requires the extension ')[0]} cannot be read here: SQL reads local files alone"
        beginning, middle, _ = text.partition(" does not exist!")
        if not middle or not beginning.startswith("Table with name "):
            return text
        name = beginning.removeprefix("Table with name ")
        places = [place for place, _ in list_places(self._query.catalogs)]
        ending = [p for p in places if p.rpartition(".")[2].strip('"').lower() == name.lower()]
        if ending:
            return f"there is no variable '{name}' with rows; write {' or '.join(ending[:3])}"
        return nearest(f"there is no relation or variable '{name}'", name, [*places, *self._query.frames])


def list_places(catalogs: Sequence[Catalog]) -> Iterator[tuple[str, Relation]]:
    """All relations with their full names, as a query has them."""
    for catalog, name in zip(catalogs, _catalog_names(catalogs), strict=True):
        relations = catalog.relations
        for relation, relation_name in zip(relations, _relation_names(relations), strict=True):
            yield ".".join(quote(n) for n in (name, relation.schema, relation_name) if n), relation


def _relation_names(relations: Sequence[Relation]) -> list[str]:
    """The names of the relations of a catalog in queries."""
    return distinct_names([r.name for r in relations], [r.schema for r in relations])


def _catalog_names(catalogs: Sequence[Catalog]) -> list[str]:
    """The names of catalogs in queries: DuckDB has databases of its own, and does not tell `A` from `a`."""
    names = [f"{c.name}_app" if c.name.lower() in _RESERVED else c.name for c in catalogs]
    return distinct_names(names, [""] * len(names))


_SQL_TYPES = {
    pa.string(): "VARCHAR", pa.int32(): "INTEGER", pa.int64(): "BIGINT", pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE", pa.bool_(): "BOOLEAN",
}  # fmt: skip


def describe_type(type: pa.DataType) -> str:
    """DuckDB's name of a type."""
    return _SQL_TYPES[type.value_type if pa.types.is_dictionary(type) else type]


def rows_of(value: Any) -> pa.Table | pd.DataFrame | None:
    """The rows of a variable: of a frame of pandas, of whatever gives an Arrow stream, and of a result with a `frame`;
    None if it has none."""
    if isinstance(value, type):
        return None
    if isinstance(value, pa.Table | pd.DataFrame):
        return value
    if hasattr(value, "__arrow_c_stream__"):
        return pa.table(value)
    frame = getattr(value, "frame", None)
    return frame if isinstance(frame, pd.DataFrame) else None


def _add_view(
    connection: duckdb.DuckDBPyConnection, path: tuple[str, str, str], table: pa.Table, remarks: list[str]
) -> None:
    """A view of rows in a schema of a catalog. Columns that SQL does not tell apart get other names, which is added to
    the remarks."""
    catalog, schema, name = path
    columns = table.column_names
    unique = distinct_names(columns, [""] * len(columns))
    if unique != columns:
        changes = ", ".join(f"'{a}' is {quote(b)}" for a, b in zip(columns, unique, strict=True) if a != b)
        remarks.append(f"{catalog}.{schema}.{name} has columns that are one to SQL: {changes}")
        table = table.rename_columns(unique)
    rows_name = f"rows of {catalog}.{schema}.{name}"
    connection.register(rows_name, table)
    connection.execute(f"CREATE VIEW {'.'.join(map(quote, path))} AS FROM temp.{quote(rows_name)}")


def quote(name: str) -> str:
    """A name as SQL has it, in quotes where it needs them."""
    if name.isascii() and name.isidentifier() and name.lower() not in _keywords():
        return name
    return '"' + name.replace('"', '""') + '"'


def distinct_names(names: Sequence[str], groups: Sequence[str]) -> list[str]:
    """The names, those that equal an earlier one of their group but for the case of letters with a number behind."""
    all_names: set[tuple[str, str]] = {(g.lower(), n.lower()) for n, g in zip(names, groups, strict=True)}
    seen: set[tuple[str, str]] = set()
    out = []
    for name, group in zip(names, groups, strict=True):
        number, unique = 2, name
        if (group.lower(), name.lower()) in seen:
            while (group.lower(), (unique := f"{name}_{number}").lower()) in all_names | seen:
                number += 1
        seen.add((group.lower(), unique.lower()))
        out.append(unique)
    return out


def _check_reads(text: str) -> None:
    """Raises `Misuse` for anything but one query that reads."""
    try:
        statements = duckdb.extract_statements(text)
    except duckdb.Error as error:
        raise Misuse(str(error).strip().removeprefix("Parser Error: ")) from None
    if not statements:
        raise Misuse("the query is empty")
    if len(statements) > 1:
        raise Misuse(f"these are {len(statements)} queries: ask one at a time")
    kind = statements[0].type
    first = text[_offset_of_first(text) :].lower()
    # A pivot is several statements to DuckDB; of a statement that begins like these, none of them writes.
    reads = kind == duckdb.StatementType.SELECT or (
        kind == duckdb.StatementType.MULTI and first.startswith((*READING_WORDS, "("))
    )
    if not reads:
        raise Misuse(f"SQL reads here, and this writes or changes something ({kind.name}): write a query (select ...)")


def _offset_of_first(text: str) -> int:
    return next((at for at, kind in duckdb.tokenize(text) if kind != duckdb.token_type.comment), 0)


def _words_of(text: str) -> Iterator[_Word]:
    """The identifiers and quoted texts of a query."""
    tokens = duckdb.tokenize(text)
    ends = [at for at, _ in tokens[1:]] + [len(text)]
    before = ""
    for (begin, kind), end in zip(tokens, ends, strict=True):
        token = text[begin:end].strip()
        if kind in (duckdb.token_type.identifier, duckdb.token_type.keyword, duckdb.token_type.string_const):
            yield _Word(_unquote(token).lower(), before.endswith("."))
        before = token


def _unquote(token: str) -> str:
    mark = token[:1]
    return token[1:-1].replace(mark * 2, mark) if mark in "'\"" and len(token) > 1 else token


def _first_rows(connection: duckdb.DuckDBPyConnection, text: str, limit: int) -> tuple[pa.Table, bool]:
    """At most `limit` rows of a query, and whether it has more."""
    relation = connection.sql(text)
    if relation is None:
        raise Misuse("the query has no rows to give")
    with relation.to_arrow_reader(_BATCH_ROWS) as reader:
        batches, rows = [], 0
        for batch in reader:
            batches.append(batch)
            rows += batch.num_rows
            if rows > limit:
                break
        return pa.Table.from_batches(batches, reader.schema).slice(0, limit), rows > limit


@cache
def _keywords() -> frozenset[str]:
    """The words that are names only in quotes."""
    with duckdb.connect() as connection:
        rows = connection.execute("SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'")
        return frozenset(word for (word,) in rows.fetchall())
