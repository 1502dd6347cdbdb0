"""The databases of a deployment's aggregations and tables.

Deployment files belong to the user who deploys, and so do the databases that they name. An address in an app's text
needs a grant, as addresses of sources and sinks do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl

from ...errors import NOWHERE, Misuse, SiddhiBindError, SparkStreamError, StoreError
from ...lang.tree import Annotation, find_annotation
from ...plan.nodes import AggregationDef, Plan, TableDef
from ...plan.query_parts import connector_options
from ...plan.table_requests import StoredTableLayout, layout_of
from ...stores import DuckDBStore, Store
from ...stores.address import FILE_OPTIONS, Database, Secret, from_jdbc, relative_to
from ...stores.opening import open_database
from ...stores.patience import Patience
from ...stores.several import StoreSet
from ..config.conf import DataSource, NodeFile, data_source
from ..config.grants import Grants, NotAllowed
from ..config.secrets import References, check_password

_BEFORE_OPTIONS = re.compile(r"(?:\$\{[^}]*\}|[^?])*")
"""An address without the options behind its `?`; a `?` in a reference does not count."""


def databases_of(
    plans: Sequence[Plan], nodes: Sequence[NodeFile], references: References, grants: Grants
) -> dict[str, Database]:
    """The database of each aggregation with a `@store`, by the aggregation's id.

    `nodes` are the deployment files, one for each plan, or none. Raises SiddhiBindError, at the annotation, for a
    `@store` that names no database, or that means different ones on different nodes; for an address in the text that
    is not granted, and a password in it that is no reference; and, with deployment files, for an aggregation
    that is partitioned by id and has none.
    """
    stores = _Stores(plans, nodes, references, grants)
    out: dict[str, Database] = {}
    for name, definition in plans[0].aggregations.items():
        store = find_annotation(definition.annotations, "store")
        if store is None:
            if nodes and definition.partitioned:
                raise _at(
                    plans[0], definition,
                    f"aggregation '{name}' is partitioned by id and has no @store: on servers, each node would keep it "
                    "in its own memory",
                    "Write @store(type='rdbms', datasource='NAME').",
                )  # fmt: skip
            continue
        out[name] = stores.database(definition, store)
    return out


Tables = Mapping[Database, tuple[StoredTableLayout, ...]]
"""The tables in each database."""


def tables_of(plans: Sequence[Plan], nodes: Sequence[NodeFile], references: References, grants: Grants) -> Tables:
    """The tables with a `@store`, by database. Parameters and errors are the same as in `databases_of`."""
    stores = _Stores(plans, nodes, references, grants)
    out: dict[Database, tuple[StoredTableLayout, ...]] = {}
    for definition in plans[0].tables.values():
        store = find_annotation(definition.annotations, "store")
        if store is not None:
            database = stores.database(definition, store)
            try:
                layout = layout_of(definition, plans[0].properties)
            except SiddhiBindError as error:
                raise error.with_source(plans[0].text) from None
            out[database] = (*out.get(database, ()), layout)
    return out


def prepare_tables(tables: Tables, patience: Patience) -> None:
    """Makes the tables that are missing. Raises StoreError if a database cannot be reached, or has others."""
    for database, layouts in tables.items():
        from ...stores.tables import SqlTables  # it loads SQLAlchemy

        sql_tables = SqlTables(database, layouts, patience)
        try:
            sql_tables.prepare()
        finally:
            sql_tables.close()


def _name_store(definition: AggregationDef | TableDef) -> str:
    return f"{definition.source.kind} '{definition.source.id}'"


def open_store(
    app_store: Path | str, databases: Mapping[str, Database], patience: Patience, threads: int | None = None
) -> Store:
    """The store of an app: `app_store` is a DuckDB file, which is read and written by `threads` threads. Raises
    StoreError if a database cannot be opened."""
    database_stores: dict[Database, Store] = {}
    try:
        for database in databases.values():
            if database not in database_stores:
                database_stores[database] = open_database(database, patience)
        base = DuckDBStore(app_store, threads=threads)
    except StoreError:
        for store in database_stores.values():
            store.close()
        raise
    return StoreSet(base, {name: database_stores[d] for name, d in databases.items()}) if database_stores else base


def check_stores(
    file: Path | str | None,
    databases: Mapping[str, Database],
    aggregations: Mapping[str, AggregationDef],
    patience: Patience,
) -> None:
    """Makes the tables of aggregations that are missing, in databases and in a DuckDB file outside the app's folder
    (None: there is none). Raises StoreError if a store cannot be opened, or has other tables of these names."""
    by_database: dict[Database, list[AggregationDef]] = {}
    for name, database in databases.items():
        by_database.setdefault(database, []).append(aggregations[name])
    for database, definitions in by_database.items():
        with closing(open_database(database, patience)) as store:
            store.prepare(definitions)
    rest = [definition for name, definition in aggregations.items() if name not in databases]
    if file is not None and rest:
        with closing(DuckDBStore(file)) as store:
            store.prepare(rest)


@dataclass(frozen=True)
class _Stores:
    """The databases that a deployment's `@store`s name: its plans, its deployment files (one for each, or none), and
    the app's grants and references.
    """

    plans: Sequence[Plan]
    nodes: Sequence[NodeFile]
    references: References
    grants: Grants

    def database(self, definition: AggregationDef | TableDef, store: Annotation) -> Database:
        """The database that `@store` means on all nodes."""
        nodes: Sequence[NodeFile | None] = self.nodes or [None] * len(self.plans)
        databases = [self._on(plan, node, definition, store) for plan, node in zip(self.plans, nodes, strict=True)]
        other_database = next((d for d in databases if d != databases[0]), None)
        if other_database is not None:
            raise _at(
                self.plans[0], definition,
                f"the nodes' @store of {_name_store(definition)} differ: {databases[0]} and {other_database}",
                "All nodes of an active-active deployment write to one database.",
            )  # fmt: skip
        return databases[0]

    def _on(
        self, plan: Plan, node: NodeFile | None, definition: AggregationDef | TableDef, store: Annotation
    ) -> Database:
        options = {k.lower(): v for k, v in connector_options(store, plan.properties).items()}
        what = f"@store of {_name_store(definition)}"
        type_ = options.get("type", "")
        if type_.lower() != "rdbms":
            raise _at(plan, definition, f"{what} has type '{type_}', which this build cannot use", "Use type='rdbms'.")
        source_name, url = options.get("datasource"), options.get("jdbc.url")
        try:
            if source_name is not None:
                if node is None:
                    raise Misuse(
                        f"{what} names the data source '{source_name}', and no deployment file defines one: deploy "
                        "with conf=, or --conf"
                    )
                source = data_source(node, source_name)
                place = f"{node.path}: data source {source_name}"
            elif url is not None:
                place, source = what, DataSource("", url, options.get("username"), options.get("password"))
                if store.get("jdbc.url") is not None:  # else it is a deployment file's, by ref
                    self._check_address(url, what)
                if store.get("password") is not None:
                    _check_password(source.password, what)
            else:
                raise Misuse(f"{what} names no database: give it datasource='NAME' or jdbc.url='jdbc:...'")
            return address(source, self.references, place=place)
        except SparkStreamError as e:
            raise _at(plan, definition, str(e)) from None

    def _check_address(self, url: str, what: str) -> None:
        """Raises `Misuse` for an address in an app's text that is not granted, or has a password in it.

        No password is looked up for an address that is not granted, and no message shows the value of a reference.
        """
        base_url = _BEFORE_OPTIONS.findall(url)[0]
        options = parse_qsl(url[len(base_url) + 1 :])
        _check_password(dict(options).get("password"), what)
        resolved_url = self.references.resolve(base_url, what)
        try:
            database = relative_to(from_jdbc(resolved_url), Path.cwd())
        except StoreError:
            if resolved_url == base_url:
                raise
            raise Misuse(
                f"{what}: '{base_url}' does not name an address such as jdbc:postgresql://HOST:5432/DATABASE"
            ) from None
        try:
            self.grants.check_store(database, f"{what} opens")
        except NotAllowed:
            if resolved_url == base_url:
                raise
            option = "file=DIR" if database.is_file else f"jdbc={database.kind}://HOST:PORT/DATABASE"
            raise NotAllowed(f"what '{base_url}' stands for, which {what} opens,", option) from None
        for name, value in options:
            option_value = self.references.resolve(value, what) if name.lower() in FILE_OPTIONS else ""
            try:
                self.grants.check_options([(name, option_value)], f"{what} opens {base_url} with")
            except NotAllowed:
                if option_value == value:
                    raise
                raise NotAllowed(f"what {name}='{value}' of {what} stands for", "file=DIR") from None


def _check_password(password: str | None, what: str) -> None:
    """`check_password` for local databases, which may have no password, or an empty one."""
    if password:
        check_password(password.strip(), what)


def address(source: DataSource, references: References, *, place: str) -> Database:
    """The database of a data source whose address, user and password may hold references. Raises `Misuse` and
    StoreError, with `place` where a reference has no value; the path of a file is below the working directory."""
    user = None if source.user is None else references.resolve(source.user, place)
    password = None if source.password is None else Secret(references.resolve(source.password, place))
    url = references.resolve(source.url, place)
    return relative_to(from_jdbc(url, user, password, pool=source.pool), Path.cwd())


def _at(plan: Plan, definition: AggregationDef | TableDef, message: str, hint: str | None = None) -> SiddhiBindError:
    a = find_annotation(definition.annotations, "store") or find_annotation(definition.annotations, "PartitionById")
    definition_span = definition.span if isinstance(definition, AggregationDef) else NOWHERE
    span = definition_span if a is None else a.span
    error = SiddhiBindError(message, span, hint=hint)
    error.with_source(plan.text)
    return error
