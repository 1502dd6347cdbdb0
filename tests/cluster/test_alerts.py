"""`alerts="off"`: queries that depend on the node do not run, and the card says which."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sparkstream_nb.cluster import App
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


OFF = "Switched off, as what they put out depends on which node sees which event"


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
    with pytest.raises(Misuse, match="alerts='of' is neither 'on' nor 'off'"):
        run(APP, nodes=2, alerts="of")
