"""The scripts of views, which lie beside this file."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent


def read_script(*names: str) -> str:
    """The text of these files, one after the other; `plot.js` comes before those that draw plots."""
    return "".join((_FOLDER / name).read_text(encoding="utf-8") for name in names)
