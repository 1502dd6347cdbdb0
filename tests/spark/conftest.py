"""Temporary folders as people name theirs: with a space, and a letter outside ASCII."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder of the test's own."""
    folder = tmp_path / "my apps ü"
    folder.mkdir(mode=0o700)
    return folder
