"""Partials that a database does not hold become errors, once, whatever is repeated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkstream_nb.errors import StoreError
from sparkstream_nb.journal import result_codec, result_rows
from sparkstream_nb.outputs.commit import Commit, CommittedRun, Progress
from sparkstream_nb.outputs.output_files import OutputFiles
from sparkstream_nb.plan.nodes import Plan
from sparkstream_nb.stores import DuckDBStore
from sparkstream_nb.stores.address import Database
from sparkstream_nb.stores.several import StoreSet
from sparkstream_nb.stores.sql import SqlStore
from stores.trades import NOON, partials_of, plan_of

A = "TradeAggregation"
ALWAYS = (-(2**62), 2**62)


class CrashingStore(DuckDBStore):
    """A store whose process ends before its next commit."""

    crashes = False

    def commit(self, *told: Any, **more: Any) -> bool:
        if self.crashes:
            self.crashes = False
            raise StoreError("the process is gone")
        return super().commit(*told, **more)


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[CrashingStore, StoreSet]]:
    own = CrashingStore(tmp_path / "store.duckdb")
    both = StoreSet(own, {A: SqlStore(Database("sqlite", str(tmp_path / "other.sqlite")))})
    yield own, both
    both.close()


def commit_to(folder: Path, store: StoreSet, plan: Plan) -> Commit:
    return Commit(CommittedRun("app", "run", ["node-1"], plan), store, OutputFiles(folder, ["node-1"]), Progress())


def test_errors_of_a_repeated_batch_are_kept_once(tmp_path: Path, stores: tuple[CrashingStore, StoreSet]) -> None:
    own, both = stores
    plan = plan_of()
    both.prepare(plan.aggregations.values())
    sent = [["x", 1.0, 1, NOON], ["bad", float("nan"), 1, NOON], ["x", 2.0, 1, NOON + 1000]]
    partial = result_rows.Partial(0, 0, 0, A, 3, result_codec.to_ipc(partials_of(plan, sent)))
    commit = commit_to(tmp_path, both, plan)
    own.crashes = True
    with pytest.raises(StoreError, match="gone"):
        commit.commit([partial], 0)  # the aggregation's database has it, the app's own has not
    assert both.errors("app").num_rows == 0
    for _ in range(2):
        commit.commit([partial], 0)
    assert commit.progress.errors == 1
    (error,) = both.errors("app").to_pylist()
    assert (error["stream"], error["ts"]) == (A, NOON)
    assert error["values"].startswith('["bad", ')
    assert error["reason"] == "per sec: price is NaN, which sqlite does not hold"
    (row,) = both.read(A, "year", *ALWAYS).to_pylist()
    assert (row["symbol"], row["AGG_SUM_price"], row["AGG_SUM_quantity"]) == ("x", 3.0, 2)


def test_partials_in_a_file_stay_until_the_store_has_them(
    tmp_path: Path, stores: tuple[CrashingStore, StoreSet]
) -> None:
    own, both = stores
    plan = plan_of()
    both.prepare(plan.aggregations.values())
    file = tmp_path / "spilled"
    file.write_bytes(result_codec.to_ipc(partials_of(plan, [["x", 1.0, 1, NOON]])))
    partial = result_rows.Partial(0, 0, 0, A, 1, file=str(file))
    commit = commit_to(tmp_path, both, plan)
    own.crashes = True
    with pytest.raises(StoreError, match="gone"):
        commit.commit([partial], 0)
    assert file.exists()
    commit.commit([partial], 0)
    assert not file.exists()
    commit.commit([partial], 0)  # it was noted nowhere that it is done
    (row,) = both.read(A, "year", *ALWAYS).to_pylist()
    assert row["AGG_SUM_quantity"] == 1
