"""Exactly once: a driver killed with SIGKILL, started again, ends where an undisturbed one does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sparkstream_nb.cluster import App, deploy

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import crashing  # noqa: E402

Found = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]


def found(app: App) -> Found:
    """Outputs, aggregation merged and by shard, errors."""
    merged, by_shard = app.aggregation("Sums", per="min")
    return app.output("Totals"), merged, by_shard, app.errors.astype({"values": str})


@pytest.fixture(scope="module")
def undisturbed(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Found]:
    app = deploy(crashing.APP, home=tmp_path_factory.mktemp("undisturbed"), **crashing.DEPLOYED)
    crashing.work(app)
    yield found(app)
    app.stop()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("place", ["computing", "before", "after"])
def test_killed_while(run: Callable[..., App], undisturbed: Found, tmp_path: Path, place: str) -> None:
    home = tmp_path / "home"
    program = subprocess.run(
        [sys.executable, str(HERE / "crashing.py"), str(home), place, "1"],
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(HERE.parent.parent)},
        capture_output=True,
        timeout=240,
        check=False,
    )
    assert program.returncode == -9, program.stderr.decode()[-2000:]
    wait_until_free(home / "store.duckdb")
    app = run(crashing.APP, home=home, **crashing.DEPLOYED)
    assert app.redeployed == "The state was kept: the app means what it meant before."
    began = app.stats()["events"]
    assert 0 < began < crashing.FEEDS * (crashing.EVENTS - 1)
    crashing.work(app)
    for ours, theirs in zip(found(app), undisturbed, strict=True):
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
