"""Nodes that no event of a micro-batch reaches are left out of it, and what comes out is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sparkstream_nb.app import App, attach
from sparkstream_nb.app.deploying import close_app
from sparkstream_nb.journal import resting
from sparkstream_nb.runners.choice import INLINE

Run = Callable[..., App]

TEXT = """
define stream S (k string, v int, t long);
define aggregation Sums from S select k, sum(v) as total group by k aggregate by t every sec, min;
@PrimaryKey('k') define table Last (k string, v int);
from S select k, v update or insert into Last set Last.v = v on Last.k == k;
@info(name = 'recent') from S#window.time(2 sec) select k, sum(v) as total, count() as n group by k
insert all events into Recent;
@info(name = 'silent') from S#window.time(3 sec) select k, max(v) as most group by k insert into Silent;
@info(name = 'batches') from S#window.timeBatch(1 sec) select k, sum(v) as total group by k insert into Batches;
@info(name = 'rises') from every a=S -> b=S[k == a.k and v > a.v] within 4 sec select a.k as k, a.v as x, b.v as y
insert into Rises;
@info(name = 'missing') from every a=S -> not S[k == a.k] for 1500 milliseconds select a.k as k, a.v as v
insert into Missing;
from S[v > 50] select k, v insert into High;
"""
OUTPUTS = ("Recent", "Silent", "Batches", "Rises", "Missing", "High")
START = 1_700_000_000_000


def feed(count: int) -> pd.DataFrame:
    """Events of eight keys, some of which come in bursts and then not for long."""
    r = np.random.default_rng(3)
    at = START + np.cumsum(r.choice([0, 40, 300, 2500], count, p=[0.2, 0.5, 0.25, 0.05]))
    return pd.DataFrame({"k": [f"k{i}" for i in r.integers(0, 8, count)], "v": r.integers(0, 100, count), "t": at})


def send(app: App, rows: pd.DataFrame, at_once: int) -> None:
    for first in range(0, len(rows), at_once):
        for row in rows.iloc[first : first + at_once].itertuples(index=False):
            app.send("S", [row.k, int(row.v), int(row.t)], at=int(row.t))
        app.flush()


def found(app: App) -> list[Any]:
    """All that the app has put out and holds."""
    out: list[Any] = [
        app.output(s).frame.sort_values(["node", "timestamp"], kind="stable").values.tolist() for s in OUTPUTS
    ]
    merged = app.query("from Sums within '2023-**-** **:**:**' per 'sec' select AGG_TIMESTAMP, k, total").rows
    return [*out, sorted(merged), sorted(app.query("from Last select k, v").rows)]


@pytest.fixture
def left_out(monkeypatch: pytest.MonkeyPatch) -> list[frozenset[int]]:
    """The nodes that could be left out of each micro-batch, of an app in this process."""
    seen: list[frozenset[int]] = []

    def noted(*given: Any) -> frozenset[int]:
        seen.append(resting.may_rest(*given))
        return seen[-1]

    monkeypatch.setattr("sparkstream_nb.journal.batch_planning.may_rest", noted)
    return seen


@pytest.mark.contract(thorough=True)
def test_one_event_at_a_time_as_all_in_one_micro_batch(run: Run, tmp_path: Any, master: str | None) -> None:
    rows = feed(60 if master == INLINE else 20)
    whole = run(TEXT, name="whole", home=tmp_path / "whole", nodes=5, routing="hash:k")
    send(whole, rows, len(rows))
    single = run(TEXT, name="single", home=tmp_path / "single", nodes=5, routing="hash:k")
    send(single, rows, 1)
    assert found(single) == found(whole)


def test_most_nodes_rest(run: Run, left_out: list[frozenset[int]]) -> None:
    app = run("define stream S (k string); from S select k, count() as n group by k insert into O;", nodes=8)
    for i in range(20):
        app.send("S", [f"k{i}"], at=START + i, node=1 + i % 2)
        app.flush()
    assert left_out[0] == frozenset(), "all begin"
    assert left_out[1:] == [frozenset(range(8))] * 19
    stats = app.stats()
    assert {n.clock for n in stats.nodes.values()} == {START + 19}
    assert [n.events for n in stats.nodes.values()] == [10, 10, 0, 0, 0, 0, 0, 0]
    assert app.output("O").frame["n"].tolist() == [1] * 20


def test_restarts_and_more_nodes_between(run: Run, tmp_path: Any) -> None:
    rows = feed(60)
    whole = run(TEXT, name="whole", home=tmp_path / "whole", nodes=5, routing="hash:k")
    send(whole, rows[:40], 40)
    whole.scale(6)
    send(whole, rows[40:], 20)
    single = run(TEXT, name="single", home=tmp_path / "single", nodes=5, routing="hash:k")
    for first in range(0, 40, 8):
        send(single, rows[first : first + 8], 1)
        close_app("single")
        single = attach("single", home=tmp_path / "single")
    single.scale(6)
    send(single, rows[40:], 1)
    assert found(single) == found(whole)
