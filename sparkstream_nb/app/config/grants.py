"""Permissions of an app outside its own folder. The text of an app opens nothing: the user grants it at deployment.

A grant is a text KIND=WHAT: `file=DIR`, `http=URL-PREFIX`, `kafka=HOST:PORT` (and the other `SERVERS`), or
`jdbc=postgresql://HOST:PORT/DATABASE`.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit

from ... import argument_checks
from ...errors import Misuse, StoreError, nearest, shown
from ...masking import mask_passwords, mask_server
from ...stores.address import FILE_OPTIONS, MEMORY, Database, from_jdbc

SERVERS = ("hl7", "kafka", "mqtt", "nats", "rabbitmq", "smtp", "tcp", "websocket")
"""Kinds of grants that name a server as HOST:PORT."""
KINDS = ("file", "http", *SERVERS, "jdbc")
_JDBC = "jdbc=postgresql://HOST:PORT/DATABASE"
_PORTS = {"http": 80, "https": 443}
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")
_UNICODE = re.compile(r"%u([0-9A-Fa-f]{4})")
"""A character as some servers decode it."""
_OVERLONG = re.compile(r"(?i)%(c[01]|e0%[89]|f0%8)")
"""A character of UTF-8 in more bytes than it needs."""
_HOST_PORT = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s\[\]:/@\\,]+):(?P<port>\d{1,5})")


class NotAllowed(Misuse):
    """An app reaches for something that was not granted. `option` is the grant that allows it."""

    def __init__(self, target: str, option: str) -> None:
        self.option = option
        is_not = " is not" if target.startswith("what ") else ", which is not"  # "what X stands for" is no sentence
        remedy = f"Add --allow {shlex.quote(option)}, or allow=[{option!r}]"
        super().__init__(f"{mask_passwords(target)}{is_not} allowed. {remedy}")


@dataclass(frozen=True)
class Url:
    """The parts of an http or https address by which it is compared: `host` in small letters, `path` decoded, in
    segments. `text` is the address as it was given."""

    scheme: str
    host: str
    port: int
    path: tuple[str, ...]
    text: str

    @staticmethod
    def of(text: str, what: str) -> Url:
        """Parses an address. Raises `Misuse`, naming `what`, for other schemes, for user names or passwords in it, and
        for characters that servers and browsers read differently: backslashes, blanks, and `..` in any spelling.
        """
        wrong = f"{what}: {shown(mask_passwords(text))}"
        if _UNSAFE.search(text):
            raise Misuse(f"{wrong} has a blank, a backslash or a control character in it")
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            raise Misuse(f"{wrong} is not an address such as http://host:8080/path") from None
        if parts.scheme not in _PORTS or not parts.hostname:
            raise Misuse(f"{wrong} is not an address such as http://host:8080/path")
        if "@" in parts.netloc:
            raise Misuse(f"{wrong} has a user in front of its host: give user and password as options of their own")
        if parts.fragment or "#" in text:
            raise Misuse(f"{wrong} has a fragment (#...): leave it out")
        host = parts.hostname.rstrip(".").lower()
        if not host.isascii():
            try:
                host = host.encode("idna").decode()
            except UnicodeError:
                raise Misuse(f"{wrong} has no valid host") from None
        return Url(parts.scheme, host, port or _PORTS[parts.scheme], _segments(parts, wrong), text)

    @property
    def base(self) -> str:
        """The address without its path and query."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    def covers(self, other: Url) -> bool:
        """True if `other` is this address, or one below its path."""
        same = (self.scheme, self.host, self.port) == (other.scheme, other.host, other.port)
        return same and other.path[: len(self.path)] == self.path


def _segments(url: SplitResult, wrong: str) -> tuple[str, ...]:
    raw_segments = url.path.split("/")[1:]
    if any(map(_leads_elsewhere, raw_segments)):
        raise Misuse(f"{wrong} has '.', '..' or an encoded separator in its path: write the path in full")
    segments = [unquote(s, errors="replace") for s in raw_segments]
    while segments and segments[-1] == "":
        segments.pop()
    return tuple(segments)


def _leads_elsewhere(segment: str) -> bool:
    """True if a segment of a path is `.` or `..`, or several segments, to a server that decodes it once, again, or in a
    way of its own."""
    decodings = set()
    while segment not in decodings:
        decodings.add(segment)
        plain = unicodedata.normalize("NFKC", segment)
        dots = plain.split(";")[0].strip(" ") in (".", "..")
        if dots or re.search(r"[/\\\x00-\x1f\x7f]", plain) or _OVERLONG.search(segment):
            return True
        segment = unquote(_UNICODE.sub(lambda m: chr(int(m[1], 16)), segment), errors="replace")
    return False


@dataclass(frozen=True)
class Grants:
    """The permissions of an app: folders, address prefixes, servers as (one of `SERVERS`, host, port), and databases of
    servers."""

    folders: tuple[Path, ...] = ()
    urls: tuple[Url, ...] = ()
    servers: tuple[tuple[str, str, int], ...] = ()
    databases: tuple[tuple[str, ...], ...] = ()

    @staticmethod
    def of(texts: Sequence[str] | None) -> Grants:
        """The grants that `texts` name, each as KIND=WHAT. Raises `Misuse` for anything else."""
        if isinstance(texts, str):
            raise Misuse(f"allow is a list of texts such as ['file=/data/out'], not {shown(texts)}")
        argument_checks.optional_str_list("allow", texts)
        folders: list[Path] = []
        urls: list[Url] = []
        servers: list[tuple[str, str, int]] = []
        databases: list[tuple[str, ...]] = []
        for text in texts or ():
            kind, equals, what = text.partition("=")
            kind, what = kind.strip(), what.strip()
            if kind not in KINDS or not equals or not what:
                wrong = shown(mask_passwords(text))
                message = f"allow: {wrong} is not file=DIR, http=URL-PREFIX, kafka=HOST:PORT or {_JDBC}"
                others = [f"{server}=HOST:PORT" for server in SERVERS if server != "kafka"]
                message += f"; nor {', '.join(others[:-1])} or {others[-1]}"
                raise Misuse(message if kind in KINDS else nearest(message, kind, KINDS))
            if kind == "file":
                argument_checks.check_path("allow: file", what)
                folders.append(_resolve_path(Path(what).expanduser(), "allow: file"))
            elif kind == "http":
                url = Url.of(what, "allow: http")
                if "?" in what:
                    raise Misuse(f"allow: http={shown(what)} has a query (?...): a grant ends with the path")
                urls.append(url)
            elif kind in SERVERS:
                servers.append((kind, *server_of(what, f"allow: {kind}")))
            else:
                databases.append(_identity(_database(what)))
        return Grants(tuple(folders), tuple(urls), tuple(servers), tuple(databases))

    def folder_of(self, path: Path, what: str, *, file: bool = False) -> Path:
        """The granted folder that `path` is in, or is, after symbolic links and `..`; `file`: it is a file. Raises
        NotAllowed, and `Misuse` if the file itself was granted.
        """
        real_path = _resolve_path(path, what)
        for folder in self.folders:
            if real_path == folder and file:
                limitation = f"file={real_path} allows a folder of that name, not a file"
                raise Misuse(f"{what} {real_path}, and {limitation}. Write file={real_path.parent}")
            if real_path == folder or folder in real_path.parents:
                return folder
        place = real_path if real_path.is_dir() else real_path.parent
        raise NotAllowed(f"{what} {real_path}", f"file={place}")

    def check_url(self, text: str, what: str) -> Url:
        """The address in `text`. Raises NotAllowed if no granted prefix covers it, and `Misuse` if it is not an
        address.
        """
        url = Url.of(text, what)
        if not any(prefix.covers(url) for prefix in self.urls):
            # The query, or the path, may hold a key: the message names the server alone.
            raise NotAllowed(f"{what} {url.base}", f"http={url.base}")
        return url

    def check_broker(self, text: str, what: str) -> tuple[str, int]:
        """Host and port of the Kafka server `text`. Raises NotAllowed if it is not granted."""
        return self.check_server("kafka", text, what)

    def check_server(self, kind: str, text: str, what: str) -> tuple[str, int]:
        """Host and port of the server `text`, of a kind of `SERVERS`. Raises NotAllowed if it is not granted."""
        host, port = server_of(text, what)
        if (kind, host, port) not in self.servers:
            raise NotAllowed(f"{what} {host}:{port}", f"{kind}={host}:{port}")
        return host, port

    def check_database(self, database: Database, what: str) -> None:
        """Raises NotAllowed if a database of a server is not granted, or a file that its address names."""
        if _identity(database) not in self.databases:
            address = f"{database.kind}://{_host(database)}:{database.port}/{quote(database.name, safe='')}"
            raise NotAllowed(f"{what} {database}", f"jdbc={address}")
        self.check_options(database.options, f"{what} {database} with")

    def check_options(self, options: Iterable[tuple[str, str]], what: str) -> None:
        """Raises NotAllowed if options of an address name a file that is not granted."""
        for name, value in options:
            if name.lower() in FILE_OPTIONS and value and (name, value) != ("sslrootcert", "system"):
                path = re.sub(r"^file:(//)?", "", value, flags=re.IGNORECASE)  # as drivers in Java have it
                self.folder_of(Path(path), f"{what} {name}", file=True)

    def check_store(self, database: Database, what: str) -> None:
        """Raises NotAllowed if a database is not granted: one of a server, or a file by its folder."""
        if not database.is_file:
            self.check_database(database, what)
        elif database.name != MEMORY:
            self.folder_of(Path(database.name), what, file=True)


def _database(text: str) -> Database:
    """The database of a grant. Raises `Misuse` for anything else."""
    wrong = f"allow: jdbc={shown(mask_passwords(text))} is not {_JDBC}, or one of mysql or mariadb"
    try:
        database = from_jdbc(f"jdbc:{text.removeprefix('jdbc:')}")
    except StoreError:
        raise Misuse(wrong) from None
    if database.is_file:
        raise Misuse(f"{wrong}; a file is granted by file=DIR")
    if "?" in text or "@" in text:
        raise Misuse(wrong)
    return database


def _identity(database: Database) -> tuple[str, ...]:
    """Key for comparing databases: `mysql` and `mariadb` are two names of one protocol."""
    kind = "mysql" if database.kind == "mariadb" else database.kind
    return kind, database.host.lower(), str(database.port), database.name


def _host(database: Database) -> str:
    return f"[{database.host}]" if ":" in database.host else database.host


def _resolve_path(path: Path, what: str) -> Path:
    try:
        return path.absolute().resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links, or a character that no path has
        raise Misuse(f"{what} is no path: {shown(str(path))}") from None


def server_of(text: str, what: str) -> tuple[str, int]:
    """Host and port of a server. Raises `Misuse`, naming `what`, for anything else."""
    match = _HOST_PORT.fullmatch(text)
    if match is None or not 0 < int(match["port"]) < 65_536:
        raise Misuse(f"{what}: {shown(mask_server(text))} is not HOST:PORT, such as localhost:9092")
    return match["host"].lower(), int(match["port"])
