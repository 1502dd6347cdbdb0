"""All peers, the forms of ours, and which form each peer takes turns with."""

from __future__ import annotations

from . import duckdb, esper, flink, native, polars
from .protocol import Peer, python_module, read_queries
from .turns import Turn


def _version() -> str:
    from sparkstream_nb import __version__

    return f"SparkStream Notebook {__version__}"


def _ours(name: str, title: str, file: str, module: str, part: str | None = None) -> Peer:
    return Peer(name, title, file, _version, lambda q: python_module(module), frozenset(read_queries()), part=part)


MEMORY = _ours("ours_memory", "ours, events in memory", "csv", "ours")
PARQUET = _ours("ours_parquet", "ours, from parquet", "parquet", "ours")
SPARK_CSV = _ours("ours_spark_csv", "ours on Spark, from CSV", "headed", "ours_on_spark", "of it the feed")
SPARK_PARQUET = _ours("ours_spark_parquet", "ours on Spark, from parquet", "parquet", "ours_on_spark", "of it the feed")

IN_PROCESS = (Turn(duckdb.PEER, PARQUET), Turn(polars.PEER, PARQUET), Turn(esper.PEER, MEMORY))
END_TO_END = (Turn(flink.PEER, SPARK_CSV), Turn(native.PEER, SPARK_PARQUET))
