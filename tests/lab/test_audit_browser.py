"""The page of an audit in a real browser: escaped, without the network, in light and dark."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb.cli import main

from .browser import PICTURES

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(120)]

APP = """define stream Orders (card string, amount double);
define table Seen (card string, total double);
define trigger Tick at every 5 sec;
@info(name='<img src=x onerror=alert(1)>')
from Orders#window.length(10) select card, sum(amount) as total group by card insert into Seen;
@info(name='rough', scale.out='accepted: <script>alert(2)</script>')
from Orders#window.length(3) select avg(amount) as mean insert into Means;
from every e1=Orders -> e2=Orders[card == e1.card and amount > e1.amount]
select e1.card as card, e1.amount as first, e2.amount as then insert into Rises;
from Tick select triggered_time as t insert into Ticks;
"""


@pytest.fixture
def report(tmp_path: Path) -> Path:
    app, wrong, feed = (tmp_path / name for name in ("orders.siddhi", "a&b.siddhi", "orders.csv"))
    app.write_text(APP)
    wrong.write_text("define stream S (a int);\nfrom S select b insert into O;")
    feed.write_text("card,amount\n" + "".join(f"c{i % 3},{i * i % 17}\n" for i in range(40)))
    written = tmp_path / "report.html"
    assert main(["audit", str(app), str(wrong), "--feed", f"Orders={feed}", "--html", str(written)]) == 2
    return written


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page(report: Path, chromium: Any, scheme: str) -> None:
    asked: list[str] = []
    alerts: list[str] = []
    shown = chromium.new_page(viewport={"width": 1280, "height": 1000}, color_scheme=scheme)
    shown.on("request", lambda r: asked.append(r.url))
    shown.on("dialog", lambda d: (alerts.append(d.message), d.dismiss()))
    shown.goto(report.as_uri())
    rows = shown.locator("tbody tr").all_inner_texts()
    assert len(rows) == 6
    assert "<img src=x onerror=alert(1)>" in rows[2]
    assert "accepted: <script>alert(2)</script>" in rows[3]
    said = shown.locator("body").inner_text()
    assert "measured: 2 nodes, round_robin: 107 differ" in said
    assert "line 2, column 15" in said
    assert shown.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    shown.screenshot(path=Path(os.environ.get(PICTURES, report.parent)) / f"audit-{scheme}.png", full_page=True)
    shown.close()
    assert (asked, alerts) == ([report.as_uri()], [])
