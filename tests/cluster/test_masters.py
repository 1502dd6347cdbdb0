"""The same app on a standalone cluster and over Spark Connect: what comes out is what comes out on this machine."""

from __future__ import annotations

import pickle
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sparkstream_nb.cluster import deploy
from tests.broker import Broker
from tests.masters import connect, standalone

from . import from_sources
from .programs import killed, ran

pytestmark = [pytest.mark.spark, pytest.mark.timeout(500)]


@dataclass(frozen=True)
class Fed:
    """Where the messages of a feed are, in Kafka and in a folder, and what is expected of them."""

    topic: str
    folder: str
    expected: dict[str, pd.DataFrame]


def same(home: Path, theirs: tuple[pd.DataFrame, ...]) -> None:
    for ours, other in zip(pickle.loads((home / "found").read_bytes()), theirs, strict=True):
        pd.testing.assert_frame_equal(ours, other)


@pytest.mark.thorough
def test_a_standalone_cluster(undisturbed: tuple[pd.DataFrame, ...], tmp_path: Path, fed: Fed) -> None:
    address, servers = standalone(tmp_path)
    with ExitStack() as stack:
        for server in servers:
            stack.enter_context(server)
        done = ran("crashing.py", tmp_path / "home", address, "never", 0)
        assert done.returncode == 0, done.stderr
        assert list((tmp_path / "work").glob("app-*")), "no executor of the cluster was asked"
        same(tmp_path / "home", undisturbed)
        same_from(tmp_path, address, fed.expected, fed.topic, fed.folder)


@pytest.fixture(scope="module")
def fed(spark: Any, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Fed:
    """A feed in a topic, and what an app on this machine makes of it as a file."""
    topic, folder = broker.topic(), tmp_path_factory.mktemp("fed")
    producer = broker.producer(linger_ms=20)
    for line in from_sources.lines():
        producer.send(topic, line.encode())
    producer.close()
    (folder / "in").mkdir()
    (folder / "in" / "feed.json").write_text("".join(f"{line}\n" for line in from_sources.lines()))
    source, home = f"file:{folder / 'in'}", folder / "home"
    out = from_sources.out_of(home)
    app = deploy(from_sources.app_text(source, out), name="fed", home=home, allow=from_sources.allowed(source, out))
    expected = from_sources.found(app)
    app.stop()
    assert len(expected["Falls"]) > 10
    return Fed(f"kafka:{broker.address}/{topic}", source, expected)


def same_from(folder: Path, master: str, expected: dict[str, pd.DataFrame], *sources: str) -> None:
    """The same comes out of each source, on the Spark at `master`."""
    folder = folder / "from sources"
    done = ran("from_sources.py", folder, master, *sources)
    assert done.returncode == 0, done.stderr
    for source in sources:
        found = pickle.loads((from_sources.home_of(folder, source) / "found").read_bytes())
        for name, frame in expected.items():
            pd.testing.assert_frame_equal(found[name], frame, obj=f"{name} from {source}")


def test_the_same_from_a_file_and_from_kafka(tmp_path: Path, fed: Fed) -> None:
    same_from(tmp_path, "local[2]", fed.expected, fed.topic)


@pytest.mark.thorough
def test_over_connect_a_batch_counts_once(undisturbed: tuple[pd.DataFrame, ...], tmp_path: Path, fed: Fed) -> None:
    # The server knows another package of this name, so ours has to be sent to it.
    (tmp_path / "other" / "sparkstream_nb").mkdir(parents=True)
    (tmp_path / "other" / "sparkstream_nb" / "__init__.py").touch()
    home = tmp_path / "home"
    address, (server,) = connect(tmp_path, PYTHONPATH=str(tmp_path / "other"))
    with server:
        # The server's query outlives the client; what it hands over waits for the next one.
        for place, batch in (("before", 1), ("after", 2)):
            killed(home, "crashing.py", home, address, place, batch)
        done = ran("crashing.py", home, address, "never", 0)
        assert done.returncode == 0, done.stderr
        assert float(done.stdout.splitlines()[-1]) < 2
        same(home, undisturbed)
        same_from(tmp_path, address, fed.expected, fed.topic, fed.folder)
