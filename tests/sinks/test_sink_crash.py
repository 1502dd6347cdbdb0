"""A process killed with SIGKILL between a commit and the delivery, or in the middle of that.

Nothing is lost, files have no repeat, and a server is sent again only what was under way.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkstream_nb.app import App
from tests.apps import sink_crashing
from tests.apps.programs import killed
from tests.apps.receiver import receiver
from tests.broker import Broker
from tests.marks import thorough


@pytest.mark.timeout(300)
@pytest.mark.parametrize("place", [*map(thorough, ["between", "writing", "posted", "batch"]), "written"])
def test_killed(run: Callable[..., App], tmp_path: Path, place: str) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    out.mkdir()
    with receiver() as server:
        killed(home, "sink_crashing.py", home, out, server.url, place)
        before = len(server.requests)
        text = sink_crashing.app_text(out, server.url)
        app = run(text, home=home, allow=sink_crashing.allowed(out, server.url), **sink_crashing.DEPLOYED)
        sink_crashing.work(app)
        assert app.drain(60) == 0
        committed = app.output("Alerts").frame
        assert len(committed) == sink_crashing.ROWS * sink_crashing.BATCHES
        expected = [f"{k},{v}" for k, v in zip(committed["k"], committed["v"], strict=True)]
        assert sorted(committed["v"]) == list(range(len(expected)))
        assert (out / "alerts.csv").read_text().splitlines() == ["k,v", *expected]
        events = [
            one["event"]
            for file in sorted((out / "batches").glob("[!.]*"))
            for line in file.read_text().splitlines()
            for one in json.loads(line)
        ]
        assert [f"{e['k']},{e['v']}" for e in events] == expected
        posted = [r.body.decode().rstrip("\n") for r in server.requests]
        assert list(dict.fromkeys(posted)) == expected
        repeated = [body for body, count in Counter(posted).items() if count > 1]
        assert len(posted) - len(expected) == len(repeated) <= 1
        if place == "posted":
            assert repeated == [posted[before - 1]] == [posted[before]]
            assert len({r.headers["Idempotency-Key"] for r in server.requests}) == len(expected)
        sent = {f.name: f.sent for f in app.stats().sinks}
        assert set(sent.values()) == {len(expected)}


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_killed_between_a_fault_and_the_note_of_it(run: Callable[..., App], tmp_path: Path) -> None:
    """What the server refuses is in the fault stream once, though it is refused twice."""
    home, out = tmp_path / "home", tmp_path / "out"
    out.mkdir()
    with receiver(lambda n, body: 400 if body.endswith(b"5\n") else 200) as server:
        killed(home, "sink_crashing.py", home, out, server.url, "faulted")
        text = sink_crashing.app_text(out, server.url)
        app = run(text, home=home, allow=sink_crashing.allowed(out, server.url), **sink_crashing.DEPLOYED)
        sink_crashing.work(app)
        assert app.drain(60) == 0
        app.flush()
        refused = [i for i in range(sink_crashing.ROWS * sink_crashing.BATCHES) if i % 10 == 5]
        assert sorted(app.output("Failed").frame["v"]) == refused
        failed = Counter(r.body for r in server.requests if r.status == 400)
        assert sorted(failed.values()) == [1] * (len(refused) - 1) + [2]
        (figures,) = (f for f in app.stats().sinks if f.type == "http")
        assert figures.failed == len(refused)


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_killed_after_records_were_produced(run: Callable[..., App], tmp_path: Path, broker: Broker) -> None:
    """Kafka has the records of one batch twice: each with one Idempotency-Key."""
    home, out, topic = tmp_path / "home", tmp_path / "out", broker.topic(partitions=3)
    out.mkdir()
    with receiver() as server:
        killed(home, "sink_crashing.py", home, out, server.url, "produced", broker.address, topic)
        before = broker.records(topic)
        text = sink_crashing.app_text(out, server.url, broker.address, topic)
        allow = sink_crashing.allowed(out, server.url, broker.address)
        app = run(text, home=home, allow=allow, **sink_crashing.DEPLOYED)
        sink_crashing.work(app)
        assert app.drain(60) == 0
        committed = app.output("Alerts").frame
        expected = Counter(f"{k},{v}\n" for k, v in zip(committed["k"], committed["v"], strict=True))
        records = broker.records(topic)
        by_key: dict[str, set[bytes]] = {}
        for r in records:
            by_key.setdefault(dict(r.headers)["Idempotency-Key"].decode(), set()).add(r.value)
        assert all(len(values) == 1 for values in by_key.values())
        assert Counter(value.decode() for (value,) in by_key.values()) == expected
        assert len(records) - len(by_key) == len(before) - sink_crashing.ROWS
