"""The events and outputs of all steps at once: as the moments have them one by one, and the values among them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sparkstream_nb.app import App, Moment
from sparkstream_nb.app.pictures.history_picture import MOST_LANES, POSITION, history_picture
from sparkstream_nb.charts.picture import Bars, LaneAxis, Rules
from sparkstream_nb.charts.value_texts import text_of

TEXT = """
define stream S (card string, amount double, n int, flag bool, thing object);
define stream Other (n long);
@info(name='spree') from every a=S[amount > 300] -> b=S[card == a.card and amount > 300] within 1 min
select a.card as card, a.amount + b.amount as total insert into Sprees;
@info(name='sums') from S#window.time(30 sec) select card, sum(amount) as total insert into Sums;
@info(name='more') from Other select convert(n, 'string') as card, 1.5 as total insert into Sums;
@info(name='never') from S[amount > 1000] select card insert into Never;
"""
START = 1_717_236_000_000


@pytest.fixture
def app(run: Callable[..., App]) -> App:
    app = run(TEXT)
    rng = random.Random(3)
    for i in range(40):
        at = START + i * 4000
        if i % 4 == 3:
            app.send("Other", [i], at=at)
        else:
            event = [rng.choice(["a", "<b>", None]), rng.choice([100.0, 400.0, 0.1 + 0.2]), i, i % 2 == 0, f"x{i}"]
            app.send("S", event, at=at)
    return app


def moments(end: Moment) -> list[Moment]:
    return [end.source.moment(position) for position in range(1, end.steps + 1)]


@pytest.mark.parametrize("way", [{}, {"nodes": 3, "routing": "round_robin"}])
def test_all_steps_are_the_moments_one_by_one(app: App, way: dict[str, Any]) -> None:
    end = app.at(**way)
    history, names = end.source.history(), list(end.nodes)
    expected: dict[str, list[tuple[int, str]]] = {}
    for moment in moments(end):
        assert history.clock_at(moment.position) == moment.clock
        for row in (*moment.events, *moment.outputs):
            expected.setdefault(row.stream, []).append((moment.position, row.node))
    for stream, rows in {**history.events, **history.outputs}.items():
        placed = zip(rows.positions.tolist(), (names[node] for node in rows.nodes), strict=True)
        assert sorted(placed) == sorted(expected.get(stream, [])), stream
    assert set(history.outputs) == {"Sprees", "Sums", "Never"}
    assert len(history.outputs["Never"].positions) == 0


def test_the_next_and_the_previous_output(app: App) -> None:
    rows = app.at().source.history().outputs["Sprees"]
    positions = sorted(set(rows.positions.tolist()))
    assert len(positions) > 2
    for position in range(42):
        assert rows.next(position) == next((p for p in positions if p > position), None)
        assert rows.previous(position) == next((p for p in reversed(positions) if p < position), None)


NOWHERE = ["null", "no such", "1e300"]


@pytest.mark.parametrize("words", ["a", "<b>", "100", "100.0", "0.3", "0.3000", "7", "1.5", "true", "x6", *NOWHERE])
def test_a_value_is_found_where_it_is_shown(app: App, words: str) -> None:
    end = app.at()
    try:
        number = f"{float(words):.4f}"
    except ValueError:
        number = ""

    def is_shown(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value is not None and text_of(value) == words
        return f"{value:.4f}" == number

    expected = [m.position for m in moments(end) if any(is_shown(v) for r in (*m.events, *m.outputs) for v in r.values)]
    assert end.source.history().search(words).positions.tolist() == expected
    assert bool(expected) == (words not in NOWHERE)


def test_the_time_line_has_a_lane_for_each_stream_and_node(app: App) -> None:
    moment = app.at(event=17, nodes=3, routing="round_robin")
    (panel,) = history_picture(moment).panels
    assert isinstance(panel.y, LaneAxis)
    names = ["S", "Other", "node-1", "node-2", "node-3", "→ Sprees", "→ Sums", "→ Never"]
    assert [lane.name for lane in panel.y.lanes] == names
    assert panel.y.lanes[0].title == "30 events"
    (rule,) = [m for m in panel.marks if isinstance(m, Rules) and m.part == POSITION]
    assert rule.x.tolist() == [moment.clock]
    (of_s,) = [m for m in panel.marks if isinstance(m, Bars) and m.y0.min() < 1]
    assert len(of_s.x0) == 30, "each event has a bin of its own"


def test_a_large_input_is_bins_and_further_nodes_are_named(app: App) -> None:
    moment = app.at()
    bars = [m for m in history_picture(moment, 200).marks() if isinstance(m, Bars)]
    assert max(len(m.x0) for m in bars) <= 23
    of_s = next(m for m in bars if m.y0.min() < 1)
    assert len({round(h, 3) for h in (of_s.y1 - of_s.y0).tolist()}) > 1, "bars are as high as there are events"
    nodes = {f"node-{i}": moment.nodes["node-1"] for i in range(MOST_LANES + 2)}
    assert list(history_picture(replace(moment, nodes=nodes)).notes) == ["Not drawn: 2 further nodes"]


def test_the_commits_of_the_app_and_none_on_other_nodes(run: Callable[..., App]) -> None:
    app = run("define stream S (v int); from S[v > 1] select v insert into O; from S select v insert into P;")
    for v in (1, 2, 3):
        app.send("S", [v], at=START + v)
        app.flush()
    moment = app.at()
    assert moment.source.commits().positions.tolist() == [1, 2, 3]
    (panel,) = history_picture(moment).panels
    assert isinstance(panel.y, LaneAxis)
    assert (panel.y.lanes[-1].name, panel.y.lanes[-1].title) == ("commits", "3 commits")
    assert app.at(nodes=2, routing="round_robin").source.commits().positions.tolist() == []
    assert app.at().branch(drop=[1]).moment.source.commits().positions.tolist() == []
