"""Profiles: rows are counted exactly, times add up, keys and growth are those of the input, and advice fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sparkstream_nb.app import App, Profile
from sparkstream_nb.errors import Misuse

TEXT = """
define stream Payments (card string, amount double);
define table Last (card string, amount double);
define window Recent (card string) length(5);
@PartitionById
define aggregation Totals from Payments select card, sum(amount) as total group by card aggregate every sec...hour;
@info(name='spree')
from every e1=Payments[amount > 100.0] -> e2=Payments[card == e1.card and amount > e1.amount]
select e1.card as card, e2.amount as amount insert into Sprees;
@info(name='mean') from Payments[amount > 60.0]#window.time(10 sec) select card, avg(amount) as mean group by card
output last every 5 events insert into Means;
@info(name='save') from Payments select card, amount update or insert into Last set Last.amount = amount
on Last.card == card;
@info(name='known') from Payments#window.length(3) join Last on Payments.card == Last.card
select Payments.card, Last.amount as amount insert into Known;
@info(name='keep') from Payments select card insert into Recent;
partition with (card of Payments)
begin @info(name='five') from Payments#window.lengthBatch(5) select card, sum(amount) as t insert into Fives; end;
"""
COUNT = 6_000
Runner = Callable[..., App]


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    cards = np.where(rng.random(COUNT) < 0.6, "c0", rng.choice([f"c{i}" for i in range(1, 2_000)], COUNT))
    times = 1_700_000_000_000 + np.arange(COUNT) * 50
    return pd.DataFrame({"card": cards, "amount": rng.uniform(50, 200, COUNT), "at": times})


def profile_of(run: Runner, text: str = TEXT, **deployment: Any) -> tuple[App, Profile]:
    app = run(text, **deployment)
    app.feed("Payments", frame(), time="at")
    return app, app.profile()


def test_rows_and_times(run: Runner) -> None:
    app, profile = profile_of(run, nodes=3)
    parts = profile.frame.groupby(["element", "part"])[["rows_in", "rows_out"]].sum()
    events = frame()
    assert profile.events == COUNT
    assert [n.events for n in profile.nodes] == [COUNT // 3] * 3
    for element, part in (
        ("spree", "pattern"), ("save", "table write"), ("known", "join"), ("Recent", "window"), ("Totals", "buckets"),
        ("five", "window lengthBatch"),
    ):  # fmt: skip
        assert parts.loc[(element, part), "rows_in"] == COUNT, (element, part)
    assert parts.loc[("spree", "select"), "rows_out"] == len(app.output("Sprees"))
    assert parts.loc[("five", "select"), "rows_out"] == len(app.output("Fives"))
    assert parts.loc[("mean", "rate limit"), "rows_out"] == len(app.output("Means"))
    assert parts.loc[("mean", "filter, window time"), "rows_out"] == (events["amount"] > 60.0).sum()
    for node in profile.nodes:
        ms = profile.frame.query("node == @node.node")["ms"].sum()
        assert 0 < ms <= node.ms
    time, recent = profile.batch_time, app.stats().recent
    assert time is not None
    assert (time.count, time.ms) == (len(recent), pytest.approx(sum(b.ms for b in recent)))
    assert 0 < max(b.node_ms for b in recent) <= time.node_ms < time.ms


def test_keys_and_growth(run: Runner) -> None:
    app, profile = profile_of(run, nodes=2)
    counts = frame()["card"].value_counts()
    keys = [k for k in profile.keys if (k.stream, k.attribute) == ("Payments", "card")]
    assert [k.events for k in keys] == counts.head(5).tolist()
    assert keys[0].value == "c0"
    assert keys[0].share == pytest.approx(counts["c0"] / COUNT)
    rows = {g.element: (g.half_rows, g.rows) for g in profile.growth}
    state = app.stats().state_frame.groupby("name")["rows"].sum()
    assert rows["Last"][1] == state["Last"]
    assert rows["spree"][1] == state["spree"]
    half = [frame().iloc[i : COUNT // 2 : 2]["card"].nunique() for i in range(2)]
    assert abs((rows["Last"][0] or 0) - sum(half)) < 300


def test_the_app_and_its_outputs_stay_as_they_are(run: Runner) -> None:
    app, _ = profile_of(run, nodes=2)
    before = app.output("Sprees").frame
    app.profile(4, "hash:card")
    pd.testing.assert_frame_equal(app.output("Sprees").frame, before)
    assert app.stats().events == COUNT


def test_advice(run: Runner) -> None:
    _, profile = profile_of(run, nodes=3, routing="hash:card")
    advice = "\n".join(profile.advice)
    assert "of the events: card c0 alone has 6" in advice
    assert "known looks for rows of Last (1," in advice
    assert "has no @index and no @primaryKey." in advice


def test_advice_on_matches_that_add_up(run: Runner, tmp_path: Any) -> None:
    text = "define stream Payments (card string, amount double); @info(name='q') from every e1=Payments -> " \
        "e2=Payments[card == e1.card and amount > 1000.0] {} select e1.card as card insert into O;"
    _, growing = profile_of(run, text.format(""), name="growing", home=tmp_path / "a")
    assert any("q holds 6,001 partial matches, 3,001 half-way: it has no `within`" in a for a in growing.advice)
    _, bounded = profile_of(run, text.format("within 1 sec"), name="bounded", home=tmp_path / "b")
    assert not any("within" in a for a in bounded.advice)


def test_advice_on_an_even_load_is_none(run: Runner) -> None:
    text = "define stream Payments (card string, amount double);" + "".join(
        f"from Payments#window.length({i}) select card, avg(amount) as m insert into O{i};" for i in range(1, 4)
    )
    _, profile = profile_of(run, text, nodes=2)
    assert [a for a in profile.advice if "of the time" not in a] == []


def test_the_picture_adds_up(run: Runner) -> None:
    _, profile = profile_of(run, nodes=2)
    (panel,) = profile.picture().panels
    nodes, elements, parts = panel.marks
    for marks in (nodes, elements):
        widths = (marks.x1 - marks.x0).sum()  # type: ignore[attr-defined]
        assert widths == pytest.approx(profile.ms)
    assert (parts.x1 - parts.x0).sum() == pytest.approx(profile.frame["ms"].sum())  # type: ignore[attr-defined]
    assert list(nodes.labels) == ["node-1", "node-2"]  # type: ignore[attr-defined]


def test_what_has_no_profile(run: Runner, tmp_path: Any) -> None:
    app = run(TEXT)
    with pytest.raises(Misuse, match="app has no input yet: feed it, or send events"):
        app.profile()
    with pytest.raises(Misuse):
        app.profile("3")  # type: ignore[arg-type]
    pair = run(TEXT.replace("@PartitionById", ""), name="pair", home=tmp_path / "pair", mode="ha")
    with pytest.raises(Misuse, match="pair has mode ha: a profile is of nodes that share the events, such as one"):
        pair.profile()


def test_a_profile_of_a_pair_as_one_node(run: Runner, tmp_path: Any) -> None:
    text = TEXT.replace("@PartitionById", "")
    pair = run(text, name="pair", home=tmp_path / "pair", mode="ha")
    pair.feed("Payments", frame(), time="at")
    one = run(text, name="one", home=tmp_path / "one")
    one.feed("Payments", frame(), time="at")
    profile, expected = pair.profile(nodes=1), one.profile()
    columns = ["node", "element", "part", "rows_in", "rows_out"]
    pd.testing.assert_frame_equal(profile.frame[columns], expected.frame[columns])
    assert profile.batch_time is not None
