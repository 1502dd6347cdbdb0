"""Addresses of databases: JDBC addresses and passwords, as deployments and apps give them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from ..errors import StoreError
from ..masking import mask_passwords

SERVERS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306}
"""Database servers that can hold a store, with their default ports."""
FILES = ("sqlite", "duckdb")
"""Databases in a file that can hold a store."""
MEMORY = ":memory:"
"""The name of a database in a file that is in no file."""
FILE_OPTIONS = frozenset(
    {
        "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslcrldir", "passfile", "servicefile", "loggerfile",
        "localsocket", "serversslcert", "keystore", "truststore", "serverrsapublickeyfile",
        "trustcertificatekeystoreurl", "clientcertificatekeystoreurl",
    }
)  # fmt: skip
"""Options of JDBC addresses, in small letters, that name a file which a driver reads or writes."""
_INSTEAD = {
    "h2": "jdbc:sqlite:FILE or jdbc:duckdb:FILE, which need no server either",
    "hsqldb": "jdbc:sqlite:FILE",
    "derby": "jdbc:sqlite:FILE",
    "oracle": "PostgreSQL",
    "sqlserver": "PostgreSQL",
    "db2": "PostgreSQL",
}
_JDBC = re.compile(r"jdbc:(?P<kind>[A-Za-z0-9+]+):(?P<rest>.*)", re.DOTALL)
_SERVER = re.compile(r"//(?P<host>\[[^\]]*\]|[^:/?#]*)(?::(?P<port>\d+))?/(?P<database>[^?]*)(?:\?(?P<options>.*))?")


class Secret:
    """A text that is never shown: `repr()` and `str()` are stars. `reveal()` gives it to the database's driver."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __repr__(self) -> str:
        return "'***'"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a secret does not leave its process")


@dataclass(frozen=True)
class Database:
    """A database that can hold a store.

    `kind`: one of `SERVERS` or `FILES`. `name`: the database of a server, or the path of a file. `options`: the part of
    the address behind `?`; JDBC's own options mean nothing to other drivers, and are kept to be shown. `pool`: maximum
    number of connections.
    """

    kind: str
    name: str
    host: str = ""
    port: int | None = None
    user: str | None = None
    password: Secret | None = None
    options: tuple[tuple[str, str], ...] = ()
    pool: int = 5

    @property
    def is_file(self) -> bool:
        """True if it is a file on this machine."""
        return self.kind in FILES

    def __str__(self) -> str:
        """The address as people read it, without user and password."""
        if self.is_file:
            return f"{self.kind}:{self.name}"
        return f"{self.kind}://{self.host}{f':{self.port}' if self.port else ''}/{self.name}"


def from_jdbc(url: str, user: str | None = None, password: Secret | None = None, *, pool: int = 5) -> Database:
    """The database of a JDBC address. User and password may also be in its options (`?user=...&password=...`).

    Raises StoreError, without the address's options, for a database that cannot hold a store or a wrong address.
    """
    match = _JDBC.fullmatch(url.strip())
    if match is None:
        raise StoreError(
            f"'{mask_passwords(url)}' is not a JDBC address. Write for example jdbc:postgresql://HOST:5432/DATABASE."
        )
    kind, rest = match["kind"].lower(), match["rest"]
    if kind in FILES:
        path = rest.partition("?")[0]
        if not path:
            raise StoreError(f"'{mask_passwords(url)}' names no file. Write jdbc:{kind}:FILE.")
        return Database(kind, path, pool=pool)
    if kind not in SERVERS:
        instead = _INSTEAD.get(kind, "PostgreSQL, MySQL, MariaDB, SQLite or DuckDB")
        raise StoreError(f"A store cannot be in a database of type '{kind}' ({mask_passwords(url)}). Use {instead}.")
    server = _SERVER.fullmatch(rest)
    if server is None or not server["database"]:
        example = f"jdbc:{kind}://HOST:{SERVERS[kind]}/DATABASE"
        raise StoreError(f"'{mask_passwords(url)}' is not a complete address. Write {example}.")
    options = dict(parse_qsl(server["options"] or "", keep_blank_values=True))
    user = user if user is not None else options.pop("user", None)
    option_password = options.pop("password", None)
    if password is None and option_password is not None:
        password = Secret(option_password)
    host, port = server["host"].strip("[]") or "localhost", int(server["port"] or SERVERS[kind])
    return Database(kind, unquote(server["database"]), host, port, user, password, tuple(options.items()), pool)


def relative_to(database: Database, folder: Path) -> Database:
    """`database` with a file's path, if it is one and not absolute, below `folder`."""
    if not database.is_file or database.name == MEMORY:
        return database
    return replace(database, name=str(folder / Path(database.name).expanduser()))
