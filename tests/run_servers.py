"""A Kafka broker and databases that all processes of a test run share: each is started by the first test that asks for
it, and ends when the last process that has used it ends, whatever ends that.

A server belongs to a process of its own, its keeper. Who uses the server holds a lock on a file, which the system takes
away when a process ends. The keeper waits for the lock that nobody else may hold, and then ends the server.

    python -m tests.run_servers MODULE:FUNCTION FOLDER     the keeper
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # a run that needs no server loads no library for one
    from .broker import RunBroker
    from .servers import RunServer

_PATIENCE = 120.0
_ROOT = Path(__file__).parents[1]
ServerOf = Callable[[str], "RunServer"]
"""Gives the run's database server of a kind (`servers.SERVERS`)."""


@pytest.fixture(scope="session")
def run_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the processes of a test run have in common."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if hasattr(request.config, "workerinput") else base


@pytest.fixture(scope="session")
def broker(run_folder: Path) -> Iterator[RunBroker]:
    """A Kafka broker that all tests share: each makes topics of its own."""
    from .broker import RunBroker, skip_without_kafka

    skip_without_kafka()
    with used("tests.broker:kafka", run_folder) as words:
        yield RunBroker.of(words)


@pytest.fixture(scope="session")
def server_of(run_folder: Path) -> Iterator[ServerOf]:
    """The database servers that all tests share: each makes databases of its own."""
    from .servers import RunServer, skip_without

    with contextlib.ExitStack() as stack:
        found: dict[str, RunServer] = {}

        def server(kind: str) -> RunServer:
            skip_without(kind)
            if kind not in found:
                found[kind] = RunServer.of(stack.enter_context(used(f"tests.servers:{kind}", run_folder)))
            return found[kind]

        yield server


@contextlib.contextmanager
def used(start: str, run_folder: Path) -> Iterator[dict[str, Any]]:
    """The `words()` of the run's server, which runs meanwhile. `start` is MODULE:FUNCTION, a context manager that gives
    a server."""
    folder = run_folder / "servers" / start.replace(":", ".")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    words = folder / "words"
    with (folder / "users").open("a+b") as users:
        with (folder / "starting").open("a+b") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            fcntl.flock(users, fcntl.LOCK_SH)  # a keeper that is about to end its server has it alone for a moment
            if not words.exists():
                _start_keeper(start, folder, words)
        yield json.loads(words.read_text())


def _start_keeper(start: str, folder: Path, words: Path) -> None:
    path = folder / "log"
    with path.open("ab") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-m", __name__, start, str(folder)],
            cwd=_ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    end = time.monotonic() + _PATIENCE
    while not words.exists():
        there = keeper.poll() is None and time.monotonic() < end
        assert there, f"{start} did not start: {path.read_text(errors='replace')[-3000:]}"
        time.sleep(0.05)


def keep(start: str, folder: Path) -> None:
    """Starts a server, says so in `folder`, and ends it when nobody uses it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    module, _, name = start.partition(":")
    words, new = folder / "words", folder / "words.new"
    with getattr(import_module(module), name)() as server:
        new.write_text(json.dumps(server.words()))
        new.rename(words)
        try:
            with (folder / "users").open("a+b") as users:
                fcntl.flock(users, fcntl.LOCK_EX)
                words.unlink()
        finally:
            words.unlink(missing_ok=True)


if __name__ == "__main__":
    keep(sys.argv[1], Path(sys.argv[2]))
