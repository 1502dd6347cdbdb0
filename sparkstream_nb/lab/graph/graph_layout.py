"""Layout of a graph's nodes and edges: dagre (`dagre.min.js`, version 3.1.3, MIT), run in QuickJS."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from ...plan.reports.app_graph import Graph

# dagre copies plain options by `structuredClone`, which QuickJS lacks. Only numbers go in, for names are data.
_RUN = """
globalThis.structuredClone = x => JSON.parse(JSON.stringify(x));
function layout(given) {
  const {sizes, parents, edges} = JSON.parse(given);
  const g = new dagre.graphlib.Graph({compound: true, multigraph: true});
  g.setGraph({rankdir: "LR", nodesep: 18, ranksep: 46, marginx: 12, marginy: 12});
  sizes.forEach((s, i) => g.setNode(String(i), s ? {width: s[0], height: s[1]} : {}));
  parents.forEach((p, i) => { if (p !== null) g.setParent(String(i), String(p)); });
  edges.forEach(([a, b, w], i) => {
    g.setEdge(String(a), String(b), {width: w, height: w ? 14 : 0, labelpos: "c"}, String(i));
  });
  dagre.layout(g);
  const box = n => [n.x, n.y, n.width, n.height];
  return JSON.stringify({
    boxes: sizes.map((_, i) => box(g.node(String(i)))),
    paths: edges.map(([a, b, w], i) => {
      const e = g.edge(String(a), String(b), String(i));
      return {points: e.points.map(p => [p.x, p.y]), at: w ? [e.x, e.y] : null};
    }),
    size: [g.graph().width, g.graph().height],
  });
}
"""


@dataclass(frozen=True)
class Box:
    """A rectangle in px: its middle, width and height."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Path:
    """The points of an edge in px, and the place of its label, if it has one."""

    points: tuple[tuple[float, float], ...]
    label: tuple[float, float] | None


@dataclass(frozen=True)
class GraphLayout:
    """Boxes by node id, a path for each edge in the graph's order, and the picture's size in px."""

    boxes: Mapping[str, Box]
    paths: tuple[Path, ...]
    width: float
    height: float


def layout_of(
    graph: Graph, sizes: Mapping[str, tuple[float, float]], label_widths: Sequence[float]
) -> GraphLayout:
    """Lays out `graph`: `sizes` are px of width and height by node id, `label_widths` px of the label of each edge.

    A partition without a query in it is a node like others; around queries, its size follows from theirs.
    """
    if not graph.nodes:
        return GraphLayout({}, (), 0, 0)
    number = {node.id: i for i, node in enumerate(graph.nodes)}
    container_ids = {node.inside for node in graph.nodes}
    layout_input = {
        "sizes": [None if node.id in container_ids else sizes[node.id] for node in graph.nodes],
        "parents": [None if node.inside is None else number[node.inside] for node in graph.nodes],
        "edges": [(number[e.start], number[e.end], w) for e, w in zip(graph.edges, label_widths, strict=True)],
    }
    import quickjs  # what graphs are drawn with; a list of their edges needs none

    context = quickjs.Context()
    context.eval(resources.files(__package__).joinpath("dagre.min.js").read_text(encoding="utf-8"))
    context.eval(_RUN)
    layout_result = json.loads(context.eval("layout")(json.dumps(layout_input)))
    boxes = {node.id: Box(*box) for node, box in zip(graph.nodes, layout_result["boxes"], strict=True)}
    paths = tuple(
        Path(tuple((x, y) for x, y in p["points"]), None if p["at"] is None else (p["at"][0], p["at"][1]))
        for p in layout_result["paths"]
    )
    return GraphLayout(boxes, paths, *layout_result["size"])
