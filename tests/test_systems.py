"""The package on a system that lacks what Unix alone has, as Windows does: a process from which that was taken away."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from sparkstream_nb import system
from sparkstream_nb.errors import SparkUnavailable
from sparkstream_nb.runners.spark import forks, jvm

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "sparkstream_nb"
UNIX = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
LACKING = {
    "os": """
        O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK WNOHANG chown environb fchmod fork forkpty getegid geteuid getgid
        getgroups getpgid getuid killpg mkfifo mknod openpty pread pwrite register_at_fork sched_getaffinity setsid
        statvfs sync sysconf
    """,
    "signal": "SIGALRM SIGCHLD SIGHUP SIGKILL SIGQUIT SIGUSR1 SIGUSR2 alarm pthread_kill setitimer",
    "socket": "AF_UNIX recv_fds send_fds",
    "time": "tzset",
}
APP = """
define stream S (k string, v int);
@sink(type='file', file.uri='out/big.csv', @map(type='csv'))
define stream Big (k string, v int);
define aggregation A from S select k, sum(v) as total group by k aggregate every sec, min;
from S[v > 50] select k, v insert into Big;
from S#window.length(3) select sum(v) as total insert into Sums;
"""
# Libraries, and the rest of the standard library, have their own ways on Windows: they are loaded before.
PROGRAM = """
import contextlib, importlib, json, os, pkgutil, sys, warnings

given = json.loads(sys.argv[1])
for name in given["libraries"]:
    with contextlib.suppress(ModuleNotFoundError):  # it is of an extra
        importlib.import_module(name)
for name in given["unix"]:
    sys.modules[name] = None
for module, names in given["lacking"].items():
    for name in names.split():
        delattr(sys.modules[module], name)
os.supports_dir_fd.clear()
assert "sparkstream_nb" not in sys.modules
warnings.filterwarnings("error", category=EncodingWarning, module="sparkstream_nb")

import sparkstream_nb
from sparkstream_nb import cli
for found in pkgutil.walk_packages(sparkstream_nb.__path__, "sparkstream_nb."):
    if found.name != "sparkstream_nb.__main__":
        importlib.import_module(found.name)

text = given["app"]
with open("app.siddhi", "w", encoding="utf-8") as file:
    file.write(text)
for command in ("check", "fmt", "explain", "graph", "audit"):
    assert cli.main([command, "app.siddhi"]) in (0, 1), command
how = dict(name="app", nodes=2, master="inline", allow=["file=out"], fresh=False)
app = sparkstream_nb.deploy(text, **how)
app.feed("S", "feed.csv")
app.stop()
app.start()
app.send("S", ["a", 99])
app.flush()
app.drain()
assert len(app.output("Sums")) == 101
assert app.query("from A within 0L, 9999999999999L per 'min' select sum(total) as n").rows
app.stop()
app.close()
again = sparkstream_nb.deploy(text + "from S select k insert into Keys;", **how)
assert again.redeployed
sparkstream_nb.app.stop_all()
print(sparkstream_nb.app.app_folders())
sparkstream_nb.app.remove_app("app")
"""


def libraries() -> list[str]:
    """What the package imports of other libraries and of the standard library, as far as all systems have it."""
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {a.name for a in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
                found.add(node.module)
    return sorted(name for name in found if name not in UNIX and name.partition(".")[0] != PACKAGE.name)


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_without_what_unix_alone_has(tmp_path: Path) -> None:
    pd.DataFrame({"k": ["a", "b"] * 50, "v": range(100)}).to_csv(tmp_path / "feed.csv", index=False)
    (tmp_path / "out").mkdir()
    given = {"libraries": libraries(), "unix": UNIX, "lacking": LACKING, "app": APP}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "SPARKSTREAM_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", "-c", PROGRAM, json.dumps(given)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-5000:]
    assert len((tmp_path / "out" / "big.csv").read_text(encoding="utf-8").splitlines()) == 50


def test_spark_on_windows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm, "WINDOWS", True)
    with pytest.raises(SparkUnavailable, match="Spark is not run on Windows: deploy with master='inline'"):
        jvm.Jvm("local[2]", {}, {})


def test_processes_are_not_forked_where_they_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "CAN_FORK", False)
    monkeypatch.setattr(forks, "_running", None)
    assert forks.start() == sys.executable
    assert forks.folder() is None


def test_a_file_that_others_have_open_is_replaced_when_they_let_go_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, refused = os.replace, [3]

    def on_windows(new: Path, path: Path) -> None:
        refused[0] -= 1
        if refused[0] >= 0:
            raise PermissionError("the process cannot access the file")
        replace(new, path)

    monkeypatch.setattr(os, "replace", on_windows)
    new, path = tmp_path / "new", tmp_path / "path"
    new.write_bytes(b"new")
    with pytest.raises(PermissionError):
        system.put_in_place(new, path)
    monkeypatch.setattr(system, "WINDOWS", True)
    system.put_in_place(new, path)
    assert path.read_bytes() == b"new"


def test_what_is_written_at_a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "file").open("w+b") as file:
        assert system.write_at(file.fileno(), b"first", 0) == 5
        monkeypatch.delattr(os, "pwrite")
        assert system.write_at(file.fileno(), b"more", 3) == 4
        file.seek(0)
        assert file.read() == b"firmore"


def test_a_process_that_ends_with_its_parent_may_end_before_it() -> None:
    """Python closes the streams of a process that ends: the thread that waits for the parent must hold no lock then."""
    code = "import sys; from sparkstream_nb.system import end_with_parent; end_with_parent(sys.stdin.buffer); {}"
    child = [sys.executable, "-c", code.format("sys.stdin.detach().close(); print('ended')")]
    with subprocess.Popen(child, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ended\n"
        assert process.wait(20) == 0


def test_a_process_ends_with_its_parent() -> None:
    code = "import sys, time; from sparkstream_nb.system import end_with_parent; end_with_parent(sys.stdin.buffer); "
    with subprocess.Popen([sys.executable, "-c", code + "time.sleep(60)"], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == 1


def test_a_lock_is_of_the_open_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    with path.open("a") as one, path.open("a") as other:
        assert not system.is_locked(other)
    with path.open("a") as one, path.open("a") as other:
        system.lock(one)
        assert system.is_locked(other)
        with pytest.raises(BlockingIOError):
            system.lock(other)
        with path.open() as third:  # to close the file elsewhere changes nothing
            assert system.is_locked(third)
        assert system.is_locked(other)
    with path.open("a") as other:
        system.lock(other, wait=True)
    with pytest.raises(OSError, match="Bad file descriptor"):
        system.lock(10**6)


@pytest.mark.parametrize(
    ("text", "path", "on_windows"),
    [
        ("file:///data/in.csv", "/data/in.csv", "/data/in.csv"),
        ("file:in.csv", "in.csv", "in.csv"),
        ("/data/in.csv", "/data/in.csv", "/data/in.csv"),
        ("file:///C:/data/in.csv", "/C:/data/in.csv", "C:/data/in.csv"),
        ("file:/C:/data/in.csv", "/C:/data/in.csv", "C:/data/in.csv"),
        ("C:/data/in.csv", "C:/data/in.csv", "C:/data/in.csv"),
    ],
)
def test_paths_with_a_drive(text: str, path: str, on_windows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert system.path_of(text) == Path(path)
    monkeypatch.setattr(system, "WINDOWS", True)
    assert system.path_of(text) == Path(on_windows)
