"""The outputs of the operators during a step, and what a node makes of them for its runner."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...plan import nodes
from ...plan.output_labels import stream_of
from ...types import Schema, Type
from ..columnar.column_data import Column, StringPool, concat
from ..columnar.rows import EVENT_PHASE, Rows, concat_rows, steps_of
from ..state.node_batch import Chunks, ElementRows, Emitted, LazyObjects, OutputOptions, Outputs
from ..state.services import Services
from ..windows.window_protocol import no_rows
from .memory_topics import TopicOperator
from .operators import Operator, QueryOperator, WindowOperator
from .query_operator import QueryOp, split_kinds
from .triggers import TriggerOperator


class StepOutputs:
    """Outputs of the operators during one step call."""

    def __init__(self, trace: bool) -> None:
        self.trace = trace
        self.streams: dict[str, list[Rows]] = {}
        self.queries: dict[str, list[Rows]] = {}
        self.element_rows = ElementRows()

    def note(self, stream: str, rows: Rows) -> None:
        """Records the events of an observable stream."""
        self.streams.setdefault(stream, []).append(rows)

    def output_of(self, op: Operator, rows: Rows) -> None:
        """Counts the rows that an operator put out; keeps the rows of a query for a trace."""
        if isinstance(op, QueryOperator):
            self.element_rows.queries[op.name] += len(rows)
            if self.trace:
                self.queries.setdefault(op.name, []).append(rows)
        elif isinstance(op, WindowOperator):
            self.element_rows.windows[op.name] += len(rows)


class OutputCollector:
    """Makes the outputs of a step of what the operators put out: columns for the runner, with `options`. `schemas`: of
    the streams, by their names; `queries`: of the app."""

    def __init__(
        self, services: Services, options: OutputOptions, schemas: Mapping[str, Schema], queries: Sequence[QueryOp]
    ) -> None:
        self._services, self._options, self._schemas = services, options, schemas
        self._objects: Callable[[Column, StringPool], Any] = LazyObjects if options.lazy else Column.to_list
        self._queries = [q for q in queries if q.query.named] if options.trace else []

    def collect(self, step_outputs: StepOutputs, steps: int) -> Outputs:
        """The outputs without partials of aggregations, and all errors and logs since the last call. `steps`: the
        number of the first step."""
        services = self._services
        outputs = Outputs(errors=[*services.errors], logs=[*services.logs], element_rows=step_outputs.element_rows)
        services.errors.clear()
        services.logs.clear()
        for stream, parts in step_outputs.streams.items():
            outputs.streams[stream] = self._columns_of(parts, self._schemas[stream_of(stream)].names, steps)
        for query in self._queries:
            schema, seen = query.query.select.schema, step_outputs.queries.get(query.name)
            rows = concat_rows(seen) if seen else no_rows(schema.types)
            current, expired_rows = split_kinds(rows)
            if services.watching is not None:
                services.watching.kinds[query.name] = rows.kinds().tolist()
            outputs.queries[query.name] = (
                self._columns_of([current], schema.names, steps),
                self._columns_of([expired_rows], schema.names, steps),
            )
        return outputs

    def _columns_of(self, parts: Sequence[Rows], names: tuple[str, ...], steps: int) -> Emitted:
        strings = self._services.strings
        joined_columns = [concat(columns) for columns in zip(*(p.columns for p in parts), strict=True)]
        columns = [self._objects(c, strings) if c.type is Type.OBJECT else c.to_arrow(strings) for c in joined_columns]
        ts = parts[0].ts if len(parts) == 1 else np.concatenate([p.ts for p in parts])
        chunks = _chunks_of(parts) if self._options.chunks else None
        return Emitted(names, steps_of([p.order_key for p in parts], steps), ts, columns, chunks)


def _chunks_of(parts: Sequence[Rows]) -> Chunks:
    """The chunks of rows that come one part after the other."""
    numbers, last = [], 0
    for p in parts:
        changes = (np.diff(p.chunk, prepend=p.chunk[:1]) != 0) | (np.diff(p.order_key, prepend=p.order_key[:1]) != 0)
        numbers.append(last + np.cumsum(changes))
        last += int(changes.sum()) + 1
    order_keys = np.concatenate([p.order_key for p in parts])
    return Chunks(np.concatenate(numbers), order_keys & EVENT_PHASE != EVENT_PHASE)


def as_read(op: Operator, rows: Rows) -> Rows:
    """An operator's output as the stream's readers see it: all CURRENT.

    Rows from a named window keep their event types. Rows that leave a partition lose their partition instance.
    """
    if not isinstance(op, QueryOperator):
        return rows
    inner = nodes.is_of_partition(op.query.target.id)
    return Rows(rows.columns, rows.ts, rows.order_key, rows.chunk, None, rows.instance if inner else None)


def observable_streams(op: Operator) -> Iterator[str]:
    """The observable streams that an operator writes."""
    yield from op.node.also
    target = op.node.target
    outer = isinstance(op, QueryOperator) and op.query.target.kind == "stream" and "#" not in op.query.target.id
    if target is not None and (outer or isinstance(op, TriggerOperator | TopicOperator)):
        yield target
