"""What failovers cost under many seeds and settings: each run is that of a pair, and the figures add up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from sparkstream_nb.app import App, FailoverStudy, Kill, Pair
from sparkstream_nb.app.pictures.costs_picture import costs_picture
from sparkstream_nb.app.results.failover_study import Wanted, runs_of
from sparkstream_nb.charts.svg_picture import svg
from sparkstream_nb.errors import Misuse
from sparkstream_nb.replay.failover_tasks import FailoverCounts

START = 1_700_000_000_000
APP = """
define stream S (k string, v long);
@info(name='four') from S#window.length(4) select k, sum(v) as total insert into Four;
@info(name='rise') from every e1=S[v % 10 == 0] -> e2=S[v == e1.v + 5] select e2.v as v insert into Rises;
"""
EVENTS = pd.DataFrame({"k": ["a"] * 300, "v": range(300), "at": START + 1000 * np.arange(300)})


def test_runs_are_those_of_every_setting_and_seed() -> None:
    varied, runs = runs_of(Pair(), Wanted(3, "kill", {"persist": [10_000, 60_000], "heartbeat": 1_000}), 300_000)
    assert varied == ["persist", "heartbeat"]
    assert [(dict(r.setting), r.scenario.seed) for r in runs] == [
        ({"persist": p, "heartbeat": 1_000}, s) for p in (10_000, 60_000) for s in range(3)
    ]
    assert {r.scenario.pair.coordination.heartbeat for r in runs} == {1_000}
    moments = [[r.scenario.faults for r in runs[i : i + 3]] for i in (0, 3)]
    assert moments[0] == moments[1]
    assert len({str(m) for m in moments[0]}) == 3


@pytest.mark.parametrize(
    ("seeds", "faults", "figures", "message"),
    [
        (0, "kill", {}, "seeds is at least 1, not 0"),
        ([], "kill", {}, "1 to 100,000 runs, not 0"),
        (50_001, "kill", {"queue": [1, 2]}, "not 100,002"),
        (["a"], "kill", {}, "a seed is a whole number, not 'a'"),
        (1, "kil", {}, "kil"),
        (1, "kill", {"heart_beat": 3}, "no figure 'heart_beat'. Did you mean 'heartbeat'"),
        (1, "kill", {"queue": []}, "queue has no value to try"),
        (1, "kill", {"queue": [0]}, "must be 1 or more"),
        (1, "kill", {"balancer": "none"}, "neither 'failover' nor 'round_robin'"),
    ],
)
def test_what_cannot_be_studied(seeds: Any, faults: str, figures: dict[str, Any], message: str) -> None:
    with pytest.raises(Misuse, match=message) as raised:
        runs_of(Pair(), Wanted(seeds, faults, figures), 1_000)
    assert "\n" not in str(raised.value)


def test_figures_of_settings_and_the_chart() -> None:
    varied, runs = runs_of(Pair(), Wanted(20, "kill", {"persist": [10_000, 60_000]}), 300_000)
    found = [FailoverCounts(1, 30_000 + i, i, 2 * i, i % 3, 0, 5, 100) for i in range(40)]
    study = FailoverStudy("<A>", varied, runs, found)
    assert study.frame.shape == (40, 10)
    first, second = study.settings.to_dict("records")
    assert (first["persist"], first["runs"], first["events_lost_median"]) == (10_000, 20, 9.5)
    assert second["events_lost_p95"] == np.quantile(np.arange(20, 40), 0.95)
    picture = svg(costs_picture(study))
    ElementTree.fromstring(picture)
    assert "nan" not in picture
    assert "<A>" not in picture
    assert picture.count('class="lane"') == 2


def test_a_study_is_the_failovers_of_pairs(run: Callable[..., App], tmp_path: Path) -> None:
    """Of an app that is no pair; each row says what the report of such a pair says, wherever it was fed."""
    app = run(APP, name="Studied")
    app.feed("S", EVENTS, time="at")
    study = app.failover_study(12, persist=[10_000, 60_000], queue=[20, 20_000])
    assert len(study.frame) == 48
    assert study.frame["outputs"].eq(300 + 30).all()
    assert study.frame["takeovers"].isin([0, 1]).all()
    kept = study.frame.query("takeovers == 1 and queue == 20_000")
    assert kept["gap"].between(20_000, 35_000).all()
    by_persist = kept.groupby("persist")["events_twice"].median()
    assert by_persist[10_000] < by_persist[60_000]
    assert app.failover_study([3, 5], feed={"S": EVENTS}, time="at", queue=20).frame.equals(
        study.frame.query("queue == 20 and persist == 60_000 and seed in (3, 5)")
        .drop(columns="persist")
        .reset_index(drop=True)
    )

    chosen = next(r for r, f in zip(study.runs, study.found, strict=True) if f.takeovers and f.lost)
    counted = asdict(study.found[study.runs.index(chosen)])
    (fault,) = chosen.scenario.faults
    pair = run(APP, mode="ha", home=tmp_path / "pair", pair=chosen.scenario.pair, faults=[Kill(fault.at, "node-1")])
    pair.feed("S", EVENTS, time="at")
    report = pair.failover()
    assert (report.lost, report.replayed) == (counted["events_lost"], counted["events_twice"])
    assert [t.gap for t in report.takeovers] == [counted["gap"]]
    sums = report.frame[["lost", "spurious", "duplicated"]].sum()
    assert sums.to_dict() == {n: counted[n] for n in sums.index}
