"""How Spark writes the checkpoint of an app."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.apps.programs import ran

PROGRAM = """
import sys
from pathlib import Path
from sparkstream_nb import deploy

app = deploy("define stream S (v int); from S#window.length(2) select sum(v) as s insert into O;",
             name="files", home=Path(sys.argv[1]), master="local[2]")
for v in range(3):
    app.send("S", [v])
    app.flush()
print(app.output("O").frame["s"].tolist())
app.stop()
"""


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.timeout(240)
def test_no_process_is_started_to_ask_about_a_file(tmp_path: Path) -> None:
    """Hadoop has no other way to see whether a file is a link than `readlink`, 24 times in each micro-batch."""
    commands = tmp_path / "bin"
    commands.mkdir()
    asked = tmp_path / "asked"
    (commands / "readlink").write_text(f'#!/bin/sh\necho "$@" >> "{asked}"\n')
    (commands / "readlink").chmod(0o755)
    done = ran(PROGRAM, tmp_path / "home", PATH=f"{commands}{os.pathsep}{os.environ['PATH']}")
    assert done.stdout.splitlines()[-1:] == ["[0, 1, 3]"], done.stderr
    assert list((tmp_path / "home").glob("life-*/checkpoint/commits/2"))
    assert "checkpoint" not in (asked.read_text() if asked.exists() else "")
