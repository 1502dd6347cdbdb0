"""On-demand queries over a node's tables, named windows and aggregations."""

from __future__ import annotations

import numpy as np

from ...errors import SiddhiRuntimeError
from ...plan import nodes
from ..aggregation import answer_rows, bounds_of
from ..aggregation.bucket_retrieval import select_rows
from ..columnar.column_data import Column
from ..columnar.rows import Rows
from ..state.node_batch import RetrievalAnswer
from ..state.services import Services
from ..tables.table_store import TableWriter
from .assembly import Assembly


def answer(retrieval: nodes.Retrieval, parts: Assembly, services: Services, now: int) -> RetrievalAnswer:
    """Answers a retrieval, or carries out a change. Raises SiddhiRuntimeError if it fails."""
    source = retrieval.source
    if source is None:
        columns: list[Column] = []
        n = 1
    elif source.kind == "aggregation":
        aggregation = parts.aggregations[source.id]
        per, start, end = bounds_of(retrieval, aggregation.definition, services, now)
        columns = list(aggregation.rows(per, start, end))
        n = len(columns[0])
    elif source.kind == "table":
        table = parts.tables[source.id]
        table.look_for(retrieval.on, now)
        columns = table.columns(table.order())
        n = table.size
    else:
        columns = parts.windows[source.id].contents()
        parts.windows[source.id].looked_into()
        n = len(columns[0])
    if retrieval.output is None:
        return answer_rows(retrieval, columns, services, now)
    return _change(retrieval, columns, n, parts, services, now)


def _change(
    retrieval: nodes.Retrieval, columns: list[Column], n: int, parts: Assembly, services: Services, now: int
) -> RetrievalAnswer:
    """`select ... insert into T`, `delete T on ...`, `update T set ... on ...`, `update or insert into T ...`."""
    output = retrieval.output
    assert output is not None
    table = parts.tables[output.target.id]
    at = np.full(n, now, np.int64)
    zeros = np.zeros(n, np.int64)
    new_columns: list[Column] = []
    if retrieval.select.items:
        new_columns = list(select_rows(retrieval, columns, n, services, now))
        at = np.full(len(new_columns[0]), now, np.int64)
        zeros = np.zeros(len(at), np.int64)
    error_count = len(services.errors)
    TableWriter(output, retrieval.select, table, services, "on-demand query").write(
        Rows(new_columns, at, zeros, zeros), at
    )
    if len(services.errors) > error_count:
        message = services.errors[error_count].message
        del services.errors[error_count:]
        raise SiddhiRuntimeError(f"The change failed: {message}.")
    return RetrievalAnswer([(a.name, str(a.type)) for a in retrieval.columns], [])
