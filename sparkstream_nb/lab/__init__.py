"""The notebook interface: magics, result objects, charts and widgets. A thin layer over `sparkstream_nb.cluster`."""

from __future__ import annotations

from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """Registers `%siddhi` and `%%siddhi` in `shell`. Raises `Misuse` outside IPython."""
    from .magics import SiddhiMagic

    magic = SiddhiMagic(shell)
    shell.register_magics(magic)
    magic.offer_completions()


def unload_ipython_extension(shell: Any) -> None:
    """Stops the apps of this process."""
    from ..cluster import stop_all

    stop_all()
