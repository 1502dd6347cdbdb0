"""The graph of a distributed app: its execution groups with their contents, and the topics between them."""

from __future__ import annotations

from .. import nodes as n
from ..distributed.distribute import ExecutionGroup, Split, Strategy, Topic
from ..query_parts import sources
from .app_graph import Edge, Graph, GraphNode, graph_of

_OUTSIDE = "source:outside"


def split_graph(plan: n.Plan, split: Split) -> Graph:
    """Groups around their elements, topics between them. Streams that stay within a group are left out: an edge goes
    from the one that writes to the one that reads."""
    node_by_id = {node.id: node for node in graph_of(plan).nodes}
    nodes: list[GraphNode] = []
    edges: list[Edge] = []
    if any(not t.writers for t in split.topics) or any(g.receiver for g in split.groups):
        nodes.append(GraphNode(_OUTSIDE, "source", "outside"))
    for group in split.groups:
        nodes.append(GraphNode(_id(group), "group", _label(group), text=", ".join(group.instances)))
        nodes += [_element(node_by_id, group, e) for e in group.elements]
    for topic in split.topics:
        count = "1 partition" if topic.partitions == 1 else f"{topic.partitions} partitions"
        nodes.append(GraphNode(f"topic:{topic.name}", "topic", topic.stream, text=f"{topic.name}, {count}"))
    for topic in split.topics:
        edges += _of_topic(plan, split, topic)
    for group in split.groups:
        if group.receiver:
            readers = [e for e in group.elements if _reads(plan, e) & {*group.sources} or e not in _names(plan)]
            edges += [Edge(_OUTSIDE, _element_id(group, e)) for e in readers]
        edges += _within(plan, group)
    return Graph(tuple(nodes), tuple(dict.fromkeys(edges)))


def _of_topic(plan: n.Plan, split: Split, topic: Topic) -> list[Edge]:
    """Who writes to a topic, and who reads it how."""
    id, out = f"topic:{topic.name}", []
    if not topic.writers:
        out.append(Edge(_OUTSIDE, id))
    for group in split.groups:
        if group.name in topic.writers:
            writers = [e for e in group.elements if topic.stream in _writes(plan, e) or e not in _names(plan)]
            out += [Edge(_element_id(group, e), id) for e in writers]
        if group.name in topic.readers:
            read = next(r for r in group.reads if r.stream == topic.stream)
            how = {Strategy.ALL: "", Strategy.ROUND_ROBIN: "in turn", Strategy.FIELD_GROUPING: f"by {read.key}"}
            readers = [e for e in group.elements if topic.stream in _reads(plan, e)]
            out += [Edge(id, _element_id(group, e), how[read.strategy]) for e in readers]
    return out


def _within(plan: n.Plan, group: ExecutionGroup) -> list[Edge]:
    """Edges between the elements of a group."""
    return [
        Edge(_element_id(group, a), _element_id(group, b))
        for a in group.elements
        for b in group.elements
        if (_writes(plan, a) - {*group.writes}) & _reads(plan, b)
    ]


def _names(plan: n.Plan) -> dict[str, n.Query | n.Partition | n.AggregationDef]:
    by_name: dict[str, n.Query | n.Partition | n.AggregationDef] = dict(plan.aggregations)
    return by_name | {e.id if isinstance(e, n.Partition) else e.name: e for e in plan.elements}


def _reads(plan: n.Plan, name: str) -> set[str]:
    match _names(plan).get(name):
        case n.AggregationDef() as a:
            return {a.input.source.id}
        case n.Partition() as p:
            return {s.id for q in p.queries for s in sources(q)}
        case n.Query() as q:
            return {s.id for s in sources(q)}
    return set()


def _writes(plan: n.Plan, name: str) -> set[str]:
    match _names(plan).get(name):
        case n.AggregationDef() as a:
            return {a.id}
        case n.Partition() as p:
            return {q.output.target.id for q in p.queries}
        case n.Query() as q:
            return {q.output.target.id}
    return set()


def _label(group: ExecutionGroup) -> str:
    return group.name if group.parallel == 1 else f"{group.name} × {group.parallel}"


def _id(group: ExecutionGroup) -> str:
    return f"group:{group.name}"


def _element_id(group: ExecutionGroup, element: str) -> str:
    return f"{_id(group)}/{element}"


def _element(node_by_id: dict[str, GraphNode], group: ExecutionGroup, element: str) -> GraphNode:
    """An element of a group, with its text in the app."""
    for kind in ("query", "aggregation", "partition"):
        node = node_by_id.get(f"{kind}:{element}")
        if node is not None:
            text = "\n".join(x.text for x in node_by_id.values() if x.inside == node.id) or node.text
            return GraphNode(_element_id(group, element), "query" if kind == "partition" else node.kind,
                        node.label, text=text, inside=_id(group))  # fmt: skip
    return GraphNode(_element_id(group, element), "query", element, inside=_id(group))
