"""What the first deployment does ahead. That it does it is in `tests/test_wheel.py`, where an environment is new."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparkstream_nb.app.results import first_use, frontend
from sparkstream_nb.engine import warm


def test_a_step_that_fails_is_told_and_the_deployment_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(warm, "is_compiled", lambda: False)
    monkeypatch.setattr(first_use, "_NOTICES", {"no_such_module": "Doing it ...", "engine.warm": "Not done"})
    frontend.connect(None)
    first_use.prepare(["no_such_module", "engine.warm"])
    doing, failed = capsys.readouterr().err.splitlines()
    assert doing == "Doing it ..."
    assert failed.startswith("It failed, and is left for later: ")
    assert "no_such_module" in failed


def test_a_step_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "counting.py").write_text("for i in range(1, 4):\n    print(f'{i}/3')\nprint('done')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    told: list[str] = []
    assert first_use._run(["-m", "counting"], told.append) is None
    assert [line.partition(" · ")[0] for line in told] == ["1 of 3", "2 of 3", "3 of 3"]
    assert "left" in told[0]
    assert "left" not in told[2]


def test_compiling_ends_with_the_process_that_began_it(tmp_path: Path) -> None:
    """A deployment that is killed leaves no workers behind, which the next one would start once more."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sparkstream_nb.engine.warm", warm.WITH_PARENT],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(60) != 0
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
