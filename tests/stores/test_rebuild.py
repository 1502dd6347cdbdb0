"""Aggregations that are made again of finer durations, or of their events, in every store."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from sparkstream_nb.app.stored.rebuild_stored import EventFile, finer_of, from_finer, from_log
from sparkstream_nb.errors import Misuse
from sparkstream_nb.plan.nodes import DURATIONS, BatchClock, Plan
from sparkstream_nb.stores import Store
from sparkstream_nb.stores.store_protocol import BatchKey

from .trades import AGGREGATION, NOON, TRADES, partials_of, plan_of, rows_of

A = "TradeAggregation"
ALWAYS = (-(2**62), 2**62)
DAY = 86_400_000
Open = Callable[[], Store]
PURGE = "@purge(interval='10 sec', @retentionPeriod(sec='2 min', min='all', hours='all', days='all'))\n"
PURGED = plan_of(text=TRADES + PURGE + AGGREGATION)


def trades(seed: int, times: list[int]) -> list[list[Any]]:
    r = random.Random(seed)
    return [[r.choice(["a", "b", None]), r.choice([None, r.randrange(99) / 2]), r.choice([None, r.randrange(9)]), t]
            for t in times]  # fmt: skip


EVENTS = {"node-1": trades(1, [NOON + i * 7_777_777 for i in range(60)]),
          "node-2": trades(2, [NOON - DAY + i * 9_999_999 for i in range(60)])}  # fmt: skip


def filled(store: Store, plan: Plan) -> dict[str, list[dict[str, Any]]]:
    store.prepare(plan.aggregations.values())
    store.commit(BatchKey("app", "run", 0), {(A, s): partials_of(plan, rows) for s, rows in EVENTS.items()})
    return held(store)


def held(store: Store) -> dict[str, list[dict[str, Any]]]:
    return {d: rows_of(store.read_by_shard(A, d, *ALWAYS)) for d in DURATIONS}


def spoil(store: Store, *durations: str) -> None:
    """Adds a wrong row of every key, and nothing but it, to coarse durations."""
    wrong = partials_of(plan_of(), [[e[0], 1e6, 1000, e[3]] for rows in EVENTS.values() for e in rows])
    kept = wrong.filter(pa.array([d in durations for d in wrong.column("duration").to_pylist()]))
    for i, shard in enumerate(EVENTS):
        store.commit(BatchKey("app", "spoilt", i), {(A, shard): kept})


def test_coarse_durations_of_a_finer_one(open_store: Open) -> None:
    plan, store = plan_of(), open_store()
    right = filled(store, plan)
    spoil(store, "day", "year")
    spoilt = held(store)
    assert spoilt["day"] != right["day"]
    for dry_run in (True, False):
        lines = from_finer(store, plan.aggregations[A], "hour", "GMT", dry_run=dry_run)
        assert len(lines) == 3
        if dry_run:
            assert held(store) == spoilt
    rebuilt = held(store)
    # Spoiling gave each shard rows of the other's keys, too; they stay, as no hour belongs to them.
    for d in DURATIONS:
        keys = {(r["SHARD_ID"], r["AGG_TIMESTAMP"], r["symbol"]) for r in right[d]}
        assert [r for r in rebuilt[d] if (r["SHARD_ID"], r["AGG_TIMESTAMP"], r["symbol"]) in keys] == right[d]
    more = len(rebuilt["day"]) - len(right["day"])
    assert f"; {more} stay as they are" in lines[0]


def test_what_is_purged_is_not_made_anew(open_store: Open) -> None:
    store = open_store()
    filled(store, PURGED)
    last = EVENTS["node-1"][-1][3]
    assert store.purged_before(A, "sec") is None
    store.commit(BatchKey("app", "run", 1), {}, clock=BatchClock(last, last, last + 20_000))
    assert store.purged_before(A, "sec") == last + 20_000 - 120_000
    late = partials_of(PURGED, [["a", 5.0, 5, NOON]])
    store.commit(BatchKey("app", "run", 2), {(A, "node-1"): late})
    right = held(store)
    lines = from_finer(store, PURGED.aggregations[A], "sec", "GMT")
    assert held(store) == right, "the late event alone would have replaced a whole day"
    assert lines[0].startswith(f"{A}: 6 rows of minutes are made of the seconds; 114 stay as they are")
    store.commit(BatchKey("app", "run", 3), {}, clock=BatchClock(last, last, last - 10**9))
    assert held(store) == right, "a clock that goes back purges nothing"
    store.commit(BatchKey("app", "run", 4), {}, clock=BatchClock(last, last + 20_000, last + 10**15))
    assert held(store)["sec"] == []
    assert store.purged_before(A, "sec") == last + 10**15 - 120_000
    assert held(store)["min"] == right["min"]
    store.drop(A)
    store.prepare(PURGED.aggregations.values())
    assert store.purged_before(A, "sec") is None


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_all_of_an_aggregation_of_its_events(open_store: Open, tmp_path: Path, kind: str) -> None:
    plan, store = plan_of(), open_store()
    filled(store, plan)
    right = {d: rows_of(store.read(A, d, *ALWAYS)) for d in DURATIONS}
    spoil(store, *DURATIONS)
    names = plan.schema("TradeStream").names
    every = [e for rows in EVENTS.values() for e in rows]
    table = pa.table({n: [e[i] for e in every] for i, n in enumerate(names)})
    log = EventFile(tmp_path / f"events.{kind}")
    (pa.csv.write_csv if kind == "csv" else pa.parquet.write_table)(table, log.path)
    with pytest.raises(Misuse, match="has rows of the shards node-1, node-2: name the shard"):
        from_log(store, plan, plan.aggregations[A], log, None)
    lines = from_log(store, plan, plan.aggregations[A], log, "node-1")
    assert {d: rows_of(store.read(A, d, *ALWAYS)) for d in DURATIONS} == right
    assert [s.shard for s in store.shards(A)] == ["node-1"]
    assert len(lines) == len(DURATIONS)
    half = EventFile(tmp_path / "half.parquet")
    pa.parquet.write_table(table.slice(30), half.path)
    with pytest.raises(Misuse, match=r"half\.parquet has no events for"):
        from_log(store, plan, plan.aggregations[A], half, None)


def test_a_source_that_is_none() -> None:
    definition = plan_of().aggregations[A]
    assert finer_of(None, definition) == "sec"
    assert finer_of("days", definition) == "day"
    for text in ("year", "weeks", "events.txt"):
        with pytest.raises(Misuse, match="Name one of its finer durations"):
            finer_of(text, definition)
