"""Mode ha on Spark: two nodes, faults in the app's own time, and the report of a failover."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparkstream_nb.app import App, Cut, Kill, Pair, Pause, Restart, Slow
from sparkstream_nb.app.config.fault_schedule import schedule_of
from sparkstream_nb.errors import Misuse, SiddhiRuntimeError, SparkStreamError
from sparkstream_nb.lab.display import html, text

CONF = Path(__file__).parents[3] / "conf"
START = 1_700_000_000_000
APP = """
define stream S (k string, v long);
define aggregation Sums from S select k, sum(v) as total group by k aggregate every min;
define table Seen (k string, v long);
@info(name='each') from S select v insert into Each;
@info(name='four') from S#window.length(4) select k, sum(v) as total insert into Four;
@info(name='seen') from S[v > 290] select k, v insert into Seen;
"""
EVENTS = pd.DataFrame({"k": ["a"] * 300, "v": range(300), "at": START + 1000 * np.arange(300)})


def numbers(app: App) -> dict[str, list[int]]:
    """What each node put out to Each."""
    frame = app.output("Each").frame
    return {str(node): sorted(own["v"]) for node, own in frame.groupby("node")}


@pytest.mark.contract
@pytest.mark.parametrize("cuts", [[300], [50, 100, 130, 300]])
def test_a_failover(run: Callable[..., App], cuts: list[int]) -> None:
    """The manual's figures: 25 to 30 s to notice, a poll; the replay begins at the revision of 1:00. The report tells
    what came out, and the cuts into micro-batches, with a stop and a start between, do not matter."""
    app = run(APP, mode="ha", faults=[Kill(90_000, "node-1")])
    for first, end in zip([0, *cuts], cuts, strict=False):
        app.feed("S", EVENTS[first:end], time="at")
        app.stop()
    report = app.failover()
    (takeover,) = report.takeovers
    assert takeover.node == "node-2"
    assert takeover.gap is not None
    assert 25_000 <= takeover.gap <= 35_000
    assert takeover.revision == START + 60_000
    noticed = -(-(takeover.at - START) // 1000)
    assert numbers(app) == {"node-1": list(range(90)), "node-2": [*range(60, 90), *range(noticed, 300)]}
    assert (report.lost, report.replayed) == (noticed - 90, 30)
    each, four = report.frame.itertuples(index=False)
    assert each[2:] == (300 - report.lost, report.lost, 0, 30)
    assert four[2:] == (297 - report.lost, report.lost + 3, 3, 30)
    assert len(app.output("Four").frame) == four[2] + four[4] + four[5]

    total = app.query("from Sums within '**' per 'min' select sum(total) as t".replace("'**'", "0L, 9000000000000L"))
    assert total.frame["t"].tolist() == [sum(range(90)) + sum(range(noticed, 300))]
    merged, by_shard = app.aggregation("Sums", per="min")
    assert merged["total"].sum() == total.frame["t"].tolist()[0]
    assert set(by_shard["SHARD_ID"]) == {"node-2"}
    assert app.query("from Seen select v").frame["v"].tolist() == list(range(291, 300))
    assert f"{noticed - 90} lost and 30 processed twice" in text(report)
    assert "<img" in html(report)


def test_an_app_that_ran_on_one_node_in_this_process(run: Callable[..., App], tmp_path: Path) -> None:
    """Single nodes leave stateless queries to tasks; the nodes of a pair do all themselves."""
    text = "define stream S (v long); @info(name='all') from S select v insert into Each;"
    for mode in ("single", "ha"):
        app = run(text, mode=mode, name=mode, home=tmp_path / mode)
        app.feed("S", EVENTS[["v", "at"]][:20], time="at")
        app.stop()
        assert app.output("Each").frame["v"].tolist() == list(range(20))


def test_the_files_of_a_pair_give_mode_names_and_figures(run: Callable[..., App], tmp_path: Path) -> None:
    app = run(APP, conf=CONF / "minimum-ha", faults=[Kill(90_000, "wso2-si-1")])
    assert (app.mode, app.shard_ids, app.cluster.nodes) == ("ha", ("wso2-si-1", "wso2-si-2"), app.shard_ids)
    assert any(line.startswith("node-2.yaml: these keys mean nothing here: ") for line in app.logs)
    app.feed("S", EVENTS, time="at")
    assert [t.node for t in app.failover().takeovers] == ["wso2-si-2"]
    with pytest.raises(Misuse, match="leave mode out, or give mode='ha'"):
        run(APP, conf=CONF / "minimum-ha", mode="active-active")
    with pytest.raises(Misuse, match="leave pair out"):
        run(APP, conf=CONF / "minimum-ha", pair=Pair())


@pytest.mark.contract(thorough=True)
def test_what_a_person_does_to_nodes(run: Callable[..., App]) -> None:
    app = run(APP, mode="ha", pair=Pair(persist=10_000), name="Tested")
    card = text(app).splitlines()
    assert card[0] == "Tested: running · 2 nodes, ha: node-1, node-2"
    assert not any(line.startswith("  !") for line in card)
    with pytest.raises(Misuse, match="no event was received yet"):
        app.cluster.kill("node-1")
    app.feed("S", EVENTS[:50], time="at")
    app.cluster.kill("node-1")
    for wrong, message in (
        (lambda: app.cluster.kill("node-1"), "node-1 is down already"),
        (lambda: app.cluster.kill("node-7"), "there is no node 'node-7'. Did you mean"),
        (lambda: app.cluster.restart("node-2"), "node-2 is up"),
        (lambda: app.cluster.kill("node-2", at=START), "the app's clock is at"),
        (lambda: app.cluster.cut("node-2", "node-2", (None, START + 900_000)), "no link between node-2 and node-2"),
        (lambda: app.cluster.pause("node-2", (None, START + 49_001)), "it ends at"),
        (lambda: app.divergence(), "failover"),
        (lambda: app.view(), "a node has all of an aggregation"),
        (lambda: app.scale(3), "mode ha"),
    ):
        with pytest.raises(Misuse, match=message):
            wrong()
    app.feed("S", EVENTS[50:60], time="at")
    with pytest.raises(SiddhiRuntimeError, match="node-1 is down; node-2 is passive"):
        app.query("from Seen select v")
    with pytest.raises(SiddhiRuntimeError, match="node-1 is down"):
        app.aggregation("Sums", per="min")
    app.cluster.restart("node-1", at=START + 100_000)
    app.cluster.cut("node-2", "database", (START + 110_000, START + 120_000))
    app.feed("S", EVENTS[60:], time="at")
    assert app.cluster.faults["what"].tolist() == ["kill node-1", "restart node-1", "cut node-2 from database for 10 s"]
    assert [t.node for t in app.failover().takeovers] == ["node-2"]
    assert {n.shard: n.runs for n in app.stats().nodes.values()} == {"node-1": "passive", "node-2": "active"}
    assert app.redeployed is None
    again = run(APP, mode="ha", pair=Pair(persist=10_000), name="Tested")
    assert "kept" in (again.redeployed or "")
    assert numbers(again)["node-2"][-1] == 299
    other = run(APP, mode="ha", pair=Pair(persist=20_000), name="Tested")
    assert "the groups of nodes, their figures, faults or seed changed" in (other.redeployed or "")


def test_a_slow_database(run: Callable[..., App]) -> None:
    """The other node takes over though no node is down, and both are active until the slow one has read so. The report
    tells what came out on Spark, also of a revision and of messages that are under way between two micro-batches."""
    slow = [Slow(40_000, "node-1", "database", 17_000, 200_000), Slow(70_000, "node-1", "node-2", 3_000, 100_000)]
    app = run(APP, mode="ha", pair=Pair(persist=10_000, balancer="round_robin"), faults=slow)
    for first, end in ((0, 75), (75, 90), (90, 300)):
        app.feed("S", EVENTS[first:end], time="at")
    with pytest.raises(Misuse, match="clients are never slow"):
        app.cluster.slow("node-1", "clients", 3, (None, START + 900_000))
    with pytest.raises(Misuse, match="by is a whole number of ms above 0"):
        app.cluster.slow("node-1", "node-2", 0, (None, START + 900_000))
    app.cluster.slow("node-2", "database", 2_000, (None, START + 900_000))
    assert app.cluster.faults["what"].tolist() == ["slow the link of node-2 and database by 2 s for 600.999 s"]
    report = app.failover()
    assert [t.node for t in report.takeovers][:1] == ["node-2"]
    each = next(report.frame.itertuples(index=False))
    assert len(app.output("Each").frame) == each.same + each.spurious + each.duplicated
    assert {node for node, own in numbers(app).items() if own} == {"node-1", "node-2"}
    assert "the link between node-1 and database is slower by 17 s" in report.timeline["what"].tolist()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("two-active", lambda r: sum(s.lost for s in r.frame.itertuples()) > 0 and len(r.takeovers) == 1),
        ("both-passive", lambda r: r.lost > 40 and "no node took it" in set(r.events["reason"])),
        ("repeated-outputs", lambda r: r.replayed == 54),
        ("sent-to-passive", lambda r: r.lost == 150),
        ("queue-overflow", lambda r: (r.replayed, r.takeovers[0].missing) == (10, 44)),
    ],
)
def test_incidents(run: Callable[..., App], name: str, expected: Callable[[object], bool]) -> None:
    app = run(APP, mode="ha", faults=name)
    app.feed("S", EVENTS, time="at")
    report = app.failover()
    assert expected(report), text(report)
    if name == "two-active":
        put_out = app.output("Each").frame
        live = put_out[(put_out["timestamp"] > START + 146_000) & (put_out["timestamp"] < START + 158_000)]
        assert set(live["node"]) == {"node-1", "node-2"}


def test_the_same_seed_gives_the_same(run: Callable[..., App], tmp_path: Path) -> None:
    found = []
    for attempt, seed in enumerate((7, 7, 8)):
        app = run(APP, mode="ha", faults="random:60", seed=seed, home=tmp_path / str(attempt))
        app.feed("S", EVENTS, time="at")
        found.append((numbers(app), app.failover().timeline))
        with pytest.raises(Misuse, match="random"):
            app.cluster.kill("node-1")
    assert found[0][0] == found[1][0]
    pd.testing.assert_frame_equal(found[0][1], found[1][1])
    assert not found[0][1].equals(found[2][1])


def test_what_does_not_fit_together(run: Callable[..., App], tmp_path: Path) -> None:
    stored = "define stream S (k string); @store(type='rdbms', jdbc.url='jdbc:sqlite:x') define table T (k string);"
    for given, message in (
        ({"nodes": 3}, "mode ha has two nodes, not 3"),
        ({"routing": "hash:k"}, "mode ha has no routing"),
        ({"alerts": "off"}, "leave alerts out"),
        ({"faults": "two-activ"}, "Did you mean 'two-active'"),
        ({"faults": "random:0"}, "above 0"),
        ({"faults": [Kill(1, "node-1"), Kill(2, "node-1")]}, "node-1 is down already"),
        ({"faults": [3]}, "a list of faults"),
        ({"seed": "x"}, "seed is a whole number"),
        ({"pair": 3}, "pair is a Pair"),
        ({"mode": "single", "seed": 3}, "seed is for modes ha, scalable"),
        ({"mode": None, "faults": "random"}, "faults is for modes ha, scalable"),
        ({"text": stored}, "Leave @store out"),
        ({"faults": tmp_path / "none.yaml"}, "cannot be read"),
    ):
        arguments = {"text": "define stream S (k string); from S select k insert into O;", "mode": "ha", **given}
        with pytest.raises(SparkStreamError, match=message) as raised:
            run(**arguments)
        assert "\n" not in str(raised.value)
    single = run("define stream S (k string); from S select k insert into O;")
    for call in (single.failover, lambda: single.cluster):
        with pytest.raises(Misuse, match="deploy it with mode='ha'"):
            call()


# ----------------------------------------------------------------------------------------------------- schedule files


def test_a_schedule_file(tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text(
        "- {at: 90 sec, kill: node-1}\n- {at: 2 min, restart: node-1}\n"
        "- at: 150000\n  pause: node-2\n  for: 1.5 seconds\n- {at: 1 hour, cut: [node-1, database], for: 20 s}\n"
        "- {at: 90 sec, slow: [node-1, database], by: 3 sec, for: 60 sec}\n"
    )
    assert schedule_of(path) == (
        Kill(90_000, "node-1"),
        Restart(120_000, "node-1"),
        Pause(150_000, "node-2", 151_500),
        Cut(3_600_000, "node-1", "database", 3_620_000),
        Slow(90_000, "node-1", "database", 3_000, 150_000),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kill: node-1\n", "is not a schedule"),
        ("- 3\n", "line 1: 3 is no fault"),
        ("- {kill: node-1}\n", "line 1: a fault has a time `at`"),
        ("- {at: 1 sec, kill: node-1}\n- {at: 1 sec, break: node-1}\n", "line 2: a fault has a time"),
        ("- {at: soon, kill: node-1}\n", "line 1: 'soon' is not a time span"),
        ("- {at: 1 sec, pause: node-1}\n", "line 1: how long does it last"),
        ("- {at: 1 sec, kill: node-1, for: 3 s}\n", "line 1: a fault of kind 'kill' has no for"),
        ("- {at: 1 sec, cut: node-1, for: 3 s}\n", "line 1: cut has two ends"),
        ("- {at: 1 sec, cut: [a, b], by: 1 s, for: 3 s}\n", "line 1: a fault of kind 'cut' has no by"),
        ("- {at: 1 sec, slow: [a, b], for: 3 s}\n", "line 1: by how much is it slower"),
        ("- {at: 1 sec, slow: [a, b], by: 0, for: 3 s}\n", "line 1: by how much is it slower"),
        ("- {at: 1 sec, slow: a, by: 1 s, for: 3 s}\n", "line 1: slow has two ends"),
        ("- [\n", "is not YAML"),
    ],
)
def test_a_schedule_file_that_is_wrong(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text(text)
    with pytest.raises(Misuse, match=message) as raised:
        schedule_of(path)
    assert "\n" not in str(raised.value)
