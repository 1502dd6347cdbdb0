"""Driver, JVM and Python workers of a streaming query killed at random moments: no row is lost, none comes twice."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from operators.in_process import run_batch
from operators.stream_victim import OPTIONS, TEXT
from profiles import examples, seed
from sparkstream_nb.runners.operator.operator_spec import InputFrame, OperatorRequest, plan_operator
from tests.processes import ending_with_this

KILLS = examples(3, "OPERATOR_KILLS")
FILES, ROWS = 30 + 5 * KILLS, 500


def write_input(folder: Path) -> pa.Table:
    """Files of rows, in the order of their times."""
    draw = np.random.default_rng(seed() % 2**32)
    n = FILES * ROWS
    table = pa.table(
        {
            "at": 1_700_000_000_000 + np.cumsum(draw.integers(0, 40, n)),
            "card": [f"card-{k}" for k in draw.integers(0, 20, n)],
            "amount": np.round(draw.gamma(2, 100, n), 2),
        }
    )
    folder.mkdir()
    for i in range(FILES):
        pq.write_table(table.slice(i * ROWS, ROWS), folder / f"{i:03}.parquet")
        os.utime(folder / f"{i:03}.parquet", (1_700_000_000 + i,) * 2)
    return table


def expected(table: pa.Table) -> Counter[tuple[object, ...]]:
    frame = InputFrame("Payments", {"at": "bigint", "card": "string", "amount": "double"}, "at", "card")
    request = OperatorRequest(outputs=("Found",), nodes=OPTIONS["nodes"], unsafe=True)
    spec = plan_operator("kills", TEXT, [frame], request)
    found = run_batch(spec, {"Payments": [table.to_batches(max_chunksize=1000)]})
    return Counter(tuple(row["Found"].values()) for batch in found for row in batch.to_pylist())


@contextlib.contextmanager
def victim(folder: Path) -> Iterator[subprocess.Popen[str]]:
    with (folder / "victim.log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("stream_victim.py")), str(folder)], stdout=subprocess.PIPE,
            stderr=log, text=True, preexec_fn=ending_with_this(),
        )  # fmt: skip
        try:
            yield process
        finally:
            kill_all(process)


def kill_all(process: subprocess.Popen[str]) -> None:
    """Kills a process with all that it has started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for one in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
    process.wait(30)


def kill_a_worker(process: subprocess.Popen[str], draw: random.Random) -> None:
    """Kills one of the processes that run Python for Spark, if there is one."""
    with contextlib.suppress(psutil.NoSuchProcess):
        children = psutil.Process(process.pid).children(recursive=True)
        workers = [c for c in children if c.name().startswith("python") and not c.children()]
        if workers:
            draw.choice(workers).send_signal(signal.SIGKILL)


@pytest.mark.rotates
@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.timeout(3600)
def test_killed_at_random_moments(tmp_path: Path) -> None:
    draw = random.Random(seed())
    table = write_input(tmp_path / "in")
    killed = 0
    ended = False
    while not ended:
        with victim(tmp_path) as process:
            assert process.stdout is not None
            wait = draw.randint(0, 2) if killed < KILLS else FILES * 3
            for line in process.stdout:
                if line.startswith("end"):
                    ended = True
                    break
                if wait or line.startswith("again"):
                    wait = max(0, wait - 1)
                    continue
                time.sleep(draw.random() * 0.8)  # the moment of the kill is random: nothing waits for it
                killed += 1
                if draw.random() < 0.4:
                    kill_a_worker(process, draw)
                    wait = draw.randint(0, 2) if killed < KILLS else FILES * 3
                else:
                    break
        log = (tmp_path / "victim.log").read_text()
        assert ended or killed <= KILLS + 1, log[-3000:]
    assert killed >= min(KILLS, 3), f"{killed} kills only: the input is too short"
    print(f"{killed} kills")
    found = pq.ParquetDataset(committed(tmp_path / "out")).read()
    rows = Counter(zip(*(found[c].to_pylist() for c in ("card", "what", "one", "other")), strict=True))
    wanted = expected(table)
    assert rows - wanted == Counter()
    assert wanted - rows == Counter()


def committed(folder: Path) -> list[str]:
    """The files of a parquet sink that its log has."""
    logs = {int(p.name.split(".")[0]): p for p in (folder / "_spark_metadata").iterdir() if p.name[0].isdigit()}
    compact = [n for n, p in logs.items() if p.name.endswith(".compact")]
    first = max(compact, default=-1)
    files = []
    for n, path in sorted(logs.items()):
        if n >= first:
            files += [json.loads(line)["path"].removeprefix("file://") for line in path.read_text().splitlines()[1:]]
    return files
