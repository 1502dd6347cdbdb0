"""Exactly once: an app killed with SIGKILL, started again, ends where an undisturbed one does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from sparkstream_nb.app import App
from tests.apps import crashing
from tests.apps.programs import killed


@pytest.mark.contract
@pytest.mark.timeout(300)
@pytest.mark.parametrize("place", ["computing", "before", "after"])
def test_killed_while(
    run: Callable[..., App],
    undisturbed: tuple[pd.DataFrame, ...],
    tmp_path: Path,
    place: str,
    master: str | None,
) -> None:
    home = tmp_path / "home"
    killed(home, "crashing.py", home, master or "local[2]", place, 1)
    app = run(crashing.APP, home=home, **crashing.DEPLOYED)
    assert app.redeployed == "The state was kept: no change affects it."
    began = app.stats().events
    assert 0 < began < crashing.FEEDS * (crashing.EVENTS - 1)
    crashing.work(app)
    for ours, theirs in zip(crashing.found(app), undisturbed, strict=True):
        pd.testing.assert_frame_equal(ours, theirs)
    assert len(undisturbed[0]) == crashing.FEEDS * (crashing.EVENTS - 1)
    assert len(undisturbed[3]) == crashing.FEEDS
