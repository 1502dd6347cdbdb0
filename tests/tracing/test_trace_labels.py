"""Labels of the events of a trace: each event can be told, by its label, by a note, or by the values at the pointer."""

from __future__ import annotations

import re

import pytest

from sparkstream_nb import trace
from sparkstream_nb.app.pictures.pattern_trace_picture import pattern_trace_picture
from sparkstream_nb.charts.loading import draw_figure
from sparkstream_nb.charts.picture_layout import lay_out
from sparkstream_nb.charts.svg_picture import svg

PATTERN = """
define stream A (k string, v int);
define stream B (k string, v int);
@info(name = 'q') from every e1=A -> e2=B within 2 sec select e1.k as a, e2.k as b insert into Out;
"""
EVENTS = 40


@pytest.mark.parametrize("width", [420, 900, 2_400])
def test_each_of_many_events_can_be_told(width: int) -> None:
    feed = [("AB"[i % 2], 100 * i, [f"card-{i}", i]) for i in range(EVENTS)]
    picture = pattern_trace_picture(trace(PATTERN, None, feed))
    image = svg(picture, width)
    at_pointer = re.findall(r"<title>[AB] at [^<]*\n([^<]*)</title>", image)
    assert sorted(at_pointer) == sorted(f"card-{i}, {i}" for i in range(EVENTS))
    hover = [str(t) for one in draw_figure(picture).data for t in (one.hovertext if one.hovertext is not None else ())]
    assert all(any(text.endswith(f"card-{i}, {i}") for text in hover) for i in range(EVENTS))

    layout = lay_out(picture, width)
    (panel,) = layout.panels
    labels = {text.text for texts in panel.texts.values() for text in texts if text.text.startswith("card-")}
    labelled = {i for i in range(EVENTS) if any(label in (f"card-{i}, {i}", f"card-{i}…") for label in labels)}
    note = " ".join(line.text for line in layout.notes)
    missing = re.search(r"No room for the labels? of ([0-9]+) events? \((.*?)\): point at one for its values", note)
    if missing is None:
        assert len(labelled) == EVENTS
    else:
        assert int(missing[1]) == EVENTS - len(labelled)
        first, last = min(set(range(EVENTS)) - labelled), max(set(range(EVENTS)) - labelled)
        assert f"card-{first}, {first}" in missing[2]
        assert f"card-{last}, {last}" in missing[2]
    assert all(len(line.text) * 6.7 <= width for line in layout.notes)


def test_no_note_where_all_labels_have_room() -> None:
    feed = [("AB"[i % 2], 1_000 * i, [f"card-{i}", i]) for i in range(4)]
    assert not lay_out(pattern_trace_picture(trace(PATTERN, None, feed)), 900).notes
