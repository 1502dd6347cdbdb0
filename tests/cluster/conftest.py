"""Apps on a Spark session that all tests share, each in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb.cluster import App, deploy, stop_all


@pytest.fixture
def run(spark: Any, tmp_path: Path) -> Iterator[Callable[..., App]]:
    """`deploy` into a temporary folder; what it deployed is stopped after the test."""

    def start(text: str, **arguments: Any) -> App:
        return deploy(text, **{"name": "app", "home": tmp_path / "home", **arguments})

    yield start
    stop_all()
