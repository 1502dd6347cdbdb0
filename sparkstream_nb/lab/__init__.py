"""What a person sees in a notebook: magics, how results look, charts and widgets. Thin over `cluster`."""

from __future__ import annotations

from typing import Any


def connect() -> None:
    """Makes apps and their results show themselves by this package: in IPython, where that runs, and in print."""
    from . import screen

    screen.connect()


def load_ipython_extension(shell: Any) -> None:
    """Registers `%siddhi` and `%%siddhi` in `shell`, and how apps and results are shown."""
    from .magics import SiddhiMagic

    connect()
    magic = SiddhiMagic(shell)
    shell.register_magics(magic)
    magic.offer_completions()


def unload_ipython_extension(shell: Any) -> None:
    """Stops the apps of this process."""
    from ..cluster import stop_all

    stop_all()
