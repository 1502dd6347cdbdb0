"""Exactly once: an app killed with SIGKILL, started again, ends where an undisturbed one does."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from sparkstream_nb.cluster import App

from . import crashing
from .conftest import Program


@pytest.mark.timeout(300)
@pytest.mark.parametrize("place", ["computing", "before", "after"])
def test_killed_while(
    run: Callable[..., App], program: Program, undisturbed: tuple[pd.DataFrame, ...], tmp_path: Path, place: str
) -> None:
    home = tmp_path / "home"
    assert program(home, "local[2]", place, 1).returncode == -9
    wait_until_free(home / "store.duckdb")
    app = run(crashing.APP, home=home, **crashing.DEPLOYED)
    assert app.redeployed == "The state was kept: the app means what it meant before."
    began = app.stats().events
    assert 0 < began < crashing.FEEDS * (crashing.EVENTS - 1)
    crashing.work(app)
    for ours, theirs in zip(crashing.found(app), undisturbed, strict=True):
        pd.testing.assert_frame_equal(ours, theirs)
    assert len(undisturbed[0]) == crashing.FEEDS * (crashing.EVENTS - 1)
    assert len(undisturbed[3]) == crashing.FEEDS


def wait_until_free(store: Path) -> None:
    """The kernel drops a killed process's lock with the process: at once, or nearly."""
    import fcntl

    end = time.monotonic() + 30
    while store.exists() and time.monotonic() < end:
        with store.open("rb+") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError:
                time.sleep(0.05)
