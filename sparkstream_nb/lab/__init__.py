"""The notebook interface: magics, the display of results, charts and widgets. A thin layer over `cluster`."""

from __future__ import annotations

from typing import Any

from .. import app as api
from . import screen


def connect() -> None:
    """Makes apps and their results show themselves by this package: in IPython, where that runs, and in print."""
    screen.connect()


def load_ipython_extension(shell: Any) -> None:
    """Registers `%siddhi` and `%%siddhi` in `shell`, and the display of apps and results."""
    from .magics import SiddhiMagic

    connect()
    magic = SiddhiMagic(shell)
    shell.register_magics(magic)
    magic.watch_cells()
    magic.offer_completions()
    magic.offer_inspection()
    magic.offer_bare_cells()


def unload_ipython_extension(shell: Any) -> None:
    """Stops the apps of this process."""
    api.stop_all()
