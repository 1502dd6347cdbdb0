"""Times and rows of the parts of a node's operators, measured on a node that is there for that alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from time import perf_counter
from typing import Any

from ...plan import nodes
from ..select.selector import Selected
from .operators import AggregationOperator, EntryOperator, Operator, QueryOperator, WindowOperator
from .query_operator import QueryOp


@dataclass
class PartTimes:
    """The time of a part of an operator in seconds, and the rows that went in and came out; None: they are not
    counted. `element` is the query, window, aggregation or partition, `part` the step within it."""

    element: str
    part: str
    seconds: float = 0.0
    rows_in: int = 0
    rows_out: int | None = None

    def measure(self, owner: Any, method: str) -> None:
        """Measures the calls of a method of an object from now on."""
        call: Callable[..., Any] = getattr(owner, method)

        @wraps(call)
        def call_and_measure(*args: Any, **keywords: Any) -> Any:
            began = perf_counter()
            answer = call(*args, **keywords)
            self.seconds += perf_counter() - began
            self.rows_in += _count(args[0]) or 0
            rows_out = _count(answer)
            if rows_out is not None:
                self.rows_out = (self.rows_out or 0) + rows_out
            return answer

        setattr(owner, method, call_and_measure)


def measure_parts(operators: Sequence[Operator]) -> list[PartTimes]:
    """Measures the parts of a node's operators from now on, in the order in which they run."""
    times = []
    for operator in operators:
        for part, owner, method in _parts_of(operator):
            part_times = PartTimes(operator.name, part)
            part_times.measure(owner, method)
            times.append(part_times)
    return times


def _parts_of(operator: Operator) -> Iterator[tuple[str, Any, str]]:
    """The parts of an operator: the words for each, and the object and method that do its work."""
    match operator:
        case QueryOperator():
            yield from ((part, owner, "run") for part, owner in _query_parts(operator.query))
            if operator.writer is not None:
                yield "table write", operator.writer, "write"
        case WindowOperator():
            yield "window", operator.window, "run"
        case AggregationOperator():
            yield "filters", operator.steps, "run"
            yield "buckets", operator.aggregation, "run"
        case EntryOperator():
            yield "partition entry", operator.entry, "run"


def _query_parts(query: QueryOp) -> Iterator[tuple[str, Any]]:
    source = query.query.input
    for part in query.run_parts:
        if part is query.selector:
            yield "select", part
        elif part is query.pattern:
            yield (source.kind if isinstance(source, nodes.StateInput) else "pattern"), part
        elif isinstance(source, nodes.JoinInput) and part is query.join:
            yield "join", part
        elif isinstance(source, nodes.StreamInput) and part in query.input_steps:
            yield _describe_steps(source.steps), part
        else:
            yield "rate limit", part


def _describe_steps(steps: Sequence[nodes.Step]) -> str:
    words = {nodes.FilterStep: "filter", nodes.FunctionStep: "stream function"}
    names = [f"window {s.function}" if isinstance(s, nodes.WindowStep) else words[type(s)] for s in steps]
    return ", ".join(dict.fromkeys(names)) or "input"


def _count(rows: Any) -> int | None:
    """The number of rows of what a part takes or gives; None for anything else."""
    match rows:
        case Selected():
            return len(rows.rows)
        case Mapping():
            return sum(map(len, rows.values()))
        case list():
            return sum(len(part) for _, part in rows)
    return len(rows) if hasattr(rows, "order_key") else None
