"""SQL over frames, by DuckDB in memory: it reads no files and no addresses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import duckdb
import pandas as pd

from ..errors import Misuse


def query_frames(text: str, frames: Iterable[tuple[str, pd.DataFrame]], macros: Mapping[str, str]) -> pd.DataFrame:
    """The answer to a query over frames by their names. A macro `NAME('X')` reads the frame that is called as its text
    and X. Raises `Misuse` for a query that DuckDB refuses."""
    with duckdb.connect(config={"enable_external_access": "false"}) as connection:
        for name, frame in frames:
            connection.register(name, frame)
        for macro, prefix in macros.items():
            connection.execute(f"CREATE MACRO {macro}(name) AS TABLE FROM query_table('{prefix}' || name)")
        try:
            return connection.execute(text).df()
        except duckdb.Error as error:
            raise Misuse(str(error).partition("\n")[0]) from None
