"""Routes, Java's hash codes, and keys that Spark puts into partitions of their own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.errors import SparkStreamError
from sparkstream_nb.journal.routing import Route, assign, keys_apart, spark_hash
from sparkstream_nb.nodes.partitioning import by_hash, java_hash, part
from sparkstream_nb.types import Schema, Type

TRADES = {"Trades": Schema.of(("symbol", Type.STRING), ("price", Type.DOUBLE))}


def trades(*symbols: str | None) -> InputBatch:
    n = len(symbols)
    at = np.arange(n, dtype=np.int64)
    columns = [pa.array(symbols, pa.string()), pa.array([1.0] * n)]
    return InputBatch(at * 10, {"Trades": StreamRows(at, at * 10, columns)})


# `"...".hashCode()` as jshell prints it.
JAVA = {
    "": 0,
    "a": 97,
    "IBM": 72276,
    "WSO2": 2674079,
    "hello": 99162322,
    "polygenelubricants": -2147483648,
    "Zürich": -1482116162,
    "\U0001f600": 1772899,
    "null": 3392903,
}


def test_java_hash() -> None:
    assert java_hash(list(JAVA)).tolist() == list(JAVA.values())


@pytest.mark.parametrize(
    ("type", "value", "text"),
    [(Type.INT, 42, "42"), (Type.DOUBLE, 1e10, "1.0E10"), (Type.FLOAT, 0.5, "0.5"), (Type.BOOL, True, "true")],
)
def test_keys_are_hashed_as_javas_text_of_them(type: Type, value: object, text: str) -> None:
    assert by_hash(pa.array([value]), type, 1000).tolist() == (np.abs(java_hash([text])) % 1000).tolist()


def test_a_null_key_is_hashed_as_the_text_null() -> None:
    assert by_hash(pa.array([None, "null"], pa.string()), Type.STRING, 7).tolist() == [3392903 % 7] * 2


def test_round_robin_counts_requests_not_rows() -> None:
    batch = trades("a", "b", "c", "d")
    batch.rows["Trades"].step = np.array([0, 0, 1, 3])
    assert assign(batch, Route(), TRADES, 2, 0)["Trades"].tolist() == [0, 0, 1, 0]
    assert assign(batch, Route(), TRADES, 2, 1)["Trades"].tolist() == [1, 1, 0, 1]


def test_a_batch_is_split_with_the_whole_clock_for_every_node() -> None:
    batch = trades("IBM", "WSO2", "IBM")
    places = assign(batch, Route(attribute="symbol"), TRADES, 2, 0)
    parts = [part(batch, places, node) for node in range(2)]
    assert [p.clock.tolist() for p in parts] == [[0, 10, 20]] * 2
    assert parts[JAVA["IBM"] % 2].rows["Trades"].step.tolist() == [0, 2]
    assert parts[JAVA["WSO2"] % 2].rows["Trades"].columns[0].to_pylist() == ["WSO2"]


def test_random_draws_by_request_alike_each_time_and_evenly() -> None:
    route = Route.parse("random:7", 3, TRADES)
    whole = assign(trades(*["a"] * 3000), route, TRADES, 3, 0)["Trades"]
    assert np.bincount(whole).min() > 900
    later = assign(trades(*["a"] * 1000), route, TRADES, 3, 2000)["Trades"]
    assert later.tolist() == whole[2000:].tolist()
    assert (whole != assign(trades(*["a"] * 3000), Route(seed=8), TRADES, 3, 0)["Trades"]).any()
    together = trades("a", "b", "c")
    together.rows["Trades"].step = np.array([0, 0, 0])
    assert len(set(assign(together, route, TRADES, 3, 0)["Trades"].tolist())) == 1


def test_sticky_binds_each_stream_to_a_node() -> None:
    schemas = {"R": TRADES["Trades"], **TRADES}
    assert assign(trades("a", "b"), Route.parse("sticky", 2, schemas), schemas, 2, 5)["Trades"].tolist() == [1, 1]


@pytest.mark.parametrize(
    "text", ["", "sticky:1", "random:x", "hash", "hash:", "node:0", "node:3", "node:x", "random", "round_robin:2"]
)
def test_routes_that_are_none(text: str) -> None:
    with pytest.raises(SparkStreamError):
        Route.parse(text, 2, TRADES)


def test_an_attribute_that_no_stream_has() -> None:
    with pytest.raises(SparkStreamError, match="Did you mean 'symbol'"):
        Route.parse("hash:symbl", 2, TRADES)


def test_keys_apart() -> None:
    for n in (1, 2, 3, 4, 7, 16):
        keys = keys_apart(2 * n, n)
        assert len(set(keys)) == 2 * n
        assert [spark_hash(k) % n for k in keys] == [*range(n)] * 2


@pytest.mark.spark
def test_spark_hash_is_sparks(spark) -> None:  # type: ignore[no-untyped-def]
    values = [0, 1, 2, 7, 100, -1, 2**31 - 1, -(2**31)]
    rows = spark.sql(f"select hash(v) as h from values {', '.join(f'({v})' for v in values)} as t(v)").collect()
    assert [r["h"] for r in rows] == [spark_hash(v) for v in values]
