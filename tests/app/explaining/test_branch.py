"""Branches of an app's input: their outputs are those of an app that took the changed events."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from sparkstream_nb.app import App
from sparkstream_nb.errors import Misuse, SiddhiError
from sparkstream_nb.lab.display import html, text

from .why_not_cases import START, cases

TEXT = """
define stream S (card string, amount double);
@info(name='big') from S[amount > 300] select card, amount insert into Big;
@info(name='sums') from S#window.length(2) select sum(amount) as total insert into Sums;
"""
ROWS = [["<a>", 400.0], ["b", 100.0], ["c", 500.0]]


@pytest.fixture
def app(run: Callable[..., App]) -> App:
    app = run(TEXT)
    for i, row in enumerate(ROWS):
        app.send("S", row, at=START + 1000 * i)
    return app


def test_an_event_left_out_changed_and_added(app: App) -> None:
    without = app.at().branch(drop=1)
    assert without.differences[["outcome", "stream", "before", "after"]].values.tolist()[0] == [
        "gone", "Big", ["<a>", 400.0], None,
    ]  # fmt: skip
    assert without.counts.set_index("stream")["gone"].to_dict() == {"Big": 1, "Sums": 1}
    other = app.at().branch(change={2: {"amount": "350"}})
    assert other.counts.set_index("stream")[["same", "new", "other values"]].values.tolist() == [[2, 1, 0], [1, 0, 2]]
    more = app.at(event=2).branch(insert=[("S", ["d", 900.0]), ("S", ["e", 1000.0], "2024-06-01 10:00:01.500")])
    big = more.frame[more.frame["stream"] == "Big"]
    assert [v[0] for v in big["after"]] == ["<a>", "d", "e", "c"]
    assert [o.values for o in more.moment.outputs if o.stream == "Big"] == [["d", 900.0]]


def test_other_nodes_and_another_text(app: App) -> None:
    nodes = app.at().branch(nodes=3, routing="round_robin")
    assert nodes.counts.set_index("stream").loc["Big", "same"] == 3 - 1
    assert set(nodes.frame["node after"].dropna()) == {"node-1", "node-2", "node-3"}
    both = app.at().branch(change={2: {"amount": 350.0}}, nodes=2, routing="hash:card")
    hashes = app.at(nodes=2, routing="hash:card")
    assert both.moment.events == hashes.events
    assert set(both.frame.loc[both.frame["stream"] == "Big", "node after"]) == {
        app.at(event=i, nodes=2, routing="hash:card").events[0].node for i in (1, 2, 3)
    }  # fmt: skip
    assert list(nodes.moment.nodes) == ["node-1", "node-2", "node-3"]
    changed = app.at().branch(text=TEXT.replace("> 300", "> 450"))
    assert changed.differences["outcome"].tolist() == ["gone"]
    with pytest.raises(Misuse, match="give all its differences at once"):
        changed.moment.branch(drop=1)
    with pytest.raises(SiddhiError):
        app.at().branch(text="define stream")
    with pytest.raises(Misuse, match="other attributes"):
        app.at().branch(text=TEXT.replace("amount double", "amount float"))


def test_what_it_looks_like(app: App) -> None:
    branch = app.at().branch(drop=[1, 3], change={2: {"card": "<i>"}})
    assert text(branch).startswith("app, a branch: without event 1; without event 3; event 2 with card '<i>'")
    assert re.search(r"gone +Big +2024-06-01 10:00:00  node-1  \(<a>, 400.0\)", text(branch))
    assert "&lt;a&gt;" in html(branch)
    assert "<a>" not in html(branch)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "give drop, change, insert, nodes, routing or text"),
        ({"drop": 4}, "3 events came: there is no 4th"),
        ({"drop": ["1"]}, "event"),
        ({"change": {1: {"cart": 1}}}, "S has no attribute 'cart'. Did you mean 'card'"),
        ({"change": {1: 5}}, "the new values of event 1 are a dict by attribute, not 5"),
        ({"change": {1: {"amount": "much"}}}, "amount is double: 'much' is none"),
        ({"insert": [("S", ["a"])]}, "S has 2 attributes"),
        ({"insert": [("T", ["a"])]}, "no input stream 'T'"),
        ({"insert": ["S"]}, "is \\(stream, values\\) or"),
        ({"nodes": 0}, "nodes"),
    ],
)
def test_branches_that_are_none(app: App, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(Misuse, match=words):
        app.at().branch(**arguments)


def test_the_outputs_are_those_of_an_app_that_took_the_changed_events(run: Callable[..., App]) -> None:
    rng = random.Random(3)
    for case in cases(9, 12):
        app = run(case.template.text, fresh=True)
        for e in case.events:
            app.send(e.stream, list(e.values), at=START + int(e.time * 1000))
        numbers = rng.sample(range(1, len(case.events) + 1), 3)
        new_key = {"key": f"n-{rng.randint(0, 5)}"}
        source = case.events[numbers[2] - 1]
        added = (source.stream, list(source.values), START + int(source.time * 1000) + 700)
        branch = app.at().branch(drop=numbers[:1], change={numbers[1]: new_key}, insert=[added])
        expected = run(case.template.text, fresh=True)
        events = [
            (START + int(e.time * 1000), e.stream, [new_key["key"] if i == numbers[1] else e.values[0], *e.values[1:]])
            for i, e in enumerate(case.events, 1) if i != numbers[0]
        ]  # fmt: skip
        for time, stream, values in sorted([*events, (added[2], added[0], added[1])], key=lambda e: e[0]):
            expected.send(stream, values, at=time)
        out = expected.output(case.template.output).frame
        names = list(expected.plan.streams[case.template.output].source.schema.names)
        rows = Counter(map(str, out[["timestamp", *names]].values.tolist()))
        ours = branch.frame[branch.frame["stream"] == case.template.output].dropna(subset="after")
        assert Counter(str([t, *v]) for t, v in zip(ours["timestamp"], ours["after"], strict=True)) == rows
