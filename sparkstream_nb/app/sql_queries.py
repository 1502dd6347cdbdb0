"""SQL over all apps of this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..argument_types import explain_arguments
from ..stores.sql_session import SqlQuery
from .deploying import apps
from .results.sql_answer import SQL_ROWS, SqlAnswer, SqlRelations, answer_sql


@explain_arguments
def sql(text: str, *, frames: Mapping[str, Any] | None = None, limit: int = SQL_ROWS) -> SqlAnswer:
    """Answers an SQL query by DuckDB, over the apps of this process: `App.outputs.Stream`, `App.inputs.Stream`,
    `App.tables.Table`, `App.windows.Window`, `App.aggregations.Name_HOURS`, `App.shards.Name_HOURS` (by shard),
    `App.errors`, `App.divergence`, `App.metrics.nodes` and others: `sql_relations()` lists them with their columns.

    What is read of an app is as of one commit. Of the only app, names need no app before them. `frames`: frames of
    pandas or Arrow, or results, by the names that the query has for them; files are read by their paths, as
    `'quotes.parquet'`. At most `limit` rows are taken. Raises `Misuse` for a query that writes, that DuckDB refuses, or
    that has a name which is not there.
    """
    catalogs = [app.relations for app in apps().values() if not app.closed]
    home = catalogs[0].name if len(catalogs) == 1 else None
    return answer_sql(SqlQuery(text, catalogs, {} if frames is None else frames, home, limit))


def sql_relations() -> SqlRelations:
    """The relations that `sql` may name, with their columns."""
    return SqlRelations.of([app.relations for app in apps().values() if not app.closed])
