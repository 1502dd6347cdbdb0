"""`alerts`: queries that depend on the node do not run, or a leader runs them; the card says which."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sparkstream_nb.app import App
from sparkstream_nb.errors import Misuse
from sparkstream_nb.lab.display import text

APP = """
define stream S (k string, v int);
@info(name='big') from S[v > 1] select k, v insert into Big;
@info(name='rise') from every e1=S -> e2=S[k == e1.k and v > e1.v] select e2.v as v insert into Rises;
@info(name='sums') from S#window.length(2) select sum(v) as s insert into Sums;
@info(name='large') from Sums[s > 3L] select s insert into Large;
partition with (k of S)
begin
  @info(name='own') from S#window.length(2) select sum(v) as s insert into Own;
end;
"""


OFF = "Switched off, as their outputs depend on which node sees which event"


def outputs(app: App) -> dict[str, int]:
    for event in (["a", 1], ["a", 2], ["b", 3], ["a", 4]):
        app.send("S", event)
    app.flush()
    return {s: len(app.output(s).frame) for s in ("Big", "Rises", "Sums", "Large", "Own")}


def test_under_round_robin_and_by_key(run: Callable[..., App]) -> None:
    app = run(APP, nodes=2, alerts="off")
    assert outputs(app) == {"Big": 3, "Rises": 0, "Sums": 0, "Large": 0, "Own": 0}
    assert f"! {OFF}: rise, sums, large, own." in text(app)
    app.scale(nodes=3)
    assert outputs(app)["Big"] == 6
    assert outputs(app)["Sums"] == 0
    keyed = run(APP, nodes=2, alerts="off", routing="hash:k")
    found = outputs(keyed)
    assert (found["Sums"], found["Large"]) == (0, 0)
    assert (found["Rises"], found["Own"]) == (2, 4)
    assert f"! {OFF}: sums, large." in text(keyed)


def test_one_node_keeps_its_alerts(run: Callable[..., App]) -> None:
    app = run(APP, alerts="off")
    assert outputs(app)["Sums"] == 4
    assert "Switched off" not in text(app)


def test_other_values_are_refused(run: Callable[..., App]) -> None:
    with pytest.raises(Misuse, match="alerts='of' is not 'on', 'off' or 'leader'"):
        run(APP, nodes=2, alerts="of")


LED = """
define stream S (k string, v int);
define stream Asked (k string);
define table Seen (k string, n long);
define table Plain (k string);
define stream SumsNow (s long);
define aggregation OfSums from SumsNow select sum(s) as s, count() as n aggregate every sec;
define aggregation PerKey from S select k, count() as n group by k aggregate every sec;
@info(name='big') from S[v > 1] select k, v insert into Big;
@info(name='sums') from Big#window.length(2) select sum(v) as s insert into Sums;
@info(name='seen') from S select k, 1L as n update or insert into Seen set Seen.n = Seen.n + 1 on Seen.k == k;
@info(name='plain') from Asked select k insert into Plain;
@info(name='now') from Sums select s insert into SumsNow;
"""


def of_one(app: App) -> tuple[list[list[object]], ...]:
    frames = [app.output(s).frame for s in ("Big", "Sums")]
    frames += [app.query(q).frame for q in ("from Seen select k, n order by k", "from Plain select k order by k")]
    frames += [app.aggregation(a)[0] for a in ("PerKey", "OfSums")]  # in any order
    rows = [f.drop(columns="node", errors="ignore").astype(object).to_numpy().tolist() for f in frames]
    return (*rows[:4], *map(sorted, rows[4:]))


def feed_led(app: App, first: int) -> None:
    for i in range(first, first + 12):
        app.send("S", ["ab"[i % 2], i % 5], at=1_000 + 100 * i)
    app.send("Asked", [f"k{first}"], at=1_000 + 100 * (first + 12))
    app.flush()


@pytest.mark.contract(thorough=True)
def test_with_a_leader_three_nodes_answer_as_one(run: Callable[..., App], tmp_path: Path) -> None:
    one = run(LED, name="one", home=tmp_path / "one")
    app = run(LED, nodes=3, alerts="leader")
    for a in (one, app):
        feed_led(a, 0)
    said = "On the leader, which takes all events, as their outputs depend on which node sees which event"
    assert f"! {said}: sums, seen, plain, now." in text(app)
    assert of_one(app) == of_one(one)
    assert app.output("Sums").frame["node"].unique().tolist() == ["leader"]
    assert set(app.aggregation("OfSums")[1]["SHARD_ID"]) == {"leader"}
    assert len(app.output("Big").frame["node"].unique()) == 3
    app.scale(nodes=2)
    for a in (one, app):
        a.query("select 'x' as k, 5L as n insert into Seen")
        feed_led(a, 12)
    assert of_one(app) == of_one(one)
    found = app.divergence()
    assert not found.diverges
    other = found.rerouted(5, "random:3")
    assert not other.diverges
    assert (found.nodes, other.nodes) == (3, 5)  # beside the leader
    assert text(found).startswith("app on 3 nodes, as the events came, against one node: nothing differs")
    assert list(app.stats().nodes) == ["node-1", "node-2", "leader"]
    with pytest.raises(Misuse, match="'leader' is the shard id of the leader"):
        app.scale(shard_ids=["node-1", "leader"])
    app.stop()
    again = run(LED, shard_ids=["node-1", "node-2"], nodes=2, alerts="leader")
    assert again.redeployed == "The state was kept: no change affects it."
    for a in (one, again):
        feed_led(a, 24)
    assert of_one(again) == of_one(one)
    changed = run(LED, shard_ids=["node-1", "node-2"], nodes=2)
    assert "the leader runs nothing now, and ran sums, seen, plain, now" in str(changed.redeployed)


def test_the_shard_id_of_the_leader_is_taken(run: Callable[..., App]) -> None:
    with pytest.raises(Misuse, match="a shard id is 'leader'"):
        run(LED, nodes=2, shard_ids=["leader", "b"], alerts="leader")
