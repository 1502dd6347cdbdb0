"""Compiled loops look at no place beyond their arrays. They do not ask, as that takes time; here they do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from profiles import PROFILE, THIRDS, one_of_these


@pytest.mark.rotates
@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_no_loop_looks_beyond_an_array(tmp_path: Path) -> None:
    """A third of the apps, which rotates with the commit. A place counted from the end is not beyond it; the pools of
    patterns are no arrays to numba."""
    env = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    first, step = (0, 1) if PROFILE == "night" else (one_of_these(range(THIRDS)), THIRDS)
    command = [sys.executable, str(Path(__file__).with_name("bounds.py")), str(first), str(step)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
