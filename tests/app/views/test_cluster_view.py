"""What App.cluster shows of a real app: roles, counts as in the report of a failover, and the same after a restart."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from sparkstream_nb.app import App, Kill, Pair
from sparkstream_nb.app.views.cluster_view import Action, LogKind
from sparkstream_nb.errors import Misuse
from sparkstream_nb.lab.display import html, text
from sparkstream_nb.simulation.timeline import Active
from tests.app.views.test_pair import APP, EVENTS, START


@pytest.mark.contract(thorough=True)
def test_a_kill_by_a_button_and_what_followed(run: Callable[..., App]) -> None:
    """The counts are those of the report, which replays the journal; they are there again in a new deployment."""
    app = run(APP, mode="ha", name="<i>App", pair=Pair(queue=15))
    assert app.cluster.snapshot().state.clock is None
    app.feed("S", EVENTS[:95], time="at")
    fault = app.cluster.act(Action("kill", "node-1"))
    assert fault == Kill(START + 94_001, "node-1")
    waiting = app.cluster.snapshot()
    assert waiting.state.ahead == [fault]
    assert waiting.node("node-2").queue is not None
    with pytest.raises(Misuse, match="node-1 is down already"):
        app.cluster.act(Action("kill", "node-1"))
    told = threading.Event()
    leave = app.cluster.reader.follow(lambda batches: told.set())
    app.feed("S", EVENTS[95:200], time="at")
    assert told.wait(30)
    leave()
    shown, report = app.cluster.snapshot(), app.failover()
    assert {n.name: n.role.value for n in shown.state.nodes} == {s: n.runs for s, n in app.stats().nodes.items()}
    assert (shown.taken, shown.lost) == (200 - report.lost, report.lost)
    (takeover,) = report.takeovers
    logged = next(h for h in shown.state.log if h.kind is LogKind.TAKEOVER)
    assert (logged.at, logged.node) == (takeover.at, takeover.node)
    counts = f"{report.lost} events lost before it, {takeover.replayed} replayed, {takeover.missing} missing"
    assert counts in logged.text
    assert shown.state.lost_between[0] == (report.lost_between[0][0], report.lost_between[-1][1])
    assert [(h.at, h.text) for h in shown.state.log if h.kind is not LogKind.TAKEOVER] == [
        (h.at, str(h)) for h in report.happenings if not isinstance(h, Active)
    ]
    assert "node-2  ● active" in text(app.cluster)
    assert "<i>" not in html(app.cluster)
    assert app.cluster.summary() == "<Cluster of <i>App: node-1 down, node-2 active>"

    old = app.cluster
    again = run(APP, mode="ha", name="<i>App", pair=Pair(queue=15))
    assert again.cluster.snapshot().state == shown.state
    with pytest.raises(Misuse, match="is closed"):
        old.act(Action("restart", "node-1"))
    again.feed("S", EVENTS[200:], time="at")
    after = again.cluster.snapshot()
    assert (after.taken, after.lost) == (300 - report.lost, report.lost)
    assert after.state.log == shown.state.log


def test_faults_during_a_feed_come_after_what_came_in(run: Callable[..., App]) -> None:
    """The clock does not pass a fault between its time and its entry in the journal."""
    app = run(APP, mode="ha", rows_per_micro_batch=10)
    app.feed("S", EVENTS[:10], time="at")
    feed = app.feed("S", EVENTS[10:], time="at", background=True)
    faults = []
    while feed.active and len(faults) < 8:
        faults.append(app.cluster.act(Action("pause", "node-1")))
    feed.wait()
    app.feed("S", EVENTS[-1:].assign(at=START + 400_000), time="at")
    texts = [h.text for h in app.cluster.snapshot().state.log if h.kind is LogKind.FAULT]
    assert texts == ["pause node-1 for 30 s"] * len(faults)
    assert len(app.errors) == 0
