"""Polars over the parquet file, on one thread; the output is a frame.

Polars is no requirement of the project: it lies in a folder of its own, and this module is run with that on its path.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from .bring import cache_folder, pip
from .protocol import Peer, Query, python_module, repeat

VERSION = "2.1.0"


def _filter(pl: Any, t: Any) -> Any:
    return t.filter((pl.col("price") > 100.0) & (pl.col("quantity") < 500)).select(
        "symbol", (pl.col("price") * 1.1).alias("p"), "quantity"
    )


def _last_50(pl: Any, t: Any) -> Any:
    return t.select("symbol", pl.col("price").rolling_mean(50, min_samples=1).over("symbol").alias("ap"))


def _last_10_s(pl: Any, t: Any) -> Any:
    mean = pl.col("price").rolling_mean_by("timestamp", "10000i", closed="right").over("symbol")
    count = (
        pl.col("price")
        .is_not_null()
        .cast(pl.Int64)
        .rolling_sum_by("timestamp", "10000i", closed="right")
        .over("symbol")
    )
    return t.select("symbol", mean.alias("ap"), count.alias("n"))


def _tumble(pl: Any, t: Any) -> Any:
    return (
        t.group_by("symbol", (pl.col("timestamp") // 1000).alias("second"))
        .agg(pl.col("price").max().alias("hi"), pl.col("price").min().alias("lo"), pl.col("quantity").sum().alias("q"))
        .drop("second")
    )


def _pattern(pl: Any, t: Any) -> Any:
    """The first later row of each first one, from equi-joins of both with the two seconds that it can be in."""
    t = t.with_row_index("n").with_columns((pl.col("timestamp") // 1000).alias("k"))
    first = t.filter(pl.col("quantity") > 950).select(
        "symbol", pl.col("n").alias("n1"), pl.col("price").alias("p1"), pl.col("timestamp").alias("t1"),
        pl.concat_list("k", pl.col("k") + 1).alias("k"),
    )  # fmt: skip
    pairs = first.explode("k").join(t.select("symbol", "n", "price", "timestamp", "k"), on=["symbol", "k"])
    rises = (pl.col("n") > pl.col("n1")) & (pl.col("price") > pl.col("p1"))
    return (
        pairs.filter(rises & (pl.col("timestamp") <= pl.col("t1") + 1000))
        .group_by("n1")
        .agg(pl.col("symbol").first(), pl.col("p1").first(), pl.col("price").sort_by("n").first().alias("p2"))
        .drop("n1")
    )


def _join(pl: Any, t: Any) -> Any:
    """An equi-join of one side with the three seconds that the other can be in."""
    t = t.select("symbol", "price", "quantity", "timestamp", (pl.col("timestamp") // 1000).alias("k"))
    near = pl.concat_list(pl.col("k") - 1, "k", pl.col("k") + 1).alias("k")
    a = t.filter(pl.col("quantity") > 900).select("symbol", pl.col("price").alias("pa"), "timestamp", near).explode("k")
    b = t.filter(pl.col("quantity") < 50).select("symbol", pl.col("price").alias("pb"), "k", other="timestamp")
    pairs = a.join(b, on=["symbol", "k"])
    return pairs.filter((pl.col("timestamp") - pl.col("other")).abs() < 1000).select("symbol", "pa", "pb")


def _table(pl: Any, t: Any) -> Any:
    ratio = (pl.col("price") / pl.col("price").shift(1).over("symbol")).alias("d")
    return t.select("symbol", ratio).drop_nulls("d")


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "filter": _filter,
    "last_50": _last_50,
    "last_10_s": _last_10_s,
    "tumble": _tumble,
    "pattern": _pattern,
    "join": _join,
    "table": _table,
}


def run(query: Query, file: str) -> tuple[Any, None]:
    """Reads the file and computes the query."""
    import polars as pl

    return PROGRAMS[query.name](pl, pl.scan_parquet(file)).collect(), None


def total(query: Query, output: Any) -> tuple[int, float]:
    """Rows, and the sum of the query's column."""
    return output.height, float(output[query.column].sum())


@functools.cache
def bring() -> str:
    """Installs Polars into the cache folder."""
    pip(cache_folder("polars") / VERSION, "install", "--target", "lib", f"polars=={VERSION}")
    return f"Polars {VERSION}"


def environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(cache_folder("polars") / VERSION / "lib")]))
    return {"PYTHONPATH": path, "POLARS_MAX_THREADS": "1"}


PEER = Peer("polars", "Polars", "parquet", bring, lambda q: python_module("polars"), frozenset(PROGRAMS), environment)

if __name__ == "__main__":
    repeat(run, total)
