"""The pictures that a notebook saves: they are read on a page of any theme."""

from __future__ import annotations

import base64
import re
from xml.etree import ElementTree

from sparkstream_nb.app.pictures.lanes_picture import LaneBar, Lanes, lanes_picture
from sparkstream_nb.charts.picture import Style
from sparkstream_nb.charts.svg_picture import SAVED_INK, svg
from sparkstream_nb.lab.drawings.image import image
from sparkstream_nb.lab.graph import graph_drawing
from sparkstream_nb.lab.plans_shown import page_of
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.reports.app_graph import graph_of

SVG = "{http://www.w3.org/2000/svg}"


def picture_of(image: str) -> ElementTree.Element:
    """The SVG element of an HTML image."""
    found = re.search(r"base64,([\w+/=]+)", image)
    assert found is not None
    return ElementTree.fromstring(base64.b64decode(found[1]))


def luminance(colour: str) -> float:
    """WCAG's relative luminance of `#rrggbb`."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_picture_that_is_saved_has_a_ground_that_its_ink_is_read_on() -> None:
    lanes = Lanes("<title>", "head", ["a > b"], 0, 1000, [], [], [])
    plan = compile_app("define stream S (v int); from S select v insert into O;")
    for markup in (image(lanes_picture(lanes)), graph_drawing.image(graph_of(plan))):
        ground = picture_of(markup)[0]
        assert (ground.tag, ground.attrib["width"], ground.attrib["height"]) == (f"{SVG}rect", "100%", "100%")
        assert ground.attrib["fill"] == "#fff"
    assert 1.05 / (luminance(SAVED_INK) + 0.05) >= 7  # WCAG, AAA


def test_a_page_of_its_own_is_dark_with_its_pictures_where_the_reader_chose_that() -> None:
    assert "@media screen and (prefers-color-scheme: dark) { .sparkstream-picture{filter:" in page_of("<t>", "")


def test_every_fault_has_its_words() -> None:
    faults = [(500 + i, f"kill group-{i}-node-1") for i in range(9)]
    drawn = ElementTree.fromstring(svg(lanes_picture(Lanes("t", "h", ["events"], 0, 1000, [], [], faults))))
    words = [e for e in drawn.iter(f"{SVG}text") if (e.text or "").startswith("kill")]
    assert [e.text for e in words] == [text for _, text in faults]
    assert len({e.attrib["y"] for e in words}) == 9
    legend_and_head = 40
    assert all(float(e.attrib["y"]) > legend_and_head for e in words)


def test_words_on_a_short_bar_go_on_behind_it_where_nothing_else_is() -> None:
    def words(second: int) -> list[str]:
        bars = [
            LaneBar("leader", 0, 10, Style(), "", label="manager-1"),
            LaneBar("leader", second, 1000, Style(), "", label="manager-2"),
        ]
        drawn = ElementTree.fromstring(svg(lanes_picture(Lanes("t", "h", ["leader"], 0, 1000, bars, [], []))))
        return [e.text for e in drawn.iter(f"{SVG}text") if e.text and e.text.startswith("manager")]

    assert words(500) == ["manager-1", "manager-2"]
    assert words(11) == ["manager-2"]
