"""Database servers of a test's own, on loopback, in a folder that goes with them."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from sparkstream_nb.stores.address import Database, Secret
from sparkstream_nb.stores.dialects import DIALECTS
from tests.found import program, skip_unless
from tests.processes import ending_with_this, free_port

_DATABASES = {"postgresql": "SELECT datname FROM pg_database", "mariadb": "SHOW DATABASES"}


@dataclass
class Server:
    """A running server. `stop` and `start` end it and start it again on its port, with its data."""

    database: Database
    command: list[str]
    folder: Path
    user: str | None
    ready: list[str]
    process: subprocess.Popen[bytes] | None = None

    @property
    def jdbc(self) -> str:
        """Its address as WSO2's files have it."""
        d = self.database
        return f"jdbc:{d.kind}://{d.host}:{d.port}/{d.name}"

    def words(self) -> dict[str, Any]:
        """All that another process needs to use it, as JSON has it."""
        d = self.database
        assert d.password is not None
        place = {"kind": d.kind, "name": d.name, "host": d.host, "port": d.port, "user": d.user}
        return {"folder": str(self.folder), "database": {**place, "password": d.password.reveal()}}

    def made(self, name: str) -> Database:
        """A database of this name, which is made where it is missing."""
        wanted = replace(self.database, name=name)
        url = DIALECTS[wanted.kind].url(self.database)
        engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as c:
                names = {str(r[0]) for r in c.exec_driver_sql(_DATABASES[wanted.kind])}
                if name not in names:
                    c.exec_driver_sql(f"CREATE DATABASE {name}")
        finally:
            engine.dispose()
        return wanted

    def start(self) -> None:
        """Starts it, and waits until it takes connections."""
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, user=self.user, cwd=self.folder,
                preexec_fn=ending_with_this(),
            )  # fmt: skip
        for _ in range(600):
            if subprocess.run(self.ready, capture_output=True, check=False).returncode == 0:
                return
            assert self.process.poll() is None, (self.folder / "server.log").read_text(errors="replace")[-2000:]
            time.sleep(0.05)
        raise AssertionError("the server does not answer")

    def stop(self) -> None:
        """Kills it, as a crash of its machine does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(30)
            self.process = None
            for stale in self.folder.glob("data/postmaster.pid"):
                stale.unlink()


@dataclass
class RunServer(Server):
    """The server of a kind that all tests share (`run_servers`)."""

    @staticmethod
    def of(words: Mapping[str, Any]) -> RunServer:
        """The one of these `words`."""
        database = Database(**{**words["database"], "password": Secret(words["database"]["password"])})
        return RunServer(database, [], Path(words["folder"]), None, [])

    def start(self) -> None:
        """No test's to start."""
        raise AssertionError(NOT_YOURS)

    def stop(self) -> None:
        """No test's to stop."""
        raise AssertionError(NOT_YOURS)

    def apart(self) -> RunServer:
        """The same with a database that nobody else uses."""
        return replace(self, database=self.made(f"t_{uuid4().hex}"))


NOT_YOURS = "all tests share this server: a test that stops its server starts one of its own"


def postgres_binaries() -> Path | None:
    """The folder of PostgreSQL's programs; None where it is not installed."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: -int(p.parts[-2]))
    found = program("servers", "initdb", folders=[str(f) for f in folders])
    return None if found is None else Path(found).resolve().parent


def _mariadbd() -> str | None:
    return program("servers", "mariadbd", folders=["/usr/sbin"])


@contextlib.contextmanager
def postgresql() -> Iterator[Server]:
    """A PostgreSQL with one user, who has a password, and one database."""
    binaries = postgres_binaries()
    assert binaries is not None
    with _folder("postgres") as (folder, user):
        password, port = secrets.token_urlsafe(12), free_port()
        (folder / "password").write_text(password)
        data = folder / "data"
        _prepare(
            [binaries / "initdb", "-D", data, "-U", "siddhi", "-A", "scram-sha-256", f"--pwfile={folder / 'password'}",
             "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"],
            folder, user,
        )  # fmt: skip
        server = Server(
            Database("postgresql", "postgres", "127.0.0.1", port, "siddhi", Secret(password)),
            [str(binaries / "postgres"), "-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", str(folder),
             "-c", "fsync=off", "-c", "wal_level=logical"],
            folder, user, [str(binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)],
        )  # fmt: skip
        with _running(server):
            yield server


@contextlib.contextmanager
def mariadb() -> Iterator[Server]:
    """A MariaDB with one user, who has a password, and one database."""
    with _folder("mysql") as (folder, user):
        password, port, data = secrets.token_urlsafe(12), free_port(), folder / "data"
        _prepare(
            ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal",
             "--skip-test-db"],
            folder, user,
        )  # fmt: skip
        mariadbd = _mariadbd()
        assert mariadbd is not None
        socket_file = str(folder / "socket")
        admin = ["mariadb-admin", "--no-defaults", f"--socket={socket_file}", "-u", "root"]
        server = Server(
            Database("mariadb", "siddhi", "127.0.0.1", port, "siddhi", Secret(password)),
            [mariadbd, "--no-defaults", f"--datadir={data}", f"--port={port}", "--bind-address=127.0.0.1",
             f"--socket={socket_file}", f"--pid-file={folder / 'pid'}", "--innodb-flush-log-at-trx-commit=2",
             "--max-connections=1000",  # processes that tests kill leave theirs behind for a while
             f"--tmpdir={folder}",  # a server that starts removes the temporary tables that it finds there
             f"--log-bin={folder / 'log'}", "--binlog-format=ROW", "--server-id=1"],
            folder, user, [*admin, "ping"],
        )  # fmt: skip
        with _running(server):
            setup = (
                f"CREATE DATABASE siddhi; CREATE USER siddhi IDENTIFIED BY '{password}'; "
                "GRANT ALL ON *.* TO siddhi WITH GRANT OPTION;"
            )
            client = ["mariadb", "--no-defaults", f"--socket={socket_file}", "-u", "root", "-e", setup]
            subprocess.run(client, check=True, capture_output=True)
            yield server


def _prepare(command: list[str | Path], folder: Path, user: str | None) -> None:
    """Runs what makes a server's data, and shows what that says where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, user=user, cwd=folder)
    room, mode = shutil.disk_usage(folder).free, oct(folder.parent.stat().st_mode)
    assert done.returncode == 0, (
        f"{command[0]}, as {user}, {room:,} bytes free, {folder.parent} with mode {mode}:\n{done.stdout}\n{done.stderr}"
    )


@contextlib.contextmanager
def _running(server: Server) -> Iterator[None]:
    server.start()
    try:
        yield
    finally:
        server.stop()


@contextlib.contextmanager
def _folder(owner: str) -> Iterator[tuple[Path, str | None]]:
    """An empty folder, and the user that the server runs as: `owner` where this is root, whom servers refuse."""
    folder = Path(tempfile.mkdtemp(prefix="sparkstream-"))
    user = None
    try:
        if os.geteuid() == 0:
            user = owner
            os.chown(folder, pwd.getpwnam(owner).pw_uid, -1)
        yield folder, user
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def skip_without(kind: str) -> None:
    """Skips the test where a server is not installed."""
    if kind == "postgresql":
        needed = "PostgreSQL: initdb is neither on the PATH nor in /usr/lib/postgresql"
        skip_unless(postgres_binaries(), "servers", needed)
    else:
        skip_unless(_mariadbd(), "servers", "MariaDB: mariadbd is neither on the PATH nor in /usr/sbin")


SERVERS = {"postgresql": postgresql, "mariadb": mariadb}
"""The servers that a test can start, by the kind of database."""
