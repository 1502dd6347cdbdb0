"""Temporary folders of processes that were killed go at the next start; others stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sparkstream_nb.journal.temporary import sweep, temporary

MAKES = """
import signal, sys
from sparkstream_nb.journal.temporary import temporary
(temporary("test") / "file").write_text("x")
print(flush=True)
signal.pause()
"""


def test_a_killed_process_leaves_nothing_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    foreign = tmp_path / "sparkstream-notes"
    foreign.mkdir()
    (tmp_path / "spark-123").mkdir()
    command = [sys.executable, "-c", MAKES]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (left,) = tmp_path.glob("sparkstream-test-*")
        own = temporary("test")
        assert left.exists()
        process.send_signal(signal.SIGKILL)
    sweep()
    assert sorted(tmp_path.iterdir()) == sorted([foreign, own, tmp_path / "spark-123"])
    assert own.stat().st_mode & 0o777 == 0o700


KILLED = """
import os, signal
from sparkstream_nb.app import deploy
app = deploy("define stream S (v int); from S#window.length(2) select sum(v) as s insert into O;", home="home")
app.send("S", [1])
app.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.thorough
@pytest.mark.spark
def test_all_that_spark_writes_beside_an_app_is_swept(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as short:
        here = Path(short) / "my tmp ü"
        here.mkdir()
        environment = {**os.environ, "TMPDIR": str(here)}
        done = subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, env=environment, check=False, timeout=110)
        assert done.returncode == -signal.SIGKILL
        script = "from sparkstream_nb.journal.temporary import sweep; sweep()"
        subprocess.run([sys.executable, "-c", script], env=environment, check=True)
        left = [p.name for p in here.iterdir() if not p.name.startswith(("sparkstream-warehouse", "hsperfdata_"))]
    assert left == []


def test_a_folder_goes_where_sigterm_ends_its_process(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom sparkstream_nb.journal.temporary import temporary_folder\n"
        "with temporary_folder('x') as folder:\n    print(folder, flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        assert folder.is_dir()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == -signal.SIGTERM
    assert not list(tmp_path.iterdir())
