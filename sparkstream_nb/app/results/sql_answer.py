"""Answers to SQL over the relations of apps, and the list of those relations."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd
import pyarrow as pa

from ... import argument_checks
from ...errors import Misuse, shown
from ...outputs.output_files import series_of
from ...stores.sql_session import Catalog, SqlQuery, SqlSession, describe_type, list_places
from .frontend import current
from .listings import Listing
from .plotly_results import Plottable

SQL_ROWS = 1_000_000
"""Rows of an answer at most, by default."""


@dataclass(frozen=True, repr=False, eq=False)
class SqlAnswer(Plottable):
    """The answer to a query: `table` has the rows, with DuckDB's types. `is_cut`: the query has more than these.
    `notes`: sentences on how the query was understood, and on rows that are missing. `limit`: how many rows are
    displayed; None: the front end's default."""

    table: pa.Table
    is_cut: bool = False
    notes: Sequence[str] = ()
    limit: int | None = None

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The rows as a pandas frame. Whole numbers beyond 64 bits are Python's, decimals are floats."""
        return pd.DataFrame({n: _series(c) for n, c in zip(self.table.column_names, self.table.columns, strict=True)})

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def _rows_to_plot(self, by: str | None) -> tuple[pd.DataFrame, str]:
        return self.frame, ", ".join(self.table.column_names)

    def summary(self) -> str:
        return f"<SqlAnswer: {len(self):,} rows of {', '.join(self.table.column_names)}>"


@dataclass(frozen=True)
class RelationLine:
    """A relation that SQL may name: its full name as a query has it, and its columns with their types."""

    name: str
    columns: Sequence[tuple[str, str]]


@dataclass(frozen=True, repr=False, eq=False)
class SqlRelations(Listing[RelationLine]):
    """The relations that SQL may name."""

    @staticmethod
    def of(catalogs: Sequence[Catalog]) -> SqlRelations:
        """All relations of some apps."""
        lines = [
            RelationLine(place, [(f.name, describe_type(f.type)) for f in r.columns])
            for place, r in list_places(catalogs)
        ]
        return SqlRelations(tuple(lines))

    def summary(self) -> str:
        return f"<SqlRelations: {', '.join(line.name for line in self.items) or 'none'}>"


def answer_sql(query: SqlQuery) -> SqlAnswer:
    """Answers a query, and shows its progress. Raises `Misuse` for a query that is none or writes."""
    check_query(query.text, query.frames, query.limit)
    with contextlib.closing(current().status()) as status:
        rows = SqlSession(query, lambda share: status(f"SQL: {share:.0%}")).run()
    notes = [*rows.remarks]
    if rows.is_cut:
        notes.append(f"these are the first {query.limit:,} rows: there are more, which a larger limit gives")
    return SqlAnswer(rows.table, rows.is_cut, tuple(notes))


def check_query(text: str, frames: Mapping[str, Any], limit: int) -> None:
    """Raises `Misuse` for arguments of other types."""
    argument_checks.require_str("the query", text)
    argument_checks.require_int("limit", limit, 1)
    if not isinstance(frames, Mapping) or not all(isinstance(name, str) for name in frames):
        raise Misuse(f"frames is a dict of frames by their names, not {shown(frames)}")


def with_limit(answer: SqlAnswer, limit: int | None) -> SqlAnswer:
    """The answer, displayed with this number of rows."""
    return answer if limit is None else replace(answer, limit=limit)


def _series(column: pa.ChunkedArray) -> pd.Series[Any]:
    """A column of pandas. DuckDB gives sums of whole numbers as decimals without places."""
    if pa.types.is_decimal(column.type):
        if column.type.scale:
            return series_of(column.cast(pa.float64()))
        with contextlib.suppress(pa.ArrowInvalid):
            return series_of(column.cast(pa.int64()))
        return pd.Series([None if v is None else int(v) for v in column.to_pylist()], dtype=object)
    return series_of(column)
