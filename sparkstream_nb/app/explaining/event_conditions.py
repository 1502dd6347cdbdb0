"""The conditions that an event of a stream meets in the queries that read it, mini_queries one by one.

Each part of a filter becomes a query of a small app, `from S[part] select ...`, which takes the event alone: so it is
the engine that says which parts hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ...engine.columnar.column_data import ARROW
from ...engine.state.node_batch import InputBatch, StreamRows
from ...errors import SiddhiError, SparkStreamError
from ...lang import tree as t
from ...lang.clause_changes import nodes_of
from ...lang.printer import to_text
from ...lang.relaxations import queries_of
from ...replay.replay import Nodes
from ...types import Schema, Type
from .why_not_trials import AppText

_Reader = t.StandardStream | t.JoinSide | t.StreamState


@dataclass(frozen=True)
class ConditionCheck:
    """A part of a filter: its query or aggregation, the state of the pattern that has it ("": none), its text, the
    values that it names, and whether it holds; None if that depends on more than the event."""

    query: str
    state: str
    text: str
    values: Mapping[str, Any]
    holds: bool | None


@dataclass(frozen=True)
class _FilterPart:
    query: str
    reader: _Reader
    functions: tuple[t.StreamFunction, ...]
    condition: t.Expression

    @property
    def state(self) -> str:
        reader = self.reader
        return (reader.ref or reader.source.id) if isinstance(reader, t.StreamState) else ""

    @property
    def is_of_event(self) -> bool:
        """True if it reads nothing but the event."""
        ref = self.reader.alias if isinstance(self.reader, t.JoinSide) else getattr(self.reader, "ref", None)
        own_names = {self.reader.source.id, ref}
        return all(
            not isinstance(node, t.In | t.StreamReference)
            and not (isinstance(node, t.Variable) and node.source is not None
                     and (node.source.id not in own_names or node.index is not None))
            for node in nodes_of(self.condition)
        )  # fmt: skip

    def mini_query(self, stream: str, target: str) -> t.Query:
        """A query that has an output if it holds."""
        own_condition = _without_sources(self.condition)
        source = t.StandardStream(t.SourceName(stream), (*self.functions, t.Filter(own_condition)))
        item = t.OutputAttribute(t.Constant(1, Type.INT), "one")
        return t.Query(source, t.Selection((item,)), t.InsertInto(t.SourceName(target)))


class EventConditions:
    """The filters of an app's queries. `nodes` are as the app's nodes run."""

    def __init__(self, text: AppText, nodes: Nodes) -> None:
        self._text, self._nodes = text, nodes
        queries = [query for _, query in queries_of(text.tree)]
        bound_names = [q.name for q in nodes.plan.queries]
        self._inputs: dict[str, t.QueryInput] = {}
        """By query or aggregation."""
        if len(queries) == len(bound_names):
            self._inputs = {name: query.input for name, query in zip(bound_names, queries, strict=True)}
        definitions = text.tree.definitions
        self._inputs |= {str(d.id): d.input for d in definitions if isinstance(d, t.AggregationDefinition)}

    def readers(self, stream: str) -> list[str]:
        """The queries and aggregations that read a stream."""
        return [name for name, source in self._inputs.items() if any(_readers(source, stream))]

    def check(self, stream: str, time: int, values: Sequence[Any]) -> list[ConditionCheck]:
        """Each part of the filters that an event of a stream meets, in the order of the text."""
        schema = self._nodes.plan.streams[stream].source.schema
        parts = [p for name, source in self._inputs.items() for p in _filter_parts(name, source, stream)]
        mini_queries = {i: p.mini_query(stream, f"Part{i}") for i, p in enumerate(parts) if p.is_of_event}
        try:
            true_parts = self._true_parts(stream, schema, time, values, mini_queries) if mini_queries else set()
        except (SiddhiError, SparkStreamError):  # the small app lacks a function or table
            mini_queries, true_parts = {}, set()
        by_name = dict(zip(schema.names, values, strict=True))
        out = []
        for i, part in enumerate(parts):
            names = [node.name for node in nodes_of(part.condition) if isinstance(node, t.Variable)]
            own_values = {name: by_name[name] for name in dict.fromkeys(names) if name in by_name}
            holds = i in true_parts if i in mini_queries else None
            out.append(ConditionCheck(part.query, part.state, to_text(part.condition), own_values, holds))
        return out

    def _true_parts(
        self, stream: str, schema: Schema, time: int, values: Sequence[Any], mini_queries: Mapping[int, t.Query]
    ) -> set[int]:
        functions = tuple(d for d in self._text.tree.definitions if isinstance(d, t.FunctionDefinition))
        attributes = tuple(t.AttributeDefinition(a.name, a.type) for a in schema)
        definition = t.StreamDefinition(t.SourceName(stream), attributes)
        app = t.App((), (definition, *functions), tuple(mini_queries.values()))
        plan = self._text.compile(to_text(app))
        nodes = replace(self._nodes, plan=plan, plain_plan=None, led=None, describes=False, lazy=False, inputs={})
        columns = [
            [v] if a.type is Type.OBJECT else pa.array([v], ARROW[a.type])
            for a, v in zip(schema, values, strict=True)
        ]  # fmt: skip
        row = StreamRows(np.zeros(1, np.int64), np.array([time]), columns)
        outputs = nodes.engine(plan, by_query=False).step(InputBatch(np.array([time]), {stream: row}))
        return {i for i in mini_queries if len(outputs.streams.get(f"Part{i}", ()))}


def _readers(source: t.QueryInput, stream: str) -> Iterator[_Reader]:
    """The parts of a query's input that read a stream."""
    for node in nodes_of(source):
        if isinstance(node, t.StandardStream | t.JoinSide | t.StreamState):
            name = node.source
            if name.id == stream and not name.inner and not name.fault:
                yield node


def _filter_parts(query: str, source: t.QueryInput, stream: str) -> Iterator[_FilterPart]:
    for reader in _readers(source, stream):
        functions: list[t.StreamFunction] = []
        for handler in reader.handlers:
            if isinstance(handler, t.StreamFunction):
                functions.append(handler)
            elif isinstance(handler, t.Filter):
                for condition in _conjuncts(handler.condition):
                    yield _FilterPart(query, reader, tuple(functions), condition)


def _conjuncts(condition: t.Expression) -> Iterator[t.Expression]:
    if isinstance(condition, t.And):
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    else:
        yield condition


def _without_sources(node: Any) -> Any:
    """An expression whose variables do not name their stream."""
    if isinstance(node, t.Variable):
        return t.Variable(node.name)
    if isinstance(node, tuple):
        return tuple(map(_without_sources, node))
    if not isinstance(node, t.Node):
        return node
    return replace(node, **{name: _without_sources(getattr(node, name)) for name in node.__dataclass_fields__})
