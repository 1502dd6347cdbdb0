"""A node's state as plain data in the user's names: what its windows hold, its partial matches, tables and timers.

The node was created with `OutputOptions.describes`, so that windows and patterns hold all attributes of their events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...plan import nodes
from ...plan.reports.show import show
from ..columnar.column_data import Array, StringPool
from ..patterns.machine_partials import PartialMatch, partial_matches_of
from ..patterns.matches import attribute_key
from ..windows.watched_window import held_events
from .operators import AggregationOperator, QueryOperator
from .query_operator import QueryOp

if TYPE_CHECKING:
    from ..node import NodeEngine
    from ..patterns.op import StateOp
    from ..select.steps import InputSteps

EMPTY_EVENT = 1
"""The log number of an absence that lasted long enough."""


@dataclass(frozen=True)
class DescribedEvent:
    """An event in a window or partial match: its timestamp (ms), its values by attribute, and the key of its partition
    ("": none). `is_waiting`: a batch that is being collected has it, and it was not emitted yet."""

    timestamp: int
    values: Mapping[str, Any]
    key: str = ""
    is_waiting: bool = False


@dataclass(frozen=True)
class DescribedWindow:
    """The window of a stream: the `names` of its attributes, and its events in their order. `due`: the clock (ms) at
    which it changes by itself, None if it does not."""

    stream: str
    function: str
    names: Sequence[str]
    events: Sequence[DescribedEvent]
    due: int | None


@dataclass(frozen=True)
class DescribedPartial:
    """A partial match: by state of the pattern, its events (an absence that lasted long enough has one without values),
    and the numbers of the states that it waits for."""

    key: str
    events: Sequence[Sequence[DescribedEvent]]
    waits_for: Sequence[int]


@dataclass(frozen=True)
class DescribedQuery:
    """A query's state: its windows (two in a join), or its partial matches (None: it has no pattern) with the slot of
    each state in the plan, and the clock (ms) at which it can emit by itself, None if it cannot."""

    windows: Sequence[DescribedWindow]
    partial_matches: Sequence[DescribedPartial] | None
    slots: Sequence[int]
    due: int | None
    groups: DescribedRows | None = None
    """The key of the partition, the values of `group by`, and the present values of aggregates, of each group; None
    where the select has no aggregates."""
    pending_outputs: DescribedRows | None = None
    """Outputs that a rate limit holds back: the key of the partition, timestamp (ms), and their values; None without
    a rate limit that does."""


@dataclass(frozen=True)
class DescribedRows:
    """Rows of a table or named window: the names of its attributes, and the values of each row."""

    names: Sequence[str]
    rows: Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class DescribedNode:
    """A node's clock (ms; None before its first step), its queries, tables and named windows; `buckets` has, by
    aggregation and duration, the rows of the newest bucket."""

    clock: int | None
    queries: Mapping[str, DescribedQuery]
    tables: Mapping[str, DescribedRows]
    windows: Mapping[str, DescribedRows]
    buckets: Mapping[str, Mapping[str, DescribedRows]] = field(default_factory=dict)


def describe(node: NodeEngine) -> DescribedNode:
    """The state of a node."""
    strings = node.services.strings
    queries = {op.name: describe_query(node, op) for op in node.operators if isinstance(op, QueryOperator)}
    windows = {
        id: _rows(w.definition.source.schema.names, w.contents(), strings) for id, w in node.parts.windows.items()
    }
    buckets = {
        op.name: {str(d): _rows(op.aggregation.definition.source.schema.names, op.aggregation.newest_rows(d), strings)
                  for d in op.aggregation.definition.durations}
        for op in node.operators if isinstance(op, AggregationOperator) and op.aggregation.keep
    }  # fmt: skip
    return DescribedNode(node.now if node.started else None, queries, describe_tables(node), windows, buckets)


def describe_query(node: NodeEngine, op: QueryOperator) -> DescribedQuery:
    """The state of a node's query."""
    return _query(op.query, instance_keys(node, op.name), node.services.strings)


def describe_tables(node: NodeEngine) -> dict[str, DescribedRows]:
    """The rows of a node's tables that are in memory."""
    return {
        id: _rows(t.names, t.columns(t.order()), node.services.strings) for id, t in node.parts.tables.items()
        if id not in node.parts.stored_tables
    }  # fmt: skip


def count_rows(node: NodeEngine, name: str) -> int:
    """The number of events in a query's windows, of its partial matches that have an event, or of a table's rows.
    Raises KeyError if it keeps none."""
    for op in node.operators:
        if isinstance(op, QueryOperator) and op.name == name and op.query.pattern is not None:
            return sum(any(partial.captured) for partial in partial_matches_of(op.query.pattern))
    return int(node.stats()["state_rows"][name])


def instance_keys(node: NodeEngine, query: str) -> dict[int, str]:
    """By number, the keys of the instances of the partition that a query is in; none outside."""
    for element in node.plan.elements:
        if isinstance(element, nodes.Partition) and any(q.name == query for q in element.queries):
            return {number: key for key, number in node.parts.instances[element.id].numbers.items()}
    return {}


def _rows(names: Sequence[str], columns: Sequence[Any], strings: StringPool) -> DescribedRows:
    values = [c.to_list(strings) for c in columns[: len(names)]]
    return DescribedRows(names, list(zip(*values, strict=True)))


def _query(query: QueryOp, keys: Mapping[int, str], strings: StringPool) -> DescribedQuery:
    windows = [_window(s, keys, strings) for s in query.input_steps if s.window is not None]
    pattern = query.pattern
    groups, outputs = _groups(query, keys, strings), _pending_outputs(query, keys, strings)
    if pattern is None:
        return DescribedQuery(windows, None, (), query.next_due(), groups, outputs)
    slots = [p.state.slot for p in pattern.layout.processors]
    partials = describe_partials(pattern, keys, strings, partial_matches_of(pattern))
    return DescribedQuery(windows, partials, slots, query.next_due(), groups, outputs)


def _groups(query: QueryOp, keys: Mapping[int, str], strings: StringPool) -> DescribedRows | None:
    groups = query.groups
    if groups is None:
        return None
    select = query.query.select
    item_names = {item.expr: item.name for item in reversed(select.items)}
    names = ["key", *map(show, select.group_by), *(item_names.get(a) or show(a) for a in groups.aggregates)]
    size = len(groups.values[0])
    instances = [0] * size if groups.instance is None else groups.instance.tolist()
    columns = [c.to_list(strings) for c in (*groups.keys, *groups.values)]
    return DescribedRows(names, list(zip([keys.get(i, "") for i in instances], *columns, strict=True)))


def _pending_outputs(query: QueryOp, keys: Mapping[int, str], strings: StringPool) -> DescribedRows | None:
    rows = query.waiting_rows
    if rows is None:
        return None
    names = ["key", "timestamp", *(item.name for item in query.query.select.items)]
    columns = [c.to_list(strings) for c in rows.columns[: len(names) - 2]]
    instance_keys = [keys.get(i, "") for i in rows.instance.tolist()]
    return DescribedRows(names, list(zip(instance_keys, rows.ts.tolist(), *columns, strict=True)))


def _window(steps: InputSteps, keys: Mapping[int, str], strings: StringPool) -> DescribedWindow:
    window, names = steps.window, steps.window_names
    assert window is not None
    events = []
    for part in held_events(window):
        rows = part.rows
        if not len(rows):
            continue
        values = zip(*(c.to_list(strings) for c in rows.columns[: len(names)]), strict=True)
        for ts, instance, row in zip(rows.ts.tolist(), rows.instances().tolist(), values, strict=True):
            key = keys.get(instance, "")
            events.append(DescribedEvent(ts, dict(zip(names, row, strict=True)), key, part.waiting))
    return DescribedWindow(steps.source, steps.window_function, names, events, window.next_due())


def describe_partials(
    pattern: StateOp, keys: Mapping[int, str], strings: StringPool, partials: Sequence[PartialMatch]
) -> list[DescribedPartial]:
    """Partial matches of a pattern by key, in the order of the machine's lists. `keys`: by instance, its key."""
    by_state = [_events_of_state(pattern, p, partials, keys, strings) for p in range(len(pattern.layout.processors))]
    partial_matches = [
        DescribedPartial(keys.get(partial.instance, ""), events, partial.states)
        for partial, *events in zip(partials, *by_state, strict=True)
    ]
    return sorted(partial_matches, key=lambda partial: partial.key)  # the numbers of instances depend on micro-batches


def _events_of_state(
    pattern: StateOp, p: int, partials: Sequence[PartialMatch], keys: Mapping[int, str], strings: StringPool
) -> list[list[DescribedEvent]]:  # fmt: skip
    """By partial match, the events of the state `p`."""
    names = pattern.layout.processors[p].state.input.source.schema.names
    numbers = np.array([n for partial in partials for n in partial.captured[p]], np.int64)
    times = pattern.log.times[numbers].tolist()
    row_numbers: Array = numbers if pattern.log.row is None else pattern.log.row[numbers]
    columns = [pattern.log.columns[attribute_key(pattern.layout, p, i)] for i in range(len(names))]
    values = zip(*(c.take(row_numbers).to_list(strings) for c in columns), strict=True)
    events = iter(
        [
            DescribedEvent(ts, {} if number == EMPTY_EVENT else dict(zip(names, row, strict=True)))
            for number, ts, row in zip(numbers.tolist(), times, values, strict=True)
        ]
    )
    return [[next(events) for _ in partial.captured[p]] for partial in partials]
