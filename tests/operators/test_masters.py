"""`siddhi(...)` on a standalone cluster and over Spark Connect."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.masters import masters


@pytest.mark.rotates
@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", ["standalone", "connect"])
def test_same_everywhere(kind: str, tmp_path: Path) -> None:
    with masters(kind, tmp_path) as where:
        program = Path(__file__).with_name("over_master.py")
        done = subprocess.run(
            [sys.executable, str(program), where.address(), str(tmp_path)], capture_output=True, text=True, timeout=300
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found["batch"]) > 50
    assert found["stream"] == found["batch"]
    assert found["late"] == 0
