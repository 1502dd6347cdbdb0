"""What `fresh` removes from stores outside an app's folder is named, and of DuckDB files copied before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sparkstream_nb.app.connectors.stores import open_store
from sparkstream_nb.app.deployment.deployment import Connections, Deployment
from sparkstream_nb.app.deployment.emptied import outside_stores
from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.errors import StoreError
from sparkstream_nb.plan import compile_app
from sparkstream_nb.plan.nodes import Plan
from sparkstream_nb.request import DeployRequest
from sparkstream_nb.stores import Store
from sparkstream_nb.stores.address import Database
from sparkstream_nb.stores.patience import Patience
from sparkstream_nb.stores.store_protocol import BatchKey

TEXT = """
define stream S (k string, v int);
{0} define aggregation A from S select k, sum(v) as s group by k aggregate every sec...min;
"""
PLAIN = compile_app(TEXT.format(""))
PARTITIONED = compile_app(TEXT.format("@PartitionById(enable='true')"), properties={"shardId": "a"})


def opened(deployment: Deployment) -> Store:
    own = deployment.home / "store.duckdb" if deployment.request.store is None else deployment.request.store
    return open_store(own, deployment.connections.databases, Patience())


def fill(store: Store, plan: Plan, shard: str) -> None:
    """What another app stores under the same name."""
    at = np.array([1000], np.int64)
    rows = {"S": StreamRows(at * 0, at, [pa.array(["x"]), pa.array([1], pa.int32())])}
    out = NodeEngine(plan).step(InputBatch(at, rows))
    store.prepare(plan.aggregations.values())
    store.commit(BatchKey("other", "run", 0), {("A", shard): out.partials["A"]})


def emptied(deployment: Deployment, plan: Plan, trash: Path) -> list[str | None]:
    places = outside_stores(deployment, plan.aggregations.values(), trash)
    for place in places:
        place.copy_to_trash()
    store = opened(deployment)
    said = [place.empty(store, lambda _: deployment.shard_ids) for place in places]
    store.close()
    return said


def of(home: Path, *, store: Path | None = None, databases: Mapping[str, Database] | None = None) -> Deployment:
    connections = Connections(databases=databases or {})
    request = DeployRequest(store=store)
    return Deployment(request, "app", "single", "round_robin", ("a", "b"), home, connections=connections)


@pytest.mark.contract(thorough=True)
@pytest.mark.parametrize("way", ["store", "database"])
def test_a_duckdb_file_is_copied_before_an_aggregation_goes(way: str, tmp_path: Path) -> None:
    file, trash = tmp_path / "sums.duckdb", tmp_path / "home" / "trash" / "run"
    where: Mapping[str, Path | Mapping[str, Database]] = (
        {"store": file} if way == "store" else {"databases": {"A": Database("duckdb", str(file))}}
    )
    deployment = of(tmp_path / "home", **where)
    store = opened(deployment)
    fill(store, PLAIN, "a")
    store.close()
    (said,) = emptied(deployment, PLAIN, trash)
    copy = trash / "store-1-sums.duckdb"
    assert str(said).endswith(f"{file} what was there of A, whichever app wrote it. The file as it was is {copy}.")
    assert str(said).startswith("fresh removed from ")
    assert copy.stat().st_mode & 0o777 == 0o600
    for place, rows in ((file, 0), (copy, 1)):
        found = opened(of(tmp_path / "home", store=place))
        found.prepare(PLAIN.aggregations.values())
        assert found.read("A", "sec", 0, 10_000).num_rows == rows
        found.close()
    assert emptied(deployment, PLAIN, trash.with_name("again")) == [None]
    assert not trash.with_name("again").exists()


def test_of_a_database_the_rows_of_its_shards_go_and_are_named(tmp_path: Path) -> None:
    deployment = of(tmp_path, databases={"A": Database("sqlite", str(tmp_path / "sums.db"))})
    store = opened(deployment)
    fill(store, PARTITIONED, "b")
    store.close()
    said = (
        f"fresh removed from sqlite:{tmp_path / 'sums.db'} what was there of A (shards a, b), "
        "whichever app wrote it. There is no copy."
    )
    assert emptied(deployment, PARTITIONED, tmp_path / "trash") == [said]
    assert emptied(deployment, PARTITIONED, tmp_path / "trash") == [None]


def test_nothing_goes_where_it_cannot_be_copied(tmp_path: Path) -> None:
    deployment = of(tmp_path, store=tmp_path / "sums.duckdb")
    store = opened(deployment)
    fill(store, PLAIN, "a")
    store.close()
    (tmp_path / "trash").write_text("")
    (place,) = outside_stores(deployment, PLAIN.aggregations.values(), tmp_path / "trash")
    with pytest.raises(StoreError, match=r"cannot be copied to .*: Not a directory\. Nothing was removed from it"):
        place.copy_to_trash()
