"""Processes that end, by themselves or by what they work on: the app goes on, and only what ends them is set aside."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pytest
from pyspark.errors.exceptions.base import PySparkException

from sparkstream_nb.app import App
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.runners.spark import runner as stream
from tests.profiles import one_of

ROOT = Path(__file__).parents[2]
Run = Callable[..., App]
APP = "define stream S (k string, v int); from S#window.length(2) select k, sum(v) as s insert into O;"
TOO_SLOW = "Python worker failed to connect back."
STATELESS = "define stream S (k string, v int); from S select k, v as s insert into O;"

# Read by every Python process of the test's program: a worker ends where an event has the value -666.
POISON = """
import os, signal
from sparkstream_nb.engine.node import NodeEngine

step = NodeEngine.step

def poisoned(self, batch):
    for rows in batch.rows.values():
        for column in rows.columns:
            if -666 in (column if isinstance(column, list) else column.to_pylist()):
                os.kill(os.getpid(), signal.SIGKILL)
    return step(self, batch)

NodeEngine.step = poisoned
"""
PROGRAM = """
import json, sys
from pathlib import Path
import pandas as pd
from sparkstream_nb.app import deploy

app = deploy(sys.argv[2], home=Path(sys.argv[1]), name="app", nodes=int(sys.argv[3]))
app.send("S", ["a", 1], at=1)
app.flush()
values = [*range(20_000), -666, *range(1000, 2000)]
app.feed("S", pd.DataFrame({"k": "b", "v": values, "at": range(10, 10 + len(values))}), time="at")
app.send("S", ["c", -666], at=50_000)
app.send("S", ["d", 5], at=60_000)
app.flush()
errors = app.errors.frame
out = app.output("O").frame
print(json.dumps({
    "rows": len(out), "last": out.values.tolist()[-1],
    "errors": errors[["stream", "timestamp", "values", "reason"]].values.tolist(),
    "state": app.state, "logs": app.logs,
}))
app.stop()
"""


@pytest.mark.rotates
@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("app", "nodes"), one_of([(APP, 2), (STATELESS, 1)]))
def test_an_event_that_ends_its_process_is_set_aside(tmp_path: Path, app: str, nodes: int) -> None:
    (tmp_path / "patch").mkdir()
    (tmp_path / "patch" / "sitecustomize.py").write_text(POISON)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "home"), app, str(nodes)],
        env={**os.environ, "PYTHONPATH": f"{tmp_path / 'patch'}:{ROOT}"},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["state"] == "running"
    assert found["rows"] == 1 + 21_000 + 1
    assert [e[:3] for e in found["errors"]] == [["S", 20_010, ["b", -666]], ["S", 50_000, ["c", -666]]]
    assert {e[3] for e in found["errors"]} == {"set aside: the process that took it ended: out of memory, or a fault"}
    assert sum("was set aside" in line for line in found["logs"]) == 2
    assert any("ended and was started again" in line for line in found["logs"])


FLOOD = """
import json, sys
from pathlib import Path
from sparkstream_nb.app import deploy

app = deploy(
    "define stream S (k string, v int); @info(name = 'none') from every not S[v > 100] for 1 sec select 1 as x "
    "insert into None; @info(name = 'w') from S#window.length(2) select k, sum(v) as s insert into O;",
    home=Path(sys.argv[1]), name="app",
)
for at in (1_000, 1_700_000_000_000, 3_000):
    app.send("S", ["a", 1], at=at)
app.flush()
print(json.dumps({"sums": app.output("O").frame["s"].tolist(), "errors": app.errors.frame["reason"].tolist()}))
app.stop()
"""


@pytest.mark.rotates
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_an_event_that_asks_for_too_much_memory_is_set_aside(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FLOOD, str(tmp_path / "home")],
        env={**os.environ, "PYTHONPATH": str(ROOT), "SPARKSTREAM_WORKER_MEMORY": "1GB"},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["sums"] == [1, 2]
    assert len(found["errors"]) == 1
    assert found["errors"][0].startswith("set aside: ")


def workers() -> list[psutil.Process]:
    """The Python processes of Spark, as forked."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # it ended just now
            if "sparkstream_nb.runners.spark.forks" in " ".join(process.cmdline()) and not process.children():
                found.append(process)
    return found


def kill_workers() -> None:
    for process in workers():
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)


@pytest.mark.timeout(120)
def test_workers_that_are_killed_are_replaced(run: Run) -> None:
    app = run(APP, nodes=2)
    app.send("S", ["a", 1], at=1)
    app.flush()
    for i in range(2):
        app.send("S", ["a", 2 + i], at=2 + i)
        kill_workers()
        app.flush()
    assert len(app.output("O")) == 3
    assert app.state == "running"
    app.stop()
    assert app.state == "stopped"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("slow", [False, True])
def test_what_spark_refuses_once_it_is_asked_again(
    run: Run, spark: Any, monkeypatch: pytest.MonkeyPatch, slow: bool
) -> None:
    """A process that Spark had kept was killed, or a Connect server's was too slow."""
    app = run(APP)
    app.stop()
    carried, asked = stream.start_frame, list[int]()

    def carried_at_last(*arguments: Any) -> Any:
        asked.append(1)
        if len(asked) < 3:
            if slow:
                raise PySparkException(TOO_SLOW)
            spark._jvm.java.io.FileInputStream("/nowhere")  # Spark's own is "Stream closed"
        return carried(*arguments)

    monkeypatch.setattr(stream, "start_frame", carried_at_last)
    app.send("S", ["a", 1], at=1)
    app.flush()
    assert len(asked) == 3
    assert len(app.output("O")) == 1


@pytest.mark.timeout(120)
def test_an_app_that_nobody_waits_for_goes_on(run: Run) -> None:
    app = run(APP)
    app.send("S", ["a", 1], at=1)
    app.flush()
    kill_workers()
    app.runtime.inbox.append([app.runtime.inbox.batch(_batch(), "round_robin")])
    end = time.monotonic() + 60
    while app.stats().waiting and time.monotonic() < end:
        time.sleep(0.1)
    assert app.stats().waiting == 0


def _batch() -> InputBatch:
    at = np.array([5], np.int64)
    return InputBatch(at, {"S": StreamRows(np.zeros(1, np.int64), at, [pa.array(["b"]), pa.array([2], pa.int32())])})


def test_a_log_that_spark_wrote_half_does_not_keep_an_app_from_starting(run: Callable[..., App], spark: Any) -> None:
    """Spark refuses to plan its first micro-batch where its log of offsets has any file."""
    app = run("define stream S (v int); from S select v insert into O;")
    app.stop()
    app.runtime.stream.wait_for_end()
    (checkpoint,) = app.home.glob("life-*/checkpoint")
    for folder in checkpoint.iterdir():  # a slow machine may have carried out an empty micro-batch by then
        if folder.is_dir():
            shutil.rmtree(folder)
    offsets = checkpoint / "offsets"
    offsets.mkdir()
    left = [offsets / (".0.1485ca4c-59dc-4773-b542-b134fe6971df.tmp" + end) for end in ("", ".crc")]
    for file in left:
        file.touch()
    app.send("S", [7])
    app.flush()
    assert app.output("O").frame["v"].tolist() == [7]
    assert not any(file.exists() for file in left)
