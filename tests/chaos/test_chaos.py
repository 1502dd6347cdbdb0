"""An app that is killed at random moments ends where an undisturbed one does. `make chaos` does it 200 times."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.masters import masters

from .harness import KINDS, Chaos


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("master", "kinds"),
    [
        ("inline", KINDS),
        pytest.param("local", ("driver", "group", "jvm", "worker", "forks"), marks=pytest.mark.spark),
    ],
)
def test_five_kills(tmp_path: Path, master: str, kinds: tuple[str, ...]) -> None:
    with masters(master, tmp_path) as sparks:
        report = Chaos(tmp_path, sparks, seed=5).run(5, kinds)
    assert report.differing == []
    assert sum(report.kills.values()) == 5, report
