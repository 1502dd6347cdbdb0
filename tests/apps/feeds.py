"""A feed in a topic and in a folder, and what an app on this machine makes of it."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from tests.apps import from_sources
from tests.apps.programs import ran
from tests.broker import Broker
from tests.servers import Server


@dataclass(frozen=True)
class Fed:
    """Where the messages of a feed are, in Kafka and in a folder; the server that its apps have their databases on; and
    what is expected of them."""

    topic: str
    folder: str
    databases: Server
    expected: dict[str, pd.DataFrame]

    def same(self, master: str, folder: Path, *sources: str, shared: str | None = None) -> None:
        """The same comes out of each source, on the Spark at `master`. `folder` is the apps', and its name that of
        their databases."""
        environment = reached(self.databases, folder.name, sources) | ({"SHARED": shared} if shared else {})
        done = ran("from_sources.py", folder, master, *sources, **environment)
        assert done.returncode == 0, done.stderr
        for source in sources:
            found = pickle.loads((from_sources.home_of(folder, source) / "found").read_bytes())
            for name, frame in self.expected.items():
                pd.testing.assert_frame_equal(found[name], frame, obj=f"{name} from {source}")


def reached(server: Server, name: str, sources: tuple[str, ...]) -> dict[str, str]:
    """How `from_sources` reaches a database for each source, which is made."""
    own = f"{server.database.name}_{name}"
    for source in sources:
        server.made(f"{own}_{source.partition(':')[0]}")
    user, password = server.database.user, server.database.password
    assert user is not None
    assert password is not None
    url = server.jdbc.replace(f"/{server.database.name}", f"/{own}_{{app}}")
    return {"JDBC_URL": url, "DB_USER": user, "DB_PASSWORD": password.reveal()}


def fed_to(broker: Broker, server: Server, folder: Path) -> Fed:
    """The feed, and what an app on this machine makes of it as a file in `folder`."""
    topic, source = broker.topic(), f"file:{folder / 'in'}"
    producer = broker.producer(linger_ms=20)
    for line in from_sources.lines():
        producer.send(topic, line.encode())
    producer.close()
    (folder / "in").mkdir()
    (folder / "in" / "feed.json").write_text("".join(f"{line}\n" for line in from_sources.lines()))
    app = from_sources.deployed(source, folder / "home")
    expected = from_sources.found(app)
    app.stop()
    assert len(expected["Falls"]) > 10
    assert expected["D"]["n"].sum() == from_sources.EVENTS
    return Fed(f"kafka:{broker.address}/{topic}", source, server, expected)
