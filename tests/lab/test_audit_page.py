"""The page of an audit in a real browser: as text, escaped, without the network, light and dark, narrow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb.cluster.audit import FeedFiles, audit
from sparkstream_nb.lab.audit_page import page

from .browser import PICTURES

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

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
    (tmp_path / "orders.siddhi").write_text(APP)
    (tmp_path / "a&b.siddhi").write_text("define stream S (a int);\nfrom S select b insert into O;")
    (tmp_path / "orders.csv").write_text("card,amount\n" + "".join(f"c{i % 3},{i * i % 17}\n" for i in range(40)))
    feeds = FeedFiles([("Orders", str(tmp_path / "orders.csv"))])
    found = audit([str(tmp_path / name) for name in ("orders.siddhi", "a&b.siddhi")], [], feeds, {})
    (tmp_path / "report.html").write_text(page(found))
    return tmp_path / "report.html"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 400)])
def test_the_page(report: Path, chromium: Any, scheme: str, width: int) -> None:
    asked: list[str] = []
    alerts: list[str] = []
    shown = chromium.new_page(viewport={"width": width, "height": 1400}, color_scheme=scheme)
    shown.on("request", lambda r: asked.append(r.url))
    shown.on("dialog", lambda d: (alerts.append(d.message), d.dismiss()))
    shown.goto(report.as_uri())
    rows = shown.locator("tbody tr").all_inner_texts()
    assert len(rows) == 6
    assert "<img src=x onerror=alert(1)>" in rows[2]
    assert "accepted: <script>alert(2)</script>" in rows[3]
    assert shown.locator("li").count() == 4
    assert "2 nodes, round_robin" in shown.locator("li").first.inner_text()
    assert "line 2, column 15" in shown.locator("pre").inner_text()
    ground = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(13, 17, 23)")
    assert shown.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    pictures = Path(os.environ.get(PICTURES, report.parent))
    shown.screenshot(path=pictures / f"audit-{scheme}-{width}.png", full_page=True)
    shown.close()
    assert (asked, alerts) == ([report.as_uri()], [])
