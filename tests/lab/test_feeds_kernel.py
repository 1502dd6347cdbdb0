"""Feeds in a real kernel: Spark dies under an app."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import KernelManager

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.rotates, pytest.mark.timeout(400)]
ROOT = Path(__file__).parents[2]
SECONDS = 180
START = """
%load_ext sparkstream_nb
import numpy as np, pandas as pd
rows = np.arange(5_000_000)
frame = pd.DataFrame({"a": rows % 1000, "at": rows})
"""
DEPLOY = """%%siddhi KernelFeeds --fresh
define stream S (a int);
from S#window.length(1000) select a, sum(a) as total group by a insert into Out;
"""
UNTIL_IT_FEEDS = """
import time
from sparkstream_nb.app import all_feeds
feed = next(iter(all_feeds().values()))
while not feed.progress.done:
    time.sleep(0.05)
"""
Run = Callable[[str], str]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Runs a cell in a kernel, and gives its texts."""
    manager = KernelManager()
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SPARKSTREAM_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    manager.start_kernel(env=env)
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=SECONDS)

    def execute(cell: str) -> str:
        texts: list[str] = []

        def take(message: dict[str, Any]) -> None:
            content = message["content"]
            texts.append(content.get("text") or content.get("data", {}).get("text/plain") or "")
            texts.extend(content.get("traceback", []))

        client.execute_interactive(cell, timeout=SECONDS, output_hook=take)
        return "\n".join(texts)

    yield execute
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_spark_dies_under_an_app_and_a_feed(run: Run) -> None:
    run(START)
    run(DEPLOY)
    run("%siddhi feed KernelFeeds.S frame --time at --background")
    run(UNTIL_IT_FEEDS)
    run("import os; from pyspark import SparkContext")
    run("os.kill(SparkContext._gateway.proc.pid, 9)")
    assert "failed" in run("feed._thread.join(60)\n%siddhi feeds")
    assert "failed" in run("%siddhi list")
    assert "KernelFeeds: failed" in run("%siddhi stats KernelFeeds")
    assert "Spark" in run("feed.wait()")
