"""The bench on Spark counts the same outputs as on the engine, and the job it is compared with does the same work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.bench.workloads import main

TRADES = "define stream Trades (symbol string, price double, quantity long, timestamp long); "
WORKLOADS = [
    {"name": "filter", "app": TRADES + "from Trades[price > 100.0] select symbol, price * 1.1 as p insert into Out;"},
    {
        "name": "window",
        "app": TRADES
        + "from Trades#window.length(10) select symbol, avg(price) as ap group by symbol insert into Out;",
    },
    {
        "name": "aggregation",
        "app": TRADES + "define aggregation A from Trades select symbol, sum(quantity) as q group by symbol "
        "aggregate by timestamp every sec...hour;",
    },
]


@pytest.mark.timeout(600)
def test_on_spark(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setattr("tests.bench.spark_bench.FIRST", 1000)
    rng = np.random.default_rng(1)
    at = 1_600_000_000_000 + np.cumsum(rng.integers(0, 3, 5000))
    rows = zip(
        rng.integers(0, 9, 5000), rng.normal(100, 10, 5000).round(4), rng.integers(1, 1000, 5000), at, strict=True
    )
    events, workloads = tmp_path / "events.csv", tmp_path / "workloads.json"
    events.write_text("".join(f"S{s},{p},{q},{t}\n" for s, p, q, t in rows))
    workloads.write_text(json.dumps(WORKLOADS))

    def lines(*arguments: str) -> dict[tuple[str, str], dict[str, Any]]:
        assert main([str(workloads), str(events), *arguments]) == 0
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return {(f["name"], f["on"]): f for f in found}

    ours = lines("--on", "spark", "--batch", "2000")
    engine = lines()
    assert list(ours) == [
        ("filter", "spark"), ("filter", "bare"), ("window", "spark"), ("aggregation", "spark"), ("aggregation", "bare"),
    ]  # fmt: skip
    for name in ("filter", "window"):
        assert ours[name, "spark"]["out"] == engine[name, "engine"]["out"] > 0
    assert ours["window", "spark"]["events"] == 4000
    assert ours["window", "spark"]["state_bytes"] > 0
    assert ours["filter", "bare"]["out"] < ours["filter", "spark"]["out"]  # without the first feed's
    assert ours["aggregation", "bare"]["out"] > 0
