"""The time line of alerts: which outputs stand where, and what is told of them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from sparkstream_nb.app.pictures.study_picture import study_picture
from sparkstream_nb.app.pictures.timeline_picture import full_timeline, timeline_picture, worst
from sparkstream_nb.app.results.divergence import Divergence, Truth
from sparkstream_nb.app.running.study import Study
from sparkstream_nb.charts.loading import draw_figure
from sparkstream_nb.charts.svg_picture import svg
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.journal.inbox import Inbox
from sparkstream_nb.nodes.tallies import Tally
from sparkstream_nb.plan import compile_app
from sparkstream_nb.replay.replay import Nodes, Way
from sparkstream_nb.replay.study_tasks import Input, RoutingOutcome

from .test_pictures import luminance

SECONDS = 1_717_200_000_000 + 1000 * np.arange(6)
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def divergence(tmp_path_factory: pytest.TempPathFactory) -> Divergence:
    """Sums over the last two of 1, 2, 4, 8, 16, 32, on two nodes in turn."""
    plan = compile_app(
        "define stream S (v int); @info(name='q') from S#window.length(2) select sum(v) as s insert into O;"
    )
    folder = tmp_path_factory.mktemp("inbox")
    inbox = Inbox(folder)
    rows = StreamRows(np.arange(6), SECONDS, [[1, 2, 4, 8, 16, 32]])
    inbox.append([inbox.batch(InputBatch(SECONDS, {"S": rows}), "round_robin")])
    inbox.close()
    source = Input(str(folder), {s: d.source.schema for s, d in plan.streams.items()}, 2, 1)
    return Truth("App", source, Nodes(plan), ["a", "<b>"]).against(Way(2))


def test_each_output_stands_in_its_lane_at_its_time(divergence: Divergence) -> None:
    t = full_timeline(divergence, "O")
    assert (t.start, t.end) == (SECONDS[0], SECONDS[-1])
    found = [(t.lanes[m.lane], m.verdict, [m.alert(x).values[0] for x in m.matches]) for m in t.marks]
    assert found == [
        ("truth", "same", [1]), *(("truth", "lost", [v]) for v in (3, 6, 12, 24, 48)),
        ("a", "same", [1]), ("a", "spurious", [5]), ("a", "spurious", [20]),
        ("<b>", "spurious", [2]), ("<b>", "spurious", [10]), ("<b>", "spurious", [40]),
    ]  # fmt: skip
    assert all(m.alert(m.matches[0]).clock == m.at for m in t.marks)


def test_a_stretch_of_time_and_outputs_that_share_a_mark(divergence: Divergence) -> None:
    t = replace(full_timeline(divergence, "O"), start=int(SECONDS[1]), end=int(SECONDS[2]))
    assert [(m.lane, m.verdict, len(m.matches)) for m in t.marks] == [
        (0, "lost", 1), (0, "lost", 1), (1, "spurious", 1), (2, "spurious", 1),
    ]  # fmt: skip
    far = replace(full_timeline(divergence, "O"), end=int(SECONDS[-1]) + 10_000_000)
    lost = next(m for m in far.marks if m.verdict == "lost")
    assert len(lost.matches) == 5
    assert far.describe_mark(lost, limit=1) == (
        "5 × lost: one node has it, no node of these\n2024-06-01 00:00:01 to 2024-06-01 00:00:05\ns 3\n"
        "  split over 2 nodes: S[1] on a, S[2] on <b>\nand 4 more"
    )


def test_pictures_are_valid_and_escaped(divergence: Divergence) -> None:
    t = full_timeline(divergence, "O")
    drawn = ElementTree.fromstring(svg(timeline_picture(t)))
    assert "q: 6 outputs of one node, and their counterparts on 2 nodes" in drawn.attrib["aria-label"]
    titles = [g.findtext(f"{SVG}title") or "" for g in drawn.findall(f"{SVG}g") if g.get("class") != "sample"]
    assert len(titles) == 12
    assert titles[0].startswith("truth: same: as on one node")
    assert titles[-1].startswith("<b>: ")
    assert "<b>" in [e.text for e in drawn.iter(f"{SVG}text")]
    assert "as on one node" not in svg(timeline_picture(t), has_titles=False)


def test_the_live_form_has_each_mark_with_its_words_and_its_number(divergence: Divergence) -> None:
    t = full_timeline(divergence, "O")
    figure = draw_figure(timeline_picture(t, pinned_mark=3))
    keyed = [trace for trace in figure.data if trace.customdata]
    words = {k: w for trace in keyed for k, w in zip(trace.customdata, trace.hovertext, strict=True)}
    heights = {k: y for trace in keyed for k, y in zip(trace.customdata, trace.y, strict=True)}
    assert sorted(words) == list(range(12))
    assert words[0].startswith("truth: same: as on one node<br>")
    assert words[11].startswith("&lt;b&gt;: ")
    assert [list(trace.y) for trace in figure.data if trace.marker.size == 16] == [[heights[3]]], "the pinned one"
    assert list(figure.layout.yaxis.ticktext) == ["<b>truth</b>", "a", "&lt;b&gt;"]


def test_a_heat_map_has_a_number_in_each_cell() -> None:
    study = Study(
        "<A>",
        [RoutingOutcome(Way(n, r), {"O": Tally(5, n - 1, 0)}, (1,) * n) for n in (1, 2) for r in "xy"],
        {"O": "q"},
    )
    drawn = ElementTree.fromstring(svg(study_picture(study)))
    cells = [t.text for t in drawn.iter(f"{SVG}text") if t.get("class") == "value"]
    assert cells == ["·", "1", "·", "1", "·", "·", "·", "·"]


def test_a_title_is_no_wider_than_its_picture(divergence: Divergence) -> None:
    assert full_timeline(divergence, "O").title.startswith("q: 6 outputs of one node, and")
    many = replace(divergence, queries={"O": ", ".join(f"query-{i}" for i in range(9))})
    assert full_timeline(many, "O").title.startswith("O (9 queries): 6 outputs of one node, and")


def test_numbers_of_a_heat_map_are_read_on_each_of_its_colours() -> None:
    wrong = [0, 1, 2500, 5000]
    outcomes = [RoutingOutcome(Way(i + 1, "x"), {"O": Tally(5000 - n, n, 0)}, (1,)) for i, n in enumerate(wrong)]
    study = Study("A", outcomes, {"O": "q"})
    drawn = ElementTree.fromstring(svg(study_picture(study)))
    fills = [r.attrib["fill"] for r in drawn.iter(f"{SVG}rect") if r.get("class") == "cell"]
    inks = [
        (t.text, t.attrib["fill"].replace("#111", "#111111"))
        for t in drawn.iter(f"{SVG}text")
        if t.get("class") == "value"
    ]
    assert [t for t, _ in inks[:4]] == ["·", "1", "2,500", "5,000"]
    for fill, (_, ink) in zip(fills, inks, strict=True):
        assert (luminance(fill) + 0.05) / (luminance(ink) + 0.05) >= 4.5  # WCAG, AA


def test_the_query_that_lost_most_is_drawn_first(divergence: Divergence) -> None:
    def matches(**verdicts: int) -> list[Any]:
        return [SimpleNamespace(verdict=v, true=None, found=None) for v, n in verdicts.items() for _ in range(n)]

    by_stream = {"A": matches(same=9, lost=2), "B": matches(spurious=9), "C": matches(lost=2, late=1), "D": []}
    assert worst(replace(divergence, matches=by_stream)) == "C"
    assert worst(replace(divergence, matches={**by_stream, "D": matches(lost=3)})) == "D"
