"""The attributes of the input that a plan reads: the columns of the others can stay in their file.

An attribute is left out only if that makes no difference. All attributes are needed by sinks, fault streams, stream
functions (`log` is one), windows that hold the selected attributes or evaluate texts, and a query that may fail for an
event, as the error has the event's values. Other failures (a time that no calendar has, a step that is set aside) read
a missing value, which raises; the runner reads all columns then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..types import Schema
from . import nodes as n
from .query_parts import expressions, may_fail, stream_states
from .window_declarations import DECLARATIONS


def needed_attributes(plan: n.Plan) -> Mapping[str, frozenset[int]]:
    """The numbers of the attributes that `plan` reads of each of its streams."""
    attributes_by_stream: dict[str, set[int]] = {s: set() for s in plan.streams}
    for stream, attrs in _reads(plan):
        if stream in attributes_by_stream:
            attributes_by_stream[stream].update(attrs)
    return {s: frozenset(attrs) for s, attrs in attributes_by_stream.items()}


def _reads(plan: n.Plan) -> Iterator[tuple[str, Iterable[int]]]:
    """(stream, some of its attributes that are read), for all that reads."""
    for s, d in plan.streams.items():
        if d.on_error is not None or any(a.name.lower() == "sink" for a in d.annotations):
            yield s, _all(d.source.schema)
    for q in plan.queries:
        exprs = list(expressions(q))
        for slot, source in _inputs(q.input):
            yield source.source.id, _of_input(source, slot, exprs)
    for element in plan.elements:
        for key in element.keys if isinstance(element, n.Partition) else ():
            of_key = [key.expr] if isinstance(key, n.ValueKey) else [e for e, _ in key.ranges]
            yield key.stream, _named_attributes(of_key, 0, plan.schema(key.stream))
    for a in plan.aggregations.values():
        # An event without a time to aggregate by is an error, with its values.
        reads_all = a.by is not None
        exprs = [*_of_steps(a.input), *a.select.group_by, *(c.arg for c in a.base if c.arg is not None)]
        yield a.input.source.id, _all(a.input.source.schema) if reads_all else _of_input(a.input, 0, exprs)


def _inputs(i: n.Input) -> Iterator[tuple[int, n.StreamInput]]:
    """(slot, input) of all that a query reads."""
    match i:
        case n.StreamInput():
            yield 0, i
        case n.JoinInput():
            yield from enumerate((i.left, i.right))
        case n.StateInput():
            yield from ((s.slot, s.input) for s in stream_states(i.state))


def _of_input(i: n.StreamInput, slot: int, exprs: Iterable[n.Expr]) -> Iterable[int]:
    """Attributes that `exprs`, the expressions of a query, and the steps of one of its inputs read of its events."""
    return _all(i.source.schema) if any(map(_sees_all, i.steps)) else _named_attributes(exprs, slot, i.source.schema)


def _of_steps(i: n.StreamInput) -> Iterator[n.Expr]:
    for step in i.steps:
        yield from (step.condition,) if isinstance(step, n.FilterStep) else step.args


def _sees_all(step: n.Step) -> bool:
    """True if a step may look at attributes that it does not name."""
    match step:
        case n.FilterStep():
            return False
        case n.WindowStep():
            return step.condition is not None or DECLARATIONS[step.function].reads != "arguments"
    return not step.function.startswith("reorder:")


def _named_attributes(exprs: Iterable[n.Expr], slot: int, schema: Schema) -> Iterable[int]:
    """The attributes of the event in `slot` that expressions name; all where one of them may fail."""
    exprs = list(exprs)
    if any(map(may_fail, exprs)):
        return _all(schema)
    refs = (e for x in exprs for e in n.walk(x) if isinstance(e, n.Ref))
    return {e.attr for e in refs if e.slot == slot and e.attr < len(schema)}  # more are what steps append


def _all(schema: Schema) -> Iterable[int]:
    return range(len(schema))
