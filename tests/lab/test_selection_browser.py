"""One selection across all pictures and tables of an app, in a real JupyterLab."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from .browser import Lab
from .cells import LOAD

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

NAME = "selection.ipynb"
APP = """
import pandas as pd
import sparkstream_nb

app = sparkstream_nb.deploy('''
define stream Ticks (symbol string, price double, at long);
@PartitionById(enable='true')
define aggregation Sums from Ticks select symbol, sum(price) as total group by symbol aggregate by at every sec...hour;
@info(name='rise') from every e1=Ticks -> e2=Ticks[symbol == e1.symbol and price > e1.price] within 10 sec
select e1.symbol as symbol, e1.price as low, e2.price as high insert into Rises;
''', name="Market", fresh=True, master="inline", nodes=2, routing="round_robin")
n = pd.Series(range(600))
ticks = pd.DataFrame({"symbol": ["<i>a</i>" if k % 3 else "b" for k in n], "price": (n * 37 % 101).astype(float),
                      "at": 1_717_236_000_000 + 1000 * n})
report = app.feed("Ticks", ticks, time="at", progress=lambda p: None)
"""
CELLS = [
    LOAD, APP, "app.divergence()", "%siddhi chart Market.Rises --y high --by symbol", "%siddhi tail Market.Rises",
    "%siddhi view Market.Sums --per min", "app.selection",
]  # fmt: skip
VIEWS = (".sparkstream-timeline", ".sparkstream-chart", ".sparkstream-tail", ".sparkstream-aggregation", ".renewed")


@pytest.fixture(scope="module")
def page(lab: Lab) -> Iterator[Any]:
    with lab.notebook(NAME, CELLS, height=3400) as page:
        for view in VIEWS[:-1]:
            page.wait_for_selector(view, timeout=240_000)
        page.wait_for_function("document.querySelectorAll('.sparkstream-plot .main-svg').length >= 6", timeout=60_000)
        page.wait_for_selector(".renewed", timeout=60_000)
        lab.idle(page)
        yield page


def selections(page: Any) -> list[str]:
    """The line above each view that says what is selected."""
    lines: list[str] = page.locator(".sparkstream-selection:visible span").all_text_contents()
    return lines


def wait_for_selection(page: Any, text: str) -> None:
    """Waits until all five views say that this is selected."""
    page.wait_for_function(
        """text => [...document.querySelectorAll('.sparkstream-selection')].filter(
          (line) => !line.hidden && line.firstChild.textContent.includes(text)).length === 5""",
        arg=text, timeout=30_000,
    )  # fmt: skip


def wait_for_everything(page: Any) -> None:
    page.wait_for_function("[...document.querySelectorAll('.sparkstream-selection')].every((line) => line.hidden)")


def draw_rectangle(page: Any, view: str, x: tuple[float, float], y: tuple[float, float]) -> None:
    """Draws a rectangle to select by, from and to these shares of the picture."""
    plot = page.locator(f"{view} .sparkstream-plot").first
    plot.scroll_into_view_if_needed()
    plot.hover()
    plot.locator('.modebar-btn[data-val="select"]').click()
    box = plot.locator(".nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * x[0], box["y"] + box["height"] * y[0])
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * x[1], box["y"] + box["height"] * y[1], steps=8)
    page.mouse.up()


def veils(page: Any, view: str) -> int:
    """How many veils a picture has."""
    count: int = page.evaluate(
        """view => document.querySelector(view + ' .sparkstream-plot').layout.shapes.filter(
          (shape) => shape.layer === 'above').length""",
        view,
    )
    return count


def ask(lab: Lab, page: Any, code: str) -> Any:
    """The value of an expression in the kernel, of plain data."""
    lab.run(page, f"import json; open('answer.json', 'w').write(json.dumps({code}))")
    lab.idle(page)
    return json.loads((lab.folder / "answer.json").read_text())


def test_a_time_and_a_node_of_the_time_line_are_selected_everywhere(lab: Lab, page: Any) -> None:
    assert page.locator(".renewed", has_text="everything is selected").count() == 1
    draw_rectangle(page, ".sparkstream-timeline", (0.25, 0.5), (0.7, 0.98))
    wait_for_selection(page, "node-2")
    assert len(set(selections(page))) == 1, "all say the same"
    assert veils(page, ".sparkstream-timeline") == 3, "the time before and after, and the lane of the other node"
    assert veils(page, ".sparkstream-chart") == 2
    assert veils(page, ".sparkstream-aggregation") == 2
    nodes = set(page.locator(".sparkstream-tail tbody tr td:first-child").all_text_contents())
    assert nodes == {"node-2"}
    assert page.locator(".renewed", has_text="The last events behind them").count() == 1
    frames = ask(lab, page, "[app.selection.frame.node.unique().tolist(), int(app.selection.events.timestamp.min())]")
    assert frames[0] == ["node-2"]
    assert 1_717_236_100_000 < frames[1] < 1_717_236_200_000
    lab.picture(page, "selection")
    with lab.dark(page):
        page.wait_for_timeout(1_500)
        lab.picture(page, "selection-dark")
    page.locator(".sparkstream-chart").scroll_into_view_if_needed()
    page.locator(".sparkstream-selection:visible .clear").first.click()
    wait_for_everything(page)
    assert veils(page, ".sparkstream-chart") == 0


def test_a_value_of_a_table_is_selected_everywhere(lab: Lab, page: Any) -> None:
    cell = page.locator(".sparkstream-tail tbody td:nth-child(3)", has_text="<i>a</i>").first
    cell.dblclick()
    wait_for_selection(page, "symbol <i>a</i>")
    assert set(page.locator(".sparkstream-tail tbody td:nth-child(3)").all_text_contents()) == {"<i>a</i>"}
    assert page.locator(".sparkstream-aggregation select.key option:checked").text_content() == "<i>a</i>"
    opacities = page.evaluate(
        "document.querySelector('.sparkstream-chart .sparkstream-plot').data.map((t) => [t.name, t.opacity])"
    )
    assert dict(opacities) == {"&lt;i&gt;a&lt;/i&gt;": 1, "b": 0.2}
    page.locator(".sparkstream-timeline", has_text="only outputs with symbol <i>a</i>").wait_for()
    page.locator(".sparkstream-tail tbody td:nth-child(3)").first.dblclick()  # once more takes it back
    wait_for_everything(page)
    assert page.locator(".sparkstream-aggregation select.key option:checked").text_content() == "all"


def test_a_node_is_selected_by_its_name_in_a_legend(lab: Lab, page: Any) -> None:
    page.locator(".sparkstream-aggregation .legend .traces", has_text="node-1").locator(".legendtoggle").click()
    wait_for_selection(page, "node node-1")
    names = page.evaluate(
        """[...new Set(document.querySelector('.sparkstream-aggregation .sparkstream-plot').data.filter(
          (t) => t.type === 'bar' && t.marker.opacity === 0.2).map((t) => t.name))]"""
    )
    assert names == ["node-2"]
    page.locator(".sparkstream-selection:visible .clear").first.click()
    wait_for_everything(page)


def test_alerts_show_the_events_that_they_were_computed_from(lab: Lab, page: Any) -> None:
    lab.run(page, "_ = app.select(where={'symbol': 'b'})")
    wait_for_selection(page, "symbol b")
    lab.run(page, "_ = app.select()")
    wait_for_everything(page)
    plot = page.locator(".sparkstream-timeline .sparkstream-plot").first
    plot.scroll_into_view_if_needed()
    plot.focus()
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    wait_for_selection(page, "of Rises")
    events = ask(lab, page, "app.selection.events[['timestamp', 'price']].values.tolist()")
    outputs = ask(lab, page, "app.selection.frame[['timestamp', 'low', 'high']].values.tolist()")
    assert events, "the alert was made of some"
    prices = {price for _, price in events}
    assert all(low in prices and high in prices for _, low, high in outputs)
    assert len(events) < 600
    lab.picture(page, "selection-alert")
    page.locator(".sparkstream-selection:visible .clear").first.click()
    wait_for_everything(page)


def test_an_empty_selection_says_so_and_an_impossible_one_is_refused(lab: Lab, page: Any) -> None:
    lab.run(page, "_ = app.select(start='2013-01-01', end='2013-01-02')")
    wait_for_selection(page, "2013-01-01")
    page.locator(".renewed", has_text="Nothing is selected").wait_for()
    assert page.locator(".sparkstream-tail tbody tr").count() == 0
    page.locator(".sparkstream-selection:visible .clear").first.click()
    wait_for_everything(page)
    page.locator(".sparkstream-tail tbody td:nth-child(4)").first.dblclick()
    page.locator(".sparkstream-tail .failed", has_text="low is no text and no whole number").wait_for()
