"""Files that the documents for developers name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ABBREVIATED = ROOT / "sparkstream_nb"
"""Paths of the package are written without its folder."""


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_file_that_is_named_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|js|toml|md|sh|json))`", text))
    gone = [n for n in sorted(named) if not ((ROOT / n).exists() or (ABBREVIATED / n).exists())]
    assert len(named) > 20
    assert gone == []
