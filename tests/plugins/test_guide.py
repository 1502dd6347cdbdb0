"""The package of the guide about extensions: its tests pass, and it runs on Spark and in `siddhi()`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugins.packages import of_guide, put_package

ON_SPARK = """
import pandas as pd
from pyspark.sql import SparkSession
import sparkstream_nb
from sparkstream_nb.runners.spark.shared_session import spark_session

QUERY = "from S#window.acme:since(ok, 3 sec) select acme:initials(name) as i, acme:rms(x) as r insert into Out;"
frame = pd.DataFrame({"name": ["Ada L", "Bob C"] * 5, "x": range(10), "ok": [False] * 10,
                      "at": pd.date_range("2024-01-01", periods=10, freq="s")})
frame["x"] = frame["x"].astype(float)
spark = spark_session("local[2]")
app = sparkstream_nb.deploy("@app:name('A') define stream S (name string, x double, ok bool);" + QUERY, nodes=2,
    home="home")
app.feed("S", frame, time="at")
print(sorted(app.output("Out").frame["i"]))
app.stop()
batch = sparkstream_nb.siddhi(spark.createDataFrame(frame), "define stream S (name string, x double, ok bool);" + QUERY,
    name="S", time="at")
print(sorted(row["i"] for row in batch.collect()))
spark.stop()
"""


@pytest.fixture
def installed(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """The folder with the guide's package, and the environment in which Python finds it."""
    source, tests = of_guide()
    put_package(tmp_path, "acme-siddhi", source)
    (tmp_path / "test_acme_siddhi.py").write_text(tests, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    return tmp_path, {**os.environ, "PYTHONPATH": path}


def test_the_tests_of_the_package_pass(installed: tuple[Path, dict[str, str]]) -> None:
    folder, environment = installed
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_acme_siddhi.py"],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "4 passed" in ended.stdout


@pytest.mark.thorough
@pytest.mark.spark
def test_it_runs_on_spark_and_over_dataframes(installed: tuple[Path, dict[str, str]]) -> None:
    folder, environment = installed
    ended = subprocess.run(
        [sys.executable, "-c", ON_SPARK], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    names = str(sorted(["AL", "BC"] * 5))
    assert ended.stdout.splitlines()[-2:] == [names, names]
