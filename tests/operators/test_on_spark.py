"""`siddhi(...)` on Spark: streams from files, with their checkpoints, and batches."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from pyspark.errors import AnalysisException

from sparkstream_nb import SiddhiFrames, siddhi
from sparkstream_nb.errors import Misuse, SparkUnavailable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

SPREES = """
    from every a=Payments[amount > 300] -> b=Payments[card == a.card and amount > a.amount] within 10 min
    select a.card as card, a.amount as first, b.amount as then insert into Sprees;
"""
PAYMENTS = "at timestamp, card string, amount double"
ROWS = [
    (1000, "a", 400.0), (2000, "b", 500.0), (3000, "a", 450.0), (4000, "b", 100.0), (5000, "b", 600.0),
    (6000, "c", 9.0),
]  # fmt: skip


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark, with few tasks a micro-batch."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield spark
    spark.conf.set("spark.sql.shuffle.partitions", before or "200")


@dataclass
class Folder:
    """A folder of files that a stream reads, and the query over it."""

    session: SparkSession
    path: Path
    schema: str = PAYMENTS

    def frame(self, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
        """Rows whose first value is a time in ms."""
        from pyspark.sql import functions as F

        frame = self.session.createDataFrame(rows, self.schema.replace("at timestamp", "at long"))
        return frame.withColumn("at", F.timestamp_millis("at"))

    def add(self, *rows: tuple[Any, ...]) -> None:
        """A file of rows."""
        self.frame(rows).coalesce(1).write.mode("append").json(str(self.path / "in"))

    def stream(self) -> DataFrame:
        return self.session.readStream.schema(self.schema).json(str(self.path / "in"))

    def run(self, out: DataFrame, name: str = "out") -> StreamingQuery:
        """Runs a query over all that is there."""
        query = (
            out.writeStream.format("json")
            .option("path", str(self.path / name))
            .option("checkpointLocation", str(self.path / f"{name}-checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return query

    def written(self, name: str = "out") -> list[dict[str, Any]]:
        """The rows that the sink has committed."""
        return [json.loads(row.value) for row in self.session.read.text(str(self.path / name)).collect()]


@pytest.fixture
def folder(session: SparkSession, tmp_path: Path) -> Folder:
    return Folder(session, tmp_path)


def values(rows: Iterable[Any], *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[c] for c in columns) for row in rows)


def metrics(query: StreamingQuery) -> dict[str, int]:
    """The sums of the metrics of a query's micro-batches."""
    total: dict[str, int] = {}
    for progress in query.recentProgress:
        for observed in progress["observedMetrics"].values():
            for name, value in observed.asDict().items():
                total[name] = total.get(name, 0) + value
    return total


def test_a_frame_of_pandas_is_refused() -> None:
    with pytest.raises(Misuse, match=r"Spark's DataFrame is expected for 'Payments', not pandas's DataFrame"):
        siddhi(pd.DataFrame({"at": [1]}), SPREES, name="Payments", time="at")  # type: ignore[arg-type]


@pytest.mark.contract
def test_batch(folder: Folder) -> None:
    out = siddhi(folder.frame(ROWS), SPREES, name="Payments", time="at", key="card", output="Sprees")
    assert not isinstance(out, SiddhiFrames)
    assert [f.name for f in out.schema] == ["card", "first", "then", "_timestamp", "_node"]
    rows = out.collect()
    assert values(rows, "card", "first", "then") == [("a", 400.0, 450.0), ("b", 500.0, 600.0)]
    assert {r.card: r._timestamp.timestamp() for r in rows} == {"a": 3.0, "b": 5.0}
    assert {r.card: r._node for r in rows} == {"a": 97 % 8 + 1, "b": 98 % 8 + 1}


@pytest.mark.contract
def test_stream_continues_from_its_checkpoint(folder: Folder) -> None:
    def out() -> DataFrame:
        return siddhi(
            folder.stream().withWatermark("at", "0 seconds"), SPREES, name="Payments", time="at", key="card", nodes=3
        )

    for row in ROWS:
        folder.add(row)
        folder.run(out())
    assert values(folder.written(), "card", "first", "then") == [("a", 400.0, 450.0), ("b", 500.0, 600.0)]


def test_rows_wait_for_the_watermark_and_late_ones_are_an_output(folder: Folder) -> None:
    def out() -> SiddhiFrames:
        found = siddhi(
            folder.stream(), SPREES, name="Payments", time="at", delay="2 seconds", late=True, errors=True, nodes=1,
        )  # fmt: skip
        assert isinstance(found, SiddhiFrames)
        return found

    folder.add((3000, "a", 450.0), (9000, "c", 1.0))
    folder.run(out().frame)
    folder.add((1000, "a", 400.0), (8000, "a", 460.0))
    folder.run(out().frame)
    folder.add((20000, "a", 470.0), (2000, "a", 9.0))
    query = folder.run(out().frame)
    folder.add((None, "a", 470.0), (30000, "c", 470.0))
    folder.run(out().frame)
    rows = folder.written()
    sprees = [r["Sprees"] for r in rows if r["_output"] == "Sprees"]
    # The row of 1000 came in a micro-batch whose watermark was at 7000: it is late, as is that of 2000.
    assert values(sprees, "first", "then") == [(450.0, 460.0), (460.0, 470.0)]
    late = [r["_late"] for r in rows if r["_output"] == "_late"]
    assert sorted(json.loads(r["row"])[1:] for r in late) == [["a", 9.0], ["a", 400.0]]
    assert metrics(query) == {"Sprees": 1, "_late": 1, "_errors": 0}
    (error,) = (r["_errors"] for r in rows if r["_output"] == "_errors")
    assert error == {
        "query": "input", "stream": "Payments", "message": "at: null is not a time", "row": '[null, "a", 470.0]'
    }  # fmt: skip


def test_several_streams_and_outputs(folder: Folder) -> None:
    blocks = folder.session.createDataFrame([(2500, "b")], "moment long, holder string")
    text = """
        define table Blocked (holder string);
        from Blocks select holder insert into Blocked;
        from Payments[not (Blocked.holder == card in Blocked)] select card, amount insert into Good;
        from Payments[Blocked.holder == card in Blocked] select card, amount, at insert into Bad;
    """
    found = siddhi(
        {"Blocks": blocks, "Payments": folder.frame(ROWS)}, text, time={"Blocks": "moment", "Payments": "at"},
        key={"Blocks": "holder", "Payments": "card"}, output=["Good", "Bad"], unsafe=True,
    )  # fmt: skip
    assert isinstance(found, SiddhiFrames)
    assert values(found["Bad"].collect(), "card", "amount", "at") == [("b", 100.0, 4000), ("b", 600.0, 5000)]
    assert values(found["Good"].collect(), "amount") == [(9.0,), (400.0,), (450.0,), (500.0,)]
    everything = found.frame.collect()
    assert sorted(r._output for r in everything) == ["Bad", "Bad", "Good", "Good", "Good", "Good"]
    assert all((r.Bad is None) == (r._output == "Good") for r in everything)


def test_what_is_due_fires_when_the_watermark_passes(folder: Folder) -> None:
    text = """
        partition with (card of Payments) begin
          from every a=Payments -> not Payments[card == a.card] for 5 sec select a.card as card insert into Silent;
        end;
    """

    def out() -> DataFrame:
        return siddhi(
            folder.stream(), text, name="Payments", time="at", key="card", nodes=2, delay="0 seconds", unsafe=True
        )

    folder.add((1000, "a", 1.0), (1000, "b", 1.0))
    folder.run(out())
    assert folder.written() == []
    folder.add((7000, "b", 1.0))  # of the other node
    folder.run(out())
    assert values(folder.written(), "card") == [("a",), ("b",)]


def test_rows_as_they_come(folder: Folder) -> None:
    text = "from Payments#window.lengthBatch(2) select sum(amount) as total insert into Pairs;"

    def out() -> DataFrame:
        return siddhi(folder.stream(), text, name="Payments", time="at", order="arrival")

    folder.add((5000, "a", 1.0), (4000, "a", 2.0), (3000, "a", 4.0))
    folder.run(out())
    folder.add((1000, "a", 8.0))
    folder.run(out())
    assert values(folder.written(), "total") == [(3.0,), (12.0,)]


def test_queries_that_keep_nothing_need_no_watermark(folder: Folder) -> None:
    folder.add(*ROWS, (None, "a", 999.0))
    out = siddhi(
        folder.stream(), "from Payments[amount > 420] select card, amount * 2 as twice insert into Large;",
        name="Payments", time="at",
    )  # fmt: skip
    query = folder.run(out)
    assert values(folder.written(), "twice") == [(900.0,), (1000.0,), (1200.0,)]
    assert metrics(query) == {"Large": 3, "_late": 0, "_errors": 1}


def test_a_changed_text_keeps_the_state_of_what_is_unchanged(folder: Folder) -> None:
    counts = "@info(name='counts') from Payments select card, count() as n insert into Counts;"
    sums = "@info(name='sums') from Payments select card, sum(amount {}) as total insert into Sums;"

    def out(text: str) -> DataFrame:
        found = siddhi(
            folder.stream(), text, name="Payments", time="at", output=["Counts", "Sums"], delay="0 seconds"
        )
        assert isinstance(found, SiddhiFrames)
        return found.frame

    folder.add((1000, "a", 1.0))
    folder.run(out(counts + sums.format("")))
    folder.add((2000, "a", 10.0))
    folder.run(out(counts + sums.format("* 2")))
    rows = folder.written()
    assert sorted(r["Counts"]["n"] for r in rows if r["_output"] == "Counts") == [1, 2]
    assert sorted(r["Sums"]["total"] for r in rows if r["_output"] == "Sums") == [1.0, 20.0]


def test_late_rows_become_an_output_of_a_query_that_was_started_without_them(folder: Folder) -> None:
    """Rows that wait have the columns that the text reads; with `late=True` rows have all."""
    text = "from Payments#window.length(9) select sum(amount) as total insert into Sums;"

    def out(late: bool) -> DataFrame:
        found = siddhi(folder.stream(), text, name="Payments", time="at", delay="1 second", late=late)
        return found.frame if isinstance(found, SiddhiFrames) else found

    folder.add((1000, "a", 1.0), (5000, "b", 2.0))
    folder.run(out(late=False))
    folder.add((2000, "late", 4.0), (7000, "c", 8.0))
    folder.run(out(late=True), name="out")
    rows = folder.written()
    assert [r["total"] for r in rows if "total" in r] == [1.0]
    assert [r["Sums"]["total"] for r in rows if "Sums" in r] == [3.0]
    assert [json.loads(r["_late"]["row"]) for r in rows if "_late" in r] == [[2000, "late", 4.0]]


def test_rows_that_wait_keep_their_columns_when_the_text_changes(folder: Folder) -> None:
    from pyspark.errors import StreamingQueryException

    folder = Folder(folder.session, folder.path, "at timestamp, one long, two long, three long")

    def out(text: str) -> DataFrame:
        return siddhi(folder.stream(), text, name="Numbers", time="at", delay="1 second", output="Sums")  # type: ignore[return-value]

    sums = "from Numbers#window.length(9) select sum({}) as n, sum({}) as m insert into Sums;"
    folder.add((1000, 1, 10, 100), (5000, 2, 20, 200))
    folder.run(out(sums.format("two", "three")))
    folder.add((7000, 3, 30, 300))
    folder.run(out("from Numbers select count() as n, max(three) as m insert into Sums;"))
    assert values(folder.written(), "n", "m") == [(1, 200), (10, 100)]
    folder.add((9000, 4, 40, 400))
    with pytest.raises(StreamingQueryException, match=r"its text reads 'Numbers.one', which the former text did not"):
        folder.run(out(sums.format("one", "three")))


def test_another_number_of_nodes_does_not_fit_a_checkpoint(folder: Folder) -> None:
    from pyspark.errors import StreamingQueryException

    def out(nodes: int) -> DataFrame:
        return siddhi(
            folder.stream(), SPREES, name="Payments", time="at", key="card", nodes=nodes, delay="0 seconds"
        )

    folder.add(*ROWS)
    folder.run(out(2))
    folder.add((9000, "a", 1.0))
    with pytest.raises(StreamingQueryException, match=r"does not fit this siddhi.*nodes was 2, and is 4"):
        folder.run(out(4))


def test_rows_of_an_aggregation_come_when_their_bucket_has_ended(folder: Folder) -> None:
    text = """
        define aggregation Sums from Payments select card, sum(amount) as total, count() as n
        group by card aggregate every sec...min;
    """

    def out(frame: DataFrame, **given: Any) -> SiddhiFrames:
        found = siddhi(
            frame, text, name="Payments", time="at", key="card", nodes=2, output=["Sums.sec", "Sums.min"], **given
        )
        assert isinstance(found, SiddhiFrames)
        return found

    rows = [(1000, "a", 1.0), (1500, "a", 2.0), (1700, "b", 4.0), (2500, "a", 8.0), (61000, "b", 16.0)]
    for row in rows:
        folder.add(row)
        folder.run(out(folder.stream(), delay="0 seconds").frame)
    streamed = folder.written()
    by_second = [r["Sums.sec"] for r in streamed if r["_output"] == "Sums.sec"]
    assert values(by_second, "AGG_TIMESTAMP", "card", "total", "n") == [
        (1000, "a", 3.0, 2), (1000, "b", 4.0, 1), (2000, "a", 8.0, 1),
    ]  # fmt: skip
    by_minute = [r["Sums.min"] for r in streamed if r["_output"] == "Sums.min"]
    assert values(by_minute, "AGG_TIMESTAMP", "card", "total") == [(0, "a", 11.0), (0, "b", 4.0)]
    whole = out(folder.frame(rows))
    assert values(whole["Sums.sec"].collect(), "AGG_TIMESTAMP", "card", "total", "n") == [
        (1000, "a", 3.0, 2), (1000, "b", 4.0, 1), (2000, "a", 8.0, 1), (61000, "b", 16.0, 1),
    ]  # fmt: skip
    assert values(whole["Sums.min"].collect(), "AGG_TIMESTAMP", "card") == [(0, "a"), (0, "b"), (60000, "b")]


def test_a_row_with_an_impossible_time_does_not_end_a_stream(folder: Folder) -> None:
    folder = Folder(folder.session, folder.path, "t long, k string")
    text = "from S#window.length(2) select t, count() as n insert into Out;"

    def out(frame: DataFrame, **given: Any) -> SiddhiFrames:
        found = siddhi(frame, text, name="S", time="t", late=True, errors=True, **given)
        assert isinstance(found, SiddhiFrames)
        return found

    def add(*rows: tuple[Any, ...]) -> None:
        folder.session.createDataFrame(rows, folder.schema).coalesce(1).write.mode("append").json(
            str(folder.path / "in")
        )

    end = 2**63 - 1
    add((1000, "a"), (end, "b"), (-end, "c"), (8 * 10**15, "d"))
    folder.run(out(folder.stream(), delay="1 second").frame)
    add((1500, "e"), (90_000, "f"))
    folder.run(out(folder.stream(), delay="1 second").frame)
    written = folder.written()
    assert values([r["Out"] for r in written if r["_output"] == "Out"], "t", "n") == [(1000, 1), (1500, 2)]
    assert not [r for r in written if r["_output"] == "_late"]
    assert sorted(json.loads(r["_errors"]["row"])[0] for r in written if r["_output"] == "_errors") == [
        -end, 8 * 10**15, end,
    ]  # fmt: skip
    whole = out(folder.session.createDataFrame([(1000, "a"), (end, "b")], folder.schema))
    assert (whole["Out"].count(), [r.row for r in whole.errors.collect()]) == (1, [f'[{end}, "b"]'])


def test_names_that_the_session_cannot_tell_apart_and_arguments_of_other_types(folder: Folder) -> None:
    from pyspark.sql import functions as F

    frame = folder.frame(ROWS).select("at", "card", "amount", F.lit("x").alias("CARD"))
    with pytest.raises(Misuse, match=r"columns 'card' and 'CARD', and the session ignores case. Rename one of them"):
        siddhi(frame, SPREES, name="Payments", time="at", key="card")
    text = "from Payments select at, amount insert into Payments2;"
    once = siddhi(frame, text, name="Payments", time="at")
    assert isinstance(once, type(frame))
    twice = siddhi(once, text, name="Payments", time="at")
    assert isinstance(twice, type(frame))
    assert twice.count() == len(ROWS)
    thrice = siddhi(once, text, name="Payments", time="at", late=True)
    assert isinstance(thrice, SiddhiFrames)
    assert (thrice["Payments2"].count(), thrice.late.count()) == (len(ROWS), 0)
    given: dict[str, Any] = {"name": "Payments", "time": "at", "key": "card"}
    for argument, value, message in (
        ("nodes", "x", "nodes: 'x' is not a number from 1 to 10,000"),
        ("name", 5, "name is a text, not 5"),
        ("time", 5, "time is a text, not 5"),
        ("time", {"Payments": 5}, "each of the values in time is a text"),
        ("key", 5, "key is a text, not 5"),
        ("output", 5, "output is a list of texts, not 5"),
        ("delay", 400, "delay is a text, not 400"),
        ("order", None, "order is a text, not None"),
        ("late", "x", "late is True or False"),
        ("max_ahead", -1, "max_ahead is at least 0"),
        ("text", 5, "text is a text, not 5"),
    ):
        with pytest.raises(Misuse, match=message):
            siddhi(folder.frame(ROWS), **{"text": SPREES, **given, argument: value})


LARGE = "from Payments[amount > 420] select card, amount insert into Out;"
SUMS = "from Payments#window.length(3) select card, sum(amount) as amount insert into Out;"


@pytest.mark.parametrize("texts", [(LARGE, LARGE), (SUMS, SUMS), (LARGE, SUMS)])
def test_outputs_of_one_name_side_by_side_and_in_one_query(folder: Folder, texts: tuple[str, str]) -> None:
    """Two streams in one session: queries at once with their own rows, state and metrics, and the union of both."""
    folders = [Folder(folder.session, folder.path / name) for name in ("one", "other")]

    def outs() -> list[Any]:
        return [
            siddhi(f.stream(), text, name="Payments", time="at", order="arrival")
            for f, text in zip(folders, texts, strict=True)
        ]

    def at_once(frames: list[Any]) -> list[dict[str, int]]:
        queries = [
            out.writeStream.format("json")
            .option("path", str(f.path / "out"))
            .option("checkpointLocation", str(f.path / "checkpoint"))
            .start()
            for f, out in zip(folders, frames, strict=True)
        ]
        try:
            for query in queries:
                query.processAllAvailable()
            return [metrics(query) for query in queries]
        finally:
            for query in queries:
                query.stop()

    def expected(text: str, amounts: list[float]) -> list[tuple[float]]:
        sums = [(sum(amounts[max(0, i - 2) : i + 1]),) for i in range(len(amounts))]
        return sorted(sums if text is SUMS else [(a,) for a in amounts if a > 420])

    amounts: list[list[float]] = [[], []]
    for base in (400.0, 500.0):
        for i, f in enumerate(folders):
            rows = [(1000 * n, "x", base + 10 * i + n) for n in range(4)]
            amounts[i] += [row[2] for row in rows]
            f.add(*rows)
        counts = at_once(outs())
        for f, text, values_so_far, count in zip(folders, texts, amounts, counts, strict=True):
            assert values(f.written(), "amount") == expected(text, values_so_far)
            assert count["Out"] == len(expected(text, values_so_far)) - len(expected(text, values_so_far[:-4]))
    one, other = outs()
    query = folder.run(one.unionAll(other), "united")
    united = [row for text, of_one in zip(texts, amounts, strict=True) for row in expected(text, of_one)]
    assert values(folder.written("united"), "amount") == sorted(united)
    assert metrics(query)["Out"] == len(united)


def test_another_state_store_that_cannot_be_changed_is_refused_with_one_line(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = "spark.sql.streaming.stateStore.providerClass"
    rocksdb = session.conf.get(name)
    other = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    session.conf.set(name, other)

    def refuse(*_: object) -> None:
        raise AnalysisException("[CANNOT_MODIFY_CONFIG] It is of the server.\nSee also")

    stream = session.readStream.schema(PAYMENTS).parquet(str(tmp_path))
    try:
        with monkeypatch.context() as context:
            context.setattr(type(session.conf), "set", refuse)
            with pytest.raises(SparkUnavailable) as refused:
                siddhi(stream, SPREES, name="Payments", time="at", key="card", delay="1 minute")
    finally:
        session.conf.set(name, rocksdb or "")
    assert str(refused.value) == (
        "Spark's stateful operators need the RocksDB state store, and this session refuses the setting "
        f"([CANNOT_MODIFY_CONFIG] It is of the server.). Set {name}={rocksdb} where the server is started, or the "
        "compute configured"
    )
