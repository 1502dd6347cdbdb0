"""Mode scalable on Spark: pairs behind a partitioning layer, by routing, by annotation and by deployment files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparkstream_nb.app import App, Cut, Kill, Restart
from sparkstream_nb.errors import Misuse, SiddhiBindError, SiddhiRuntimeError, SparkStreamError
from sparkstream_nb.lab.display import html, text

CONF = Path(__file__).parents[3] / "conf"
START = 1_700_000_000_000
# The stream of WSO2's manual (Scalable Deployment), with the attributes that matter here.
TENANTS = """
@Sink(type='http', @map(type='json'),
      @distribution(strategy='partitioned', partitionKey='userTenantDomain',
                    @destination(publisher.url='http://ip1'), @destination(publisher.url='http://ip2'),
                    @destination(publisher.url='http://ip3'), @destination(publisher.url='http://ip4')))
define stream Request (apiName string, userTenantDomain string, responseTime long);

define table Last (userTenantDomain string, apiName string);
define aggregation Load from Request select userTenantDomain, count() as n group by userTenantDomain
aggregate every min;

@info(name='burst')
from Request#window.time(10 sec) select userTenantDomain, count() as n group by userTenantDomain having n > 3
insert into Bursts;
@info(name='slower')
from every e1=Request -> e2=Request[e1.userTenantDomain == userTenantDomain and responseTime > e1.responseTime + 80]
    within 5 sec
select e1.userTenantDomain, e1.responseTime as first, e2.responseTime as then insert into Slower;
@info(name='last') from Request select userTenantDomain, apiName update or insert into Last
    on Last.userTenantDomain == userTenantDomain;
"""
HASHED = TENANTS[TENANTS.index("define stream") :]
DOMAINS = [f"domain-{i}.com" for i in range(9)]


def requests(count: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "apiName": rng.choice(["a", "b"], count),
            "userTenantDomain": rng.choice(DOMAINS, count, p=[0.4, *[0.075] * 8]),
            "responseTime": rng.integers(1, 200, count),
            "at": START + 500 * np.arange(count),
        }
    )


def java_place(key: str, count: int) -> int:
    """As `PartitionedDistributionStrategy`."""
    h = 0
    for c in key:
        h = (31 * h + ord(c)) & 0xFFFFFFFF
    return abs((h ^ 0x80000000) - 0x80000000) % count


def bag(app: App, stream: str) -> Counter[tuple[object, ...]]:
    frame = app.output(stream).frame.drop(columns="node")
    return Counter(frame.itertuples(index=False, name=None))


@pytest.mark.contract
def test_the_manuals_example(run: Callable[..., App], tmp_path: Path) -> None:
    """With no faults, four groups give what one node does, as every query goes by the key."""
    app = run(TENANTS, mode="scalable")
    assert (app.nodes, app.routing) == (8, "hash:userTenantDomain")
    card = text(app).splitlines()
    names = ", ".join(f"group-{i}" for i in range(1, 5))
    assert card[0].endswith(f"8 nodes, scalable · groups {names} · routing hash:userTenantDomain")
    assert not any(line.startswith("  !") for line in card)
    assert app.shard_ids[:3] == ("group-1-node-1", "group-1-node-2", "group-2-node-1")
    events = requests()
    app.feed("Request", events[:250], time="at")
    app.stop()
    app.feed("Request", events[250:], time="at")
    one = run(HASHED, home=tmp_path / "one", name="one")
    one.feed("Request", events, time="at")
    for stream in ("Bursts", "Slower"):
        assert bag(app, stream) == bag(one, stream)
        assert bag(app, stream)

    report = app.failover()
    places = Counter(java_place(d, 4) for d in events["userTenantDomain"])
    assert report.shares["events"].tolist() == [places[i] for i in range(4)]
    assert report.skew == pytest.approx(4 * max(places.values()) / 600)
    assert report.frame["lost"].sum() == 0
    assert (report.takeovers, report.lost) == ([], 0)
    assert "4 groups of two nodes (the busiest has" in text(report)
    assert "<img" in html(report)

    asked = "from Last select userTenantDomain order by userTenantDomain"
    assert app.query(asked).frame["userTenantDomain"].tolist() == DOMAINS
    counted = app.query("from Load within 0L, 9000000000000L per 'min' select sum(n) as n")
    assert counted.frame["n"].tolist() == [600]
    merged, by_shard = app.aggregation("Load", per="min")
    assert merged.groupby("userTenantDomain")["n"].sum().to_dict() == Counter(events["userTenantDomain"])
    assert set(by_shard["SHARD_ID"]) == {f"group-{i}-node-1" for i in range(1, 5)}
    stats = app.stats().nodes
    assert [s.runs for s in stats.values()] == ["active", "passive"] * 4


def test_a_group_that_fails_costs_its_own_keys_alone(run: Callable[..., App]) -> None:
    """A destination that is down loses its events, and they are counted; the other groups do not notice."""
    nodes = ["group-1-node-1", "group-1-node-2"]
    faults = [Kill(60_000, nodes[0]), Kill(60_500, nodes[1]), Restart(120_000, nodes[0])]
    app = run(HASHED, mode="scalable", nodes=4, routing="hash:userTenantDomain", faults=faults)
    events = requests()
    app.feed("Request", events, time="at")
    place = events["userTenantDomain"].map(lambda d: java_place(d, 2))
    report = app.failover()
    assert report.shares["events"].tolist() == [(place == 0).sum(), (place == 1).sum()]
    first, second = report.shares["lost"]
    down = (events["at"] >= START + 60_000) & (events["at"] < START + 120_000) & (place == 0)
    assert down.sum() <= first <= down.sum() + 20
    assert second == 0
    assert set(report.events["group"]) == {"group-1"}
    own = {d for d in DOMAINS if java_place(d, 2) == 0}
    lost = report.outcome.tallies["Bursts"].lost
    assert lost > 0
    found = app.output("Bursts").frame
    missing = found[(found["timestamp"] > START + 75_000) & (found["timestamp"] < START + 120_000)]
    assert not set(missing["userTenantDomain"]) & own

    app.cluster.cut("group-2", "clients", (None, START + 400_000))
    app.cluster.kill("group-1-node-1", at=START + 310_000)
    assert app.cluster.faults["what"].str.startswith(("cut group-2 from clients", "kill group-1-node-1")).all()
    more = events.assign(at=events["at"] + 300_000)
    app.feed("Request", more[:60], time="at")
    shares = app.failover().shares
    assert shares["lost"][1] == (place[:60] == 1).sum()
    with pytest.raises(SiddhiRuntimeError, match="group-1-node-1 is down"):
        app.query("from Last select *")
    with pytest.raises(Misuse, match="there is no node 'group-3'"):
        app.cluster.cut("group-3", "clients", (None, START + 900_000))


def test_in_turn_and_to_all(run: Callable[..., App]) -> None:
    """`roundRobin` leaves out a group that is down, and `broadcast` sends to each."""
    app = run(
        """
        @sink(type='inMemory', @distribution(strategy='roundRobin', @destination(topic='a'), @destination(topic='b')))
        define stream Turn (v int);
        @sink(type='inMemory', @distribution(strategy='broadcast', @destination(topic='a'), @destination(topic='b')))
        define stream All (v int);
        from Turn select v insert into Turned; from All select v insert into Got;
        """,
        mode="scalable",
        faults=[Cut(10_000, "group-1", "clients", 20_000)],
    )
    times = START + 1000 * np.arange(30)
    for i, at in enumerate(times.tolist()):
        app.send("Turn", [i], at=at)
        app.send("All", [i], at=at)
    app.flush()
    turned = app.output("Turned").frame
    by_node = {str(n): sorted(own["v"]) for n, own in turned.groupby("node")}
    # Ten turns each way, then all to the second group, then the twentieth request to the first one again.
    assert by_node["group-1-node-1"] == [*range(0, 10, 2), *range(20, 30, 2)]
    assert by_node["group-2-node-1"] == [*range(1, 10, 2), *range(10, 20), *range(21, 30, 2)]
    got = {str(n): len(own) for n, own in app.output("Got").frame.groupby("node")}
    assert got == {"group-1-node-1": 20, "group-2-node-1": 30}
    assert app.failover().frame.set_index("stream").loc["Got", "duplicated"] == 20


def test_the_deployment_files(run: Callable[..., App]) -> None:
    """Two groups and a layer; the app's destinations are those of the layer's `refs`."""
    begin, end = TENANTS.index("@destination"), TENANTS.index(")))")
    two = f"{TENANTS[:begin]}@destination(ref='partition-1'), @destination(ref='partition-2'{TENANTS[end:]}"
    app = run(two, conf=CONF / "scalable", faults=[Kill(60_000, "wso2-si-group-2-1")])
    assert app.mode == "scalable"
    assert app.shard_ids == ("wso2-si-group-1-1", "wso2-si-group-1-2", "wso2-si-group-2-1", "wso2-si-group-2-2")
    app.feed("Request", requests(), time="at")
    assert [t.node for t in app.failover().takeovers] == ["wso2-si-group-2-2"]
    with pytest.raises(Misuse, match="have 2 groups of two nodes, and the app's @distribution 4 destinations"):
        run(TENANTS, conf=CONF / "scalable")
    with pytest.raises(Misuse, match="leave nodes and shard_ids out"):
        run(two, conf=CONF / "scalable", nodes=4)


def test_nodes_that_keep_nothing_take_turns(run: Callable[..., App]) -> None:
    plain = "define stream S (v int); from S[v > 1] select v insert into O;"
    app = run(plain, mode="scalable", nodes=3)
    app.feed("S", pd.DataFrame({"v": range(9)}))
    assert sorted(app.output("O").frame["v"]) == list(range(2, 9))
    assert len(set(app.output("O").frame["node"])) == 3
    with pytest.raises(Misuse, match="mode scalable: deploy it with mode='ha'"):
        app.failover()


def test_what_does_not_fit_together(run: Callable[..., App]) -> None:
    streams = "define stream S (v long, k string); define stream T (v long, k string);"
    window = f"{streams} @info(name='w') from T#window.length(2) select sum(v) as v, k insert into O;"
    turn = "@sink(type='log', @distribution(strategy='roundRobin', @destination(a='1'), @destination(a='2')))"
    once = turn.replace(", @destination(a='2')", "")
    for given, message in (
        ({"text": window}, "keep nothing, and query 'w' .*: give routing='hash:ATTRIBUTE'"),
        ({"text": window, "nodes": 3, "routing": "hash:k"}, "groups of two nodes each: nodes=3 does not fit"),
        ({"text": window, "routing": "hash:q"}, "no input stream has an attribute 'q'"),
        ({"text": TENANTS, "nodes": 4}, "4 destinations of two nodes each: nodes=4 does not fit"),
        ({"text": TENANTS, "pair": 3}, "pair is a Pair"),
        ({"text": TENANTS, "faults": [Kill(1, "node-1")]}, "there is no node 'node-1'"),
        ({"text": TENANTS, "alerts": "off"}, "leave alerts out"),
        ({"text": TENANTS, "shard_ids": ["a"] * 8}, "same shard id"),
        (
            {"text": turn + window.replace("O;", "S;")},
            "'w' writes to it",
        ),
        (
            {"text": turn + window.replace("define stream T", once + "define stream T")},
            "@distribution of 'T' has 1 @destination, and that of 'S' 2",
        ),
    ):
        arguments = {"mode": "scalable", **given}
        with pytest.raises(SparkStreamError, match=message) as raised:
            run(**arguments)
        assert "\n" not in str(raised.value) or isinstance(raised.value, SiddhiBindError)
    with pytest.raises(SparkStreamError, match="posts to http://ip1, which is not allowed"):
        run(TENANTS)
