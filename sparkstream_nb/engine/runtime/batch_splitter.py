"""Splits a batch into ranges in which no query changes a table, and single events that do.

A query that changes rows by an arbitrary condition, or a table that others read by an arbitrary condition, cannot be
ordered afterwards (`table_log`), so events would have to run one by one. But such changes are usually rare, as for a
table of rules. A change is caused by an event that reaches the query's stream and passes its filters. The batch is
split at those events: they run chunk by chunk, the events between them operator by operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..columnar.rows import ORDER_KEY_BITS, Clock, Rows
from .operator_graph import OperatorGraph, build
from .operators import Operator, QueryOperator

FEW = 8
"""Number of events that run chunk by chunk in the time that one range takes operator by operator."""


@dataclass(frozen=True)
class BatchSplitter:
    """Execution of an app between changes: its `graph` without them, and by stream the queries whose filters an event
    must pass to cause one (None: any event does).
    """

    graph: OperatorGraph
    causes: Mapping[str, tuple[QueryOperator | None, ...]]

    def cut(self, inputs: Mapping[str, Rows], clock: Clock) -> Iterator[tuple[int, int, bool]]:
        """(first step, step after the last, whether operator by operator) of the ranges of a batch, in order."""
        n = len(clock.now)
        loud = np.zeros(n, np.bool_)
        for stream, rows in inputs.items():
            for op in self.causes.get(stream, ()):
                order_key = rows.order_key
                if op is not None:
                    order_key = order_key[op.query.passing_rows(stream, rows, clock)]
                loud[(order_key >> ORDER_KEY_BITS) - clock.base] = True
        a = 0
        for at in [*np.flatnonzero(loud).tolist(), n]:
            if at - a >= FEW:
                yield a, at, True
            elif at > a:
                yield a, at, False
            if at < n:
                yield at, at + 1, False
            a = at + 1


def make_batch_splitter(operators: Sequence[Operator], settling: frozenset[str]) -> BatchSplitter | None:
    """Plan the execution of an app between its changes of tables; None if the changes cannot be predicted, or if there
    are other reasons to run chunk by chunk.
    """
    changing = [i for i, op in enumerate(operators) if _changes(op)]
    if not changing:
        return None
    quiet = [replace(op.node, writes=(), alone="") if _changes(op) else op.node for op in operators]
    graph = build(quiet, settling)
    if graph.order is None:
        return None
    causes: dict[str, set[int | None]] = {}
    if not all(_trace(operators, i, True, causes, set()) for i in changing):
        return None
    causes_by_stream: dict[str, tuple[QueryOperator | None, ...]] = {}
    for stream, numbers in causes.items():
        ops = [operators[i] for i in numbers if i is not None]
        causes_by_stream[stream] = (
            (None,) if None in numbers else tuple(op for op in ops if isinstance(op, QueryOperator))
        )
    return BatchSplitter(graph, causes_by_stream)


def _changes(op: Operator) -> bool:
    """True if a query changes a table whose changes are not buffered."""
    return isinstance(op, QueryOperator) and op.writer is not None and bool(op.node.writes)


def _trace(
    operators: Sequence[Operator], i: int, passes: bool, causes: dict[str, set[int | None]], seen: set[tuple[int, bool]]
) -> bool:  # fmt: skip
    """Add to `causes` the possible causes of output of operator i: events of its input streams, and pass its
    filters if `passes` (one that fails in it goes to a fault stream). False if a timer may.
    """
    op = operators[i]
    if (i, passes) in seen:
        return True
    seen.add((i, passes))
    if op.node.has_timers:
        return False
    for s in op.node.inputs:
        causes.setdefault(s, set()).add(i if passes and isinstance(op, QueryOperator) else None)
        for k, other in enumerate(operators):
            if other.node.target == s and not _trace(operators, k, True, causes, seen):
                return False
            if s in other.node.also and not _trace(operators, k, False, causes, seen):
                return False
    return True
