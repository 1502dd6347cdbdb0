"""Spark's JVM dies below an app: what a person may call answers, and the next deployments work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_everything_answers_when_the_jvm_is_gone(tmp_path: Path) -> None:
    program = [sys.executable, str(Path(__file__).parents[1] / "apps" / "jvm_dies.py"), str(tmp_path)]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=220, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    assert {"repr", "state", "stats", "apps", "send", "output", "stop"} <= said.keys()
    assert "Traceback" not in done.stdout + done.stderr
    # Nothing that was taken is lost: 1, 3 and 4, and 2 where `send` did not refuse it.
    events = 3 if "Error" in said["send"] else 4
    assert f"after a stop {events}" in done.stdout
