"""An app as a text, and as a script that runs the same by `sparkstream run`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sparkstream_nb import Pair, Retention
from sparkstream_nb.app import App
from sparkstream_nb.app.config.record import DeploymentRecord
from sparkstream_nb.app.config.record_options import options_of
from sparkstream_nb.app.deployment.deployment import milliseconds
from sparkstream_nb.errors import Misuse, SparkStreamError
from sparkstream_nb.options import Options, add_deployment, deployment_of
from sparkstream_nb.request import DeployRequest

TEXT = """
define stream Prices (symbol string, price double);
-- it's "odd" $HOME `ls`
from Prices[price > ${LIMIT}] select symbol, price, \"\"\"${ODD}\"\"\" as odd insert into Alerts;
"""
REQUESTS = [
    {},
    {"nodes": 3, "routing": "hash:symbol"},
    {"nodes": 2, "shard_ids": ["a", "b b"], "alerts": "leader", "mode": "active-active"},
    {"mode": "ha", "faults": "random:3", "seed": 7},
    {"variables": {"A": "x y'z\"$HOME", "PASSWORD": "hunter2"}, "allow_env": ["HOME", "X"], "allow_scripts": True},
    {"allow": ["http=http://127.0.0.1:1", "file=/tmp"], "offline": True, "store": "/tmp/s p.duckdb"},
    {"retention": Retention(recording=None, outputs=5_000, days=7), "limits": "characters=1MB", "max_ahead": None},
    {"start": 1_700_000_000_000, "timezone": "Europe/Berlin", "clock": "wall", "rows_per_micro_batch": 9},
    {"master": "inline", "conf": ["/tmp/a.yaml", "/tmp/b.yaml"]},
]


@pytest.mark.parametrize("arguments", REQUESTS, ids=str)
def test_options_deploy_the_same(arguments: dict[str, Any]) -> None:
    record = DeploymentRecord.of("app", DeployRequest(text=TEXT, **arguments))
    parser = Options(prog="test")
    add_deployment(parser)
    words = [word for pair in options_of(record) for word in pair if word is not None]
    asked = deployment_of(parser.parse(words))
    asked["start"] = None if asked["start"] is None else milliseconds(asked["start"], "--start")
    parsed = DeploymentRecord.of("app", DeployRequest(text=TEXT, **asked))
    assert replace(parsed, at=0, withheld=()) == replace(record, at=0, withheld=())
    assert "hunter2" not in str(words)


@pytest.mark.parametrize("arguments", [{"pair": Pair()}, {"faults": []}], ids=str)
def test_arguments_that_only_python_has(arguments: dict[str, Any]) -> None:
    record = DeploymentRecord.of("app", DeployRequest(text=TEXT, mode="ha", **arguments))
    with pytest.raises(Misuse, match=r"app was deployed with (pair|faults)=\.\.\., which only Python has"):
        options_of(record)


def test_the_script_runs_the_app(run: Callable[..., App], tmp_path: Path) -> None:
    odd = 'a "c" $HOME `d`'
    variables = {"LIMIT": "10.0", "API_TOKEN": "hunter2", "ODD": odd}
    app = run(TEXT, name="Odd app", nodes=2, variables=variables)
    folder = tmp_path / "jobs"
    folder.mkdir()
    script, text = app.export_job(folder / "trades.sh")
    assert (script, text) == (folder / "trades.sh", folder / "trades.siddhi")
    assert text.read_text() == TEXT == app.save(folder / "again.siddhi").read_text()
    assert "hunter2" not in script.read_text()
    pd.DataFrame({"symbol": ["ibm", "wso2"], "price": [5.0, 15.0]}).to_csv(folder / "prices.csv", index=False)

    def call(**environment: str) -> subprocess.CompletedProcess[str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        variables = {**os.environ, "PATH": path, "SPARKSTREAM_HOME": str(tmp_path / "apps"), **environment}
        words = ["sh", str(script), "--feed", "Prices=prices.csv", "--output", "Alerts"]
        return subprocess.run(words, cwd="/", env=variables, capture_output=True, text=True, timeout=300)

    refused = call()
    assert refused.returncode != 0
    assert "API_TOKEN: set the variable API_TOKEN" in refused.stderr
    ended = call(API_TOKEN="x")
    assert ended.returncode == 0, ended.stderr
    assert "wso2" in ended.stdout
    assert odd in ended.stdout
    assert "ibm" not in ended.stdout


def test_files_that_cannot_be_written(run: Callable[..., App], tmp_path: Path) -> None:
    app = run("define stream S (v int); from S select v insert into O;")
    with pytest.raises(SparkStreamError, match=r"nowhere does not exist"):
        app.save(tmp_path / "nowhere" / "a.siddhi")
    with pytest.raises(Misuse, match=r"is the name of an app's text: call the script .*a\.sh"):
        app.export_job(tmp_path / "a.siddhi")
    for path in (None, 5):
        with pytest.raises(Misuse):
            app.save(path)  # type: ignore[arg-type]
