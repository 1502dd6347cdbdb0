"""Temporary folders as people name theirs, and worse: with characters that mean something in addresses and patterns."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder of the test's own."""
    folder = tmp_path / "my apps ü 100%25 #1 [a]"
    folder.mkdir(mode=0o700)
    return folder
