"""Apps end to end on Spark: events in, sharded aggregations and outputs out."""

from __future__ import annotations

import io
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sparkstream_nb.app import App, FeedProgress, ProgressLine, apps, deploy
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.errors import Misuse, NotInThisBuild, SiddhiError, SparkStreamError
from sparkstream_nb.lab.display import text as text_of
from sparkstream_nb.outputs.commit import Commit
from sparkstream_nb.outputs.output_files import frame_rows

Run = Callable[..., App]

SEED = """
define stream TradeStream (symbol string, price double, quantity long, timestamp long);
define aggregation TradeAggregation
from TradeStream
select symbol, avg(price) as avgPrice, sum(quantity) as total
group by symbol
aggregate by timestamp every sec ... year;
"""
HIGH = """
define stream Trades (symbol string, price double, qty int);
@info(name = 'high') from Trades[price > 50.0] select symbol, price, qty insert into High;
"""
WINDOW = """
define stream Trades (symbol string, price double, qty int);
@info(name = 'q') from Trades#window.time(50 millisec) select symbol, sum(qty) as total, count() as n group by symbol
insert all events into Totals;
"""
HOUR = 1_400_000_400_000


def trades(n: int, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "symbol": np.array(["IBM", "WSO2", "ORCL"])[rng.integers(0, 3, n)],
            "price": rng.integers(0, 400, n) / 4,
            "qty": rng.integers(1, 100, n),
            "at": 1_400_000_000_000 + np.cumsum(rng.integers(0, 20, n)),
        }
    )


def rows(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    return list(frame.itertuples(index=False, name=None))


@pytest.mark.contract
def test_thirty_on_one_node_and_forty_on_the_other_read_as_seventy(run: Run) -> None:
    app = run(SEED, nodes=2, mode="active-active", shard_ids=["wso2-sp-1", "wso2-sp-2"])
    for node, quantity in ((1, 10), (1, 20), (2, 15), (2, 25)):
        app.send("TradeStream", ["WSO2", 10.0, quantity, HOUR], at=HOUR, node=node)
    found = app.query("from TradeAggregation within '2014-**-** **:**:**' per 'hours' select symbol, total")
    assert found.columns == [("symbol", "string"), ("total", "long")]
    assert found.rows == [["WSO2", 70]]
    assert found.by_shard is not None
    assert rows(found.by_shard) == [("wso2-sp-1", "WSO2", 30), ("wso2-sp-2", "WSO2", 40)]
    early = app.query("from TradeAggregation within '1999-**-** **:**:**' per 'years' select total")
    assert early.hint is not None
    assert early.hint.startswith("nothing within 1999-01-01 ... 2000-01-01; TradeAggregation holds ")
    merged, by_shard = app.aggregation("TradeAggregation", per="year")
    assert merged["total"].tolist() == [70]
    assert by_shard["total"].tolist() == [30, 40]
    assert by_shard["SHARD_ID"].tolist() == ["wso2-sp-1", "wso2-sp-2"]
    assert app.stats().nodes.keys() == {"wso2-sp-1", "wso2-sp-2"}


@pytest.mark.contract
def test_tables_of_two_nodes_answer_as_one(run: Run) -> None:
    held = """
    define stream Trades (symbol string, price double, qty int);
    define table Held (symbol string, qty int);
    from Trades select symbol, qty insert into Held;
    """
    app = run(held, nodes=2, mode="active-active", shard_ids=["n1", "n2"])
    for node, symbol, qty in ((1, "IBM", 10), (1, "WSO2", 20), (2, "IBM", 15), (2, "ORCL", 25)):
        app.send("Trades", [symbol, 10.0, qty], at=HOUR, node=node)
    found = app.query("from Held select symbol, sum(qty) as total group by symbol order by total desc limit 2")
    assert found.rows == [["IBM", 25], ["ORCL", 25]]
    assert found.by_shard is not None
    assert rows(found.by_shard) == [("n1", "WSO2", 20), ("n1", "IBM", 10), ("n2", "ORCL", 25), ("n2", "IBM", 15)]


@pytest.mark.contract
@pytest.mark.parametrize("kind", ["pandas", "arrow", "csv", "parquet"])
def test_feeds(run: Run, tmp_path: Path, kind: str) -> None:
    frame = trades(2000)
    shuffled = frame.sample(frac=1, random_state=3)
    source: Any = shuffled
    if kind == "arrow":
        source = pa.Table.from_pandas(shuffled, preserve_index=False)
    elif kind == "csv":
        source = tmp_path / "trades.csv"
        shuffled.to_csv(source, index=False)
    elif kind == "parquet":
        source = str(tmp_path / "trades.parquet")
        shuffled.to_parquet(source, index=False)
    check_feed_of(run(HIGH), source, frame)


def test_a_spark_frame_is_fed(run: Run, spark: Any) -> None:
    frame = trades(2000)
    check_feed_of(run(HIGH), spark.createDataFrame(frame.sample(frac=1, random_state=3)).repartition(3), frame)


def test_nan_and_null_are_two(run: Run) -> None:
    """In what is put out, what is asked, what comes last, and as a text."""
    text = """
    define stream S (k string, v double);
    define table T (k string, v double);
    from S select k, v, math:sqrt(v) as root insert into O;
    from S insert into T;
    """
    app = run(text)
    app.send("S", [["a", 4.0], ["b", -1.0], ["c", None], [None, float("inf")]])
    app.flush()
    numbers = [["a", 4.0, 2.0], ["b", -1.0, math.nan], ["c", None, None], [None, math.inf, math.inf]]
    found = app.output("O")
    for have, want in zip(frame_rows(found.frame[["k", "v", "root"]]), numbers, strict=True):
        assert repr([*have]) == repr(want)
    shown = [line.split()[-3:] for line in text_of(found).splitlines()[2:6]]
    assert shown == [["a", "4.0", "2.0"], ["b", "-1.0", "NaN"], ["c", "null", "null"], ["null", "∞", "∞"]]
    assert repr(app.tail("O").snapshot().rows[2][-1]) == "nan", "the newest first"
    asked = app.query("from T select k, v")
    assert asked.frame["v"].isna().tolist() == [False, False, True, False]
    assert asked.frame["v"].dtype == "Float64", "a number that may be null"
    asked = app.query("from T select k, math:sqrt(v) as root")
    assert repr(asked.rows) == repr([[k, root] for k, _, root in numbers])
    assert [line.split()[-1] for line in text_of(asked).splitlines()[2:6]] == ["2.0", "NaN", "null", "∞"]


def test_what_needs_spark_is_refused_by_name(run: Run, tmp_path: Path) -> None:
    class Frame:
        """What a Spark data frame shows of itself."""

        columns = ("symbol", "price", "qty", "at")

        def mapInArrow(self) -> None: ...

        def __getitem__(self, name: str) -> None: ...

        def select(self, *columns: object) -> Frame:
            return self

    app = run(HIGH)
    with pytest.raises(SparkStreamError, match=r"needs Spark: give its toPandas\(\), or deploy the app on Spark"):
        app.feed("Trades", Frame(), time="at")
    with pytest.raises(Misuse, match="is where Spark's machines meet: master='inline' runs in this process"):
        run(HIGH, shared=(tmp_path / "meeting").as_uri())
    assert "without Spark (master='inline'): meant for tests, CI and a first look" in (app.runner_note or "")


def check_feed_of(app: App, source: Any, frame: pd.DataFrame) -> None:
    """Feeds a shuffled `source` of `frame`, and checks what the app makes of it."""
    report = app.feed("Trades", source, time="at")
    high = frame[frame.price > 50]
    assert (report.rows, report.rejected, report.outputs) == (2000, 0, {"High": len(high)})
    out = app.output("High").frame
    assert list(out.columns) == ["node", "timestamp", "symbol", "price", "qty"]
    assert out["timestamp"].tolist() == high["at"].tolist()
    assert sorted(rows(out[["timestamp", "symbol", "price", "qty"]])) == sorted(
        rows(high[["at", "symbol", "price", "qty"]])
    )
    assert app.output("High", last=5).frame.equals(out.tail(5).reset_index(drop=True))


@pytest.mark.contract
def test_without_event_times_a_feed_keeps_its_order_and_the_clock_advances(run: Run) -> None:
    app = run(HIGH)
    app.feed("Trades", pd.DataFrame({"symbol": list("abc"), "price": [60.0, 70.0, 80.0], "qty": 1}))
    app.feed(
        "Trades", pd.DataFrame({"symbol": list("de"), "p": [60.0, 70.0], "qty": 1}), columns={"price": "p"}, limit=1
    )
    out = app.output("High").frame
    assert out["symbol"].tolist() == list("abcd")
    assert (np.diff(out["timestamp"]) > 0).all()


@pytest.mark.contract
def test_bad_rows_are_counted_and_kept_with_their_reason(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "trades.csv"
    file.write_text(
        "symbol,price,qty,at\n"
        "IBM,60.5,1,2014-05-13 16:53:20\n"
        "IBM,cheap,1,2014-05-13 16:53:21\n"
        "IBM,61.5,1,yesterday\n"
        "IBM,62.5\n"
        "IBM,63.5,1.5,2014-05-13 16:53:22\n"
        "IBM,64.5,2,2014-05-13 16:53:23\n"
    )
    app = run(HIGH, nodes=2, mode="active-active")
    report = app.feed("Trades", file, time="at")
    assert (report.rows, report.rejected, report.outputs) == (6, 4, {"High": 2})
    errors = app.errors.frame
    assert errors["stream"].tolist() == ["Trades"] * 4
    reasons = sorted(errors["reason"])
    assert [r for r in reasons if not r.startswith("not a whole row")] == [
        "at: 'yesterday' is not a time",
        "price: 'cheap' is not a double",
        "qty: '1.5' is not an int",
    ]
    assert ["IBM", "cheap", "1"] in errors["values"].tolist()
    with pytest.raises(SparkStreamError, match="no column 'price' for stream Trades"):
        app.feed("Trades", pd.DataFrame({"symbol": ["IBM"], "prize": [60.0], "qty": [1]}))
    assert len(app.errors) == 4
    assert len(app.output("High")) == 2


@pytest.mark.contract
def test_a_key_goes_to_the_node_that_java_would_choose(run: Run) -> None:
    app = run(HIGH, nodes=3, mode="active-active", routing="hash:symbol")
    frame = trades(300)
    app.feed("Trades", frame, time="at")
    # "IBM".hashCode() = 72276, "WSO2".hashCode() = 2674079, "ORCL".hashCode() = 2436022, each % 3
    java = {"IBM": "node-1", "WSO2": "node-3", "ORCL": "node-2"}
    found = app.output("High").frame
    assert {(s, n) for s, n in zip(found["symbol"], found["node"], strict=True)} <= set(java.items())


@pytest.mark.contract
@pytest.mark.parametrize("nodes", [1, 3])
def test_outputs_do_not_depend_on_how_the_input_is_cut(run: Run, tmp_path: Path, nodes: int) -> None:
    frame = trades(120)
    mode = "single" if nodes == 1 else "active-active"
    found = []
    for i, cuts in enumerate([[], [40, 41, 90], range(10, 120, 10)]):
        app = run(WINDOW, name=f"app{i}", home=tmp_path / str(i), nodes=nodes, mode=mode)
        bounds = [0, *cuts, len(frame)]
        for k, (a, b) in enumerate(pairwise(bounds)):
            app.feed("Trades", frame[a:b], time="at") if k % 3 else one_by_one(app, frame[a:b])
        app.tick(int(frame["at"].iloc[-1]) + 1000)
        app.flush()
        found.append(app.output("Totals").frame)
        app.stop()
    assert len(found[0]) > len(frame)
    for other in found[1:]:
        pd.testing.assert_frame_equal(found[0], other)


def one_by_one(app: App, frame: pd.DataFrame) -> None:
    for symbol, price, qty, at in rows(frame):
        app.send("Trades", [symbol, price, qty], at=at)


@pytest.mark.contract
def test_a_window_expires_on_nodes_that_the_router_passes_over(run: Run) -> None:
    app = run(WINDOW, nodes=2, mode="active-active")
    app.send("Trades", ["IBM", 1.0, 5], at=1000, node=1)
    app.send("Trades", ["IBM", 1.0, 7], at=2000, node=2)
    app.flush()
    out = app.output("Totals").frame
    assert rows(out[["node", "timestamp", "n"]]) == [("node-1", 1000, 1), ("node-1", 2000, 0), ("node-2", 2000, 1)]


@pytest.mark.contract
def test_a_chunk_goes_to_one_node_and_stays_one(run: Run) -> None:
    app = run(HIGH, nodes=2, mode="active-active")
    app.send("Trades", [["a", 60.0, 1], {"symbol": "b", "price": 61.0, "qty": 2}], at=1000)
    app.send("Trades", ["c", 62.0, 3], at=1001)
    app.flush()
    assert rows(app.output("High").frame[["node", "symbol"]]) == [("node-1", "a"), ("node-1", "b"), ("node-2", "c")]


@pytest.mark.contract
def test_redeploying_keeps_the_state_of_what_means_the_same(run: Run) -> None:
    app = run(WINDOW)
    assert app.redeployed is None
    app.send("Trades", ["IBM", 1.0, 5], at=1000)
    app.flush()
    app = run(WINDOW + "-- only a comment")
    assert app.redeployed == "The state was kept: no change affects it."
    app.send("Trades", ["IBM", 1.0, 7], at=1010)
    app.flush()
    assert app.output("Totals").frame["total"].tolist() == [5, 12]
    app = run(WINDOW.replace("50", "60"))
    assert app.redeployed.startswith("The state was dropped: the definitions or queries of the app changed. It is in ")
    assert len(app.output("Totals")) == 0
    app = run(WINDOW.replace("50", "60"), fresh=True)
    assert app.redeployed.startswith("The state was dropped: fresh was asked for. It is in ")
    app = run(WINDOW.replace("50", "60"), nodes=2, mode="active-active")
    assert app.redeployed.startswith("The state was dropped: the mode is active-active now, and was single. It is in ")
    assert list(apps()) == ["app"]


@pytest.mark.contract
def test_stopping_takes_less_than_two_seconds_and_the_next_event_starts_again(run: Run) -> None:
    app = run(HIGH)
    app.send("Trades", ["a", 60.0, 1])
    app.flush()
    began = time.perf_counter()
    app.stop()
    assert time.perf_counter() - began < 2
    assert app.state == "stopped"
    app.send("Trades", ["b", 60.0, 1])
    app.flush()
    assert app.state == "running"
    assert app.output("High").frame["symbol"].tolist() == ["a", "b"]


@pytest.mark.contract
def test_an_app_starts_again_while_others_ask_whether_it_runs(run: Run) -> None:
    app = run(HIGH)
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.wait(0.002):
            assert app.runtime.stream.active in (True, False)

    askers = [threading.Thread(target=ask) for _ in range(2)]
    for asker in askers:
        asker.start()
    try:
        for i in range(5):
            app.send("Trades", [f"s{i}", 60.0, 1])
            app.flush()
            app.stop()
    finally:
        is_over.set()
        for asker in askers:
            asker.join()
    assert app.output("High").frame["symbol"].tolist() == [f"s{i}" for i in range(5)]


SLOW = """
define stream S (a int);
define function slow[javascript] return int { var n = 0; while (n < 20000) n++; return data[0]; };
from S select slow(a) as a insert into O;
"""


@pytest.mark.timed
@pytest.mark.parametrize("by", ["stop", "Ctrl-C"])
def test_a_micro_batch_under_way_is_cancelled_within_two_seconds(run: Run, spark: Any, by: str) -> None:
    app = run(SLOW, allow_scripts=True)
    told: list[FeedProgress] = []
    ended: list[float] = []

    def end() -> None:
        while not (app.runtime.stream.next_unplanned() and told and told[-1].total):
            time.sleep(0.05)
        ended.append(time.perf_counter())
        if by == "stop":
            app.stop()
        else:
            os.kill(os.getpid(), signal.SIGINT)

    ender = threading.Thread(target=end)
    ender.start()
    with pytest.raises(SparkStreamError if by == "stop" else KeyboardInterrupt):
        app.feed("S", pd.DataFrame({"a": range(100_000)}), progress=told.append)
    assert time.perf_counter() - ended[0] < 2
    ender.join()
    assert app.state == "stopped"
    assert (told[0].total, told[-1].total, told[-1].done) == (None, 100_000, 0)
    jobs = spark.sparkContext.statusTracker()
    end_by = time.monotonic() + 20
    while jobs.getActiveJobsIds() and time.monotonic() < end_by:
        time.sleep(0.1)
    assert jobs.getActiveJobsIds() == []
    assert len(app.output("O")) == 0


def test_a_job_that_begins_while_its_app_is_stopped_is_cancelled_too(
    run: Run, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = run(SLOW, allow_scripts=True)
    commit, query, begun = Commit.__call__, app.runtime.stream.runner.query, threading.Event()

    def late(self: Commit, frame: Any, batch: int) -> None:
        begun.set()
        while query.isActive:  # Spark cancels what runs when this ends, and no more
            time.sleep(0.01)
        commit(self, frame, batch)

    monkeypatch.setattr(Commit, "__call__", late)
    feed = app.feed("S", pd.DataFrame({"a": range(100_000)}), background=True)
    assert begun.wait(30)
    app.stop()
    feed.join()
    assert app.runtime.stream.wait_for_end(20)
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []
    assert len(app.output("O")) == 0


def test_progress_of_a_feed(run: Run) -> None:
    app = run(HIGH)
    told: list[FeedProgress] = []
    frame = trades(1000).astype({"qty": object})
    frame.loc[7, "qty"] = "many"
    app.feed("Trades", frame, time="at", progress=told.append)
    assert str(told[0]) == "Trades: reading the feed · 0 s"
    assert {(p.total, p.rejected) for p in told[1:]} == {(999, 1)}
    assert app.errors.frame["reason"].tolist() == ["qty: 'many' is not an int"]
    assert [p.done for p in told[1:]] == sorted(p.done for p in told[1:])


def test_the_line_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    out = Terminal()
    line = ProgressLine(out)
    line(FeedProgress("S", 500, 2000, 3, 1, 2.5, 0.5))
    line(FeedProgress("S", 0, 2, 0, 0, 1.0))
    line.close()
    assert out.getvalue().split("\r")[1:] == [
        "S: 500 of 2,000 events · 2 s · 250 events/s · 6 s left · mi",
        "S: 0 of 2 events · 1 s · micro-batch 1".ljust(59),
        " " * 38,
        "",
    ]


def test_without_a_terminal_progress_is_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of a long feed, or of the first compilation, was silent for minutes."""
    now = [100.0]
    monkeypatch.setattr("sparkstream_nb.app.results.feed_progress.time.monotonic", lambda: now[0])
    out = io.StringIO()
    line = ProgressLine(out)
    for seconds in (0.0, 9.0, 1.0, 1.0, 9.0):
        now[0] += seconds
        line(f"{now[0]:.0f}")
    line.close()
    assert out.getvalue().splitlines() == ["110", "120"]


def test_time_left() -> None:
    assert FeedProgress("S", 0, None, 0, 0, 4.0).seconds_left is None
    assert FeedProgress("S", 0, 10, 0, 0, 4.0).seconds_left is None
    assert FeedProgress("S", 10, 10, 0, 0, 4.0).seconds_left == 0
    assert "1 h 6 min left" in str(FeedProgress("S", 1, 4001, 0, 0, 2.0, 1.0))
    assert "3 min 20 s left" in str(FeedProgress("S", 1, 201, 0, 0, 2.0, 1.0))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_one_event_is_committed_in_less_than_a_second(run: Run) -> None:
    app = run(SEED)
    taken = []
    for _ in range(6):
        began = time.perf_counter()
        app.send("TradeStream", ["IBM", 1.0, 1, HOUR])
        app.flush()
        taken.append(time.perf_counter() - began)
    # The first micro-batches compile; the machine may be busy.
    assert min(taken) < 1


@pytest.mark.contract
def test_wrong_events_are_refused_and_the_app_goes_on(run: Run) -> None:
    app = run(HIGH)
    for stream, values, said in [
        ("Trade", ["a", 1.0, 1], "Did you mean 'Trades'"),
        ("Trades", ["a", 1.0, 1, 2], r"takes 3 values \(symbol string, price double, qty int\), not 4"),
        ("Trades", ["a", 1.0], "not 2: write null for a missing value"),
        ("Trades", [["a", 1.0, 1], []], "not 0"),
        ("Trades", ["a", "x", 1], "'x' is not a double"),
        ("Trades", {"symbol": "a", "price": 1.0}, "lacks qty"),
        ("Trades", {"symbol": "a", "price": 1.0, "qty": 1, "prise": 2}, "Did you mean 'price'"),
    ]:
        with pytest.raises(SparkStreamError, match=said):
            app.send(stream, values)
    with pytest.raises(SparkStreamError, match="no node 2"):
        app.send("Trades", ["a", 1.0, 1], node=2)
    app.send("Trades", ["a", 60.0, None])
    app.flush()
    assert rows(app.output("High").frame[["symbol", "price", "qty"]]) == [("a", 60.0, pd.NA)]
    assert app.state == "running"


def test_a_closed_app_says_which_one_runs(run: Run) -> None:
    former, app = run(HIGH), run(HIGH, fresh=True)
    for call in (
        lambda: former.send("Trades", ["a", 60.0, 1]),
        lambda: former.feed("Trades", trades(3), time="at"),
        lambda: former.query("from T select *"),
        lambda: former.errors,
    ):
        with pytest.raises(
            Misuse, match=r"this app 'app' is closed.*sparkstream_nb\.get\('app'\) is the one that runs"
        ):
            call()
    app.send("Trades", ["a", 60.0, 1], at="2014-05-13 16:53:20")
    app.flush()
    assert app.output("High").frame["timestamp"].tolist() == [1_400_000_000_000]


def test_a_file_that_spark_cannot_read_is_one_line(run: Run, tmp_path: Path) -> None:
    app, folder = run(HIGH), tmp_path / "trades.parquet"
    folder.mkdir()
    trades(3).to_parquet(folder / "a.parquet")
    (folder / "b.parquet").write_text("no parquet")
    with pytest.raises(SparkStreamError) as wrong:
        app.feed("Trades", folder, time="at")
    assert str(wrong.value).startswith("trades.parquet cannot be read as parquet: ")
    assert "b.parquet': Parquet magic bytes not found" in str(wrong.value)
    said = str(wrong.value).replace(str(tmp_path), "")
    assert len(said) < 250
    assert "\n" not in said
    assert app.feed("Trades", trades(3), time="at").rows == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"nodes": 2, "mode": "single"}, "mode single has one node, not 2"),
        ({"nodes": 0}, "nodes must be 1 or more, not 0"),
        ({"mode": "activ-active", "nodes": 2}, "Did you mean 'active-active'"),
        ({"nodes": 2, "mode": "active-active", "shard_ids": ["a", "a"]}, "two nodes have the same shard id: a, a"),
        ({"nodes": 2, "mode": "active-active", "routing": "hash:sym"}, "no input stream has an attribute 'sym'"),
    ],
)
def test_deployments_that_do_not_fit_together(tmp_path: Path, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(SparkStreamError, match=said):
        deploy(HIGH, name="none", home=tmp_path, **arguments)
    assert not (tmp_path / "app.json").exists()


def test_a_wrong_app_never_reaches_spark(tmp_path: Path) -> None:
    with pytest.raises(SiddhiError, match="Did you mean"):
        deploy("define stream S (price double); from S select prise insert into Out;", name="none", home=tmp_path)
    assert not tmp_path.joinpath("app.json").exists()


def test_scripts_run_on_the_workers_where_they_are_allowed(run: Run, tmp_path: Path) -> None:
    script = """
    define stream S (a int);
    define function twice[javascript] return int { return 2 * data[0]; };
    from S select twice(a) as b insert into Out;
    """
    with pytest.raises(SiddhiError, match="function 'twice' is a script, and scripts are disabled") as refused:
        run(script)
    assert "allow_scripts=True" in str(refused.value)
    assert "--allow-scripts" in str(refused.value)
    assert not (tmp_path / "home").exists()
    app = run(script, allow_scripts=True, nodes=2, mode="active-active")
    for a in (1, 2):
        app.send("S", [a])
    app.flush()
    assert rows(app.output("Out").frame[["node", "b"]]) == [("node-1", 2), ("node-2", 4)]


def test_a_query_that_is_wrong(run: Run) -> None:
    app = run(SEED)
    with pytest.raises(SiddhiError):
        app.query("from Nothing select *")
    with pytest.raises((SiddhiError, NotInThisBuild)):
        app.query("from TradeStream select *")


@pytest.mark.contract
def test_sent_events_say_where_they_went_and_what_they_caused(run: Run) -> None:
    app = run(HIGH, nodes=2, mode="active-active")
    sent = app.send("Trades", [["a", 60.0, 1], ["b", 1.0, 1]], at="2024-06-01T10:00:00", wait=True)
    assert (sent.nodes, dict(sent.outputs), sent.clock, sent.started) == (("node-1",), {"High": 1}, None, False)
    assert text_of(sent) == "app.Trades: 2 events sent to node-1, at 2024-06-01 10:00:00 → High 1"
    app.stop()
    sent = app.send("Trades", ["a", 1.0, 1], node=2)
    assert (sent.nodes, sent.outputs, sent.started) == (("node-2",), None, True)
    lines = text_of(sent).splitlines()
    assert lines[1].startswith("That is this machine's time; the app's clock was at 2024-06-01 10:00:00. Another time:")
    assert lines[2] == "app was stopped, and runs again."


@pytest.mark.contract
def test_output_has_what_sent_events_caused_or_says_that_it_waits(run: Run) -> None:
    app = run(HIGH)
    app.send("Trades", ["a", 60.0, 1])
    assert app.output("High").frame["symbol"].tolist() == ["a"]
    app.stop()
    with app.runtime.lock:
        app.runtime.inbox.append([app.runtime.inbox.batch(feed_batch(), "round_robin")])
    found = app.output("High")
    assert found.waiting == 1
    assert text_of(found).endswith("1 event that came in is not computed yet: flush() waits for it.")
    app.flush()
    assert app.output("High").frame["symbol"].tolist() == ["a", "a"]


def feed_batch() -> InputBatch:
    at = np.array([0])
    columns = [pa.array(["a"]), pa.array([60.0]), pa.array([1], pa.int32())]
    return InputBatch(at, {"Trades": StreamRows(at, at, columns)})
