"""An app's graph as SVG, as HTML and as text. Every name and text of the app is escaped."""

from __future__ import annotations

import html
import zlib
from collections.abc import Sequence

from ...plan.reports.app_graph import AROUND, Graph, GraphNode
from ..drawings.levels import LEVELS, SIGNS, words_of
from ..drawings.pictures import image_tag, on_white
from .graph_layout import Box, GraphLayout, Path, layout_of

# Okabe and Ito's colours, which the colour-blind tell apart, and a dash pattern for each.
_STYLES = {
    "stateless": ("#009E73", ""),
    "merged": ("#0072B2", "9 3"),
    "keyed": ("#E69F00", "5 3"),
    "node-dependent": ("#D55E00", "2 2"),
}
_INK = "#6b7280"  # reads on light and on dark: a picture is also a file of its own
_CHARACTER, _LABEL_CHARACTER, _LONGEST, _HEIGHT = 6.9, 6.0, 26, 38
_HALO = "<style>.sparkstream-edge text{paint-order:stroke;stroke:#fff;stroke-width:3px}</style>"
"""Keeps labels apart from the edges under them, on a white ground."""
_LEGEND = (("stateless", 12), ("merged", 222), ("keyed", 12), ("node-dependent", 222))
_LEGEND_HEIGHT, _LEGEND_WIDTH = 50, 480


def text(graph: Graph, edge_labels: Sequence[str] | None = None) -> str:
    """An indented list: each node, and below it where its events go."""
    labels = {node.id: node.label for node in graph.nodes}
    edges = list(zip(graph.edges, _labels_of(graph, edge_labels), strict=True))
    lines: list[str] = []
    for node in graph.nodes:
        safety = f"  {SIGNS[node.safety.level]} {words_of(node.safety)}" if node.safety else ""
        within = f"  (in {labels[node.inside]})" if node.inside else ""
        lines.append(f"{node.kind} {node.label}{within}{safety}")
        lines += [f"  → {labels[e.end]}{f' ({label})' if label else ''}" for e, label in edges if e.start == node.id]
    return "\n".join(lines)


def about(node: GraphNode) -> str:
    """The text shown on hover: kind and whole name, safety and why, and the text."""
    lines = [f"{node.kind} {node.label}"]
    if node.safety is not None:
        lines.append(f"{SIGNS[node.safety.level]} {node.safety.level}, {words_of(node.safety)}: {node.safety.reason}")
    return "\n".join([*lines, node.text] if node.text else lines)


def svg(graph: Graph, edge_labels: Sequence[str] | None = None) -> str:
    """The picture. With `edge_labels`, a text for each edge, edges are elements of the class `sparkstream-edge`."""
    labels = _labels_of(graph, edge_labels)
    return _markup(graph, edge_labels, _laid_out(graph, labels))


def image(graph: Graph, edge_labels: Sequence[str] | None = None) -> str:
    """The picture as an HTML image, because untrusted notebooks are stripped of SVG elements.

    An image shows no titles of its own; a map over it carries them, and is kept in untrusted notebooks.
    """
    labels = _labels_of(graph, edge_labels)
    layout = _laid_out(graph, labels)
    picture = on_white(_markup(graph, edge_labels, layout))
    name = f"graph-{zlib.crc32(picture.encode()):08x}"
    areas = "".join(  # the first area at a point counts, so enclosing areas come last
        f'<area shape="rect" coords="{_corners(layout.boxes[node.id])}" title="{_clean(about(node))}">'
        for node in sorted(graph.nodes, key=lambda node: node.kind in AROUND)
    )
    image_html = image_tag(picture, "the app's graph", "max-width:none", f'usemap="#{name}" ')
    return f'<div style="overflow-x:auto">{image_html}<map name="{name}">{areas}</map></div>'


def _labels_of(graph: Graph, edge_labels: Sequence[str] | None) -> Sequence[str]:
    return [e.label for e in graph.edges] if edge_labels is None else edge_labels


def _laid_out(graph: Graph, labels: Sequence[str]) -> GraphLayout:
    sizes = {node.id: (max(74.0, 30 + _CHARACTER * len(_label(node))), float(_HEIGHT)) for node in graph.nodes}
    return layout_of(graph, sizes, [_LABEL_CHARACTER * len(label) for label in labels])


def _markup(graph: Graph, edge_labels: Sequence[str] | None, layout: GraphLayout) -> str:
    width, height = layout.width, layout.height
    if _has_legend(graph):
        width, height = max(width, _LEGEND_WIDTH), height + _LEGEND_HEIGHT
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="the app\'s graph" style="font:12px system-ui,sans-serif">',
        f'<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{_INK}"/></marker></defs>{_HALO if edge_labels else ""}',
    ]
    out += [_node(node, layout.boxes[node.id]) for node in graph.nodes if node.kind in AROUND]
    edges = [_edge(label, p) for label, p in zip(_labels_of(graph, edge_labels), layout.paths, strict=True)]
    out += [f'<g class="sparkstream-edge">{edge}</g>' for edge in edges] if edge_labels else edges
    out += [_node(node, layout.boxes[node.id]) for node in graph.nodes if node.kind not in AROUND]
    for i, (level, x) in enumerate(_LEGEND if _has_legend(graph) else ()):
        colour, dash = _STYLES[level]
        y = layout.height + 12 + 20 * (i // 2)
        out.append(
            f'<rect x="{x}" y="{y - 9:.0f}" width="22" height="12" rx="3" fill="#fff" stroke="{colour}" '
            f'stroke-width="2.5" stroke-dasharray="{dash or "none"}"/>'
            f'<text x="{x + 29}" y="{y + 1:.0f}" fill="{_INK}">{SIGNS[level]} {LEVELS[level]}'
            f"{' a key' if level == 'keyed' else ''}</text>"
        )
    return "".join([*out, "</svg>"])


def _has_legend(graph: Graph) -> bool:
    return not graph.nodes or any(node.safety for node in graph.nodes)


def _node(node: GraphNode, box: Box) -> str:
    colour, dash = _STYLES[node.safety.level] if node.safety else (_INK, "")
    left, top = box.x - box.width / 2, box.y - box.height / 2
    is_container = node.kind in AROUND
    rect = (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="{9 if node.kind == "query" else 3}" fill="{_INK if is_container else "#fff"}" '
        f'fill-opacity="{0.12 if is_container else 1}" stroke="{_INK if is_container else colour}" '
        f'stroke-width="{2.5 if node.safety and not is_container else 1.2}" stroke-dasharray="{dash or "none"}"/>'
    )
    title = f"<title>{_clean(about(node))}</title>"
    if is_container:
        words = (
            f'<text x="{left + 6:.1f}" y="{top + 13:.1f}" font-size="11" fill="{_INK}">{_clean(_label(node))}</text>'
        )
    else:
        words = (
            f'<text x="{box.x:.1f}" y="{box.y - 4:.1f}" text-anchor="middle" font-size="10" fill="#555">{node.kind}'
            f'</text><text x="{box.x:.1f}" y="{box.y + 11:.1f}" text-anchor="middle" font-weight="600" fill="#111">'
            f"{_clean(_label(node))}</text>"
        )
    return f'<g class="{node.kind}">{title}{rect}{words}</g>'


def _edge(label: str, path: Path) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in path.points)
    out = f'<polyline points="{points}" fill="none" stroke="{_INK}" stroke-width="1.3" marker-end="url(#arrow)"/>'
    if path.label is None:
        return out
    x, y = path.label
    words = f'<text x="{x:.1f}" y="{y - 4:.1f}" text-anchor="middle" font-size="10" fill="{_INK}">'
    return f"{out}{words}{_clean(label)}</text>"


def _label(node: GraphNode) -> str:
    """The name, cut if it is long, behind the mark of its safety."""
    name = node.label if len(node.label) <= _LONGEST else node.label[: _LONGEST - 1] + "…"
    return f"{SIGNS[node.safety.level]} {name}" if node.safety else name


def _clean(text: str) -> str:
    """Escaped, without the control characters that XML does not know."""
    return html.escape("".join(c if c >= " " or c in "\n\t" else " " for c in text))


def _corners(box: Box) -> str:
    x, y = box.width / 2, box.height / 2
    return f"{box.x - x:.0f},{box.y - y:.0f},{box.x + x:.0f},{box.y + y:.0f}"
