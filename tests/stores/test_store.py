"""What every store must do. Written against the protocol; `open_store` is parametrised by the stores there are."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.errors import StoreError
from sparkstream_nb.plan.nodes import DURATIONS, BatchClock
from sparkstream_nb.stores import BucketRange, ErrorRow, GroupFilter, ShardRows, Store, shard_warnings
from sparkstream_nb.stores.store_protocol import BatchKey, KeySearch

from .trades import AGGREGATION, LIKE_A_PARAMETER, NOON, TRADES, partials_of, plan_of, rows_of, step

A = "TradeAggregation"
Open = Callable[[], Store]
ALWAYS = (-(2**62), 2**62)


def seed(store: Store) -> None:
    """The seed's example: 30 on node 1 and 40 on node 2 within one hour."""
    plan = plan_of()
    store.prepare(plan.aggregations.values())
    one = partials_of(plan, [["WSO2", 10.0, 10, NOON], ["WSO2", 20.0, 20, NOON + 60_000]])
    two = partials_of(plan, [["WSO2", 30.0, 15, NOON + 1000], ["WSO2", 40.0, 25, NOON + 2000]])
    assert store.commit(BatchKey("app", "run", 0), {(A, "node-1"): one, (A, "node-2"): two})


def totals(store: Store, per: str = "hour") -> list[object]:
    return [r["AGG_SUM_quantity"] for r in store.read(A, per, *ALWAYS).to_pylist()]  # type: ignore[arg-type]


def test_two_nodes_make_seventy(open_store: Open) -> None:
    store = open_store()
    seed(store)
    for per in ("hour", "day", "month", "year"):
        assert totals(store, per) == [70]
    by_shard = store.read_by_shard(A, "hour", *ALWAYS).to_pylist()
    assert [(r["SHARD_ID"], r["AGG_SUM_quantity"]) for r in by_shard] == [("node-1", 30), ("node-2", 40)]
    assert store.shards(A)[0].shard == "node-1"


def test_merged_row_has_every_kind_of_column(open_store: Open) -> None:
    store = open_store()
    seed(store)
    assert rows_of(store.read(A, "hour", *ALWAYS)) == [
        {
            "AGG_TIMESTAMP": NOON, "AGG_EVENT_TIMESTAMP": NOON, "symbol": "WSO2", "price": 20.0,
            "AGG_SUM_price": 100.0, "AGG_COUNT_price": 4, "AGG_SUM_quantity": 70, "AGG_SET_quantity": [10, 15, 20, 25],
            "AGG_MIN_price": 10.0, "AGG_MAX_quantity": 25, "AGG_LAST_EVENT_TIMESTAMP": NOON + 60_000,
        }
    ]  # fmt: skip


def test_start_is_inclusive_and_end_exclusive(open_store: Open) -> None:
    store = open_store()
    seed(store)
    second = [r["AGG_TIMESTAMP"] for r in store.read(A, "sec", NOON, NOON + 2000).to_pylist()]
    assert second == [NOON, NOON + 1000]


def test_a_batch_counts_once(open_store: Open) -> None:
    store = open_store()
    seed(store)
    before = [rows_of(store.read_by_shard(A, d, *ALWAYS)) for d in DURATIONS]
    again = {(A, "node-1"): partials_of(plan_of(), [["WSO2", 1.0, 1, NOON]])}
    assert store.commit(BatchKey("app", "run", 0), again, [ErrorRow("S", 1, [1], "no")]) is False
    assert [rows_of(store.read_by_shard(A, d, *ALWAYS)) for d in DURATIONS] == before
    assert store.errors("app").num_rows == 0


@pytest.mark.parametrize("key", [("app", "run", 1), ("app", "other", 0), ("other", "run", 0)])
def test_another_batch_counts(open_store: Open, key: tuple[str, str, int]) -> None:
    store = open_store()
    seed(store)
    assert store.commit(BatchKey(*key), {(A, "node-1"): partials_of(plan_of(), [["WSO2", 1.0, 1, NOON]])})
    assert totals(store) == [71]


def test_it_lasts(open_store: Open) -> None:
    seed(open_store())
    store = open_store()
    store.prepare(plan_of().aggregations.values())
    assert totals(store) == [70]
    assert store.commit(BatchKey("app", "run", 0), {}) is False


def test_a_commit_is_all_or_nothing(open_store: Open) -> None:
    store = open_store()
    seed(store)
    good = partials_of(plan_of(), [["WSO2", 1.0, 1, NOON]])
    wrong = good.drop_columns(["AGG_SUM_price"])
    with pytest.raises(KeyError):
        store.commit(BatchKey("app", "run", 1), {(A, "node-1"): good, (A, "node-2"): wrong})
    assert totals(store) == [70]
    assert store.commit(BatchKey("app", "run", 1), {(A, "node-1"): good})
    assert totals(store) == [71]


def test_errors_come_with_the_batch(open_store: Open) -> None:
    store = open_store()
    errors = [ErrorRow("S", 5, ["x", None, 1.5], "x/0"), ErrorRow("T", None, [], "no time")]
    assert store.commit(BatchKey("app", "run", 0), {}, errors)
    found = store.errors("app").to_pylist()
    assert [(e["stream"], e["ts"], json.loads(e["values"]), e["reason"]) for e in found] == [
        ("S", 5, ["x", None, 1.5], "x/0"),
        ("T", None, [], "no time"),
    ]
    assert store.errors("another").num_rows == 0


def test_the_oldest_errors_go_first_and_are_counted(open_store: Open) -> None:
    store = open_store()
    for app, n in (("app", 5), ("other", 3)):
        assert store.commit(BatchKey(app, "run", 0), {}, [ErrorRow("S", i, [i], "no") for i in range(n)])
    assert store.trim_errors("app", None) == store.trim_errors("app", 5) == 0
    assert store.trim_errors("app", 3) == 2
    assert store.errors("app")["ts"].to_pylist() == [2, 3, 4]
    store.forget_errors("app", store.errors("app")["id"].to_pylist()[:1])
    assert store.trim_errors("app", 1) == 3
    assert (store.errors("app")["ts"].to_pylist(), store.errors("other").num_rows) == ([4], 3)
    store = open_store()
    assert (store.trim_errors("app", None), store.trim_errors("other", None)) == (3, 0)


def test_how_far_it_is_can_be_asked_before_anything_else(open_store: Open) -> None:
    store = open_store()
    assert store.last_committed("app", "run") == -1
    assert store.errors("app").num_rows == 0
    store.commit(BatchKey("app", "run", 3), {})
    assert store.last_committed("app", "run") == 3
    assert store.errors("app").num_rows == 0


def test_null_and_empty_keys_are_kept_apart(open_store: Open) -> None:
    store = open_store()
    text = TRADES + (
        "define aggregation N from TradeStream select symbol, quantity, count() as n "
        "group by symbol, quantity aggregate by timestamp every min;"
    )
    plan = plan_of("node-1", text)
    store.prepare(plan.aggregations.values())
    rows = [["", 0.0, 0, NOON], [None, 0.0, 0, NOON], [None, 0.0, None, NOON], ["", 0.0, None, NOON]]
    for batch in range(2):
        store.commit(BatchKey("app", "run", batch), {("N", "node-1"): partials_of(plan, rows, "N")})
    found = {(r["symbol"], r["quantity"]): r["AGG_COUNT"] for r in store.read("N", "min", *ALWAYS).to_pylist()}
    assert found == {("", 0): 2, (None, 0): 2, (None, None): 2, ("", None): 2}


def test_null_values_merge(open_store: Open) -> None:
    store = open_store()
    plan = plan_of()
    store.prepare(plan.aggregations.values())
    for batch, row in enumerate([["x", None, None, NOON], ["x", 2.0, None, NOON + 1], ["x", None, 7, NOON + 2]]):
        store.commit(BatchKey("app", "run", batch), {(A, "node-1"): partials_of(plan, [row])})
    (row,) = rows_of(store.read(A, "year", *ALWAYS))
    assert (row["AGG_SUM_price"], row["AGG_COUNT_price"], row["AGG_SUM_quantity"]) == (2.0, 1, 7)
    assert (row["AGG_MIN_price"], row["AGG_MAX_quantity"], row["AGG_SET_quantity"]) == (2.0, 7, [None, 7])
    assert row["price"] is None


def test_a_sum_wraps_as_in_java(open_store: Open) -> None:
    store = open_store()
    plan = plan_of()
    store.prepare(plan.aggregations.values())
    big = 2**63 - 1
    for batch in range(2):
        store.commit(BatchKey("app", "run", batch), {(A, "node-1"): partials_of(plan, [["x", 0.0, big, NOON]])})
    store.commit(BatchKey("app", "run", 2), {(A, "node-2"): partials_of(plan, [["x", 0.0, 5, NOON]])})
    assert totals(store, "year") == [3]


def test_without_partition_nodes_share_rows(open_store: Open) -> None:
    store = open_store()
    plan = plan_of(None)
    store.prepare(plan.aggregations.values())
    part = partials_of(plan, [["x", 1.0, 5, NOON]])
    store.commit(BatchKey("app", "run", 0), {(A, "node-1"): part, (A, "node-2"): part})
    assert totals(store) == [10]
    assert store.shards(A) == []
    with pytest.raises(StoreError, match="not partitioned"):
        store.read_by_shard(A, "hour", *ALWAYS)


def test_names_are_not_code(open_store: Open) -> None:
    store = open_store()
    text = (
        'define stream `S"; drop table x; --` (`group` string, `a"b` long);\n'
        'define aggregation `select` from `S"; drop table x; --` '
        'select `group`, sum(`a"b`) as `order` group by `group` aggregate every sec;'
    )
    plan = plan_of("it's", text)
    store.prepare(plan.aggregations.values())
    (stream,) = plan.streams
    part = step(NodeEngine(plan), stream, [["'; drop table y; --", 3]])["select"]
    store.commit(BatchKey("a'pp", "r'un", 0), {("select", "it's"): part})
    assert store.read("select", "sec", *ALWAYS).to_pylist()[0]["group"] == "'; drop table y; --"
    assert store.shards("select") == [ShardRows("it's", 1)]


def test_names_are_not_parameters(open_store: Open) -> None:
    """A `%` in a name is no placeholder of a driver's, nor is a `:`."""
    store = open_store()
    text = (
        f"define stream S (`100%d` string, `%s {LIKE_A_PARAMETER}` long);\n"
        f"define aggregation `a%%b` from S select `100%d`, sum(`%s {LIKE_A_PARAMETER}`) as `%d x:y` group by `100%d` "
        "aggregate every sec...min;"
    )
    plan = plan_of("50%", text)
    store.prepare(plan.aggregations.values())
    engine = NodeEngine(plan)
    for batch, count in ((0, 1), (1, 3000)):  # PostgreSQL is given a few rows in another way than many
        part = step(engine, "S", [[f"{i}%s", 3] for i in range(count)])["a%%b"]
        store.commit(BatchKey("a%p", "r%n", batch), {("a%%b", "50%"): part})
    rows = store.read("a%%b", "min", *ALWAYS)
    assert sorted(rows.to_pylist()[0]) == sorted(rows.column_names)
    assert (rows.num_rows, sum(rows.column(rows.num_columns - 1).to_pylist())) == (3000, 9003)
    assert store.key_values("a%%b", "sec", KeySearch(0, 2)) == ["0%s", "1%s"]
    assert [s.shard for s in store.shards("a%%b")] == ["50%"]


def test_what_can_be_drawn(open_store: Open) -> None:
    store = open_store()
    plan = plan_of()
    store.prepare(plan.aggregations.values())
    assert store.key_values(A, "sec", KeySearch(0, 10)) == []
    assert store.buckets(A, "sec", BucketRange(*ALWAYS, most=5)).total == 0
    for shard in ("node-1", "node-2"):
        rows = [[k, 1.0, 2, NOON + 1000 * i] for i in range(6) for k in ("b", None, "a")]
        rows.append(["c", 3.0, 4, NOON + 9000])
        assert store.commit(BatchKey("app", shard, 0), {(A, shard): partials_of(plan, rows)})
    assert store.key_values(A, "sec", KeySearch(0, 10)) == [None, "a", "b", "c"]
    assert len(store.key_values(A, "sec", KeySearch(0, 2))) == 2
    found = store.buckets(A, "sec", BucketRange(*ALWAYS, most=3))
    assert (found.starts - NOON).tolist() == [4000, 5000, 9000]
    assert (found.before, found.total) == (4, 7)
    found = store.buckets(A, "sec", BucketRange(NOON + 1000, ALWAYS[1], 2, latest=False), GroupFilter(only=(None,)))
    assert (found.starts - NOON).tolist() == [1000, 2000]
    assert (found.before, found.total) == (1, 6)
    (row,) = store.read(A, "day", *ALWAYS, GroupFilter(only=(None,))).to_pylist()
    assert (row["symbol"], row["AGG_SUM_quantity"]) == (None, 24)
    (row,) = store.read(A, "day", *ALWAYS, GroupFilter(merged=True)).to_pylist()
    assert (row["symbol"], row["AGG_SUM_quantity"], row["AGG_COUNT_price"]) == (None, 80, 38)
    assert sorted(row["AGG_SET_quantity"]) == [2, 4]
    by_shard = store.read_by_shard(A, "day", *ALWAYS, GroupFilter(merged=True)).to_pylist()
    assert [(r["SHARD_ID"], r["AGG_SUM_quantity"]) for r in by_shard] == [("node-1", 40), ("node-2", 40)]


# ------------------------------------------------------------------------------------------------- tables and shards


def test_another_definition_is_refused(open_store: Open) -> None:
    store = open_store()
    seed(store)
    other = plan_of("node-1", TRADES + AGGREGATION.replace("sum(quantity)", "sum(price)"))
    with pytest.raises(StoreError, match=r"(?i)TradeAggregation_SECONDS.*AGG_SUM_quantity.*store\.drop"):
        store.prepare(other.aggregations.values())
    store.drop(A)
    store.prepare(other.aggregations.values())
    assert store.read(A, "hour", *ALWAYS).num_rows == 0


def test_another_duration_is_one_table_more(open_store: Open) -> None:
    store = open_store()
    store.prepare(plan_of("n", TRADES + AGGREGATION.replace("sec ... year", "hour")).aggregations.values())
    seed(store)
    assert totals(store, "year") == [70]


def test_tables_without_shard_id_name_both_ways_out(open_store: Open) -> None:
    store = open_store()
    plain = plan_of(None)
    store.prepare(plain.aggregations.values())
    store.commit(BatchKey("app", "run", 0), {(A, ""): partials_of(plain, [["x", 1.0, 5, NOON]])})
    with pytest.raises(StoreError, match=r"no column SHARD_ID.*store\.drop.*store\.add_shard_id"):
        store.prepare(plan_of().aggregations.values())
    statements = store.add_shard_id(A, "node-1", dry_run=True)
    assert statements
    with pytest.raises(StoreError, match="SHARD_ID"):
        store.prepare(plan_of().aggregations.values())
    assert store.add_shard_id(A, "node-1") == statements
    store.prepare(plan_of().aggregations.values())
    assert [s.shard for s in store.shards(A)] == ["node-1"]
    store.commit(BatchKey("app", "run", 1), {(A, "node-1"): partials_of(plan_of(), [["x", 1.0, 6, NOON]])})
    assert totals(store) == [11]
    assert len(store.read_by_shard(A, "sec", *ALWAYS)) == 1


def test_tables_with_shard_id_need_partitioning(open_store: Open) -> None:
    store = open_store()
    seed(store)
    with pytest.raises(StoreError, match=r"has the column SHARD_ID.*Partition it again"):
        store.prepare(plan_of(None).aggregations.values())


def test_names_that_a_database_takes_for_one(open_store: Open) -> None:
    store = open_store()
    twice = TRADES + AGGREGATION + AGGREGATION.replace("TradeAggregation", "TRADEAggregation")
    with pytest.raises(StoreError, match="table names ignore case"):
        store.prepare(plan_of("n", twice).aggregations.values())
    columns = TRADES + "define aggregation C from TradeStream select price as p, quantity as P aggregate every sec;"
    with pytest.raises(StoreError, match="'p' and 'P'"):
        store.prepare(plan_of("n", columns).aggregations.values())


def test_an_aggregation_that_was_not_prepared(open_store: Open) -> None:
    with pytest.raises(StoreError, match="not prepared for aggregation 'Nope'"):
        open_store().read("Nope", "sec", 0, 1)


def test_shards_that_came_and_went(open_store: Open) -> None:
    store = open_store()
    store.prepare(plan_of().aggregations.values())
    assert shard_warnings(store, A, ["node-1", "node-2"]) == []
    seed(store)
    assert shard_warnings(store, A, ["node-2", "node-1"]) == []
    came, went = shard_warnings(store, A, ["node-1", "node-3"])
    assert "'node-3' is new" in came
    assert "which has rows of 'node-2', and no such node" in came
    assert "'node-2', which holds" in went
    assert "move_shard" in went
    assert "delete_shard" in went
    assert shard_warnings(store, A, ["node-1", "node-2", "node-3"]) == [], "it has had no event yet, or is one more"


def test_rows_of_a_shard_move_and_go(open_store: Open) -> None:
    store = open_store()
    seed(store)
    store.move_shard(A, "node-2", "node-3")
    assert [s.shard for s in store.shards(A)] == ["node-1", "node-3"]
    store.move_shard(A, "node-3", "node-1")
    assert [s.shard for s in store.shards(A)] == ["node-1"]
    assert totals(store) == [70]
    store.move_shard(A, "node-1", "node-1")
    assert totals(store) == [70]
    store.delete_shard(A, "node-1")
    assert store.shards(A) == []


@pytest.mark.parametrize("end", ["", "store.close()"])
def test_a_store_that_something_holds_to_the_end_leaves_no_word_about_it(end: str) -> None:
    program = f"""
import ctypes
from sparkstream_nb.stores.duckdb import DuckDBStore
store = DuckDBStore(":memory:")
ctypes.pythonapi.Py_IncRef(ctypes.py_object(store))
{end}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_what_purge_lets_go_is_deleted(open_store: Open) -> None:
    purge = "@purge(interval='10 sec', @retentionPeriod(sec='2 min', min='all'))\n"
    plan = plan_of(text=TRADES + purge + AGGREGATION)
    store = open_store()
    store.prepare(plan.aggregations.values())
    old = partials_of(plan, [["WSO2", 10.0, 10, NOON]])
    assert store.commit(BatchKey("app", "run", 0), {(A, "node-1"): old}, clock=BatchClock(NOON, NOON, NOON))
    assert store.commit(BatchKey("app", "run", 1), {}, clock=BatchClock(NOON, NOON, NOON + 120_000))
    assert totals(store, "sec") == [10]
    assert store.commit(BatchKey("app", "run", 2), {}, clock=BatchClock(NOON, NOON + 120_000, NOON + 129_999))
    assert totals(store, "sec") == [10], "old enough, but the next purge is due at 130 s"
    assert store.commit(BatchKey("app", "run", 3), {}, clock=BatchClock(NOON, NOON + 129_999, NOON + 130_000))
    assert totals(store, "sec") == []
    assert totals(store, "min") == totals(store, "day") == [10]
    older = partials_of(plan, [["WSO2", 10.0, 20, NOON - 1_000_000]])
    clock = BatchClock(NOON, NOON + 130_000, NOON + 140_001)
    assert store.commit(BatchKey("app", "run", 4), {(A, "node-1"): older}, clock=clock)
    assert totals(store, "sec") == [20], "the purge came before it"
    assert store.commit(BatchKey("app", "run", 5), {}, clock=BatchClock(NOON, NOON + 140_001, NOON + 150_000))
    assert totals(store, "sec") == [], "a late event's bucket of a purged time stays until the next purge"
    assert totals(store, "day") == [30]
