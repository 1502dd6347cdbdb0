"""What a user's type checker makes of the package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = """
import sparkstream_nb

app = sparkstream_nb.deploy("", home="folder", rows_per_micro_batch=1000)
reveal_type(app)
reveal_type(app.query(""))
reveal_type(app.output("S").frame)
reveal_type(sparkstream_nb.get("name").stats().nodes)
reveal_type(sparkstream_nb.apps()["name"].feed("S", None).seconds)
reveal_type(sparkstream_nb.check("").error)
sparkstream_nb.deploy("", noodes=3)
sparkstream_nb.deplo
"""
TOLD = [
    'note: Revealed type is "sparkstream_nb.app.running.app.App"',
    'note: Revealed type is "sparkstream_nb.app.results.answers.Result"',
    'note: Revealed type is "Any"',
    'note: Revealed type is "dict[str, sparkstream_nb.app.results.answers.NodeStats]"',
    'note: Revealed type is "float"',
    'note: Revealed type is "sparkstream_nb.errors.SiddhiError | None"',
    'error: Unexpected keyword argument "noodes" for "deploy"; did you mean "nodes"?  [call-arg]',
    'error: Module has no attribute "deplo"; maybe "deploy"?  [attr-defined]',
]


@pytest.mark.timeout(600)
def test_the_front_door_is_typed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(program)]
    env = {**os.environ, "MYPYPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    said = re.findall(r"program\.py:\d+: (.*)", done.stdout.replace("builtins.", ""))
    assert [line for line in said if '" defined in "' not in line] == TOLD, done.stdout + done.stderr
