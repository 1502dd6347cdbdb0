"""The Python of Spark's workers on this machine."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from sparkstream_nb import siddhi
from sparkstream_nb.errors import SparkUnavailable
from sparkstream_nb.runners.spark import remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = "from S#window.length(2) select sum(v) as total insert into O;"


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A Python without this package, and with what `PYTHONPATH` names."""
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -P "$@"\n')
    python.chmod(0o755)
    return python


@pytest.mark.thorough
def test_a_python_without_the_package_is_refused_and_named(
    spark: SparkSession, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = spark.sparkContext
    frame = spark.createDataFrame([(1000, 1), (2000, 2)], "at long, v int")
    monkeypatch.delattr(context, remote._SENT, raising=False)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(context, "pythonExec", str(bare))
    monkeypatch.setenv("PYSPARK_PYTHON", str(bare))  # chosen
    with pytest.raises(SparkUnavailable, match="which has no sparkstream_nb") as told:
        siddhi(frame, TEXT, name="S", time="at")
    assert f"run {bare}, which" in str(told.value)
    assert f"os.environ['PYSPARK_PYTHON'] = '{sys.executable}'" in str(told.value)
    monkeypatch.setenv("PYTHONPATH", str(remote._PACKAGE.parent))
    remote.ship(spark)
    monkeypatch.delattr(context, remote._SENT)
    monkeypatch.delenv("PYTHONPATH")
    sent = shutil.make_archive(str(bare.parent / "sent"), "zip", remote._PACKAGE.parent, remote._PACKAGE.name)
    monkeypatch.setattr(context, "_python_includes", [sent])
    remote.ship(spark)


def test_a_python_that_the_user_has_not_chosen_is_replaced_by_this_one(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python3` of the path, where an environment is not activated."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setattr(remote, "_sent_files", lambda context: [])
    settings: dict[str, str] = {}
    context = SimpleNamespace(pythonExec=str(bare), getConf=lambda: settings)
    remote._check_python(context)  # type: ignore[arg-type]
    assert context.pythonExec == sys.executable
    context.pythonExec, settings["spark.pyspark.python"] = str(bare), str(bare)
    with pytest.raises(SparkUnavailable, match="which has no sparkstream_nb"):
        remote._check_python(context)  # type: ignore[arg-type]
    assert context.pythonExec == str(bare)
