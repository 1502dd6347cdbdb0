"""An app that is killed at random moments ends where an undisturbed one does. `make chaos` does it 200 times."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.masters import masters

from .harness import KINDS, Chaos


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("master", "hits", "kinds"),
    [
        ("inline", 3, KINDS),
        pytest.param(
            "local", 2, ("driver", "group", "jvm", "worker", "host", "forks"),
            marks=[pytest.mark.spark, pytest.mark.rotates],
        ),
    ],
)
def test_some_hits(tmp_path: Path, master: str, hits: int, kinds: tuple[str, ...]) -> None:
    with masters(master, tmp_path) as sparks:
        report = Chaos(tmp_path, sparks, seed=5).run(hits, kinds)
    assert report.differing == []
    assert sum(report.kills.values()) == hits, report
