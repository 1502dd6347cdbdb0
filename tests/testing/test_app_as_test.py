"""Apps as test files: of any app, the file holds on the same events, and fails where the app is another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.compose import AREAS, Composer
from profiles import examples
from sparkstream_nb.app import App, deploy, stop_all
from sparkstream_nb.errors import Misuse, SparkStreamError
from sparkstream_nb.plan.output_labels import output_streams
from sparkstream_nb.testing.app_as_test import export_test
from sparkstream_nb.testing.reporting import run_paths

TEXT = """
define stream Payments (card string, amount double, at long, o object);
define stream Clock (node int);
define table Last (card string, amount double);
@info(name='spree')
from every e1=Payments[amount > 100.0] -> e2=Payments[card == e1.card and amount > e1.amount] within 10 sec
select e1.card as card, e2.amount as amount insert into Sprees;

from Payments#window.timeBatch(5 sec) select card, sum(amount) as total group by card insert into Totals;
from Clock select node insert into table;
from Payments select card, amount update or insert into Last set Last.amount = amount on Last.card == card;
"""
Runner = Callable[..., App]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Runner]:
    def start(text: str, **arguments: Any) -> App:
        return deploy(text, **{"name": "app", "home": tmp_path / "home", "master": "inline", **arguments})

    yield start
    stop_all()


def work(app: App) -> None:
    cards = ["c 1", "send it", "a|b", 'say "x"', None, "ä\x00", "null", "", "# no"]
    for i in range(40):
        app.send("Payments", [cards[i * 7 % len(cards)], 90.0 + i, i, None], at=1_700_000_000_000 + i * 700)
    app.send("Clock", [[1], [2]], at=1_700_000_030_000)
    app.tick(1_700_000_060_000)
    app.send("Payments", ["late", float("nan"), 1, {"k": [1, "x"]}], at=1_699_999_999_999)


@pytest.mark.parametrize(
    "deployment",
    [
        {}, {"nodes": 3}, {"nodes": 2, "routing": "hash:card"}, {"nodes": 3, "routing": "random:7", "alerts": "off"},
        {"mode": "ha"}, {"start": "2023-11-14T22:00:00", "timezone": "Europe/Berlin"},
    ],
    ids=str,
)  # fmt: skip
def test_the_test_of_an_app_passes(run: Runner, tmp_path: Path, deployment: dict[str, Any]) -> None:
    app = run(TEXT, **deployment)
    work(app)
    exported = export_test(app, tmp_path / "app.siddhitest")
    assert [r.has_passed for r in exported.report.results] == [True], exported.report.lines()
    text = exported.path.read_text()
    is_without_alerts = "alerts" in deployment  # then the queries that depend on the node do not run
    assert text.count("\nexpect ") == (2 if is_without_alerts else 4)
    assert ("expect Sprees" in text) != is_without_alerts
    assert '"say \\"x\\""' in text
    if is_without_alerts:
        return
    wrong = tmp_path / "wrong.siddhitest"
    wrong.write_text(text.replace("amount > e1.amount", "amount < e1.amount"))
    assert not run_paths([wrong]).results[0].has_passed


def test_bad_requests(run: Runner, tmp_path: Path) -> None:
    silent = run("define stream S (v int); define aggregation A from S select sum(v) as s aggregate every sec;",
                 name="silent", home=tmp_path / "silent")  # fmt: skip
    silent.send("S", [1], at=1)
    with pytest.raises(Misuse, match="silent writes to no stream and no table: a test of it would expect nothing"):
        export_test(silent, tmp_path / "a.siddhitest")
    app = run("define stream S (v int); from S select v insert into O;")
    with pytest.raises(Misuse, match="app took no event yet"):
        export_test(app, tmp_path / "a.siddhitest")
    app.send("S", [[1], [2]], at=1)
    app.send("S", [3], at=2)
    with pytest.raises(Misuse, match=r"app took 2 steps, and a test has at most 1: ask for a larger limit"):
        export_test(app, tmp_path / "a.siddhitest", limit=1)
    with pytest.raises(Misuse, match=r"a test file ends in \.siddhitest: call it .*a\.siddhitest"):
        export_test(app, tmp_path / "a.txt")
    with pytest.raises(SparkStreamError, match=r"the folder .*nowhere does not exist"):
        export_test(app, tmp_path / "nowhere" / "a.siddhitest")
    for limit in (0, -1, True, "5"):
        with pytest.raises(Misuse):
            export_test(app, tmp_path / "a.siddhitest", limit=limit)  # type: ignore[arg-type]
    assert not list(tmp_path.glob("*.siddhitest"))


@settings(max_examples=examples(40, "SPARKSTREAM_EXAMPLES"), deadline=None)
@given(random=st.randoms(use_true_random=False), area=st.sampled_from(sorted(AREAS)))
def test_composed_apps(random: Random, area: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    composer = Composer(random)
    AREAS[area](composer)
    case, folder = composer.case("composed", 15), tmp_path_factory.mktemp("composed")
    steps = [s for s in case["feed"] if isinstance(s, list) and len(s) == 3]
    try:
        app = deploy(case["app"], name="app", home=folder / "home", master="inline", nodes=random.choice([1, 2]),
                     allow_scripts=True, start=case.get("start"))  # fmt: skip
    except SparkStreamError:
        return
    try:
        for stream, at, values in steps:
            app.send(stream, values, at=at)
        app.flush()
        if steps and app.errors.frame.empty and (app.plan.tables or output_streams(app.plan)):
            exported = export_test(app, folder / "app.siddhitest")
            assert exported.report.exit_code == 0, exported.report.lines()
    finally:
        app.runtime.close()
