"""The same app on a standalone cluster and over Spark Connect: what comes out is what comes out on this machine.

So it is from a file and from Kafka, with a table and an aggregation in PostgreSQL.
"""

from __future__ import annotations

import pickle
import shutil
from contextlib import ExitStack
from pathlib import Path

import pandas as pd
import pytest

from tests.apps.feeds import Fed
from tests.apps.programs import ROOT, killed, ran
from tests.masters import connect, standalone
from tests.profiles import one_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(500)]
KINDS = one_of(["connect", "standalone"])
"""Of the two, `test_shared.py` has the other one at each commit."""


DEPLOYED_FROM_A_COPY = """
import sys
from sparkstream_nb import deploy
from sparkstream_nb.errors import SparkUnavailable
for _ in range(2):
    try:
        deploy("define stream S (v int);", name="copy", master=sys.argv[1], home=sys.argv[2])
    except SparkUnavailable as error:
        print(error, file=sys.stderr)
"""


def at_this_commit(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(kind not in KINDS, reason=f"at this commit test_shared.py has what is {kind}")


def same(home: Path, theirs: tuple[pd.DataFrame, ...]) -> None:
    for ours, other in zip(pickle.loads((home / "found").read_bytes()), theirs, strict=True):
        pd.testing.assert_frame_equal(ours, other)


@pytest.mark.rotates
@pytest.mark.thorough
@at_this_commit("standalone")
def test_a_standalone_cluster(undisturbed: tuple[pd.DataFrame, ...], tmp_path: Path, fed: Fed) -> None:
    address, servers = standalone(tmp_path)
    with ExitStack() as stack:
        for server in servers:
            stack.enter_context(server)
        done = ran("crashing.py", tmp_path / "home", address, "never", 0)
        assert done.returncode == 0, done.stderr
        assert list((tmp_path / "work").glob("app-*")), "no executor of the cluster was asked"
        same(tmp_path / "home", undisturbed)
        fed.same(address, tmp_path / "standalone", fed.folder)


@pytest.mark.rotates
def test_the_same_from_a_file_and_from_kafka(tmp_path: Path, fed: Fed) -> None:
    fed.same("local[2]", tmp_path / "local", fed.topic)


@pytest.mark.rotates
@pytest.mark.thorough
@at_this_commit("connect")
def test_over_connect_a_batch_counts_once(undisturbed: tuple[pd.DataFrame, ...], tmp_path: Path, fed: Fed) -> None:
    home = tmp_path / "home"
    address, (server,) = connect(tmp_path, PYTHONPATH=str(ROOT))
    with server:
        shutil.copytree(ROOT / "sparkstream_nb", tmp_path / "copy" / "sparkstream_nb")
        (tmp_path / "copy" / "sparkstream_nb" / "more.py").touch()
        other = {"PYTHONPATH": str(tmp_path / "copy"), "PYTHONSAFEPATH": "1"}
        refused = ran(DEPLOYED_FROM_A_COPY, address, tmp_path / "refused", **other)
        said = "The Python of the Spark Connect server has another version of sparkstream-nb."
        assert refused.stderr.count(said) == 2
        # The server's query outlives the client; what it hands over waits for the next one.
        for place, batch in (("before", 1), ("after", 2)):
            killed(home, "crashing.py", home, address, place, batch)
        done = ran("crashing.py", home, address, "never", 0)
        assert done.returncode == 0, done.stderr
        assert float(done.stdout.splitlines()[-1]) < 2
        same(home, undisturbed)
        fed.same(address, tmp_path / "connect", fed.topic)
