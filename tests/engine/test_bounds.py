"""Compiled loops look at no place beyond their arrays. They do not ask, as that takes time; here they do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from profiles import PROFILE, THIRDS, one_of_these


def run_checked(script: str, *words: object, cache: Path) -> None:
    """Runs a script of this folder with loops that are compiled with bounds checks, into a folder of their own."""
    env = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "1", "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, str(Path(__file__).with_name(script)), *map(str, words)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.rotates
@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_no_loop_looks_beyond_an_array(tmp_path: Path) -> None:
    """A third of the apps, which rotates with the commit. A place counted from the end is not beyond it, except in the
    memory of a pattern's machine."""
    first, step = (0, 1) if PROFILE == "night" else (one_of_these(range(THIRDS)), THIRDS)
    run_checked("bounds.py", first, step, cache=tmp_path)


@pytest.mark.thorough
@pytest.mark.timeout(1200)
def test_no_pattern_looks_beyond_a_pool(tmp_path: Path) -> None:
    """All cases with patterns; and that faults of a machine, which without checks are wrong matches or a crash, are
    errors."""
    run_checked("pattern_bounds.py", cache=tmp_path)
