"""What a chart asks of a store: some buckets, some groups."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from sparkstream_nb.errors import StoreError
from sparkstream_nb.stores import EVERY, BucketRange, GroupFilter, Store
from sparkstream_nb.stores.store_protocol import BatchKey, KeySearch

from .trades import NOON, TRADES, partials_of, plan_of, rows_of

A = "TradeAggregation"
Open = Callable[[], Store]
ALWAYS = (-(2**62), 2**62)


def seed(store: Store) -> None:
    """Seconds 0 to 4, for groups a, b and null, on two nodes."""
    plan = plan_of()
    store.prepare(plan.aggregations.values())
    one = [["a", 10.0, 1, NOON], ["b", 20.0, 2, NOON], ["a", 30.0, 3, NOON + 1000], [None, 5.0, 4, NOON + 3000]]
    two = [["a", 40.0, 3, NOON], ["a", 50.0, 6, NOON + 4000]]
    partials = {(A, "node-1"): partials_of(plan, one), (A, "node-2"): partials_of(plan, two)}
    assert store.commit(BatchKey("app", "run", 0), partials)


def test_the_latest_or_the_earliest_buckets_of_a_range(open_store: Open) -> None:
    store = open_store()
    seed(store)

    def found(start: int, end: int, most: int, latest: bool = True, **groups: object) -> tuple[list[int], int, int]:
        wanted = BucketRange(NOON + 1000 * start, NOON + 1000 * end, most, latest)
        b = store.buckets(A, "sec", wanted, GroupFilter(**groups))  # type: ignore[arg-type]
        return ((b.starts - NOON) // 1000).tolist(), b.before, b.total

    assert found(0, 10, 9) == ([0, 1, 3, 4], 0, 4)
    assert found(0, 10, 2) == ([3, 4], 2, 4)
    assert found(0, 4, 2) == ([1, 3], 1, 4)
    assert found(1, 10, 2, latest=False) == ([1, 3], 1, 4)
    assert found(5, 10, 2) == ([], 4, 4)
    assert found(0, 10, 9, only=("a",)) == ([0, 1, 4], 0, 3)
    assert found(0, 10, 9, only=(None,)) == ([3], 0, 1)
    assert found(0, 10, 9, merged=True) == ([0, 1, 3, 4], 0, 4)


def test_values_of_a_group_by_attribute(open_store: Open) -> None:
    store = open_store()
    seed(store)
    assert store.key_values(A, "sec", KeySearch(0, 9)) == [None, "a", "b"]
    assert store.key_values(A, "sec", KeySearch(0, 2)) == [None, "a"]
    assert store.key_values(A, "sec", KeySearch(0, 9, "A")) == ["a"]
    assert store.key_values(A, "sec", KeySearch(0, 9), GroupFilter(only=("b",))) == ["b"]


TWO_KEYS = """define aggregation TradeAggregation from TradeStream select symbol, quantity, sum(price) as paid
group by symbol, quantity aggregate by timestamp every sec ... year;"""


def test_some_values_of_several_group_by_attributes(open_store: Open) -> None:
    store = open_store()
    plan = plan_of(text=TRADES + TWO_KEYS)
    store.prepare(plan.aggregations.values())
    rows = [["a", 1.0, 1, NOON], ["a", 2.0, 12, NOON], ["50%", 4.0, 12, NOON], ["5_0", 8.0, None, NOON],
            [None, 16.0, 0, NOON], ["", 32.0, 3, NOON]]  # fmt: skip
    assert store.commit(BatchKey("app", "run", 0), {(A, "node-1"): partials_of(plan, rows)})

    def paid(*only: object) -> float | None:
        found = store.read(A, "day", *ALWAYS, GroupFilter(only=only, merged=True)).column("AGG_SUM_price").to_pylist()
        return found[0] if found else None

    assert paid(EVERY, EVERY) == 63
    assert (paid("a", EVERY), paid("a", 12), paid(EVERY, 12), paid("a", 3)) == (3, 2, 6, None)
    assert (paid(EVERY, None), paid(EVERY, 0), paid(None, EVERY), paid("", EVERY)) == (8, 16, 16, 32)
    assert store.key_values(A, "day", KeySearch(1, 9), GroupFilter(only=("a", EVERY))) == [1, 12]
    assert set(store.key_values(A, "day", KeySearch(1, 9))) == {0, None, 1, 3, 12}
    assert store.key_values(A, "day", KeySearch(1, 9, "2")) == [12]
    assert store.key_values(A, "day", KeySearch(0, 9, "%")) == ["50%"]
    assert store.key_values(A, "day", KeySearch(0, 9, "_")) == ["5_0"]
    assert store.key_values(A, "day", KeySearch(0, 9, "!")) == []


def test_the_last_bucket_of_a_shard(open_store: Open) -> None:
    store = open_store()
    seed(store)

    def last(shard: str, end: int, **groups: object) -> int | None:
        found = store.last_bucket(A, "sec", shard, NOON + 1000 * end, GroupFilter(**groups))  # type: ignore[arg-type]
        return None if found is None else (found - NOON) // 1000

    assert [last("node-1", 9), last("node-2", 9), last("node-2", 4), last("node-2", 0)] == [3, 4, 0, None]
    assert (last("node-1", 9, only=("a",)), last("node-1", 9, only=(EVERY,))) == (1, 3)
    assert last("node-3", 9) is None


def test_rows_of_one_group(open_store: Open) -> None:
    store = open_store()
    seed(store)
    assert [r["AGG_SUM_quantity"] for r in rows_of(store.read(A, "min", *ALWAYS, GroupFilter(only=("a",))))] == [13]
    assert [r["AGG_SUM_quantity"] for r in rows_of(store.read(A, "min", *ALWAYS, GroupFilter(only=(None,))))] == [4]
    by_shard = rows_of(store.read_by_shard(A, "min", *ALWAYS, GroupFilter(only=("a",))))
    assert sorted(r["AGG_SUM_quantity"] for r in by_shard) == [4, 9]


def test_all_groups_merged_into_one(open_store: Open) -> None:
    store = open_store()
    seed(store)
    (row,) = rows_of(store.read(A, "min", *ALWAYS, GroupFilter(merged=True)))
    assert row["symbol"] is None
    assert (row["AGG_SUM_price"], row["AGG_COUNT_price"], row["AGG_SUM_quantity"]) == (155.0, 6, 19)
    assert (row["AGG_SET_quantity"], row["AGG_MIN_price"], row["AGG_MAX_quantity"]) == ([1, 2, 3, 4, 6], 5.0, 6)
    by_shard = rows_of(store.read_by_shard(A, "min", *ALWAYS, GroupFilter(merged=True)))
    assert {r["SHARD_ID"]: r["AGG_SUM_quantity"] for r in by_shard} == {"node-1": 10, "node-2": 9}


@pytest.mark.thorough
def test_reading_goes_on_while_batches_are_committed(open_store: Open) -> None:
    """Each read sees whole micro-batches: as many trades on one node as on the other."""
    store = open_store()
    seed(store)
    plan = plan_of()
    trade = partials_of(plan, [["c", 1.0, 7, NOON]])
    ended = threading.Event()
    reads: list[set[int]] = []
    failed: list[BaseException] = []

    def read() -> None:
        try:
            while not ended.is_set():
                found = store.read_by_shard(A, "year", *ALWAYS, GroupFilter(only=("c",)))
                reads.append(set(found.column("AGG_SUM_quantity").to_pylist()))
        except BaseException as e:
            failed.append(e)

    reader = threading.Thread(target=read)
    reader.start()
    for batch in range(1, 60):
        assert store.commit(BatchKey("app", "run", batch), {(A, "node-1"): trade, (A, "node-2"): trade})
    ended.set()
    reader.join()
    assert failed == []
    assert all(len(r) <= 1 for r in reads)
    assert len({frozenset(r) for r in reads}) > 2, "some reads fell between commits"
    assert store.read(A, "year", *ALWAYS, GroupFilter(only=("c",))).column("AGG_SUM_quantity").to_pylist() == [59 * 14]


def test_a_closed_store_says_so(open_store: Open) -> None:
    store = open_store()
    seed(store)
    store.close()
    with pytest.raises(StoreError, match="is closed"):
        store.read(A, "year", *ALWAYS)
