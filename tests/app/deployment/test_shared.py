"""Spark's machines and the app's owner see no folder in common, and meet at an address: what comes out is the same.

The cluster has mount namespaces of its own, in which the app's folder is empty; the address is a bucket of an S3
server. So it is with events from Kafka, and with a table and an aggregation in PostgreSQL.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pandas as pd
import pytest

from sparkstream_nb.app import App
from tests.apps.feeds import Fed
from tests.apps.programs import killed, ran
from tests.jars import skip_without
from tests.masters import Server, connect, standalone
from tests.objects import ENVIRONMENT, S3A_HOME, Objects, objects, settings
from tests.profiles import one_of
from tests.runners.test_masters import same

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
KILLS = {"standalone": (("before", 1),), "connect": (("after", 1),)}


@pytest.fixture(scope="module")
def bucket() -> Iterator[Objects]:
    skip_without("what Spark needs for S3", S3A_HOME)
    mount = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/tmp"]
    tried = subprocess.run(mount, capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"this machine gives no mount namespaces: {tried.stderr.strip()}")
    with objects() as server, pytest.MonkeyPatch.context() as environment:
        for name, value in ENVIRONMENT.items():
            environment.setenv(name, value)
        yield server


def servers_of(kind: str, folder: Path, hidden: Path) -> tuple[str, list[Server]]:
    """A Spark of a kind to which the folder `hidden` is empty."""
    hidden.mkdir()
    address, servers = standalone(folder) if kind == "standalone" else connect(folder, conf=settings())
    return address, [*servers[:-1], servers[-1].blind(hidden)]


@pytest.mark.rotates
@pytest.mark.thorough
@pytest.mark.parametrize("kind", one_of(["standalone", "connect"]))
def test_a_cluster_without_a_folder_in_common(
    kind: str, undisturbed: tuple[pd.DataFrame, ...], tmp_path: Path, bucket: Objects, fed: Fed
) -> None:
    hidden = tmp_path / "client"
    home, shared = hidden / "home", bucket.folder(kind)
    address, servers = servers_of(kind, tmp_path, hidden)
    with ExitStack() as stack:
        for server in servers:
            stack.enter_context(server)
        for place, batch in KILLS[kind]:
            killed(home, "crashing.py", home, address, place, batch, shared)
        done = ran("crashing.py", home, address, "never", 0, shared)
        assert done.returncode == 0, done.stderr
        assert list(home.glob("life-*"))
        assert servers[-1].sees(hidden) == []
        same(home, undisturbed)
        fed.same(address, hidden / f"far_{kind}", fed.topic, shared=bucket.folder(f"{kind}-fed"))


def test_an_app_goes_on_and_leaves_nothing_behind(run: object, spark: object, tmp_path: Path) -> None:
    """On this machine, with a folder as address: an interrupt, another start, and what is at the address then."""
    meeting = tmp_path / "meeting"
    text = """
    define stream S (k string, v long);
    from S#window.length(2) select k, sum(v) as total insert into O;
    """
    where = meeting.as_uri()

    def start() -> App:
        app = run(text, shared=where)  # type: ignore[operator]
        assert isinstance(app, App)
        return app

    app = start()
    for v in range(5):
        app.send("S", ["a", v])
        app.flush()
    app.stop()
    app.send("S", ["b", 10])
    app.interrupt()
    app.send("S", ["c", 20])
    app.flush()
    taken = list(app.output("O").frame["total"])
    assert taken[:5] == [0, 1, 3, 5, 7]
    assert taken[-1] == 30, "an event that was sent stays"
    app.stop()
    app = start()
    assert "kept" in str(app.redeployed)
    app.send("S", ["d", 1])
    app.flush()
    assert app.output("O").frame["total"].iloc[-1] == 21
    app.stop()
    life = next(meeting.iterdir())
    left = [p.relative_to(life) for p in life.rglob("*") if p.is_file() and "checkpoint" not in p.parts]
    assert len(left) < 8, left
