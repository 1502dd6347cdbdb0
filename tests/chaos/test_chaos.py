"""An app that is killed at random moments ends where an undisturbed one does. `make chaos` does it 200 times."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.masters import masters

from .harness import Chaos


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_five_kills(tmp_path: Path) -> None:
    with masters("local", tmp_path) as sparks:
        report = Chaos(tmp_path, sparks, seed=5).run(5, ("driver", "group", "jvm", "worker", "forks"))
    assert report.differing == []
    assert sum(report.kills.values()) == 5, report
