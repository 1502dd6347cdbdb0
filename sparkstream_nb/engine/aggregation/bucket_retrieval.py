"""Retrievals over an aggregation: `from A on ... within ... per ... select ...`.

The rows that are read become one chunk of the aggregation's schema; the select is the same as in any query.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import SiddhiRuntimeError
from ...plan.nodes import AggDuration, AggregationDef, EventRef, Expr, Ref, Retrieval
from ...types import Type
from ..columnar.column_data import Column
from ..columnar.frame import frame_of
from ..columnar.rows import Clock, Rows
from ..expressions import Env, compile_expr
from ..expressions.java_values import with_whole_characters
from ..select.selector import Selector, SelectorSetup
from ..state.node_batch import RetrievalAnswer
from ..state.services import Services
from .bucket_calendar import duration_of, within_range


def bounds_of(
    retrieval: Retrieval, definition: AggregationDef, services: Services, now: int
) -> tuple[AggDuration, int, int]:
    """(per, start, end) of a retrieval, in ms, end exclusive. Raises SiddhiRuntimeError if one is invalid."""
    assert retrieval.per is not None
    values = [_value(e, services, now) for e in (*retrieval.within, retrieval.per)]
    start, end = within_range(tuple(values[:-1]))
    return duration_of(str(values[-1]), definition.id, definition.durations), start, end


def _value(expr: Expr, services: Services, now: int) -> int | str:
    def resolve(ref: Ref | EventRef) -> Column:
        raise SiddhiRuntimeError("'within' and 'per' of a retrieval cannot name attributes.")

    at = np.array([now], np.int64)
    env = Env(1, services.strings, at, at, resolve)
    value = compile_expr(expr, services.context)(env).to_list(services.strings)[0]
    if env.failed_rows is not None or value is None:
        raise SiddhiRuntimeError(f"'within' or 'per' has no value: {env.reason(0) or 'it is null'}.")
    assert isinstance(value, int | str)
    return value


def answer_rows(retrieval: Retrieval, columns: Sequence[Column], services: Services, now: int) -> RetrievalAnswer:
    """Finish a retrieval over `columns` (its source's schema): apply `on`, then the select."""
    output_columns = select_rows(retrieval, columns, len(columns[0]), services, now)
    names = [(a.name, str(a.type)) for a in retrieval.columns]
    lists = [c.to_list(services.strings) for c in output_columns]
    for number, attribute in enumerate(retrieval.columns):
        if attribute.type is Type.OBJECT:
            lists[number] = [with_whole_characters(v) for v in lists[number]]
    return RetrievalAnswer(names, [list(v) for v in zip(*lists, strict=True)])


def select_rows(
    retrieval: Retrieval, columns: Sequence[Column], n: int, services: Services, now: int
) -> Sequence[Column]:
    """The columns that a retrieval's select gives over `n` rows (one row without columns where it has no source)."""
    # The rows of tables and windows are found without their timestamps (`eventTimestamp()` is Siddhi's -1 here).
    lacks_times = retrieval.source is not None and retrieval.source.kind != "aggregation"
    at = np.full(n, now, np.int64)
    zeros = np.zeros(n, np.int64)
    rows = Rows(columns, np.full(n, -1, np.int64) if lacks_times else at, zeros, zeros)
    clock = Clock(0, np.array([now], np.int64), np.ones(1, np.bool_), 0, 0)
    error_count = len(services.errors)
    if retrieval.on is not None and n:
        env = Env(n, services.strings, rows.ts, at, frame_of(rows).resolve, tables=services.in_table)
        passes = compile_expr(retrieval.on, services.context)(env)
        if env.failed_rows is not None:
            raise SiddhiRuntimeError(f"'on' failed: {env.reason(int(np.flatnonzero(env.failed_rows)[0]))}.")
        mask = passes.values if passes.null is None else passes.values & ~passes.null
        rows = rows.where(mask)
    setup = SelectorSetup("on-demand query", current=True, wants_expired=False, sliding=False)
    selector = Selector(retrieval.select, services, setup)
    output_rows = selector.run(frame_of(rows), clock).rows
    if len(services.errors) > error_count:
        message = services.errors[error_count].message
        del services.errors[error_count:]
        raise SiddhiRuntimeError(f"The select failed: {message}.")
    return output_rows.columns
