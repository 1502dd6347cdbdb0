"""An app and a streaming query over its outputs, killed at random moments: the sink has each output once."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlparse

import psutil
import pyarrow.parquet as pq
import pytest

from profiles import examples, seed
from tests.processes import ending_with_this

KILLS = examples(3, "STREAM_KILLS")
EVENTS = 4_000


def _end(process: subprocess.Popen[str]) -> None:
    """Kills a program with the JVM and the Python processes that it started."""
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    for member in family:
        member.kill()
    process.wait()


@pytest.mark.rotates
@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_each_output_is_in_the_sink_once(tmp_path: Path) -> None:
    program, draw = Path(__file__).with_name("stream_victim.py"), random.Random(seed())
    kills = 0
    while True:
        process = subprocess.Popen(
            [sys.executable, str(program), str(tmp_path), str(EVENTS)], stdout=subprocess.PIPE,
            stderr=(tmp_path / "log").open("a"), text=True, preexec_fn=ending_with_this(),
        )  # fmt: skip
        assert process.stdout is not None
        if process.stdout.readline() != "began\n":
            pytest.fail((tmp_path / "log").read_text()[-4000:])
        try:
            process.wait(draw.uniform(0.2, 6) if kills < KILLS else 400)
        except subprocess.TimeoutExpired:
            _end(process)
            kills += 1
            continue
        assert process.stdout.read() == "done\n", (tmp_path / "log").read_text()[-4000:]
        break
    values = sorted(pq.read_table(_committed_files(tmp_path / "out")).column("d").to_pylist())
    assert values == [2 * v for v in range(EVENTS)], f"seed {seed()}, {kills} kills"


def _committed_files(folder: Path) -> list[str]:
    """The files that the sink's own log has: others are of micro-batches that were cut off."""
    files: dict[str, None] = {}
    logs = sorted((folder / "_spark_metadata").glob("[0-9]*"), key=lambda p: int(p.name.partition(".")[0]))
    for log in logs:
        if log.suffix == ".crc":
            continue
        lines = log.read_text().splitlines()[1:]
        files |= dict.fromkeys(unquote(urlparse(json.loads(line)["path"]).path) for line in lines)
    return list(files)
