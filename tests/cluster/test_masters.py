"""The same app on a standalone cluster and over Spark Connect: what comes out is what comes out on this machine."""

from __future__ import annotations

import pickle
from contextlib import ExitStack
from pathlib import Path

import pandas as pd
import pytest

from tests.masters import connect, standalone

from .conftest import Program

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def same(home: Path, theirs: tuple[pd.DataFrame, ...]) -> None:
    for ours, other in zip(pickle.loads((home / "found").read_bytes()), theirs, strict=True):
        pd.testing.assert_frame_equal(ours, other)


def test_a_standalone_cluster(program: Program, undisturbed: tuple[pd.DataFrame, ...], tmp_path: Path) -> None:
    address, servers = standalone(tmp_path)
    with ExitStack() as stack:
        for server in servers:
            stack.enter_context(server)
        done = program(tmp_path / "home", address, "never", 0)
        assert done.returncode == 0, done.stderr
        assert list((tmp_path / "work").glob("app-*")), "no executor of the cluster was asked"
    same(tmp_path / "home", undisturbed)


def test_over_connect_a_batch_counts_once(
    program: Program, undisturbed: tuple[pd.DataFrame, ...], tmp_path: Path
) -> None:
    # The server knows another package of this name, so ours has to be sent to it.
    (tmp_path / "other" / "sparkstream_nb").mkdir(parents=True)
    (tmp_path / "other" / "sparkstream_nb" / "__init__.py").touch()
    home = tmp_path / "home"
    address, (server,) = connect(tmp_path, PYTHONPATH=str(tmp_path / "other"))
    with server:
        # The server's query outlives the client; what it hands over waits for the next one.
        for place, batch in (("before", 1), ("after", 2)):
            done = program(home, address, place, batch)
            assert done.returncode == -9, done.stderr
        done = program(home, address, "never", 0)
        assert done.returncode == 0, done.stderr
        assert float(done.stdout.splitlines()[-1]) < 2
    same(home, undisturbed)
