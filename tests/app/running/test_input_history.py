"""The events and outputs of all steps at once: as the moments have them one by one, and the values among them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from sparkstream_nb.app import App, Moment
from sparkstream_nb.app.pictures.history_picture import MOST_LANES, POSITION, history_picture
from sparkstream_nb.charts.picture import Bars, LaneAxis, Rules
from sparkstream_nb.charts.value_texts import text_of
from sparkstream_nb.replay.input_history import InputHistory

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


def history_of(app: App) -> tuple[InputHistory, list[str]]:
    end = app.at(nodes=3, routing="round_robin")
    return end.source.history(), list(end.nodes)


def test_the_time_line_has_a_lane_for_each_stream_and_node(app: App) -> None:
    history, names = history_of(app)
    picture = history_picture(history, "<app>", names, 20)
    (panel,) = picture.panels
    assert isinstance(panel.y, LaneAxis)
    assert [lane.name for lane in panel.y.lanes] == ["S", "Other", *names, "→ Sprees", "→ Sums", "→ Never"]
    assert panel.y.lanes[0].title == "30 events"
    (rule,) = [m for m in panel.marks if isinstance(m, Rules) and m.part == POSITION]
    assert rule.x.tolist() == [START + 19 * 4000]
    bars = [m for m in panel.marks if isinstance(m, Bars)]
    in_lane_0 = [m for m in bars if m.y0.min() < 1]
    assert len(in_lane_0) == 1
    assert len(in_lane_0[0].x0) == 30, "each event has a bin of its own"


def test_a_large_input_is_bins_and_further_streams_are_named(app: App) -> None:
    history, names = history_of(app)
    narrow = history_picture(history, "app", names, 1, 200)
    bars = [m for m in narrow.marks() if isinstance(m, Bars)]
    assert max(len(m.x0) for m in bars) <= 23
    full = next(m for m in bars if m.y0.min() < 1)
    assert len({round(h, 3) for h in (full.y1 - full.y0).tolist()}) > 1, "bars are as high as there are events"
    many = history_picture(history, "app", [f"node-{i}" for i in range(MOST_LANES + 2)], 1)
    assert list(many.notes) == ["Not drawn: 2 further nodes"]
