"""The fork server: its processes are those that Python would have started, and end with whoever asked for them."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from sparkstream_nb.runners.spark import forks

SAY = """
import os, sys
import sparkstream_nb.runners.node_work
print(sys.argv[1:], os.getcwd(), os.environ.get("WORD"), __name__, sys.executable, input())
print("wrong", file=sys.stderr)
sys.exit(7)
"""
WAIT = """
import os, signal
print(os.getpid(), flush=True)
signal.pause()
"""


@pytest.fixture(scope="module")
def python() -> str:
    command = forks.start()
    assert command != sys.executable
    return command


def ended(process: int, seconds: float = 10) -> bool:
    """Whether a process, not a child of this one, ends within `seconds`."""
    try:
        file = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([file], [], [], seconds)[0])
    finally:
        os.close(file)


def only(folder: Path) -> dict[str, str]:
    """The environment in which Python looks for modules in a folder, and not in the working directory."""
    return {"PYTHONPATH": str(folder), "PYTHONSAFEPATH": "1"}


def say(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "say.py").write_text(SAY)
    environment = {**os.environ, "WORD": "said", **only(folder)}
    return subprocess.run(
        [*command, "-m", "say", "1", "a b"],
        cwd=folder,
        env=environment,
        input="heard",
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_process_is_as_python_would_start_it(python: str, tmp_path: Path) -> None:
    forked, started = say([python], tmp_path), say([sys.executable], tmp_path)
    assert forked.stdout == f"['1', 'a b'] {tmp_path} said __main__ {sys.executable} heard\n"
    assert (forked.stdout, forked.stderr, forked.returncode) == (started.stdout, started.stderr, started.returncode)


def test_the_working_directory_is_not_searched(python: str, tmp_path: Path) -> None:
    (tmp_path / "say.py").write_text(SAY)
    done = subprocess.run([python, "-m", "say"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "No module named say" in done.stderr


def test_one_server_for_all(python: str) -> None:
    assert forks.start() == python


def test_what_is_no_module_runs_too(python: str) -> None:
    done = subprocess.run([python, "-c", "import sys; print(sys.flags.isolated)"], capture_output=True, check=True)
    assert done.stdout == b"0\n"


def test_without_a_server_python_starts_by_itself(python: str, tmp_path: Path) -> None:
    client = Path(forks.__file__).with_name("forked.py")
    done = say([sys.executable, "-IS", str(client), str(tmp_path / "none")], tmp_path)
    assert (done.returncode, done.stderr) == (7, "wrong\n")


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for processes that are not its own")
def test_a_process_ends_with_the_one_that_asked_for_it(python: str, tmp_path: Path) -> None:
    (tmp_path / "wait.py").write_text(WAIT)
    environment = {**os.environ, **only(tmp_path)}
    command = [python, "-m", "wait"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment) as asked:
        assert asked.stdout is not None
        forked = int(asked.stdout.readline())
        assert forked != asked.pid
        asked.kill()
    assert ended(forked)
    assert say([python], tmp_path).returncode == 7, "the server goes on"


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for processes that are not its own")
def test_the_server_ends_with_the_process_that_started_it() -> None:
    code = (
        "from sparkstream_nb.runners.spark import forks; forks.start(); "
        "print(forks._running[0].pid, forks._running[1])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    server, command = done.stdout.split()
    assert ended(int(server))
    assert not Path(command).parent.exists()
