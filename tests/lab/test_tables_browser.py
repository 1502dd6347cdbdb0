"""Tables of results in a real JupyterLab: sorted by a click or a key on a column's name, and filtered by a text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .browser import Lab
from .cells import LOAD

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]

TABLE = ".jp-OutputArea-output table.sparkstream-table"
APP = """
import sparkstream_nb

app = sparkstream_nb.deploy('''
define stream S (k string, v double);
@info(name='all') from S select k, v insert into O;
''', name="Tables", fresh=True, master="inline")
for i, k in enumerate(["b", "<i>a</i>", "c10", "c9", None, "b", "a", "x"]):
    app.send("S", [k, 1000.5 * (i * 3 % 8)], at=1_717_236_000_000 + 1000 * i)
app.flush()
"""
CELLS = [LOAD, APP, 'app.output("O")']


@pytest.fixture(scope="module")
def page(lab: Lab) -> Iterator[Any]:
    with lab.notebook("tables.ipynb", CELLS) as page:
        page.wait_for_selector(f"{TABLE}[data-sorts]", timeout=240_000)
        lab.idle(page)
        yield page


def column(page: Any, number: int) -> list[str]:
    """The texts of a column that are seen."""
    found: list[str] = page.locator(f"{TABLE} tbody tr:not([hidden]) td:nth-child({number})").all_text_contents()
    return found


def test_a_click_sorts(lab: Lab, page: Any) -> None:
    as_it_came = column(page, 4)
    head = page.locator(f"{TABLE} th", has_text="v")
    head.click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert column(page, 4) == sorted(as_it_came, key=lambda t: float(t.replace(",", "")))
    lab.picture(page, "table-sorted")
    head.focus()
    page.keyboard.press("Enter")
    assert column(page, 4) == sorted(as_it_came, key=lambda t: float(t.replace(",", "")), reverse=True)
    head.click()
    assert column(page, 4) == as_it_came
    page.locator(f"{TABLE} th", has_text="k").click()
    assert column(page, 3).index("c9") < column(page, 3).index("c10")


def test_a_text_filters(page: Any) -> None:
    field = page.get_by_role("searchbox", name="show the rows that contain a text")
    field.fill("<I>")
    assert column(page, 3) == ["<i>a</i>"]
    field.fill("")
    assert len(column(page, 3)) == 8
