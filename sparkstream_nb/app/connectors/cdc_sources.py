"""The options of `cdc` sources as tables that an app may poll."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import Misuse
from ...plan.connectors.mapping import SourceMapping
from ...stores.address import Secret, from_jdbc
from ...types import Schema
from ..config.grants import Grants
from ..config.secrets import References, check_password
from .typed_options import OptionValues

if TYPE_CHECKING:
    from ...sources.cdc import CdcReader


def make_cdc_reader(
    o: OptionValues, mapping: SourceMapping, schema: Schema, grants: Grants, references: References
) -> tuple[str, CdcReader]:
    """(the polled column as it may be shown, the reader of its table), as far as `grants` allow. Raises `Misuse` for
    options that are wrong, or have a password that is no reference."""
    from ...sources.cdc import CdcReader  # they load SQLAlchemy
    from ...stores.polling import PolledTable

    url, written = o.text("url"), o.trim("password")
    database = from_jdbc(url)
    if database.is_file:
        raise Misuse(f"{o.what}: {database} is a file, and servers are polled: PostgreSQL, MySQL or MariaDB")
    grants.check_database(database, f"{o.what} reads from")
    if database.user is not None or database.password is not None:
        raise Misuse(f"{o.what}: 'url' has user or password in it: give 'username' and 'password'")
    check_password(written, o.what)
    table, column = o.text("table.name"), o.text("polling.column")
    place, _, name = table.rpartition(".")
    if place and database.kind != "postgresql" and place != database.name:
        raise Misuse(f"{o.what}: '{place}' is another database than {database}: write table.name='{name}'")
    every = o.number("polling.interval")
    # No secret is looked up for a database that is not allowed.
    user = references.resolve(o.trim("username"), o.what)
    database = replace(database, user=user, password=Secret(references.resolve(written, o.what)), pool=1)
    reader = CdcReader(PolledTable(database, table, column), mapping, schema, every)
    return f"{table}.{column} in {database}", reader
