"""Nodes of `siddhi(...)` with a large state stay in engine hosts, also on a session that the user made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.rotates, pytest.mark.thorough, pytest.mark.spark, pytest.mark.timeout(500)]


def test_a_large_state_stays_in_hosts_and_what_is_killed_comes_again(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:  # paths of sockets have to be short
        _run(tmp_path, Path(temporary))


def _run(folder: Path, temporary: Path) -> None:
    program = Path(__file__).with_name("hosted_stream.py")
    ended = subprocess.run(
        [sys.executable, str(program), str(folder)], capture_output=True, text=True, timeout=480,
        env={**os.environ, "TMPDIR": str(temporary)},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-4000:]
    result = json.loads(ended.stdout.splitlines()[-1])
    assert result["stream"] == result["batch"]
    assert result["batch"][0] > 400_000
    counts = result["hosts"]
    assert counts[0] == 0, "a worker that starts the server works itself"
    assert counts[3] == 2, "one for each of two partitions"
    assert counts[4] == 2, "instead of the one that was killed"
    assert counts[6] == 0, "the server was killed, and its hosts ended with it"
    assert counts[-1] == 2, "of a new server"
    end = time.monotonic() + 20
    while time.monotonic() < end and [*temporary.glob("sparkstream-hosts-*")]:
        time.sleep(0.1)
    assert not [*temporary.glob("sparkstream-hosts-*")], "it ends with Spark"
