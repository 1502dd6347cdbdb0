"""DuckDB over the parquet file, on one thread; the output is an Arrow table."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from .protocol import Peer, Query, python_module, repeat, with_text

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


@functools.cache
def _base(file: str) -> duckdb.DuckDBPyConnection:
    import duckdb

    base = duckdb.connect(config={"threads": 1})
    base.execute(f"create view trades as select * from read_parquet('{file}', file_row_number=true)")
    return base


def run(query: Query, file: str) -> tuple[pa.Table, None]:
    """Reads the file and computes the query; a database is used again."""
    return _base(file).sql(query.texts["duckdb"]).to_arrow_table(), None


def total(query: Query, output: pa.Table) -> tuple[int, float]:
    """Rows, and the sum of the query's column."""
    import pyarrow.compute as pc

    return output.num_rows, float(pc.sum(output[query.column]).as_py() or 0.0)


def version() -> str:
    import duckdb

    return f"DuckDB {duckdb.__version__}"


PEER = Peer("duckdb", "DuckDB", "parquet", version, lambda q: python_module("duckdb"), with_text("duckdb"))

if __name__ == "__main__":
    repeat(run, total)
