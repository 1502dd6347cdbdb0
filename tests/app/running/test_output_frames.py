"""Outputs of apps as frames of Spark's: `App.stream` and `App.table`."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sparkstream_nb.app import App, deploy, stop_all
from sparkstream_nb.errors import Misuse, SparkStreamError
from sparkstream_nb.outputs import merging
from sparkstream_nb.outputs.committed_outputs import BatchRange, CommittedOutputs
from sparkstream_nb.outputs.output_files import OutputFiles
from sparkstream_nb.runners.choice import INLINE
from sparkstream_nb.runners.spark.versions import TOLD_START
from tests.masters import masters

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

Inline = Callable[..., App]
APP = "define stream S (k string, v int); @info(name='doubled') from S select k, v * 2 as d insert into O;"
KEPT = "@info(name='kept') from S#window.length(3) select sum(v) as total insert into Kept;"
MANY = """
    define stream S (k string, v int);
    define stream Unread (k string);
    define table T (k string, v int, x double);
    define window W (v int) length(2) output all events;
    define aggregation A from S select k, sum(v) as total group by k aggregate every sec;
    from S[v > 0] select k, v, convert(v, 'long') as l, convert(v, 'float') as f, convert(v, 'double') as x, v > 1 as b,
      createSet(v) as o insert into Every;
    from S select v insert into W;
    from S select k, v, convert(v, 'double') as x insert into T;
    from S select v as a, v as A insert into TwoCases;
    from S select v as _node insert into Taken;
"""


@pytest.fixture
def inline(tmp_path: Path) -> Iterator[Inline]:
    """`deploy` in this process, into one folder."""

    def start(text: str = APP, **arguments: Any) -> App:
        return deploy(text, **{"name": "app", "home": tmp_path / "home", "master": INLINE, **arguments})

    yield start
    stop_all()


def send(app: App, *values: int) -> None:
    """Sends events, each in a micro-batch of its own."""
    for v in values:
        app.send("S", ["k", v], at=1000 * v)
        app.flush()


class Sink:
    """A sink of files with a checkpoint, to which queries are started one after the other."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self.session, self.folder = session, folder

    def start(self, frame: DataFrame, **trigger: Any) -> StreamingQuery:
        writer = frame.writeStream.format("json").option("path", str(self.folder / "out"))
        return writer.option("checkpointLocation", str(self.folder / "checkpoint")).trigger(**trigger).start()

    def run(self, frame: DataFrame) -> None:
        """Runs a query over all that is there."""
        self.start(frame, availableNow=True).awaitTermination()

    def values(self, column: str = "d") -> list[int]:
        return sorted(row[column] for row in self.session.read.json(str(self.folder / "out")).collect())

    def offsets(self) -> int:
        """The number of planned micro-batches."""
        return sum(path.name.isdecimal() for path in (self.folder / "checkpoint" / "offsets").iterdir())


@pytest.fixture
def sink(spark: SparkSession, tmp_path: Path) -> Sink:
    return Sink(spark, tmp_path / "sink")


# --------------------------------------------------------------------------------------------------------- on Spark


@pytest.mark.contract
def test_a_stream_has_each_output_once(inline: Inline, sink: Sink) -> None:
    app = inline()
    send(app, 1, 2)
    frame = app.stream("O")
    assert frame.isStreaming
    assert frame.schema.simpleString() == "struct<k:string,d:int,_timestamp:timestamp,_node:int>"
    sink.run(frame)
    assert sink.values() == [2, 4]
    planned = sink.offsets()
    sink.run(app.stream("O", start="now"))  # the checkpoint says where it continues
    assert sink.values() == [2, 4]
    if TOLD_START.in_(sink.session.version):  # before, there is a micro-batch of nothing
        assert sink.offsets() == planned
    send(app, 3)
    app.stop()
    app.close()
    app = inline()
    send(app, 4, 5)
    sink.run(app.stream("O"))
    assert sink.values() == [2, 4, 6, 8, 10]


@pytest.mark.contract
def test_a_limit_divides_what_is_there(inline: Inline, sink: Sink) -> None:
    app = inline()
    if not TOLD_START.in_(sink.session.version):
        with pytest.raises(Misuse, match=r"max_rows needs Spark 4\.2 or later"):
            app.stream("O", max_rows=2)
        return
    send(app, *range(1, 6))
    app.send("S", [["k", v] for v in range(6, 11)], at=6000)
    app.flush()
    query = sink.start(app.stream("O", max_rows=2), availableNow=True)
    query.awaitTermination()
    assert [p.numInputRows for p in query.recentProgress if p.numInputRows] == [2, 2, 1, 5], "five of one micro-batch"
    assert sink.values() == [2 * v for v in range(1, 11)]
    send(app, 11, 12, 13)
    sink.run(app.stream("O", max_rows=2))
    assert sink.values() == [2 * v for v in range(1, 14)]
    sink.run(app.stream("O"))  # nothing is left
    assert sink.values() == [2 * v for v in range(1, 14)]


@pytest.mark.contract
def test_a_table_has_what_is_committed_at_the_call(inline: Inline, spark: SparkSession) -> None:
    app = inline(MANY, nodes=2, mode="active-active", routing="round_robin")
    assert app.table("Every").collect() == []
    app.send("S", ["a", 1], at=1500)
    app.send("S", ["b", 2], at=2500)
    app.send("S", [None, 3], at=3500)
    frame = app.table("Every")  # waits for them
    app.send("S", ["d", 4], at=4500)
    names = [("k", "string"), ("v", "int"), ("l", "bigint"), ("f", "float"), ("x", "double"), ("b", "boolean")]
    assert frame.dtypes == [*names, ("o", "string"), ("_timestamp", "timestamp"), ("_node", "int")]
    rows = [(*r[:-2], r._timestamp.timestamp(), r._node) for r in sorted(frame.collect(), key=lambda r: r.v)]
    assert rows == [
        ("a", 1, 1, 1.0, 1.0, False, "[1]", 1.5, 1), ("b", 2, 2, 2.0, 2.0, True, "[2]", 2.5, 2),
        (None, 3, 3, 3.0, 3.0, True, "[3]", 3.5, 1),
    ]  # fmt: skip
    assert app.table("Every", session=spark).count() == 4
    held = app.table("T")
    assert held.dtypes == [("k", "string"), ("v", "int"), ("x", "double")]
    assert sorted(map(tuple, held.collect()), key=lambda r: r[1])[2:] == [(None, 3, 3.0), ("d", 4, 4.0)]
    assert sorted(r.v for r in app.table("W").collect()) == [1, 2, 3, 4]  # two of each node


@pytest.mark.thorough
def test_from_now(inline: Inline, sink: Sink) -> None:
    app = inline()
    send(app, 1, 2)
    frame = app.stream("O", start="now")
    send(app, 3)
    sink.run(frame)
    assert sink.values() == [6]
    send(app, 4)
    sink.run(app.stream("O", start="now"))
    assert sink.values() == [6, 8]


@pytest.mark.thorough
def test_a_running_query_follows_while_files_are_merged(
    inline: Inline, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "TOGETHER", 4)
    app = inline(nodes=3, mode="active-active", routing="round_robin")
    query = sink.start(app.stream("O"), processingTime="0 seconds")
    send(app, *range(50))
    query.processAllAvailable()
    app = app.scale(2)
    send(app, *range(50, 60))
    query.processAllAvailable()
    query.stop()
    assert sink.values() == [2 * v for v in range(60)]
    assert sorted(r.d for r in app.table("O").collect()) == sink.values()


@pytest.mark.thorough
def test_an_app_on_spark(run: Inline, sink: Sink) -> None:
    app = run(APP)
    send(app, 1)
    query = sink.start(app.stream("O"), processingTime="0 seconds")
    send(app, 2)
    query.processAllAvailable()
    query.stop()
    assert sink.values() == [2, 4]
    assert app.table("O").count() == 2


@pytest.mark.thorough
def test_an_app_that_began_again(inline: Inline, sink: Sink) -> None:
    app = inline()
    send(app, 1)
    former = app.stream("O")
    table = app.table("O")
    sink.run(former)
    app = inline(fresh=True)
    send(app, 2)
    with pytest.raises(Exception, match=r"app\.O: the app was deployed again from the beginning.* in the trash"):
        table.collect()
    with pytest.raises(Exception, match=r"app\.O: the app was deployed again from the beginning"):
        sink.run(former)
    with pytest.raises(Exception, match=r"app\.O: the checkpoint of this query is of an earlier run .* new checkpoint"):
        sink.run(app.stream("O"))
    assert sink.values() == [2]


@pytest.mark.thorough
def test_an_app_whose_stream_has_other_attributes(inline: Inline, sink: Sink) -> None:
    app = inline(APP + KEPT)
    send(app, 1)
    former = app.stream("O")
    sink.run(former)
    send(app, 2)
    kept = Sink(sink.session, sink.folder / "kept")
    kept.run(app.stream("Kept"))
    app = inline(APP.replace("v * 2 as d", "v * 2 as d, v") + KEPT)
    send(app, 3)
    kept.run(app.stream("Kept"))
    assert kept.values("total") == [1, 3, 6]
    assert sorted(r.v for r in app.table("O").collect()) == [3]
    with pytest.raises(Exception, match="its attributes changed since the query was made"):
        former.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination()
    with pytest.raises(Exception, match=r"outputs of micro-batches 1 to 1, .* have other attributes than now"):
        sink.run(app.stream("O"))


@pytest.mark.thorough
def test_outputs_that_are_no_longer_kept(inline: Inline, sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "MANY", 1)
    app = inline(retention="outputs=4KB")
    send(app, 1)
    old = app.table("O")
    sink.run(app.stream("O"))
    send(app, *range(2, 30))
    app.stop()  # files are dropped after a commit
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        frame = app.stream("O")
        table = app.table("O")
    gone = app.output("O").dropped
    assert [str(w.message).split(" (")[0] for w in said] == [f"{gone} outputs of app.O are no longer kept"] * 2
    assert all(w.filename == __file__ for w in said)
    kept = [2 * v for v in range(1 + gone, 30)]
    assert sorted(r.d for r in table.collect()) == kept
    other = Sink(sink.session, sink.folder / "other")
    other.run(frame)
    assert other.values() == kept
    with pytest.raises(Exception, match=rf"app.O: the outputs of micro-batches 1 to {gone - 1}, .* no longer kept"):
        sink.run(frame)
    with pytest.raises(Exception, match=r"app.O: the outputs .* no longer kept.* larger retention"):
        old.collect()


@pytest.mark.thorough
def test_an_app_with_an_address_between_the_machines(run: Inline, spark: SparkSession, tmp_path: Path) -> None:
    app = run(APP, shared=f"file:{tmp_path / 'shared'}")
    send(app, 1, 2)
    with pytest.raises(Misuse, match=r"app is deployed with shared=.* app.table\('O'\) reads them here"):
        app.stream("O")
    assert sorted(r.d for r in app.table("O").collect()) == [2, 4]


@pytest.mark.rotates
@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", ["standalone", "connect"])
def test_same_everywhere(kind: str, tmp_path: Path) -> None:
    with masters(kind, tmp_path) as where:
        program = Path(__file__).parents[2] / "apps" / "outputs_over_master.py"
        command = [sys.executable, str(program), where.address(), str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"table": [2, 4, 6], "stream": [2, 4, 6, 8, 10], "held": [1, 2, 3, 4, 5]}


# --------------------------------------------------------------------------------------------------- without Spark


def test_names_that_have_no_outputs(inline: Inline) -> None:
    app = inline(MANY)
    known = "Every, Taken, TwoCases"
    for wrong, said in {
        "S": f"no query of app writes to 'S', so it has no outputs. Known: {known}",
        "Unread": f"no query of app writes to 'Unread', so it has no outputs. Known: {known}",
        "Evry": "app has no stream 'Evry'. Did you mean 'Every'?",
        "Alerts": f"app has no stream 'Alerts'. Known: {known}",
        "A": "'A' of app is an aggregation. app.aggregation('A', per='hours') gives its buckets as a frame of pandas, "
        "which spark.createDataFrame takes",
    }.items():
        for ask in (app.stream, app.table):
            with pytest.raises(Misuse) as error:
                ask(wrong)
            assert str(error.value) == said
    with pytest.raises(Misuse, match=r"^'T' of app is no stream: app.table\('T'\) gives its rows$"):
        app.stream("T")
    with pytest.raises(Misuse, match=r"^start is 'beginning' or 'now', not 'end'$"):
        app.stream("Every", start="end")  # type: ignore[arg-type]
    for ask in (app.stream, app.table):
        with pytest.raises(Misuse, match=r"^session is a session of Spark's, not 'local\[2\]'$"):
            ask("Every", session="local[2]")  # type: ignore[arg-type]
    app.stop()
    app.close()
    for ask in (app.stream, app.table):
        with pytest.raises(Misuse, match=r"^this app 'app' is closed"):
            ask("Every")


@pytest.mark.thorough
def test_attributes_that_are_no_columns(inline: Inline, spark: SparkSession) -> None:
    app = inline(MANY)
    with pytest.raises(Misuse, match=r"app.TwoCases: 'a' and 'A' are one column to Spark. Rename"):
        app.stream("TwoCases")
    with pytest.raises(Misuse, match=r"app.Taken: '_node' and '_node' are one column to Spark. Rename"):
        app.table("Taken")


def test_a_query_that_was_ended_in_its_first_micro_batch(inline: Inline) -> None:
    from sparkstream_nb.runners.spark.output_source import OutputFrameSpec, OutputStreamReader, OutputTask

    app = inline()
    runtime = app.runtime

    def reader(after: int | None) -> OutputStreamReader:
        spec = OutputFrameSpec(
            runtime.outputs.folder, runtime.app_run.run, "O", "app.O", runtime.schemas["O"], "", 0, after
        )  # fmt: skip
        return OutputStreamReader(OutputFrameSpec.of_options(spec.to_options()))

    send(app, 1, 2)
    first = reader(0)
    start = first.initialOffset()
    end = first.latestOffset(start)
    send(app, 3, 4)
    again = reader(3)  # from now, later
    (task,) = again.partitions(again.initialOffset(), end)
    assert isinstance(task, OutputTask)
    assert task.range == BatchRange(0, 1)
    later = again.latestOffset(end)
    assert later == {"run": runtime.app_run.run, "batch": 3, "begin": 0}
    assert again.latestOffset(later) == later
    (task,) = again.partitions(end, later)
    assert [row["d"] for batch in again.read(task) for row in batch.to_pylist()] == [6, 8]
    assert again.partitions(later, later) == []
    (task,) = reader(None).partitions(reader(None).initialOffset(), reader(None).latestOffset())
    assert isinstance(task, OutputTask)
    assert task.range == BatchRange(-1, 3)


def values_of(outputs: CommittedOutputs, wanted: BatchRange) -> list[int]:
    return [v for part in outputs.divide(wanted) for table in outputs.read(part) for v in table["d"].to_pylist()]


def test_files_that_are_merged_and_divided_while_they_are_read(inline: Inline, monkeypatch: pytest.MonkeyPatch) -> None:
    from sparkstream_nb.outputs import committed_outputs

    monkeypatch.setattr(merging, "TOGETHER", 4)
    monkeypatch.setattr(committed_outputs, "_RANGE_BYTES", 3_000)
    app = inline(nodes=2, mode="active-active", routing="round_robin")
    outputs = CommittedOutputs(app.runtime.outputs.folder, "O", "app.O")
    ended: list[int] = []
    following = app.on_commit(ended.append)
    found: list[int] = []
    at = -1
    for v in range(300):
        app.send("S", ["k", v], at=v)
        if v % 7 == 0:
            last = outputs.last_committed()
            found += values_of(outputs, BatchRange(at, last))
            at = last
    app.flush()
    following()
    found += values_of(outputs, BatchRange(at, outputs.last_committed()))
    assert found == [2 * v for v in range(300)]
    whole = BatchRange(-1, outputs.last_committed())
    assert values_of(outputs, whole) == found
    assert len(outputs.divide(whole)) > 1
    app.send("S", [["k", v] for v in range(5000)], at=300)
    app.flush()
    large = BatchRange(whole.last, outputs.last_committed())
    shares = outputs.divide(large)
    assert len(shares) > 3
    assert {(r.after, r.last, r.shares) for r in shares} == {(*astuple(large)[:2], len(shares))}
    assert values_of(outputs, large) == [2 * v for v in range(5000)]


def test_a_commit_that_is_cut_off(inline: Inline, monkeypatch: pytest.MonkeyPatch) -> None:
    app = inline()
    send(app, 1)
    outputs = CommittedOutputs(app.runtime.outputs.folder, "O", "app.O")

    def fail(*_: object) -> None:
        raise OSError("cut off")

    with monkeypatch.context() as patched:
        patched.setattr(OutputFiles, "account", fail)
        with pytest.raises(SparkStreamError, match="cut off"):
            send(app, 2)
    assert values_of(outputs, BatchRange(-1, outputs.last_committed())) == [2]
    app.stop()
    app.close()
    app = inline()
    app.flush()
    assert values_of(outputs, BatchRange(-1, outputs.last_committed())) == [2, 4]
    send(app, 3)
    assert values_of(outputs, BatchRange(0, outputs.last_committed())) == [4, 6]


def test_a_folder_of_an_earlier_version(inline: Inline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "MANY", 1)
    app = inline(retention="outputs=4KB")
    send(app, *range(1, 30))
    app.stop()
    app.close()
    outputs = OutputFiles(app.runtime.outputs.folder, ())
    known, committed = outputs.last_dropped("O"), outputs.accounted_batch
    assert known > 0
    for path in outputs.folder.glob("*.json"):
        if path.name != "dropped.json":
            path.unlink()
    assert outputs.last_dropped("O") == known
    assert outputs.accounted_batch == -1
    app = inline(retention="outputs=4KB")
    outputs.note_committed(app.runtime.progress.batch)
    assert outputs.accounted_batch == committed
    send(app, 30)
    app.stop()
    assert outputs.describe_lacking() is None


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SparkStreamError, match=r"^app\.O: there is no app in .*home\. It was removed, or Spark's"):
        CommittedOutputs(tmp_path / "home" / "life-0" / "outputs", "O", "app.O").last_committed()
