"""`coordination:isLeader()`: true on one of an app's nodes, on all that compute in its place, and without others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from sparkstream_nb.app import App, deploy

TEXT = """
define stream S (k string);
@info(name = 'leads') from S select k, coordination:isLeader() as leads insert into O;
@info(name = 'by-one') from S[coordination:isLeader()] select k insert into Once;
"""
Run = Callable[..., App]


@pytest.fixture
def app(tmp_path: Any) -> Any:
    """Deploys an app in a folder of its own, and ends it."""
    running: list[App] = []

    def run(**options: Any) -> App:
        running.append(deploy(TEXT, name="leaders", master="inline", home=tmp_path, **options))
        return running[-1]

    yield run
    for each in running:
        each.close()


def events_sent(app: App) -> App:
    for k in "abcdef":
        app.send("S", [k])
    return app


def rows(app: App, stream: str) -> list[list[Any]]:
    frame = app.output(stream).frame
    return sorted(frame[[name for name in ("k", "leads") if name in frame]].to_numpy().tolist())


def test_a_single_node_leads(app: Run) -> None:
    single = events_sent(app())
    assert rows(single, "O") == [[k, True] for k in "abcdef"]
    assert rows(single, "Once") == [[k] for k in "abcdef"]


def test_the_first_of_several_nodes_leads(app: Run) -> None:
    several = events_sent(app(nodes=3, mode="active-active", shard_ids=["x", "y", "z"]))
    assert rows(several, "O") == [[k, k in "ad"] for k in "abcdef"]
    assert rows(several, "Once") == [["a"], ["d"]]


def test_when_the_first_node_is_taken_away_the_next_one_leads(app: Run) -> None:
    several = events_sent(app(nodes=2, mode="active-active", shard_ids=["x", "y"]))
    assert rows(several, "Once") == [["a"], ["c"], ["e"]]
    several.scale(shard_ids=["y"])
    events_sent(several)
    assert len(rows(several, "Once")) == 3 + 6


def test_with_a_leader_each_query_that_asks_runs_there(app: Run) -> None:
    led = events_sent(app(nodes=3, mode="active-active", alerts="leader"))
    assert rows(led, "O") == [[k, True] for k in "abcdef"]


def test_the_active_node_of_a_pair_leads(app: Run) -> None:
    pair = app(mode="ha")
    frame = pd.DataFrame({"k": list("abcdef"), "at": range(1000, 7000, 1000)})
    pair.feed("S", frame, time="at", progress=lambda _: None)
    pair.stop()
    assert rows(pair, "O") == [[k, True] for k in "abcdef"]


def test_alerts_that_the_other_nodes_do_not_raise_are_lost(app: Run) -> None:
    several = events_sent(app(nodes=3, mode="active-active"))
    counts = several.divergence(routing="round_robin").counts.set_index("query")
    assert counts.loc["by-one", ["lost", "same"]].tolist() == [4, 2]
