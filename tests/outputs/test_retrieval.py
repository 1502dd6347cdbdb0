"""Retrievals over a store: merged over shards, by shard, and the same as the answer of one node."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparkstream_nb.app.results.hints import why_empty
from sparkstream_nb.engine.columnar.column_data import ARROW
from sparkstream_nb.engine.expressions import Context
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.errors import NotInThisBuild, SiddhiRuntimeError
from sparkstream_nb.lang.parser import parse_on_demand
from sparkstream_nb.outputs import shard_retrieval
from sparkstream_nb.outputs.reach import find_missed
from sparkstream_nb.outputs.shard_retrieval import Retrieved, merge_nodes, retrieve, rows_wanted, select_all
from sparkstream_nb.plan import bind_retrieval, compile_app, compile_retrieval
from sparkstream_nb.plan.nodes import Plan
from sparkstream_nb.stores import DuckDBStore, Store
from sparkstream_nb.stores.store_protocol import BatchKey

APP = """
define stream TradeStream (symbol string, price double, quantity long, timestamp long);
define aggregation TradeAggregation from TradeStream
select symbol, price, avg(price) as avgPrice, sum(quantity) as total, distinctCount(quantity) as kinds
group by symbol aggregate by timestamp every sec ... year;
"""
TEN = 1678788000000
ALL = "from TradeAggregation within '2023-**-** **:**:**' per"
EVENTS = [
    ["WSO2", 10.0, 10, TEN],
    ["WSO2", 30.0, 15, TEN + 1000],
    ["IBM", 50.0, 3, TEN + 1500],
    ["WSO2", 20.0, 20, TEN + 60_000],
    ["IBM", None, 4, TEN + 90_000],
    ["WSO2", 40.0, 25, TEN + 2000],
    [None, 1.0, 3, TEN + 86_400_000],
]


def step(node: NodeEngine, rows: Sequence[Sequence[Any]]) -> pa.Table:
    types = node.plan.schema("TradeStream").types
    ts = np.arange(len(rows)) + node.now + 1
    columns = [pa.array([r[i] for r in rows], ARROW[t]) for i, t in enumerate(types)]
    return node.step(InputBatch(ts, {"TradeStream": StreamRows(np.arange(len(rows)), ts, columns)})).partials


def filled(path: Path, plan: Plan, shards: dict[str, list[list[Any]]]) -> Store:
    store = DuckDBStore(path)
    store.prepare(plan.aggregations.values())
    partials = {
        ("TradeAggregation", s): step(NodeEngine(plan, shard=s), rows)["TradeAggregation"] for s, rows in shards.items()
    }
    assert store.commit(BatchKey("app", "run", 0), partials)
    return store


@pytest.fixture
def plan() -> Plan:
    return compile_app(APP, properties={"partitionById": "true", "shardId": "wso2-sp-1"})


def ask(plan: Plan, store: Store, text: str) -> Retrieved:
    return retrieve(plan, bind_retrieval(parse_on_demand(text), plan, text), store, now=TEN)


def test_thirty_and_forty_are_seventy(plan: Plan, tmp_path: Path) -> None:
    store = filled(tmp_path / "db", plan, {"wso2-sp-1": [EVENTS[0], EVENTS[3]], "wso2-sp-2": [EVENTS[1], EVENTS[5]]})
    found = ask(plan, store, f"{ALL} 'hours' select symbol, total, avgPrice, price")
    assert found.answer.columns == [
        ("symbol", "string"),
        ("total", "long"),
        ("avgPrice", "double"),
        ("price", "double"),
    ]
    assert found.answer.rows == [["WSO2", 70, 25.0, 20.0]]
    assert found.by_shard is not None
    assert found.by_shard.columns[0] == ("SHARD_ID", "string")
    assert [r[:3] for r in found.by_shard.rows] == [["wso2-sp-1", "WSO2", 30], ["wso2-sp-2", "WSO2", 40]]


@pytest.mark.parametrize("per", ["sec", "min", "hours", "days", "months", "years"])
@pytest.mark.parametrize(
    "rest",
    [
        "select * order by AGG_TIMESTAMP, symbol",
        "select symbol, sum(total) as t, max(kinds) as k group by symbol order by t",
        "select symbol, total having total > 5L order by total desc, symbol limit 2",
        "select sum(total) as t, count() as n",
    ],
)
def test_as_one_node_answers(plan: Plan, tmp_path: Path, per: str, rest: str) -> None:
    text = f"{ALL} '{per}' {rest}"
    one = NodeEngine(plan)
    step(one, EVENTS)
    truth = one.answer(bind_retrieval(parse_on_demand(text), plan, text))
    store = filled(tmp_path / "db", plan, {"a": EVENTS[::3], "b": EVENTS[1::3], "c": EVENTS[2::3]})
    merged = ask(plan, store, text).answer
    assert merged.columns == truth.columns
    # A null stands anywhere in an order.
    assert sorted(map(repr, merged.rows)) == sorted(map(repr, truth.rows))


def test_on_is_asked_of_merged_rows(plan: Plan, tmp_path: Path) -> None:
    store = filled(tmp_path / "db", plan, {"a": [EVENTS[0]], "b": [EVENTS[5]]})
    found = ask(plan, store, "from TradeAggregation on total > 30L within 0L, 9999999999999L per 'hours' select total")
    assert found.answer.rows == [[35]]
    assert found.by_shard is not None
    assert found.by_shard.rows == []


def test_without_partition_there_are_no_shards(tmp_path: Path) -> None:
    plan = compile_app(APP)
    store = filled(tmp_path / "db", plan, {"": EVENTS})
    found = retrieve(plan, select_all(plan, "TradeAggregation", "year", ("2023-**-** **:**:**",)), store)
    assert found.by_shard is None
    assert {r[1]: r[4] for r in found.answer.rows} == {"WSO2": 70, "IBM": 7, None: 3}


def test_what_is_wrong_is_said(plan: Plan, tmp_path: Path) -> None:
    store = filled(tmp_path / "db", plan, {"a": EVENTS})
    with pytest.raises(SiddhiRuntimeError, match="must be before its end"):
        ask(plan, store, "from TradeAggregation within 2L, 1L per 'sec' select total")
    with pytest.raises(SiddhiRuntimeError, match=r"no aggregation 'TradeAgregation'.*TradeAggregation"):
        select_all(plan, "TradeAgregation", "sec", (0, 1))


TABLES = """
define stream S (k string, v int, d double);
@PrimaryKey('k', 'v') define table T (k string, v int, d double);
define window W (k string, v int, d double) length(3) output all events;
from S insert into T;
from S insert into W;
"""
ROWS = [["a", 1, 1.5], ["b", 2, None], ["a", 3, 2.5], ["c", 4, 0.5], ["b", 5, 4.0], [None, 6, 1.0]]


def node_of(plan: Plan, rows: Sequence[Sequence[Any]]) -> NodeEngine:
    node = NodeEngine(plan)
    ts = np.arange(len(rows)) + TEN
    columns = [pa.array([r[i] for r in rows], ARROW[t]) for i, t in enumerate(plan.schema("S").types)]
    node.step(InputBatch(ts, {"S": StreamRows(np.arange(len(rows)), ts, columns)}))
    return node


@pytest.mark.parametrize(
    "text",
    [
        "from T select k, v, d order by v",
        "from T on v > 1 select k, sum(v) as s, avg(d) as m, count() as n group by k order by s desc limit 2",
        "from T select max(d) as most, distinctCount(k) as kinds having kinds > 2",
        "from T select k, v, d order by d desc, v limit 2 offset 1",
        "from W on d is null or d > 0.7 select k as owner, count() as n group by k having n > 0 order by n, owner",
    ],
)
def test_tables_and_windows_of_several_nodes_answer_as_one(text: str) -> None:
    plan = compile_app(TABLES)
    parts = {"node-1": ROWS[0::2], "node-2": ROWS[1::2]}
    retrieval = compile_retrieval(text, plan)
    wanted = compile_retrieval(rows_wanted(text), plan)
    found = {shard: node_of(plan, rows).answer(wanted) for shard, rows in parts.items()}
    merged = merge_nodes(retrieval, found, Context(), TEN)
    # Three rows in either node's window, so that one window of six holds the same.
    whole = node_of(compile_app(TABLES.replace("length(3)", "length(6)")), [r for p in parts.values() for r in p])
    assert merged.answer == whole.answer(retrieval)
    assert merged.by_shard is not None
    assert merged.by_shard.columns[0] == ("SHARD_ID", "string")
    for shard, rows in parts.items():
        own = node_of(plan, rows).answer(retrieval)
        assert [row[1:] for row in merged.by_shard.rows if row[0] == shard] == own.rows


def test_a_select_that_looks_into_a_table_is_not_merged() -> None:
    plan = compile_app(TABLES)
    text = "from T select k, v having (T.v == v in T)"
    with pytest.raises(NotInThisBuild, match="'in' a table"):
        merge_nodes(compile_retrieval(text, plan), {}, Context(), TEN)


@pytest.mark.parametrize(
    "on", ["", " on symbol == 'WSO2'", " on 'IBM' == symbol and total > 3", " on symbol == 'none'"]
)
@pytest.mark.parametrize("per", ["seconds", "days"])
def test_the_store_merges_many_rows_as_the_engine_does(
    on: str, per: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = compile_app(APP, properties={"partitionById": "true", "shardId": "a"})
    store = filled(tmp_path / "s.duckdb", plan, {"a": EVENTS[:4], "b": EVENTS[4:]})
    text = f"from TradeAggregation{on} within '2023-**-** **:**:**' per '{per}' select *"
    few = retrieve(plan, compile_retrieval(text, plan), store)
    monkeypatch.setattr(shard_retrieval, "MERGED_HERE", 0)
    many = retrieve(plan, compile_retrieval(text, plan), store)
    assert many.answer == few.answer
    assert many.by_shard == few.by_shard
    assert bool(few.answer.rows) is ("none" not in on)
    store.close()


def test_only_the_rows_of_a_wanted_key_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = compile_app(APP, properties={"partitionById": "true", "shardId": "a"})
    store = filled(tmp_path / "s.duckdb", plan, {"a": EVENTS})
    read: list[int] = []
    plain = store.read_by_shard

    def noted(*args: Any) -> pa.Table:
        table = plain(*args)
        read.append(table.num_rows)
        return table

    monkeypatch.setattr(store, "read_by_shard", noted)
    for on in ("", "on symbol == 'IBM'"):
        text = f"from TradeAggregation {on} within '2023-**-** **:**:**' per 'days' select total"
        retrieve(plan, compile_retrieval(text, plan), store)
    assert read == [3, 1]
    store.close()


def test_what_within_does_not_reach(plan: Plan, tmp_path: Path) -> None:
    store = filled(tmp_path / "db", plan, {"a": [EVENTS[0]], "b": [EVENTS[6]]})

    def why(text: str, store: Store = store) -> str | None:
        found = find_missed(plan, compile_retrieval(f"from TradeAggregation {text} select total", plan), store, now=TEN)
        return None if found is None else why_empty(found)

    assert why("within '2023-**-** **:**:**' per 'days'") is None
    assert why("on total > 1000L within '2023-**-** **:**:**' per 'days'") is None
    held = "TradeAggregation holds 2023-03-14 ... 2023-03-15 (UTC)"
    assert why("within '2024-**-** **:**:**' per 'days'") == f"nothing within 2024-01-01 ... 2025-01-01; {held}"
    assert why("within '2023-03-14 09:00:00', '2023-03-14 09:30:00' per 'seconds'") == (
        "nothing within 2023-03-14 09:00:00 ... 2023-03-14 09:30:00; "
        "TradeAggregation holds 2023-03-14 10:00:00 ... 2023-03-15 10:00:00 (UTC)"
    )
    assert why("within '2023-03-** **:**:**' per 'years'") == (
        "nothing within 2023-03-01 ... 2023-04-01; TradeAggregation holds 2023-01-01 (UTC)"
    )
    empty = filled(tmp_path / "empty", plan, {})
    assert why("within '2023-**-** **:**:**' per 'days'", empty) == "TradeAggregation holds nothing yet"
