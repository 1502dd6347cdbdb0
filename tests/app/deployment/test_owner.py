"""An app's folder has one owner: another process is told who, and touches nothing."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparkstream_nb.app import App
from sparkstream_nb.app.deployment.owner import acquire_home
from sparkstream_nb.errors import Misuse

APP = "define stream S (v int); from S select v insert into O;"
HOLDS = """
import sys
from pathlib import Path
from sparkstream_nb.app.deployment.owner import acquire_home
from sparkstream_nb.errors import Misuse
try:
    kept = acquire_home(Path(sys.argv[1]), "other")
    print("has it", flush=True)
    sys.stdin.read()
except Misuse as e:
    print(e, flush=True)
"""
CHILDREN = """
import os, subprocess, sys
from pathlib import Path
from sparkstream_nb.app.deployment.owner import acquire_home
kept = acquire_home(Path(sys.argv[1]), "one")
if os.fork() == 0:
    os.write(1, b"forked\\n")
    sys.stdin.read()
    os.write(1, b"ended\\n")
    os._exit(0)
subprocess.Popen(["sh", "-c", "echo started; cat; echo ended"], close_fds=False).wait()
"""
Process = subprocess.Popen[str]


@pytest.fixture
def other() -> Iterator[Callable[[Path], tuple[Process, str]]]:
    """Another process that wants a folder: the process, and what it says."""
    running: list[Process] = []

    def start(home: Path) -> tuple[Process, str]:
        command = [sys.executable, "-c", HOLDS, str(home)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout is not None
        return process, process.stdout.readline().strip()

    yield start
    for process in running:
        process.kill()
        process.communicate()


def test_a_folder_of_another_process_is_not_touched(
    run: Callable[..., App], tmp_path: Path, other: Callable[[Path], tuple[Process, str]]
) -> None:
    home = tmp_path / "home"
    process, said = other(home)
    assert said == "has it"
    before = {p.name: p.read_bytes() for p in home.iterdir()}
    for arguments in ({}, {"fresh": True}, {"store": tmp_path / "own.duckdb"}):
        with pytest.raises(Misuse, match=f"is in use by process {process.pid} on .*, app 'other': stop the app there"):
            run(APP, **arguments)
        assert {p.name: p.read_bytes() for p in home.iterdir()} == before
    process.kill()
    process.wait()
    app = run(APP)
    app.send("S", [1])
    app.flush()
    assert len(app.output("O").frame) == 1
    assert "is in use by process" in other(home)[1]
    again = run(APP)
    assert "is in use by process" in other(home)[1]
    with pytest.raises(Misuse, match="is the folder of app 'app' of this process: give 'second' another one"):
        run(APP, name="second")
    assert "is in use by process" in other(home)[1]
    again.stop()
    again.close()
    assert other(home)[1] == "has it"


def test_a_deployment_that_fails_leaves_the_folder_to_others(tmp_path: Path) -> None:
    kept = acquire_home(tmp_path, "one")
    with pytest.raises(Misuse, match="of app 'one' of this process"):
        acquire_home(tmp_path, "two")
    kept.release()
    kept.release()
    acquire_home(tmp_path, "two").release()


def test_who_copies_the_folder_keeps_it(tmp_path: Path, other: Callable[[Path], tuple[Process, str]]) -> None:
    kept = acquire_home(tmp_path / "home", "one")
    shutil.copytree(tmp_path / "home", tmp_path / "copy")
    assert f"is in use by process {os.getpid()} on " in other(tmp_path / "home")[1]
    kept.release()


def test_children_do_not_hold_the_folder_of_an_owner_that_was_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHILDREN, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdin is not None
        assert owner.stdout is not None
        assert {owner.stdout.readline() for _ in range(2)} == {b"forked\n", b"started\n"}
        with pytest.raises(Misuse, match=f"is in use by process {owner.pid}"):
            acquire_home(tmp_path, "two")
        owner.kill()
        owner.wait()
        acquire_home(tmp_path, "two").release()
        owner.stdin.close()
        assert owner.stdout.read() == b"ended\nended\n"  # they ran meanwhile


@pytest.mark.parametrize(
    ("argv", "notebook", "name"),
    [
        (["/x/ipykernel_launcher.py", "-f", "/r/kernel-0a1b-2c.json"], "/home/me/My lesson\n.ipynb",
         "notebook My lesson .ipynb"),
        (["/x/ipykernel_launcher.py", "-f", "/r/kernel-0a1b-2c.json"], None, "notebook kernel 0a1b-2c"),
        (["/x/ipykernel_launcher.py"], None, "notebook kernel"),
        (["jobs/alerts.py"], "/home/me/Lesson.ipynb", "alerts.py"),  # started from a notebook
        (["a\x1b[2J.py"], None, "a\\x1b[2J.py"),
        (["-c"], None, ""),
        ([""], None, ""),
    ],
)  # fmt: skip
def test_the_lock_names_the_notebook_or_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str], notebook: str | None, name: str
) -> None:
    monkeypatch.setattr("sys.argv", argv)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    if notebook is not None:
        monkeypatch.setenv("JPY_SESSION_NAME", notebook)
    ownership = acquire_home(tmp_path, "Shop")
    written = (tmp_path / "lock").read_text()
    ownership.release()
    which = f" ({name})" if name else ""
    assert written == f"process {os.getpid()} on {socket.gethostname()}{which}, app 'Shop'\n"
