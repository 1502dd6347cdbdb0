"""Stores under test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparkstream_nb.stores import Store

from .trades import STORES


@pytest.fixture(params=sorted(STORES))
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens the store of this test; what it gave before is closed first."""
    opened: list[Store] = []

    def open_() -> Store:
        for s in opened:
            s.close()
        opened[:] = [STORES[request.param](tmp_path)]
        return opened[0]

    yield open_
    for s in opened:
        s.close()
