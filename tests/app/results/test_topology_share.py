"""Two texts on several nodes: the differences that are due to the text, and those that are due to the nodes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from sparkstream_nb.app import App, RuleComparison
from sparkstream_nb.lab.compared_shown import comparison_json
from sparkstream_nb.lab.display import html, text

PAIRS = """
define stream S (card string, amount long);
@info(name='big') from S[amount > 300] select card, amount insert into Big;
@info(name='twice') from every a=S[amount > 200] -> b=S[b.card == a.card and b.amount > 200] within 1 min
select a.card as card, b.amount as amount insert into Twice;
@info(name='sums') from S#window.lengthBatch(3) select card, sum(amount) as total group by card insert into Sums;
"""
NEW_PAIRS = PAIRS.replace("1 min", "20 sec").replace("> 300", "> 320").replace("Batch(3)", "Batch(4)")


def filled(run: Callable[..., App], source: str, seed: int) -> App:
    app, chance = run(source), random.Random(seed)
    for i in range(60):
        app.send("S", [chance.choice("abc"), chance.randint(1, 50) * 10], at=1_717_236_000_000 + 7000 * i)
    return app


def changed(comparison: RuleComparison) -> Counter[Any]:
    """Outputs that the new text has more often, or less."""
    counts: Counter[Any] = Counter()
    for stream, pairs in comparison.pairs.items():
        for pair in pairs:
            for alert, sign in ((pair.before, -1), (pair.after, 1)):
                if alert is not None:
                    counts[stream, alert.ts, alert.values] += sign
    return Counter({key: n for key, n in counts.items() if n})


def outputs(app: App, nodes: int) -> Counter[Any]:
    """The outputs of a text by itself."""
    comparison = app.compare(app.runtime.deployment.request.text, nodes=nodes, routing="round_robin")
    return Counter(
        (stream, pair.alert.ts, pair.alert.values) for stream, pairs in comparison.pairs.items() for pair in pairs
    )


@pytest.mark.parametrize("seed", range(4))
def test_what_the_text_does_and_what_the_nodes_do(run: Callable[..., App], seed: int) -> None:
    app = filled(run, PAIRS, seed)
    comparison = app.compare(NEW_PAIRS, nodes=3, routing="round_robin")
    on_one, on_nodes = changed(app.compare(NEW_PAIRS)), changed(comparison)
    topology = comparison.topology
    assert topology is not None
    assert dict(topology.text_on_one) == on_one
    assert dict(topology.text_on_nodes) == on_nodes
    frame = comparison.frame
    for stream, ts, outcome, values, source in frame[["stream", "timestamp", "outcome", "values", "due to"]].values:
        change = {"gone": -1, "new": 1}.get(outcome)
        if change is not None:
            is_on_one = on_one[stream, ts, tuple(values)] * change > 0
            assert source == ("text" if is_on_one else "nodes")
    assert set(frame["due to"].dropna()) == {"text", "nodes"}
    assert sum(comparison.by_source.values()) == comparison.differences

    before = outputs(app, 3), outputs(app, 1)
    other = filled(run, NEW_PAIRS, seed)
    after = outputs(other, 3), outputs(other, 1)
    counts = topology.frame.set_index("stream")
    for (nodes, one), which in ((before, "old text"), (after, "new text")):
        for name, surplus in ((f"lost, {which}", one - nodes), (f"spurious, {which}", nodes - one)):
            by_stream = Counter(dict.fromkeys(counts.index, 0))
            for (stream, _, _), n in surplus.items():
                by_stream[stream] += n
            assert counts[name].to_dict() == by_stream
    one_alone: Counter[str] = Counter()
    for key, n in on_one.items():
        if n * on_nodes[key] <= 0:
            one_alone[key[0]] += abs(n)
    assert counts["one node alone"].to_dict() == {s: one_alone[s] for s in counts.index}


def test_how_it_is_shown(run: Callable[..., App]) -> None:
    app = filled(run, PAIRS, 1)
    comparison = app.compare(NEW_PAIRS, nodes=3, routing="round_robin")
    by_text, by_nodes = comparison.by_source["text"], comparison.by_source["nodes"]
    sentence = (
        f"Of {by_text + by_nodes} differences, {by_text} are due to the text (one node that takes all events has it as "
        f"well), {by_nodes} to the nodes."
    )
    assert sentence in text(comparison)
    assert sentence in html(comparison)
    assert "against one node" in text(comparison)
    data = comparison_json(comparison, 100)
    assert data["by_source"] == {"text": by_text, "nodes": by_nodes}
    assert [r["stream"] for r in data["against_one_node"]] == ["Sums", "Twice"]
    assert {r["due to"] for r in data["first"]} == {"text", "nodes"}


def test_on_one_node_all_is_due_to_the_text(run: Callable[..., App]) -> None:
    comparison = filled(run, PAIRS, 1).compare(NEW_PAIRS)
    assert comparison.topology is None
    assert comparison.by_source == {"text": comparison.differences, "nodes": 0}
    assert "due to" not in text(comparison)
    assert comparison_json(comparison, 1)["against_one_node"] is None


def test_what_the_text_changes_on_one_node_alone(run: Callable[..., App]) -> None:
    app = run(PAIRS)
    for i in range(2):
        app.send("S", ["a", 250], at=1_717_236_000_000 + 40_000 * i)
    comparison = app.compare(PAIRS.replace("1 min", "20 sec"), nodes=2, routing="round_robin")
    assert comparison.differences == 0
    assert comparison.topology is not None
    assert comparison.topology.frame.values.tolist() == [["Twice", 1, 1, 0, 0, 0]]
    assert "Twice                          1" in text(comparison)


def test_outputs_of_the_time_of_warming_up_are_left_out(run: Callable[..., App]) -> None:
    app = filled(run, PAIRS, 1)
    comparison = app.compare(NEW_PAIRS, nodes=3, routing="round_robin", warm_up="1 hour")
    assert comparison.topology is not None
    assert len(comparison.topology.frame) == 0
