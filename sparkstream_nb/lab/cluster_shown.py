"""The display of a cluster: nodes by group, links, a time line, and the log of events; as text and as HTML."""

from __future__ import annotations

import html

from ..app.pictures.cluster_timeline import cluster_timeline
from ..app.results.feed_progress import span
from ..app.views.cluster_view import ClusterNode, ClusterSnapshot, LinkState
from ..charts.style import WIDTH
from ..charts.svg_picture import svg
from ..charts.value_texts import CountCell, Figure, WholeText, format_count, when
from .drawings import cluster_map
from .drawings.image import image
from .drawings.result_blocks import folded_html, muted_html
from .drawings.text_tables import Grid, paragraph

_MOST_AHEAD = 3


def cluster_text(snapshot: ClusterSnapshot, limit: int) -> str:
    """The nodes, links that are not up, and the latest `limit` lines of the log."""
    links = [f"  ! {cluster_map.describe_link(k)}" for k in snapshot.state.links if k.state is LinkState.CUT]
    head = "\n".join([f"{snapshot.app}: {headline(snapshot)}", *(f"  {line}" for line in _figures(snapshot)), *links])
    grids = [g.text(footer=g.what == "line" and g.total > len(g.cells)) for g in _grids(snapshot, limit)]
    return "\n\n".join([head, *grids])


def cluster_html(snapshot: ClusterSnapshot, limit: int) -> str:
    """The same with a map and a time line."""
    map_, roles = cluster_map.image(snapshot), cluster_timeline(snapshot)
    roles_html = "" if roles is None else image(roles)
    return f"{head_html(snapshot)}{map_}{roles_html}{log_html(snapshot, limit)}{tables_html(snapshot)}"


def head_html(snapshot: ClusterSnapshot) -> str:
    """The app's headline and its figures."""
    lines = "".join(map(muted_html, _figures(snapshot)))
    return paragraph(f"<b>{html.escape(snapshot.app)}</b> {html.escape(headline(snapshot))}") + lines


def log_html(snapshot: ClusterSnapshot, limit: int) -> str:
    """The latest `limit` lines of the log."""
    if not snapshot.state.log:
        return ""
    log = log_grid(snapshot, limit)
    return log.html(footer=log.total > len(log.cells))


def tables_html(snapshot: ClusterSnapshot) -> str:
    """Nodes, groups, links and topics as tables, folded."""
    tables = [_nodes_grid(snapshot), *_more_grids(snapshot), _links_grid(snapshot)]
    inner = "".join(g.html(footer=False) for g in tables if g.cells)
    return folded_html("nodes and links", inner)


def headline(snapshot: ClusterSnapshot) -> str:
    """`2 nodes, ha · clock 2024-06-01 10:00:00 UTC · 1,428 events taken, 12 lost`."""
    words = [f"{format_count(len(snapshot.state.nodes), 'node')}, {snapshot.mode}"]
    if snapshot.state.clock is None:
        return " · ".join([*words, "no event was received yet"])
    words.append(f"clock {when(snapshot.state.clock)} UTC")
    words.append(f"{format_count(snapshot.taken, 'event')} taken, {snapshot.lost:,} lost")
    return " · ".join(words)


def _figures(snapshot: ClusterSnapshot) -> list[str]:
    """The revisions of a single group, why events were lost, and the faults that wait for the clock."""
    s, out = snapshot.state, []
    if len(s.groups) == 1 and s.clock is not None:
        out.append(f"last revision {_revision(s.groups[0].revision, s.clock)}, {s.groups[0].revisions:,} made")
    if snapshot.lost:
        reasons: dict[str, int] = {}
        for g in s.groups:
            for reason, n in g.lost.items():
                reasons[reason] = reasons.get(reason, 0) + n
        out.append("lost: " + ", ".join(f"{n:,} × {reason}" for reason, n in reasons.items()))
    if s.ahead:
        first = [f"{f} at {when(f.at)}" for f in s.ahead[:_MOST_AHEAD]]
        more = [f"and {len(s.ahead) - _MOST_AHEAD:,} more"] if len(s.ahead) > _MOST_AHEAD else []
        out.append("waits for the clock: " + ", ".join([*first, *more]))
    return out


def _revision(creation_ms: int | None, clock: int) -> str:
    return "none" if creation_ms is None else f"{span((clock - creation_ms) / 1000)} old"


def _grids(snapshot: ClusterSnapshot, limit: int) -> list[Grid]:
    grids = [_nodes_grid(snapshot), *_more_grids(snapshot)]
    return [*grids, log_grid(snapshot, limit)] if snapshot.state.log else grids


def _nodes_grid(snapshot: ClusterSnapshot) -> Grid:
    several = len(snapshot.state.groups) > 1

    def row(n: ClusterNode) -> list[object]:
        queue = "" if n.queue is None else f"{n.queue.held:,} of {n.queue.capacity:,}"
        role = f"{cluster_map.SIGNS[n.role]} {cluster_map.role_words(n)}"
        return [*([n.group] if several else []), n.name, role, ", ".join(n.runs), Figure(queue)]

    names = [*(["group"] if several else []), "node", "role", "runs", "queue"]
    return Grid(names, [row(n) for n in snapshot.state.nodes], what="node")


def _more_grids(snapshot: ClusterSnapshot) -> list[Grid]:
    """Several groups, and topics."""
    s, out = snapshot.state, []
    if len(s.groups) > 1 and s.clock is not None:
        rows = [
            [
                g.name,
                CountCell(g.taken),
                CountCell(sum(g.lost.values())),
                _revision(g.revision, s.clock),
                CountCell(g.revisions),
            ]
            for g in s.groups
        ]
        out.append(Grid(["group", "events taken", "lost", "last revision", "revisions"], rows, what="group"))
    if s.topics:
        topics = [[t.name, ", ".join(t.writers), ", ".join(t.readers), CountCell(t.waiting)] for t in s.topics]
        out.append(Grid(["topic", "from", "to", "events waiting"], topics, what="topic"))
    return out


def _links_grid(snapshot: ClusterSnapshot) -> Grid:
    rows = [[k.a, k.b, cluster_map.describe_link(k).partition(": ")[2]] for k in snapshot.state.links]
    return Grid(["link of", "and", "is"], rows, what="link")


def log_grid(snapshot: ClusterSnapshot, limit: int) -> Grid:
    """The log, the latest first."""
    log = list(reversed(snapshot.state.log))
    rows = [[when(h.at), WholeText(h.text)] for h in log[:limit]]
    return Grid(["at", "incidents"], rows, total=len(log), what="line")


def timeline_svg(snapshot: ClusterSnapshot, last: int | None = None, width: int = WIDTH) -> str:
    """The time line as an SVG element; "" before anything came in."""
    picture = cluster_timeline(snapshot, last)
    return "" if picture is None else svg(picture, width)
