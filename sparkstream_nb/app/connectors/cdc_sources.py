"""The options of `cdc` sources as tables that an app may poll, or whose changes it may listen to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec

from ...errors import Misuse, shown
from ...plan.connectors.change_properties import PLUGIN, PLUGINS, PUBLICATION, SERVER_ID, SLOT, connector_properties
from ...plan.connectors.incoming import PROPERTIES, is_listening, listened_operations
from ...plan.connectors.mapping import SourceMapping
from ...sources.listening import ListeningReader
from ...sources.reader import SourceReader
from ...stores.address import Database, Secret, from_jdbc
from ...stores.change_log import OPERATIONS, ChangeLog, Operation
from ...types import Schema
from ..config.grants import Grants
from ..config.secrets import References, check_password
from .typed_options import OptionValues

_INSTALL = "pip install 'sparkstream-nb[databases]'"
_SLOT_NAME = re.compile(r"[a-z0-9_]{1,63}")


def make_cdc_reader(
    o: OptionValues, mapping: SourceMapping, schema: Schema, grants: Grants, references: References
) -> tuple[str, SourceReader]:
    """(the table or the polled column as it may be shown, its reader), as far as `grants` allow. Raises `Misuse` for
    options that are wrong, or have a password that is no reference."""
    database, table = _granted_database(o, grants), o.text("table.name")
    password = o.trim("password")
    place, _, name = table.rpartition(".")
    if place and database.kind != "postgresql" and place != database.name:
        raise Misuse(f"{o.what}: '{place}' is another database than {database}: write table.name='{name}'")
    every = o.number("polling.interval")
    # No secret is looked up for a database that is not allowed.
    user = references.resolve(o.trim("username"), o.what)
    database = replace(database, user=user, password=Secret(references.resolve(password, o.what)), pool=1)
    if is_listening(o.raw_values):
        return f"changes of {table} in {database}", _make_listening_reader(o, database, mapping, schema)
    from ...sources.cdc import CdcReader  # they load SQLAlchemy
    from ...stores.polling import PolledTable

    column = o.text("polling.column")
    reader = CdcReader(PolledTable(database, table, column), mapping, schema, every)
    return f"{table}.{column} in {database}", reader


def _granted_database(o: OptionValues, grants: Grants) -> Database:
    """The database of the address, without user and password, which are options of their own."""
    database = from_jdbc(o.text("url"))
    does = "listened to" if is_listening(o.raw_values) else "polled"
    if database.is_file:
        raise Misuse(f"{o.what}: {database} is a file, and servers are {does}: PostgreSQL, MySQL or MariaDB")
    grants.check_database(database, f"{o.what} reads from")
    if database.user is not None or database.password is not None:
        raise Misuse(f"{o.what}: 'url' has user or password in it: give 'username' and 'password'")
    check_password(o.trim("password"), o.what)
    return database


def _make_listening_reader(o: OptionValues, database: Database, mapping: SourceMapping, schema: Schema) -> SourceReader:
    """The reader of the log of a database."""
    properties = connector_properties(o.raw(PROPERTIES))
    operation_names = listened_operations(o.raw_values)
    operations = frozenset(operation for operation in OPERATIONS if operation in operation_names)
    log = (_make_postgres_log if database.kind == "postgresql" else _make_mysql_log)(
        o, database, operations, properties
    )
    # Several operations are a text with a comma, at which siddhi-io-cdc gives defaults.
    return ListeningReader(log, mapping, schema, with_defaults="," in o.raw("operation"))


def _make_postgres_log(
    o: OptionValues, database: Database, operations: frozenset[Operation], properties: Mapping[str, str]
) -> ChangeLog:
    slot = properties.get(SLOT, o.text("slot.name"))
    if not _SLOT_NAME.fullmatch(slot):
        raise Misuse(f"{o.what}: slot.name has small letters, digits and _, 63 at most, not {shown(slot)}")
    plugin = properties.get(PLUGIN, o.trim("plugin.name")).lower()
    if plugin not in PLUGINS:
        raise Misuse(f"{o.what}: plugin.name is one of {', '.join(PLUGINS)}, not {shown(plugin)}")
    if find_spec("psycopg") is None:
        raise Misuse(f"{o.what} needs psycopg: {_INSTALL}")
    from ...stores.postgresql_log import PostgresLog, WalPlace

    return PostgresLog(WalPlace(database, o.text("table.name"), operations, slot, properties.get(PUBLICATION)))


def _make_mysql_log(
    o: OptionValues, database: Database, operations: frozenset[Operation], properties: Mapping[str, str]
) -> ChangeLog:
    id_text = properties.get(SERVER_ID)
    if id_text is not None and not (id_text.isdecimal() and len(id_text) < 11 and 0 < int(id_text) < 1 << 32):
        raise Misuse(f"{o.what}: {SERVER_ID} is a whole number from 1 to 4,294,967,295, not {shown(id_text)}")
    server_id = int(id_text) if id_text is not None else o.number(SERVER_ID) if o.has(SERVER_ID) else None
    if find_spec("pymysqlreplication") is None:
        raise Misuse(f"{o.what} needs mysql-replication: {_INSTALL}")
    from ...stores.mysql_log import BinlogPlace, MySqlLog

    name = o.text("database.server.name")
    return MySqlLog(BinlogPlace(database, o.text("table.name"), operations, server_id, name))
