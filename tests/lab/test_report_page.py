"""The report to send: what is in it, its size, what is not in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sparkstream_nb import app as api
from sparkstream_nb.cli.command_line import main
from sparkstream_nb.errors import Misuse, SparkStreamError
from sparkstream_nb.lab import report_page
from sparkstream_nb.lab.report_page import MOST_BYTES, write_report

TEXT = """
define stream Payments (card string, amount double);
@PartitionById
define aggregation Totals from Payments select card, sum(amount) as total group by card aggregate every sec...hour;
@info(name='spree') from every e1=Payments[amount > 100.0] -> e2=Payments[card == e1.card and amount > e1.amount]
within 10 sec select e1.card as card, e2.amount as amount insert into Sprees;
"""
FRAME = pd.DataFrame({
    "card": np.random.default_rng(1).choice(["c1", "</script><i>x</i>"], 300),
    "amount": np.random.default_rng(2).uniform(50, 200, 300).round(2),
    "at": 1_700_000_000_000 + 700 * np.arange(300),
})  # fmt: skip


@pytest.fixture
def app(tmp_path: Path) -> Iterator[api.App]:
    variables = {"PASSWORD": "hunter2"}
    app = api.deploy(TEXT, name="Fraud <i>", home=tmp_path / "home", master="inline", nodes=3, variables=variables)
    app.feed("Payments", FRAME, time="at")
    yield app
    api.stop_all()


class Page(HTMLParser):
    """The titles of a page's sections, the elements that it has, and the addresses that they load."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text = path.read_text(encoding="utf-8")
        self.titles: list[str] = []
        self.addresses: list[str] = []
        self.elements: set[str] = set()
        self._is_title = False
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self._is_title = tag == "h3"
        self.addresses += [v for n, v in attrs if n in ("src", "href") and v and not v.startswith(("data:", "#"))]

    def handle_data(self, data: str) -> None:
        if self._is_title:
            self.titles.append(data)
            self._is_title = False

    def figures(self) -> list[Any]:
        blocks = re.findall(r'<script type="application/json" id="f\d+">(.*?)</script>', self.text)
        return [json.loads(text) for block in blocks for text in json.loads(block)]


def test_sections_and_pictures(app: api.App, tmp_path: Path) -> None:
    sentences: list[str] = []
    path = write_report([app], tmp_path / "report.html", sentences.append)
    page = Page(path)
    assert [t for t in page.titles if t not in ("deployed with", "text")] == [
        "App", "Topology", "Figures", "Totals, by shard and merged", "Outputs: Sprees", "Divergence",
        "Study: nodes and routings", "Plan", "Errors",
    ]  # fmt: skip
    assert len(sentences) == 2
    assert path.stat().st_size < MOST_BYTES
    assert page.addresses == []
    assert "i" not in page.elements
    assert "hunter2" not in page.text
    assert "PASSWORD=***" in page.text
    bars, timeline, _ = page.figures()
    assert {t["name"] for t in bars["data"] if "name" in t} >= {"node-1", "node-2", "node-3", "merged"}
    lost = int((app.divergence().frame["verdict"] == "lost").sum())
    assert lost > 0
    assert f"lost {lost:,}" in json.dumps(timeline)


def test_a_pair_has_its_failover(app: api.App, tmp_path: Path) -> None:
    text = TEXT.replace("@PartitionById", "")
    pair = api.deploy(text, name="Pair", home=tmp_path / "pair", master="inline", mode="ha", faults="random:3", seed=1)
    pair.feed("Payments", FRAME, time="at")
    page = Page(write_report([app, pair], tmp_path / "report.html"))
    assert page.titles.count("App") == 2
    assert page.titles[-4:] == ["Nodes", "Failover", "Plan", "Errors"]


def test_what_is_not_possible_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, app: api.App) -> None:
    def refuse(self: Any) -> None:
        raise SparkStreamError("the beginning <b>is gone</b>")

    monkeypatch.setattr("sparkstream_nb.app.running.replays.Replays.study", refuse)
    text = write_report([app], tmp_path / "r.html").read_text()
    assert "Not possible: the beginning &lt;b&gt;is gone&lt;/b&gt;" in text


def test_a_large_report_leaves_figures_out(app: api.App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Page(write_report([app], tmp_path / "whole.html"))
    monkeypatch.setattr(report_page, "MOST_BYTES", len(whole.text.encode()) - 1)
    smaller = Page(write_report([app], tmp_path / "smaller.html"))
    assert len(smaller.figures()) == len(whole.figures()) - 1
    monkeypatch.setattr(report_page, "MOST_BYTES", 1_000)
    with pytest.raises(SparkStreamError, match=r"the report has [\d,]+ bytes, and at most 1,000 can be"):
        write_report([app], tmp_path / "none.html")
    assert not (tmp_path / "none.html").exists()


def test_the_magic(shell: Any, app: api.App, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    shell.run_line_magic("siddhi", f"report 'Fraud <i>' '{file}'")
    assert capsys.readouterr().out.endswith(f"{file}: {file.stat().st_size:,} bytes\n")
    for words, message in (
        ("'Fraud <i>'", "the file is missing"), (f"Other {file}", "no app is called 'Other'"),
    ):  # fmt: skip
        with pytest.raises(Misuse, match=message):
            shell.run_line_magic("siddhi", f"report {words}")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fraud.siddhi").write_text(TEXT)
    FRAME.to_csv("p.csv", index=False)
    feed = ["--feed", "Payments=p.csv", "--time", "at"]
    assert main(["report", "fraud.siddhi", "out.html", "--nodes", "2", "--routing", "hash:card", *feed]) == 0
    assert capsys.readouterr().out == f"out.html: {Path('out.html').stat().st_size:,} bytes\n"
    assert "hash:card" in Path("out.html").read_text()
    assert main(["report", "fraud.siddhi", "out.html"]) != 0
