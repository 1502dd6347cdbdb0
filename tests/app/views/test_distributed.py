"""Mode distributed on Spark: an app split by @dist, on resource nodes that fail, and the report of it."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparkstream_nb.app import App, Cut, DistributedFailover, Kill, ResourceCluster, ResourceNode, Restart
from sparkstream_nb.errors import Misuse, SiddhiBindError, SiddhiRuntimeError
from sparkstream_nb.lab.display import html, text

CONF = Path(__file__).parents[3] / "conf"
START = 1_700_000_000_000
# WSO2 Stream Processor 4.3.0, Fully Distributed Deployment, with straight quotes and group-1 written out, and a table.
ROOMS = """
@app:name('Rooms')
define stream TempStream (deviceID long, roomNo int, temp double);
define table Last (roomNo int, temp double);
@info(name = 'query-1') @dist(execGroup='group-1')
from TempStream#window.time(2 min)
select avg(temp) as avgTemp, roomNo, deviceID insert all events into AvgTempStream;
@info(name = 'query-2') @dist(execGroup='group-1')
from every( e1=TempStream ) -> e2=TempStream[e1.roomNo==roomNo and (e1.temp + 5) <= temp ] within 10 min
select e1.roomNo, e1.temp as initialTemp, e2.temp as finalTemp insert into AlertStream;
@info(name = 'query-3') @dist(execGroup='group-2' ,parallel ='2')
from TempStream [(roomNo >= 100 and roomNo < 110) and temp > 40 ]
select roomNo, temp insert into HighTempStream;
@info(name = 'last') @dist(execGroup='group-3')
from HighTempStream select roomNo, temp update or insert into Last on Last.roomNo == roomNo;
"""
KEYED = """
define stream S (k string, v long);
define aggregation Sums from S select k, sum(v) as total group by k aggregate every min;
@info(name='keyed') @dist(execGroup='keyed', parallel='2')
partition with (k of S) begin from S select k, v, sum(v) as total insert into M; end;
@info(name='all') @dist(execGroup='all') from M#window.length(3) select k, sum(total) as t insert into O;
"""
EVENTS = pd.DataFrame({"k": [f"k{i % 5}" for i in range(300)], "v": range(300), "at": START + 1000 * np.arange(300)})


def readings(count: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "deviceID": rng.integers(1, 4, count),
            "roomNo": rng.choice([99, 100, 105, 110], count),
            "temp": rng.normal(38, 4, count).round(1),
            "at": START + 1500 * np.arange(count),
        }
    )


def bag(app: App, stream: str) -> Counter[tuple[object, ...]]:
    frame = app.output(stream).frame.drop(columns=["node"], errors="ignore")
    return Counter(frame.itertuples(index=False, name=None))


@pytest.mark.contract(thorough=True)
def test_the_manuals_example_is_what_one_node_puts_out(run: Callable[..., App], tmp_path: Path) -> None:
    frame = readings()
    alone = run(ROOMS, name="Alone", home=tmp_path / "alone")
    app = run(ROOMS, mode="distributed", nodes=3, name="Rooms")
    for one in (alone, app):
        for first, end in ((0, 150), (150, 400)):
            one.feed("TempStream", frame[first:end], time="at")
            one.stop()
    for stream in ("AvgTempStream", "AlertStream", "HighTempStream"):
        assert bag(app, stream) == bag(alone, stream)
        assert bag(app, stream)
    last = "from Last select roomNo, temp order by roomNo"
    assert app.query(last).frame.equals(alone.query(last).frame)
    card = text(app).splitlines()
    assert card[0] == "Rooms: running · 4 partial apps, distributed over worker-1, worker-2, worker-3"
    assert any("take turns with 'TempStream', whose topic has one partition" in line for line in card)
    report = app.failover()
    assert isinstance(report, DistributedFailover)
    assert not report.moves
    assert report.frame[["lost", "spurious", "duplicated"]].to_numpy().sum() == 0
    stats = app.stats()
    runs = {n.shard: n.runs for n in stats.nodes.values()}
    assert sorted(", ".join(runs.values()).split(", ")) == [f"Rooms-group-{g}" for g in ("1-1", "2-1", "2-2", "3-1")]
    table = next(p for p in stats.parts if p.name == "Last")
    held = [n.held["Last"] for n in stats.nodes.values() if "Last" in n.held]
    assert (table.state_bytes, table.state_rows) == (sum(h.bytes for h in held), sum(h.rows or 0 for h in held))
    assert table.state_rows == len(app.query("from Last select roomNo"))


@pytest.mark.contract
@pytest.mark.parametrize("cuts", [[300], [50, 100, 130, 300]])
def test_a_node_that_dies(run: Callable[..., App], cuts: list[int]) -> None:
    """Whatever the cuts into micro-batches, and with stops and starts between them. What comes by key is processed
    again from the revision on; what is subscribed to continues where it was."""
    app = run(KEYED, mode="distributed", nodes=3, faults="old-revision", name="K")
    for first, end in zip([0, *cuts], cuts, strict=False):
        app.feed("S", EVENTS[first:end], time="at")
        app.stop()
    report = app.failover()
    assert isinstance(report, DistributedFailover)
    assert report.lost == 0
    assert all(8_000 <= m.gap <= 12_000 for m in report.moves if m.gap is not None)
    assert all(m.revision == START + 60_000 for m in report.moves)
    found = report.frame.set_index("stream")
    again = report.apps.set_index("app")["again"]
    assert found.loc["M", ["lost", "spurious"]].sum() == 0
    assert found.loc["M", "duplicated"] == again[["K-keyed-1", "K-keyed-2"]].sum()
    assert len(app.output("M").frame) == 300 + found.loc["M", "duplicated"]
    assert len(app.output("O").frame) == found.loc["O", ["same", "spurious", "duplicated"]].sum()
    merged, by_shard = app.aggregation("Sums", per="min")
    missing = report.apps.set_index("app")["missing"]["K-aggregation-Sums-1"]
    assert (merged["total"].sum() == sum(range(300))) == (missing == 0)
    assert len(set(by_shard["SHARD_ID"])) == 1
    assert "begun again" in text(report)
    assert "<img" in html(report)


def begun_again(report: DistributedFailover) -> set[str]:
    return {m.app for m in report.moves}


def told(report: DistributedFailover) -> str:
    return "\n".join(report.timeline["what"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("two-copies", lambda r: r.apps["several"].sum() > 0 and r.frame["duplicated"].sum() > 0),
        (
            "lost-leader",
            lambda r: begun_again(r) == set(r.apps["app"]) and "manager-2 leads the resource pool" in told(r),
        ),
        ("paused-leader", lambda r: begun_again(r) == set(r.apps["app"])),
        ("below-minimum", lambda r: "lets the app wait" in told(r) and begun_again(r) == set(r.apps["app"])),
    ],
)
def test_incidents(run: Callable[..., App], name: str, expected: Callable[[DistributedFailover], bool]) -> None:
    app = run(KEYED, mode="distributed", nodes=3, faults=name, name="K")
    app.feed("S", EVENTS, time="at")
    report = app.failover()
    assert isinstance(report, DistributedFailover)
    assert expected(report), text(report)
    frame = report.frame.set_index("stream")
    for stream in ("M", "O"):
        assert len(app.output(stream).frame) == frame.loc[stream, ["same", "spurious", "duplicated"]].sum()


def test_what_a_person_does_to_nodes(run: Callable[..., App]) -> None:
    app = run(KEYED, mode="distributed", nodes=2, name="K")
    app.feed("S", EVENTS[:50], time="at")
    for node in ("worker-1", "worker-2"):
        app.cluster.kill(node)
    app.feed("S", EVENTS[50:60], time="at")
    with pytest.raises(SiddhiRuntimeError, match="no node runs the partial app that has it"):
        app.aggregation("Sums", per="min")
    for wrong, message in (
        (lambda: app.cluster.kill("worker-1"), "worker-1 is down already"),
        (lambda: app.cluster.kill("worker-7"), "there is no node 'worker-7'. Did you mean"),
        (lambda: app.cluster.cut("worker-1", "worker-2", (None, START + 900_000)), "no link between worker-1 and"),
        (lambda: app.scale(3), "mode distributed"),
        (lambda: app.divergence(), "failover"),
    ):
        with pytest.raises(Misuse, match=message):
            wrong()
    app.cluster.restart("worker-1", at=START + 100_000)
    app.feed("S", EVENTS[60:], time="at")
    assert set(app.output("O", last=100).frame["node"]) == {"worker-1"}
    assert app.cluster.faults["what"].tolist() == ["kill worker-1", "kill worker-2", "restart worker-1"]
    again = run(KEYED, mode="distributed", nodes=2, name="K")
    assert "kept" in (again.redeployed or "")


def managers_over_nats(folder: Path) -> None:
    """Writes the managers' files with NATS as messaging layer, by the keys that WSO2's job manager reads."""
    folder.mkdir()
    for i in (1, 2):
        text_ = (CONF / "distributed" / f"manager-{i}.yaml").read_text()
        keys = "  natsServerUrl: nats://localhost:4222\n  clusterId: test-cluster\n"
        (folder / f"manager-{i}.yaml").write_text(text_.replace("  bootstrapURLs:", f"{keys}  bootstrapURLs:"))


def test_the_files_of_a_distributed_deployment(run: Callable[..., App], tmp_path: Path) -> None:
    source = "@source(type='http', receiver.url='http://0.0.0.0:8006', @map(type='json'))"
    text_ = source + ROOMS[ROOMS.index("define") :]
    app = run(text_, conf=CONF / "distributed", name="Rooms")
    assert app.mode == "distributed"
    assert app.cluster.nodes == ("wso2-sp-receiver-1", "wso2-sp-worker-1", "wso2-sp-worker-2")
    app.feed("TempStream", readings(), time="at")
    assert len(app.output("AvgTempStream").frame) > 400
    runs = {n.shard: n.runs for n in app.stats().nodes.values()}
    assert runs["wso2-sp-receiver-1"] == "Rooms-passthrough-TempStream-1"

    for file, old, new, message in (
        ("manager-1.yaml", "heartbeatMaxRetry: 2", "heartbeatMaxRetry: 3", "heartbeatMaxRetry is 2 here and 3 in"),
        ("manager-1.yaml", "minResourceCount: 1", "minResourceCount: -1", "line 27: deployment.config: minRes"),
        ("manager-2.yaml", "groupId: group-1", "groupId: group-9", "managers share a group id"),
        ("worker-2.yaml", "port: 9091", "port: 9090", "port is 9090, at which the node of"),
        ("worker-2.yaml", "intervalInMin: 1", "intervalInMin: 2", "the nodes have to agree"),
        ("worker-2.yaml", "id: wso2-sp-worker-2", "id: wso2-sp-worker-1", "have one shard id"),
    ):  # fmt: skip
        shutil.rmtree(tmp_path / "conf", ignore_errors=True)
        shutil.copytree(CONF / "distributed", tmp_path / "conf")
        at = tmp_path / "conf" / file
        assert old in at.read_text()
        at.write_text(at.read_text().replace(old, new))
        with pytest.raises(Misuse, match=message):
            run(text_, conf=tmp_path / "conf")
    managers = [CONF / "distributed" / f"manager-{i}.yaml" for i in (1, 2)]
    alone = run(ROOMS, conf=managers, nodes=3, name="Rooms")
    assert alone.cluster.nodes == ("receiver-1", "worker-1", "worker-2", "worker-3")
    assert sorted(alone.placement) == [f"Rooms-group-{g}" for g in ("1-1", "2-1", "2-2", "3-1")]
    assert all(len(nodes) == 1 for nodes in alone.placement.values())
    managers_over_nats(tmp_path / "nats")
    nats = run(ROOMS, conf=tmp_path / "nats", name="Rooms", fresh=True)
    assert "Rooms_TempStream" in text(nats.cluster)
    (tmp_path / "nats" / "manager-2.yaml").write_text((CONF / "distributed" / "manager-2.yaml").read_text())
    with pytest.raises(Misuse, match=r"natsServerUrl is missing, and .*manager-1\.yaml has it"):
        run(ROOMS, conf=tmp_path / "nats", name="Rooms", fresh=True)
    with pytest.raises(Misuse, match="has a manager"):
        run(text_, conf=CONF / "distributed" / "worker-1.yaml")


def test_what_cannot_be_distributed(run: Callable[..., App]) -> None:
    stream = "define stream S (k string, v long);"
    for app, message in (
        (
            "@dist(execGroup='g', parallel='2') from S#window.length(2) select k insert into O;",
            "a window cannot run in 2",
        ),
        (
            "@dist(execGroup='g') from S select k insert into M;"
            "@dist(execGroup='g', parallel='2') from S select k insert into O;",
            "execGroup 'g' has parallel 1 before, and 2 here",
        ),
    ):
        with pytest.raises(SiddhiBindError, match=message):
            run(stream + app, mode="distributed")
    circle = (
        stream + "@dist(execGroup='a') from S select k, v insert into M; @dist(execGroup='b') from M select k, v "
        "insert into N; @dist(execGroup='a') from N select k, v insert into M;"
    )
    fine = stream + "from S select k insert into O;"
    for given, message in (
        ({"text": circle}, "feed each other in a circle"),
        ({"text": "@source(type='inMemory', topic='t')" + fine}, "inMemory source or sink is in one process"),
        ({"routing": "hash:k"}, "mode distributed has no routing"),
        ({"alerts": "leader"}, "leave alerts out"),
        ({"faults": "two-active"}, "is no incident of mode distributed"),
        ({"faults": [Cut(1000, "worker-1", "worker-2", 2000)]}, "no link between worker-1 and worker-2"),
        ({"faults": [Kill(1000, "manager-1"), Restart(2000, "manager-2")]}, "manager-2 is up"),
        ({"resources": ResourceCluster((ResourceNode("a"),)), "nodes": 2}, "leave nodes out"),
        ({"resources": "worker-1"}, "resources is a ResourceCluster"),
        ({"conf": CONF / "distributed", "nodes": 2}, "leave nodes out"),
        ({"nodes": 0}, "nodes must be 1 or more"),
    ):
        arguments = {"text": fine, "mode": "distributed", **given}
        with pytest.raises(Misuse, match=message):
            run(arguments.pop("text"), **arguments)
    with pytest.raises(Misuse, match="resources is for modes ha, scalable and distributed"):
        run(fine, resources=ResourceCluster((ResourceNode("a"),)))
    with pytest.raises(Misuse, match="mode ha has no use for resources"):
        run(fine, mode="ha", resources=ResourceCluster((ResourceNode("a"),)))
    for wrong, message in (
        (lambda: ResourceCluster((ResourceNode("a"), ResourceNode("a"))), "two nodes are called 'a'"),
        (lambda: ResourceCluster(()), "at least one manager and one resource node"),
        (lambda: ResourceCluster((ResourceNode("database"),)), "another end of its links"),
        (lambda: ResourceCluster((ResourceNode("a"),), heartbeat=0), "heartbeatInterval must be 1 or more"),
    ):
        with pytest.raises(Misuse, match=message):
            wrong()
