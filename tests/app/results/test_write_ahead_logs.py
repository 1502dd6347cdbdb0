"""Write-ahead logs that a killed app leaves: a changed byte is told, or changes nothing, and is never shown as data."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from profiles import examples, seed
from sparkstream_nb.app import deploy
from sparkstream_nb.app.stored.verify_folder import verify_folder
from sparkstream_nb.errors import SparkStreamError

APP = """
define stream S (k string, v long);
define aggregation G from S select k, sum(v) as t group by k aggregate every sec ... hour;
@info(name='w') from S#window.length(5) select k, v, sum(v) as t group by k insert into O;
"""
PROGRAM = """
import os, sys
import pandas as pd
from sparkstream_nb.app import deploy

app = deploy(sys.argv[2], name="app", home=sys.argv[1], master="inline")
frame = pd.DataFrame({"k": [f"k{i % 7}" for i in range(3_000)], "v": range(3_000), "at": range(3_000)})
app.feed("S", frame, time="at")
for i in range(2):
    app.send("S", ["z", i], at=5_000 + i)
    app.flush()
os._exit(9)
"""
LOGS = ("store.duckdb.wal", "nodes.sqlite-wal")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an app whose process ended at once, after three micro-batches."""
    home = tmp_path_factory.mktemp("killed") / "app"
    ended = subprocess.run([sys.executable, "-c", PROGRAM, str(home), APP], check=False, timeout=120)
    assert ended.returncode == 9
    return home


def log_of(home: Path, name: str) -> Path:
    (file,) = home.rglob(name)
    assert file.stat().st_size > 1_000
    return file


def results(home: Path) -> list[Any]:
    """The results of an app that goes on with a folder. Raises SparkStreamError if it is refused."""
    app = deploy(APP, name="app", home=home, master="inline")
    try:
        app.send("S", ["z", 7], at=6_000)
        app.flush()
        answer = app.query("from G within 0L, 100000000L per 'sec' select k, t")
        return [app.output("O").frame.values.tolist(), sorted(answer.rows)]
    finally:
        app.stop()
        app.close()


def test_the_logs_are_read(killed: Path, tmp_path: Path) -> None:
    home = tmp_path / "app"
    shutil.copytree(killed, home)
    assert not verify_folder(home).damage
    outputs, answer = results(home)
    assert len(outputs) == 3_003
    assert sum(total for _, total in answer) == sum(range(3_000)) + 8


@pytest.mark.parametrize("name", LOGS)
def test_a_changed_log_is_told_or_changes_nothing(killed: Path, tmp_path: Path, name: str) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(killed, whole)
    right = results(whole)
    draw = random.Random(seed())
    for n in range(examples(24)):
        home = tmp_path / f"copy-{n}"
        shutil.copytree(killed, home)
        file = log_of(home, name)
        data = bytearray(file.read_bytes())
        at = draw.randrange(len(data))
        match draw.choice(["flip", "zeros", "cut", "remove"]):
            case "flip":
                data[at] ^= 1 << draw.randrange(8)
                file.write_bytes(data)
            case "zeros":
                data[at : at + 64] = bytes(len(data[at : at + 64]))
                file.write_bytes(data)
            case "cut":
                os.truncate(file, at)
            case "remove":
                file.unlink()
        damage = verify_folder(home).damage
        refusal = refused(home, right)
        assert damage or not refusal, (refusal, at)
        assert not refusal or str(home) in refusal
        assert not refusal or "back from a copy; fresh=True (--fresh) starts from scratch" in refusal
        assert "Error" not in refusal


def refused(home: Path, right: list[Any]) -> str:
    """The error of an app that goes on with a folder; empty if its results are right."""
    try:
        assert results(home) == right
    except SparkStreamError as error:
        return str(error)
    return ""


def test_a_changed_byte_is_told_by_its_place(killed: Path, tmp_path: Path) -> None:
    home = tmp_path / "app"
    shutil.copytree(killed, home)
    file = log_of(home, "store.duckdb.wal")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    (damage,) = verify_folder(home).damage
    assert re.search(rf"{re.escape(str(file))}\W.* entry at byte position [0-9]+", damage)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("store.duckdb.wal", "its store is gone or empty: [23] micro-batches are not in it"),
        ("store.duckdb", "its store is gone or empty: [23] micro-batches are not in it"),
        ("nodes.sqlite-wal", "its checkpoint is gone, and with it the state of its nodes"),
    ],
)
def test_verify_tells_of_a_log_that_is_gone(killed: Path, tmp_path: Path, name: str, message: str) -> None:
    home = tmp_path / "app"
    shutil.copytree(killed, home)
    for file in home.rglob(f"{name}*"):
        file.unlink()
    assert re.search(message, str(verify_folder(home)))  # the end of the last micro-batch may not have been noted
