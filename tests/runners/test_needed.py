"""Columns that no query reads are not decoded, and nothing tells the difference: outputs, errors, aggregations, the end
of an input stream and divergence are as with all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sparkstream_nb.app import App
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.plan.nodes import Plan
from sparkstream_nb.runners import app_node as nodes
from sparkstream_nb.runners import stateless
from tests.marks import thorough

Run = Callable[..., App]
APP = """@app:playback
define stream S (id string, k string, v int, x double, note string, t long);
define stream Again (v int);
define aggregation A from S select k, sum(v) as s group by k aggregate every sec, min;
define aggregation B from S select k, max(v) as s group by k aggregate every sec;
@info(name = 'filter') from S[v > 50] select k, v insert into Big;
@info(name = 'window') from S#window.length(3) select k, sum(v) as s insert into Sums;
@info(name = 'pattern') from every e1=S[v > 80] -> e2=S[v < 20] select e1.k as a, e2.v as b insert into Falls;
@info(name = 'join') from S[v == 76]#window.length(2) as a join B as b on a.k == b.k
within 0L, 9999999999999L per 'sec' select a.v, b.s insert into Joined;
"""
ROUND = """
@info(name = 'there') from S[v == 77] select v insert into Again;
@info(name = 'back') from Again select v insert into Again;
"""
ENDLESS = "set aside: streams feed each other without end, or something is nested too deep"


def frame(n: int, *, bad: bool) -> pd.DataFrame:
    r = np.random.default_rng(5)
    times = 1_000 + np.arange(n) * 40
    if bad:
        times[-3:] = 2**60  # no calendar has that year
    values = r.integers(0, 77, n)
    return pd.DataFrame(
        {
            "id": [f"id{i}" for i in range(n)], "k": [f"k{i}" for i in r.integers(0, 5, n)], "v": values.astype("i4"),
            "x": r.random(n), "note": [f"note {i}" for i in r.integers(0, 9, n)], "t": times,
        }
    )  # fmt: skip


def found(app: App) -> dict[str, Any]:
    """All that an app has to tell."""
    asked = {a: app.query(f"from {a} within 0L, 99999999999999L per 'sec' select *").rows for a in ("A", "B")}
    errors = app.errors.frame.to_json(orient="records")
    return {
        "outputs": {o: app.output(o).frame.to_json(orient="records") for o in ("Big", "Sums", "Falls", "Joined")},
        "errors": sorted(json.dumps(e, sort_keys=True) for e in json.loads(errors)),
        "asked": {a: sorted(map(tuple, rows)) for a, rows in asked.items()},
        "tail": app.tail("S", last=5).frame.to_json(orient="records"),
    }


@pytest.mark.parametrize(
    ("kind", "count", "bad", "endless"),
    [
        ("parquet", 1, False, False),
        thorough("parquet", 3, True, False),
        thorough("parquet", 1, True, True),
        ("frame", 3, False, True),
        thorough("frame", 1, True, False),
    ],
)
def test_nothing_tells_the_difference(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, count: int, bad: bool, endless: bool
) -> None:
    n = 2400
    events = frame(n, bad=bad)
    events.to_parquet(tmp_path / "s.parquet", row_group_size=1600)
    one = {"id": "a", "k": "k1", "v": 77, "x": 0.5, "note": "b", "t": 500}
    round_ = pd.DataFrame([one]).astype({"v": "int32"})
    left_out, step = [0], NodeEngine.step

    def counting(self: NodeEngine, batch: Any) -> Any:
        left_out[0] += sum(not r.whole for r in batch.rows.values())
        return step(self, batch)

    monkeypatch.setattr(NodeEngine, "step", counting)

    def told(home: str) -> dict[str, Any]:
        routing = {} if count == 1 else {"routing": "hash:id"}
        app = run(APP + (ROUND if endless else ""), nodes=count, home=tmp_path / home, **routing)
        app.feed("S", round_, time="t")
        app.flush()
        app.feed("S", tmp_path / "s.parquet" if kind == "parquet" else events, time="t")
        app.send("S", ["b", "k2", 77, 1.5, "c", 1], at=150_000)
        app.flush()
        got = found(app)
        if not endless:
            got["divergence"] = app.divergence().counts.to_json(orient="records")
        app.stop()
        return got

    lean = told("lean")
    assert left_out[0] > 0
    assert sum(ENDLESS in e for e in lean["errors"]) == (2 if endless else 0)
    assert any("years 1 to 9999" in e for e in lean["errors"]) == bad

    def all_of(plan: Plan) -> dict[str, range]:
        return {s: range(len(d.source.schema)) for s, d in plan.streams.items()}

    monkeypatch.setattr(nodes, "find_needed", all_of)
    monkeypatch.setattr(stateless, "needed_attributes", all_of)
    nodes._plans.clear()
    left_out[0] = 0
    assert told("whole") == lean
    assert left_out[0] == 0
    nodes._plans.clear()
