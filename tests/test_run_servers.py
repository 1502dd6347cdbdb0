"""Servers that a test run shares: one for all processes that use it at the same time, and none that is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.processes import ending_with_this
from tests.run_servers import used

ROOT = Path(__file__).parents[1]
START = "tests.test_run_servers:sleeper"
USER = f"""
import sys
from pathlib import Path
from tests.run_servers import used
with used({START!r}, Path(sys.argv[1])) as words:
    print(words["server"], words["keeper"], flush=True)
    sys.stdin.read()
"""


class Sleeper:
    """A server that does nothing."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", "import time; time.sleep(600)"]
        self.process = subprocess.Popen(command, preexec_fn=ending_with_this())

    def words(self) -> dict[str, Any]:
        return {"server": self.process.pid, "keeper": os.getpid()}


@contextlib.contextmanager
def sleeper() -> Iterator[Sleeper]:
    """What a keeper starts."""
    server = Sleeper()
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()


class User:
    """A process that uses the server until it is told to end."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-c", USER, str(folder)]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def server(self) -> tuple[int, int]:
        """The processes of the server and of its keeper."""
        assert self.process.stdout is not None
        server, keeper = self.process.stdout.readline().split()
        return int(server), int(keeper)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(30) == 0


def runs(process: int) -> bool:
    """Whether a process runs: one that has ended and that nobody waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_gone(*processes: int) -> None:
    end = time.monotonic() + 30
    while any(map(runs, processes)):
        assert time.monotonic() < end, "a process is left"
        time.sleep(0.02)


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, which Linux has")


@needs_proc
def test_the_last_user_ends_the_server(tmp_path: Path) -> None:
    one, other = User(tmp_path), User(tmp_path)
    found = one.server()
    assert other.server() == found
    one.end()
    later = User(tmp_path)
    assert later.server() == found
    other.end()
    later.process.kill()  # as a worker that crashes
    later.process.wait()
    wait_until_gone(*found)
    again = User(tmp_path)
    assert again.server()[0] != found[0]
    again.end()
    wait_until_gone(*found)


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_ends_with_its_keeper(tmp_path: Path, number: int) -> None:
    user = User(tmp_path)
    server, keeper = user.server()
    os.kill(keeper, number)
    wait_until_gone(server, keeper)
    user.end()


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="has no attribute 'nothing'"), used("tests.servers:nothing", tmp_path):
        pass


@needs_proc
def test_a_process_may_use_it_twice(tmp_path: Path) -> None:
    with used(START, tmp_path) as words:
        with used(START, tmp_path) as same:
            assert same == words
        assert all(map(runs, words.values()))
    wait_until_gone(*words.values())
