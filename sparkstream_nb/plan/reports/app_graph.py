"""The graph of an app: who reads from whom and who writes to whom, as printable data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ...errors import Span
from ...masking import mask_passwords
from .. import nodes as n
from ..query_parts import connector_type, expressions, sources
from ..shard_safety.safety import aggregation_safety

NodeKind = Literal[
    "source", "stream", "trigger", "fault stream", "window", "table", "aggregation", "query", "partition", "sink",
    "group", "topic",
]  # fmt: skip
AROUND = ("partition", "group")
"""Kinds of nodes that others lie in."""


@dataclass(frozen=True)
class GraphNode:
    """A part of an app. `inside` is the id of the part around it; `text` its text in the app, if it has one.
    Only queries, aggregations and partitions have a `safety`.
    """

    id: str
    kind: NodeKind
    label: str
    safety: n.Safety | None = None
    text: str = field(default="", repr=False)
    inside: str | None = None


@dataclass(frozen=True)
class Edge:
    """An edge from the node that is read to the reader, or from the writer to the node that is written; both by id."""

    start: str
    end: str
    label: str = ""


@dataclass(frozen=True)
class Graph:
    """Nodes and edges in the order of the app's text, each edge once."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[Edge, ...]


def graph_of(plan: n.Plan) -> Graph:
    """The graph of an app; the same for equal plans."""
    collector = _Collector(plan)
    collector.definitions()
    collector.elements()
    return Graph(tuple(collector.nodes), tuple(dict.fromkeys(collector.edges)))


class _Collector:
    """The nodes and edges found so far."""

    def __init__(self, plan: n.Plan) -> None:
        self.plan = plan
        self._masked_text = mask_passwords(plan.text)  # which is as long
        self.nodes: list[GraphNode] = []
        self.edges: list[Edge] = []

    def definitions(self) -> None:
        inner = {s.id: p.id for p in self.plan.elements if isinstance(p, n.Partition) for s in p.inner}
        for id, s in self.plan.streams.items():
            kind: NodeKind = {"trigger": "trigger", "fault": "fault stream"}.get(s.kind, "stream")  # type: ignore[assignment]
            inside = _partition(inner[id]) if id in inner else None
            label = id.removeprefix(inner[id]) if id in inner else id
            self.nodes.append(GraphNode(_id(s.source), kind, label, inside=inside))
            if s.kind == "fault" and (origin := self.plan.streams.get(id.removeprefix("!"))):
                self.edges.append(Edge(_id(origin.source), _id(s.source), "on error"))
            self._connectors(s)
        for t in self.plan.tables.values():
            self.nodes.append(GraphNode(_id(t.source), "table", t.source.id))
        for w in self.plan.windows.values():
            self.nodes.append(GraphNode(_id(w.source), "window", w.source.id))
        for a in self.plan.aggregations.values():
            safety, text = aggregation_safety(self.plan, a), self._text(a.span)
            self.nodes.append(GraphNode(_id(a.source), "aggregation", a.id, safety, text))
            self.edges.append(Edge(_id(a.input.source), _id(a.source)))

    def _connectors(self, s: n.StreamDef) -> None:
        for number, a in enumerate(s.annotations):
            name = a.name.lower()
            if name not in ("source", "sink"):
                continue
            label = connector_type(a, self.plan.properties) or name
            id, stream = f"{name}:{number}:{s.source.id}", _id(s.source)
            if name == "source":
                self.nodes.append(GraphNode(id, "source", label))
                self.edges.append(Edge(id, stream))
            else:
                self.nodes.append(GraphNode(id, "sink", label))
                self.edges.append(Edge(stream, id))

    def elements(self) -> None:
        for e in self.plan.elements:
            if isinstance(e, n.Query):
                self._query(e, None)
                continue
            self.nodes.append(GraphNode(_partition(e.id), "partition", e.id, e.safety))
            for q in e.queries:
                self._query(q, _partition(e.id))

    def _query(self, q: n.Query, inside: str | None) -> None:
        id = f"query:{q.name}"
        self.nodes.append(GraphNode(id, "query", q.name, q.safety, self._text(q.span), inside))
        self.edges += [Edge(_id(s), id) for s in sources(q)]
        for top in expressions(q):
            self.edges += [Edge(f"table:{e.table}", id, "in") for e in n.walk(top) if isinstance(e, n.InTable)]
        self.edges.append(Edge(id, _id(q.output.target), _change(q.output)))

    def _text(self, span: Span) -> str:
        return self._masked_text[span.start : span.end]


def _change(output: n.Output) -> str:
    match output:
        case n.Insert():
            return ""
        case n.Delete():
            return "delete"
        case n.Update():
            return "update"
        case n.Upsert():
            return "update or insert"


def _id(s: n.Source) -> str:
    return f"{s.kind}:{s.id}"


def _partition(id: str) -> str:
    return f"partition:{id}"
