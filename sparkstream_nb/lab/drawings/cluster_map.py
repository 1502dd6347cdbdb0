"""The map of a cluster: nodes by group, and their links. One SVG element, drawn in Python."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

from ...app.pictures.lanes_picture import ROLE_COLOURS
from ...app.views.cluster_view import ClusterNode, ClusterSnapshot, Link, LinkState
from ...charts.style import WIDTH
from ...charts.svg_picture import SAVED_INK
from ...charts.text_places import cut_text, text_width
from ...charts.value_texts import format_count, when
from ...simulation.timeline import Role
from .pictures import embed_svg

_BOX, _HIGH, _GAP = 190.0, 64.0, 20.0
_PILL, _PILL_HIGH = 96.0, 24.0
_BLOCK = 218.0
_CUT = ROLE_COLOURS[Role.DOWN]
_ABOVE, _BELOW = "clients", "database"
"""Ends outside of a group, and their places: others are in the table of links alone."""
SIGNS = {Role.ACTIVE: "●", Role.PASSIVE: "○", Role.IDLE: "·", Role.HALTED: "‖", Role.DOWN: "✕"}
"""Signs that distinguish roles without colours."""


def svg(snapshot: ClusterSnapshot, width: int = WIDTH) -> str:
    """Each group with its nodes, its clients above and its database below. Cut links are dashed."""
    return "".join(_Map(snapshot, width).parts())


def image(snapshot: ClusterSnapshot) -> str:
    """`svg` as an HTML image."""
    return embed_svg(svg(snapshot), _title(snapshot))


def _title(snapshot: ClusterSnapshot) -> str:
    return f"{snapshot.app}: " + ", ".join(f"{n.name} {n.role.value}" for n in snapshot.state.nodes)


class _Map:
    def __init__(self, snapshot: ClusterSnapshot, width: int) -> None:
        self.snapshot, self.width = snapshot, width
        self.groups: dict[str, list[ClusterNode]] = {}
        for node in snapshot.state.nodes:
            self.groups.setdefault(node.group, []).append(node)
        most = max(map(len, self.groups.values()), default=1)
        self.columns = max(1, min(len(self.groups), int(width // 420))) if most <= 2 else 1
        self.block = min(width / self.columns, 640.0)

    def parts(self) -> Iterator[str]:
        rows = -(-len(self.groups) // self.columns)
        height = rows * _BLOCK
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {height:.0f}" width="{self.width}" '
            f'height="{height:.0f}" role="img" aria-label="{html.escape(_title(self.snapshot))}" '
            f'style="font:12px system-ui,sans-serif;color:{SAVED_INK}" fill="currentColor">'
        )
        for i, (name, nodes) in enumerate(self.groups.items()):
            left, top = (i % self.columns) * self.block, (i // self.columns) * _BLOCK
            yield from self._group(name, nodes, left, top)
        yield "</svg>"

    def _group(self, name: str, nodes: Sequence[ClusterNode], left: float, top: float) -> Iterator[str]:
        room = (self.block - _GAP) / len(nodes)
        least_width = max(_BOX, *(24 + 1.1 * text_width(n.name) for n in nodes))
        wide = min(least_width, room - _GAP if len(nodes) > 2 else room * 0.74)
        spread = (self.block - _GAP - wide) / max(1, len(nodes) - 1)
        x = {n.name: left + _GAP / 2 + i * spread for i, n in enumerate(nodes)}
        y, middle = top + 70.0, left + self.block / 2
        if len(self.groups) > 1:
            yield _text(left + 10, top + 20, cut_text(name, self.block / 2 - _PILL / 2 - 14), 'font-weight="600"')
        ends = {_ABOVE: top + 10, _BELOW: y + _HIGH + 36}
        links = [k for k in self.snapshot.state.links if k.a in x or k.b in x]
        for link in links:
            a, b = (link.a, link.b) if link.a in x else (link.b, link.a)
            if b in x:
                yield from self._between(link, x[a], x[b], wide, y)
            elif b in ends:
                edge = y if b == _ABOVE else y + _HIGH
                pill = ends[b] + _PILL_HIGH if b == _ABOVE else ends[b]
                yield from _line(link, (x[a] + wide / 2, edge), (middle, pill))
        for end, at in ends.items():
            if any(end in (k.a, k.b) for k in links):
                yield (
                    f'<rect x="{middle - _PILL / 2:.1f}" y="{at:.1f}" width="{_PILL:.0f}" height="{_PILL_HIGH:.0f}" '
                    f'rx="12" fill="none" stroke="currentColor"/>' + _text(middle, at + 16, end, 'text-anchor="middle"')
                )
        for node in nodes:
            yield from self._node(node, x[node.name], y, wide)

    def _between(self, link: Link, a: float, b: float, wide: float, y: float) -> Iterator[str]:
        """A link between two nodes: an arrow from the one that sends its events."""
        first, last = (a, b) if a < b else (b, a)
        left, right, at = first + wide + 3, last - 3, y + _HIGH / 2
        if link.source in (link.a, link.b):
            begins = a if link.source == link.a else b
            start, end = (left, right) if begins == first else (right, left)
            label, style, tip = "events", "", 8 if end > start else -8
            yield f'<path d="M{end:.1f} {at:.1f}l{-tip} -5v10z"/>'
        else:
            start, end, style = left, right, ' stroke-dasharray="2 4" stroke-opacity=".6"'
            label = "no events" if link.state is LinkState.UP else ""
        if link.state is LinkState.CUT:
            yield from _line(link, (left, at), (right, at))
            return
        yield (
            f'<line x1="{start:.1f}" x2="{end:.1f}" y1="{at:.1f}" y2="{at:.1f}" stroke="currentColor"{style}>'
            f"<title>{html.escape(describe_link(link))}</title></line>"
        )
        if label:
            yield _text((left + right) / 2, at - 6, label, 'text-anchor="middle" font-size="11"')

    def _node(self, node: ClusterNode, x: float, y: float, wide: float) -> Iterator[str]:
        colour = ROLE_COLOURS[node.role]
        yield (
            f'<g><title>{html.escape(node.name)}</title><rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" '
            f'height="{_HIGH:.0f}" rx="5" fill="{colour}" fill-opacity=".16" stroke="{colour}" stroke-width="2"/>'
            f'<rect x="{x:.1f}" y="{y:.1f}" width="7" height="{_HIGH:.0f}" rx="3" fill="{colour}"/>'
        )
        room = wide - 24
        yield _text(x + 16, y + 19, cut_text(node.name, room / 1.1), 'font-weight="600" font-size="13"')
        yield _text(x + 16, y + 37, cut_text(f"{SIGNS[node.role]} {node.role.value}", room))
        if more := self._third(node, room):
            yield _text(x + 16, y + 54, more, 'fill-opacity=".85"')
        yield "</g>"

    def _third(self, node: ClusterNode, room: float) -> str:
        """Until when a node is halted; else its partial apps, or their number if their names have no room."""
        if node.until is not None:
            return cut_text(f"until {clock_of(node.until)}", room)
        if not node.runs:
            return "" if node.queue is None else cut_text(f"queue {node.queue.held:,} of {node.queue.capacity:,}", room)
        parts = [run.removeprefix(f"{self.snapshot.app}-") for run in node.runs]
        words = f"runs {', '.join(parts)}"
        if len(parts) == 1 or text_width(words) <= room:
            return cut_text(words, room)
        return f"runs {format_count(len(parts), 'part')}"


def role_words(node: ClusterNode) -> str:
    """`active`, `stands still until 10:00:30`."""
    return node.role.value if node.until is None else f"{node.role.value} until {clock_of(node.until)}"


def describe_link(link: Link) -> str:
    """A link in words."""
    words = f"{link.a} and {link.b}: "
    if link.state is LinkState.CUT:
        return words + "cut" + ("" if link.until is None else f" until {when(link.until)}")
    return words + (link.state.value if link.state is LinkState.DOWN or not link.note else link.note)


def clock_of(ms: int) -> str:
    """The time of day (UTC)."""
    return when(ms).partition(" ")[2] or when(ms)


def _line(link: Link, a: tuple[float, float], b: tuple[float, float]) -> Iterator[str]:
    cut, down = link.state is LinkState.CUT, link.state is LinkState.DOWN
    style = f'stroke="{_CUT}" stroke-width="2" stroke-dasharray="5 5"' if cut else 'stroke="currentColor"'
    style += ' stroke-opacity=".3" stroke-dasharray="2 4"' if down else "" if cut else ' stroke-opacity=".7"'
    yield (
        f'<line x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}" {style}>'
        f"<title>{html.escape(describe_link(link))}</title></line>"
    )
    if cut:
        x, y = (a[0] + b[0]) / 2, (a[1] + b[1]) / 2
        until = "" if link.until is None else f" until {clock_of(link.until)}"
        # Outside of the diamond that the links make.
        anchor = "middle" if a[1] == b[1] else "end" if a[0] < b[0] else "start"
        x += {"middle": 0, "end": -6, "start": 6}[anchor]
        y += 14 if b[1] > a[1] else -7
        yield _text(x, y, f"✕ cut{until}", f'text-anchor="{anchor}" font-size="11" style="fill:{_CUT}"')


def _text(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{html.escape(text)}</text>'
