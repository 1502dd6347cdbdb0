"""The notebook about an operator's deployment, over the other database that it may use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.run_servers import ServerOf

ROOT = Path(__file__).parents[2]


@pytest.mark.notebook
@pytest.mark.timeout(300)
@pytest.mark.thorough
@pytest.mark.rotates
def test_the_active_active_notebook_over_postgresql(tmp_path: Path, server_of: ServerOf) -> None:
    server = server_of("postgresql").apart()
    command = [
        sys.executable, "-m", "pytest", "-p", "nbval", "--nbval", "--nbval-current-env", "-p", "no:cacheprovider",
        "--nbval-sanitize-with", str(ROOT / "conf/nbval-sanitize.cfg"), str(ROOT / "notebooks/03_active_active.ipynb"),
    ]  # fmt: skip
    assert server.database.password is not None
    password = server.database.password.reveal()
    given = {
        "FLIGHTS_JDBC_URL": server.jdbc,
        "FLIGHTS_DB_USER": server.database.user or "",
        "FLIGHTS_DB_PASSWORD": password,
        "SPARKSTREAM_HOME": str(tmp_path),
    }
    found = subprocess.run(
        command, env={**os.environ, **given}, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False
    )
    assert found.returncode == 0, found.stdout[-5000:]
    assert password not in found.stdout + found.stderr
