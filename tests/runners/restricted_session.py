"""What a session that refuses much gives and refuses. A program for tests.

restricted_session.py ADDRESS FOLDER HOME [alone] prints it as JSON: each step with its answer, or with the error's type
and text. FOLDER is one that Spark sees too, HOME has the apps' folders, which it does not see. `alone`: as with
`pyspark-client`, which has no core of Spark's and no Py4J.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

from tests.operators.over_master import OPTIONS, ROWS, SCHEMA, TEXT

SETTINGS = {
    "spark.driver.extraJavaOptions": "-Da=b",
    "spark.jars": "a.jar",
    "spark.files": "a.txt",
    "spark.executorEnv.A": "b",
}
APP = """
define stream S (k string, v int);
define table T (k string);
@info(name='p') from every e1=S[v > 5] -> e2=S[k == e1.k and v > 5] select e1.k as k insert into O;
from S select k insert into T;
"""


class ClientAlone(MetaPathFinder):
    """Takes away what `pyspark-client` does not bring along."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname in ("pyspark.core", "py4j"):
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


class Steps:
    """Answers of steps by name; of an error, its type and text."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}

    def do(self, name: str, step: Callable[[], Any]) -> None:
        try:
            self.answers[name] = step()
        except Exception as error:
            self.answers[name] = [type(error).__name__, str(error)]


def refusals(steps: Steps, spark: Any, folder: Path) -> None:
    """What the session itself refuses."""
    steps.do("_jvm", lambda: spark._jvm)
    steps.do("sparkContext", lambda: spark.sparkContext)
    steps.do("rdd", lambda: spark.range(1).rdd)
    for name, value in SETTINGS.items():
        steps.do(name, lambda name=name, value=value: spark.conf.set(name, value))  # type: ignore[misc]
    steps.do("persist", lambda: spark.range(1).persist().count())
    steps.do("file", lambda: spark.addArtifacts(__file__, pyfile=True))
    rate = spark.readStream.format("rate").load().writeStream.format("noop")
    steps.do("endless", lambda: rate.option("checkpointLocation", str(folder / "endless")).start().stop())


def frames(steps: Steps, spark: Any, folder: Path) -> None:
    """`siddhi()` over a batch, and over a stream that is taken in two parts."""
    from sparkstream_nb import siddhi

    def rows(frame: Any) -> list[list[Any]]:
        return sorted([r["card"], r["first"], r["then"], r["_node"]] for r in frame.collect())

    def stream() -> list[list[Any]]:
        for begin, end in ((0, 90), (90, len(ROWS))):
            more = spark.createDataFrame(ROWS[begin:end], SCHEMA).coalesce(1)
            more.write.mode("append").parquet(str(folder / "in"))
            payments = spark.readStream.schema(SCHEMA).parquet(str(folder / "in"))
            writing = siddhi(payments, TEXT, delay="0 seconds", **OPTIONS).writeStream.format("parquet")
            writing = writing.option("path", str(folder / "out")).option("checkpointLocation", str(folder / "state"))
            writing.trigger(availableNow=True).start().awaitTermination()
        return rows(spark.read.parquet(str(folder / "out")))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        empty = spark.readStream.schema(SCHEMA).parquet(str(folder))
        siddhi(empty, TEXT, delay="0 seconds", **OPTIONS)  # warns of many tasks
        spark.conf.set("spark.sql.shuffle.partitions", "2")
        steps.do("batch", lambda: rows(siddhi(spark.createDataFrame(ROWS, SCHEMA), TEXT, **OPTIONS)))
        steps.do("stream", stream)
    steps.answers["warnings"] = [str(w.message) for w in caught if "micro-batch" in str(w.message)]
    plain = "from Payments[amount > 600] select card insert into High;"
    frame = spark.createDataFrame(ROWS, SCHEMA)
    steps.do("filter", lambda: siddhi(frame, plain, name="Payments", time="at").count())
    twice = spark.createDataFrame([(1000, 1, 2)], "at long, v int, V int")
    steps.do("case", lambda: siddhi(twice, "from S select v insert into O;", name="S", time="at"))


def apps(steps: Steps, spark: Any, address: str, folder: Path) -> None:
    """An app on the session's Spark, and one in this process with its feeds, outputs and replays."""
    import sparkstream_nb as ss

    steps.do("unseen folder", lambda: repr(ss.deploy(APP, name="Away")))
    steps.do("on spark", lambda: repr(ss.deploy(APP, name="There", home=str(folder / "home"))))
    home = str(folder / "home2")
    steps.do("on spark by address", lambda: repr(ss.deploy(APP, name="There2", master=address, home=home)))
    app = ss.deploy(APP, name="Here", master="inline", nodes=2)
    frame = spark.createDataFrame([("a", 7 + i, 1000 * i) for i in range(8)], "k string, v int, t long")
    steps.do("feed of a frame", lambda: app.feed("S", frame, time="t"))
    steps.do("feed", lambda: app.feed("S", frame.toPandas(), time="t").events)
    steps.do("outputs", lambda: len(app.output("O").frame))
    steps.do("divergence", lambda: str(app.divergence()))
    steps.do("study", lambda: str(app.study()).splitlines()[0])
    steps.do("moment", lambda: str(app.at(event=3)).splitlines()[0])
    steps.do("sql", lambda: app.sql("select count(*) as n from O").frame["n"].tolist())
    steps.do("table of outputs", lambda: sorted(r["k"] for r in app.table("O").collect()))
    steps.do("table", lambda: app.table("T").count())
    steps.do("stream of outputs", lambda: app.stream("O"))
    frame.write.parquet(str(folder / "rows"))
    stream = spark.readStream.schema("k string, v int, t long").parquet(str(folder / "rows"))
    steps.do("feed of a stream", lambda: app.feed("S", stream, time="t"))
    for name in ss.apps():
        ss.get(name).stop()


def main(address: str, folder: Path, home: Path, alone: bool) -> None:
    if alone:
        sys.meta_path.insert(0, ClientAlone())
    os.environ["SPARKSTREAM_HOME"] = str(home)
    from pyspark.sql import SparkSession

    steps, spark = Steps(), SparkSession.builder.remote(address).create()
    refusals(steps, spark, folder)
    frames(steps, spark, folder)
    apps(steps, spark, address, folder)
    print(json.dumps(steps.answers))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:] == ["alone"])
