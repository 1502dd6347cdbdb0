"""Waits for what comes in by itself."""

from __future__ import annotations

from collections.abc import Callable

from sparkstream_nb.app import App


def until(app: App, found: Callable[[], bool], seconds: float = 60.0) -> None:
    """Waits until `found()`, which is asked after each commit and each quarter of a second."""
    changed = app.runtime.progress.changed
    with changed:
        waited = 0.0
        while not found():
            assert waited < seconds, (app.stats(), app.logs)
            if not changed.wait(0.25):
                waited += 0.25


def rows(app: App, stream: str) -> int:
    """How many outputs a stream has."""
    return len(app.output(stream).frame)
