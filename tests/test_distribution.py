"""All tests in a browser go to one of xdist's processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEST = """
import os, pytest
@pytest.mark.parametrize("number", range(6))
def test(number):
    print("PROCESS", __file__, os.environ["PYTEST_XDIST_WORKER"])
"""


@pytest.mark.parametrize("way", ["loadfile", "loadgroup"])
def test_the_groups(tmp_path: Path, way: str) -> None:
    folder = tmp_path / "tests" / "lab"
    folder.mkdir(parents=True)
    files = {n: folder / f"test_{n}.py" for n in ("a_browser", "b", "c_browser", "d")}
    for file in files.values():
        file.write_text(TEST)
    options = ["-q", "-rP", "-p", "xdist", "-n", "2", "--dist", way, "-p", "tests.distribution"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "tests"], cwd=tmp_path, env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    lines = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("PROCESS")]
    assert len(lines) == 24
    processes = {n: {process for place, process in lines if place == str(file)} for n, file in files.items()}
    assert len(processes["a_browser"] | processes["c_browser"]) == 1
    assert len(set.union(*processes.values())) == 2
    if way == "loadfile":
        assert {len(found) for found in processes.values()} == {1}
