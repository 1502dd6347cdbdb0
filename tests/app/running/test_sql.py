"""SQL over an app: its relations have the rows of its frames, all of one commit."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sparkstream_nb
from sparkstream_nb.app import App
from sparkstream_nb.app.results.sql_answer import SqlAnswer
from sparkstream_nb.errors import Misuse
from sparkstream_nb.journal import inbox
from sparkstream_nb.outputs import merging

TEXT = """@app:name('Trades')
define stream Prices (symbol string, price double, volume long, tag object);
define table Last (symbol string, price double);
define window Recent (symbol string, price double) length(5);
@PartitionById
define aggregation Totals from Prices select symbol, sum(volume) as total, avg(price) as average group by symbol
    aggregate every sec ... hour;
from Prices[price > 50.0] select symbol, price, volume insert into Alerts;
from Prices select symbol, price insert into Recent;
from Prices select symbol, price update or insert into Last set Last.price = price on Last.symbol == symbol;
"""
START = 1_700_000_000_000
Runner = Callable[..., App]


@pytest.fixture
def app(run: Runner) -> App:
    app = run(TEXT, nodes=3)
    rng = random.Random(1)
    for i in range(300):
        price = rng.choice([None, float("nan"), -0.0, *(float(p) for p in range(1, 100))])
        values = [rng.choice(["ibm", "wso2", None, "it's", "ä\x1b[31m"]), price, rng.choice([None, i]), {"i": i}]
        app.send("Prices", values, at=START + 700 * i)
    return app


# -------------------------------------------------------------------------------------------------- as pandas has it


class Shape:
    """A query as SQL and as pandas. Of `relation`, which has the rows of a frame: groups by `by`, or rows."""

    def __init__(self, rng: random.Random, relation: str, frame: pd.DataFrame) -> None:
        self._relation, self._frame = relation, frame
        texts = [c for c in frame.columns if c in ("node", "symbol", "SHARD_ID")]
        numbers = [c for c in frame.columns if c not in (*texts, "tag")]
        self._number, self._by = rng.choice(numbers), rng.choice(texts)
        self._bound = rng.choice([0, 10, 50, 1e6, START + 70_000])
        self._compares, self._groups = rng.choice([">", "<=", "=", "is null"]), rng.random() < 0.6
        self._aggregate = rng.choice(["count", "sum", "min", "max", "avg", "distinct"])

    @property
    def sql(self) -> str:
        where = f'"{self._number}" {self._compares}' + ("" if "null" in self._compares else f" {self._bound}")
        if not self._groups:
            return f'select "{self._by}", "{self._number}" from {self._relation} where {where}'
        call = f'{self._aggregate}("{self._number}")'
        if self._aggregate == "distinct":
            call = f'count(distinct "{self._number}")'
        return f'select "{self._by}", {call} as x from {self._relation} where {where} group by "{self._by}"'

    def by_pandas(self) -> list[tuple[Any, Any]]:
        column = pd.Series([None if v is None or v is pd.NA else v for v in self._frame[self._number]], dtype=object)
        chosen = [self._passes(v) for v in column]
        rows = [*zip(self._frame[self._by], column, strict=True)]
        rows = [(None if pd.isna(k) else k, v) for (k, v), passes in zip(rows, chosen, strict=True) if passes]
        if not self._groups:
            return rows
        groups: dict[Any, list[Any]] = {}
        for key, value in rows:
            groups.setdefault(key, []).append(value)
        return [(key, self._fold([v for v in values if v is not None])) for key, values in groups.items()]

    def _passes(self, value: Any) -> bool:
        if self._compares == "is null":
            return value is None
        if value is None:
            return False
        # NaN is the greatest number to DuckDB, and equals itself
        is_nan = isinstance(value, float) and np.isnan(value)
        if self._compares == ">":
            return is_nan or value > self._bound
        return value <= self._bound if self._compares == "<=" else value == self._bound

    def _fold(self, values: list[Any]) -> Any:
        if self._aggregate in ("count", "distinct"):
            unique = {"nan" if v != v else v for v in values}
            return len(values) if self._aggregate == "count" else len(unique)
        if not values:
            return None
        series = pd.Series(values, dtype="float64")
        if self._aggregate == "min":  # of NaN and numbers the numbers are less
            return float("nan") if series.isna().all() else series.min()
        if series.isna().any():
            return float("nan")
        return {"sum": series.sum(), "max": series.max(), "avg": series.mean()}[self._aggregate]


def rows_of(answer: SqlAnswer) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in answer.table.to_pylist()]


def in_order(rows: list[tuple[Any, ...]]) -> list[str]:
    """Rows as texts, in order; numbers with ten digits."""

    def text(value: Any) -> str:
        return f"{float(value):.10g}" if isinstance(value, int | float | Decimal) else str(value)

    return sorted(str([text(v) for v in row]) for row in rows)


def test_two_hundred_queries_equal_pandas_over_the_frames(app: App) -> None:
    merged, by_shard = app.aggregation("Totals", "sec")
    frames = {
        "outputs.Alerts": app.output("Alerts").frame,
        "inputs.Prices": app.output("Prices").frame,
        "aggregations.Totals_SECONDS": merged,
        "shards.Totals_SECONDS": by_shard,
    }
    rng = random.Random(7)
    for _ in range(200):
        relation = rng.choice([*frames])
        shape = Shape(rng, relation, frames[relation])
        assert in_order(rows_of(app.sql(shape.sql))) == in_order(shape.by_pandas()), shape.sql


def test_frames_and_answers_have_the_same_types(app: App) -> None:
    for relation, frame in (("Alerts", app.output("Alerts").frame), ("Prices", app.output("Prices").frame)):
        columns = ", ".join(f'"{c}"' for c in frame.columns if c != "tag")
        answer = app.sql(f"select {columns} from {relation}")
        pd.testing.assert_frame_equal(answer.frame, frame.drop(columns="tag", errors="ignore"))
    assert app.sql("select tag from Prices limit 1").frame["tag"].tolist() == ['{"i": 0}']
    total = app.sql("select sum(volume) as v, sum(9223372036854775807) as w from Prices").frame
    assert (str(total["v"].dtype), total["w"].tolist()) == ("int64", [9223372036854775807 * 300])


def test_tables_and_windows_of_each_node(app: App) -> None:
    query = app.query("from Last select symbol, price").frame
    table = app.sql("select symbol, price, node from Last").frame
    assert in_order([*zip(table["symbol"], table["price"], strict=True)]) == in_order(
        [*zip(query["symbol"], query["price"], strict=True)]
    )
    assert app.sql("select node, count(*) as n from Recent group by all order by all").frame["n"].tolist() == [5, 5, 5]


def test_errors_divergence_and_metrics(app: App) -> None:
    app.feed("Prices", pd.DataFrame({"symbol": ["x", "y"], "price": ["1", "much"], "volume": [1, 1], "tag": [1, 1]}))
    errors = app.errors.frame.reset_index()
    answer = app.sql("from errors").frame
    assert answer["reason"].tolist() == errors["reason"].tolist() != []
    verdicts = app.sql("select verdict, count(*) as n from divergence group by all").frame
    assert dict(verdicts.to_numpy()) == app.divergence().frame["verdict"].value_counts().to_dict()
    nodes = app.sql("select shard, events from metrics.nodes order by shard").frame
    pd.testing.assert_frame_equal(nodes, app.stats().nodes_frame[["shard", "events"]], check_dtype=False)
    assert set(app.sql("from metrics.parts").frame["name"]) == {p.name for p in app.stats().parts}
    state = app.sql("select node, name, rows from metrics.state order by all").frame
    assert len(state) == len(app.stats().state_frame)


# ------------------------------------------------------------------------------------------------------------- names


def test_several_apps_and_frames_in_one_query(run: Runner, tmp_path: Path) -> None:
    for name in ("First", "Second"):
        app = run("define stream S (v int); from S select v insert into O;", name=name, home=tmp_path / name)
        app.send("S", [len(name)], at=1)
    limits = pd.DataFrame({"v": [5, 6], "word": ["five", "six"]})
    text = "select a.v + b.v as v, word from First.outputs.O a, Second.outputs.O b join limits l on l.v = a.v"
    assert rows_of(sparkstream_nb.sql(text, frames={"limits": limits})) == [(11, "five")]
    names = [line.name for line in sparkstream_nb.sql_relations()]
    assert names[:2] == ["First.inputs.S", "First.outputs.O"]
    assert "Second.metrics.nodes" in names
    with pytest.raises(Misuse, match=r"no variable 'O' with rows; write First\.outputs\.O or Second\.outputs\.O"):
        sparkstream_nb.sql("from O")


def test_the_only_app_needs_no_name(app: App) -> None:
    assert rows_of(sparkstream_nb.sql("select count(*) from inputs.Prices")) == [(300,)]


def test_arguments_of_other_types(app: App) -> None:
    for call in (
        lambda: app.sql(1),  # type: ignore[arg-type]
        lambda: app.sql("select 1", limit=0),
        lambda: app.sql("select 1", limit=True),
        lambda: app.sql("select 1", frames=[1]),  # type: ignore[arg-type]
        lambda: app.sql("select 1", frames={1: 2}),  # type: ignore[dict-item]
    ):
        with pytest.raises(Misuse):
            call()


# -------------------------------------------------------------------------------------------------------- one commit

COUNTS = """select (select count(*) from inputs.Prices) as came, (select count(*) from outputs.Everything) as out,
    (select sum(n) from aggregations.Counts_HOURS) as counted, (select sum(n) from tables.Seen) as seen,
    (select sum(total) from windows.Latest) as latest"""
LIVE = """@app:name('Live')
define stream Prices (k int, v int);
define window Latest (node int, total long) length(1);
define table Seen (k int, n long);
@PartitionById
define aggregation Counts from Prices select count() as n aggregate every hour;
from Prices select k, v insert into Everything;
from Prices select k, count() as n group by k update or insert into Seen set Seen.n = n on Seen.k == k;
from Prices select 1 as node, count() as total insert into Latest;
"""


def check_one_commit(app: App, seconds: float) -> None:
    """Asks while events come in; every answer is of one commit."""
    frame = pd.DataFrame({"k": np.arange(60_000) % 7, "v": 1, "t": START + np.arange(60_000)})
    feed = app.feed("Prices", frame, time="t", background=True, rate=60_000 / seconds)
    asked = []
    while feed.active:
        asked.append(app.sql(COUNTS))
    asked.append(app.sql(COUNTS))
    assert {answer.notes for answer in asked} == {()}
    answers = [rows_of(answer)[0] for answer in asked]
    assert {len(set(answer)) for answer in answers} == {1}, answers
    counts = [answer[0] for answer in answers]
    assert counts == sorted(counts)
    assert counts[-1] == 60_000
    assert len(set(counts)) > 1


@pytest.mark.parametrize("nodes", [1, 3])
def test_all_that_is_read_of_a_live_app_is_of_one_commit(run: Runner, nodes: int) -> None:
    check_one_commit(run(LIVE, nodes=nodes, rows_per_micro_batch=997), 4.0)


@pytest.mark.spark
def test_all_that_is_read_of_a_live_app_on_spark_is_of_one_commit(run: Runner) -> None:
    check_one_commit(run(LIVE, nodes=3, master="local[2]"), 15.0)


def test_questions_of_several_threads(app: App) -> None:
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            for _ in range(5):
                assert rows_of(app.sql("select (select count(*) from Last), (select count(*) from Alerts)"))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for i in range(20):
        app.send("Prices", ["x", 60.0, i, None], at=START + 10**6 + i)
    for thread in threads:
        thread.join()
    assert not errors


# ------------------------------------------------------------------------------------------------------ other states


def test_a_stopped_app_has_its_last_state(app: App) -> None:
    before = {name: in_order(rows_of(app.sql(f"from {name}"))) for name in ("Alerts", "Last", "Recent", "Totals_HOURS")}
    app.stop()
    for name, rows in before.items():
        answer = app.sql(f"from {name}")
        assert in_order(rows_of(answer)) == rows, name
        assert answer.notes == ("app is stopped: its last state, of 2023-11-14 22:16:49 UTC",)
    assert app.state == "stopped"


def test_a_closed_app(app: App) -> None:
    app.runtime.close()
    with pytest.raises(Misuse, match="is closed"):
        app.sql("from Alerts")


def test_events_that_are_no_longer_kept_are_counted(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "SEGMENT_BYTES", 1_000)
    monkeypatch.setattr(merging, "MANY", 1)
    app = run("define stream S (t string); from S select t insert into O;", retention="recording=3KB,outputs=8KB")
    for i in range(50):
        app.send("S", ["x" * 500], at=i + 1, wait=True)
    app.stop()  # merging ends
    for relation in ("O", "S"):
        answer = app.sql(f"select count(*) from {relation}")
        ((count,),) = rows_of(answer)
        assert 0 < count < 50
        assert answer.notes[1] == f"the first {50 - count} events of app.{relation} are no longer kept"


def test_tables_of_a_pair_are_those_of_its_active_node(run: Runner) -> None:
    app = run(TEXT.replace("@PartitionById\n", ""), mode="ha")
    for i in range(20):
        app.send("Prices", ["ibm", float(i * 10), i, None], at=START + i * 1000)
    assert rows_of(app.sql("select symbol, price from Last")) == [("ibm", 190.0)]
    assert rows_of(app.sql("select sum(total) from Totals_HOURS")) == [(190,)]
    app.stop()
    with pytest.raises(Misuse, match=r"its aggregations are in its nodes: app.start\(\) first"):
        app.sql("from Totals_HOURS")


def test_a_table_in_a_database_is_read_once(run: Runner, tmp_path: Path) -> None:
    store = f"@store(type='rdbms', jdbc.url='jdbc:sqlite:{tmp_path / 't.db'}')"
    text = f"define stream S (v int); {store} define table T (v int); from S insert into T;"
    app = run(text, nodes=2, allow=[f"file={tmp_path}"])
    for i in range(4):
        app.send("S", [i], at=i + 1)
    assert sorted(rows_of(app.sql("select v from T"))) == [(0,), (1,), (2,), (3,)]


@pytest.fixture(autouse=True)
def _no_other_apps() -> None:
    sparkstream_nb.app.stop_all()


def test_values_of_an_enum_are_texts() -> None:
    answer = sparkstream_nb.sql("select cast('a' as enum ('a', 'b')) as e union all select null", frames={})
    assert [None if pd.isna(value) else value for value in answer.frame["e"]] == ["a", None]
