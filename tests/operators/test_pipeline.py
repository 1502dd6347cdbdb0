"""`siddhi(...)` in a declarative pipeline of Spark's, run by `spark-pipelines`, which came with Spark 4.1."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sparkstream_nb.runners.spark.java import find_java
from sparkstream_nb.runners.spark.settings import own_spark

SPEC = """
name: sprees
storage: file://{folder}/storage
libraries:
  - glob:
      include: definitions/**
configuration:
  spark.sql.shuffle.partitions: "2"
  spark.sql.streaming.stateStore.providerClass: org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
"""
DEFINITIONS = '''
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

from sparkstream_nb import siddhi

spark = SparkSession.active()
payments = spark.readStream.schema("at long, card string, amount double").json("{folder}/in")
found = siddhi(payments, """
    from every a=Payments[amount > 300] -> b=Payments[card == a.card and amount > a.amount] within 10 min
    select a.card as card, a.amount as first, b.amount as then insert into Sprees;
""", name="Payments", time="at", key="card", nodes=2, delay="0 seconds")


@dp.table
def sprees():
    return found
'''
ROWS = """
{"at": 1000, "card": "a", "amount": 400.0}
{"at": 2000, "card": "b", "amount": 500.0}
{"at": 3000, "card": "a", "amount": 450.0}
"""


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_table_of_a_pipeline(tmp_path: Path) -> None:
    pytest.importorskip("pyspark.pipelines")
    for folder in ("in", "definitions"):
        (tmp_path / folder).mkdir()
    (tmp_path / "in" / "rows.json").write_text(ROWS)
    (tmp_path / "spark-pipeline.yml").write_text(SPEC.format(folder=tmp_path))
    (tmp_path / "definitions" / "sprees.py").write_text(DEFINITIONS.format(folder=tmp_path))
    spark = own_spark()
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(spark),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")])),
    }
    command = [str(spark / "bin" / "spark-class"), "org.apache.spark.deploy.SparkPipelines"]
    done = subprocess.run(
        [*command, str(spark / "pipelines" / "cli.py"), "run"], cwd=tmp_path, env=environment, capture_output=True,
        text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    files = list((tmp_path / "spark-warehouse" / "sprees").glob("*.parquet"))
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    assert [(r["card"], r["first"], r["then"]) for r in rows] == [("a", 400.0, 450.0)]
