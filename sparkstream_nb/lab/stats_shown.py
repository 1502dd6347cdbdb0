"""The display of an app's figures: a headline, tiles with sparklines, and tables; as text and as HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from ..app.results.answers import NodeStats, Stats
from ..app.results.overview import rate_text
from ..charts.value_texts import Figure, format_count, size, when
from ..journal.throughput import steps
from ..sources.intake import SourceFigures
from .drawings.result_blocks import muted_html, subject_html
from .drawings.text_tables import MUTED, Grid

_WIDTH, _HEIGHT = 120, 24
"""The size of a sparkline (px)."""


@dataclass(frozen=True)
class Tile:
    """A number with its unit, its meaning, a remark, and its values of the last micro-batches."""

    name: str
    value: str
    more: str = ""
    values: Sequence[float] = ()


def stats_text(stats: Stats) -> str:
    """The figures as lines and tables."""
    head = [f"{stats.app}: {_headline(stats)}", *([_speed_line(stats)] if stats.times.count else []), _disk_line(stats)]
    return "\n\n".join(["\n".join(head), *(g.text(footer=False) for g in _grids(stats))])


def stats_html(stats: Stats) -> str:
    """The same, with the speed as tiles."""
    return f"{head_html(stats)}{tiles_html(stats)}{tables_html(stats)}"


def head_html(stats: Stats) -> str:
    """The app's state, as a badge."""
    return subject_html(stats.app, _headline(stats)) + muted_html(_disk_line(stats))


def tables_html(stats: Stats) -> str:
    """The tables of nodes, queries, state and sinks."""
    return "".join(g.html(footer=False) for g in _grids(stats))


def tiles_html(stats: Stats) -> str:
    """The speed of the app as numbers with sparklines; nothing before its first micro-batch."""
    if not stats.times.count:
        return ""
    return (
        f'<div style="display:flex;flex-wrap:wrap;gap:8px;margin:.5em 0">{"".join(map(_tile_html, tiles(stats)))}</div>'
    )


def tiles(stats: Stats) -> list[Tile]:
    """The speed of the app: its rates, the time of its micro-batches, and how far it is behind."""
    rates, times = stats.rates, stats.times
    both = steps(stats.recent)
    state = sum(n.state_bytes for n in stats.nodes.values())
    dropped_events = sum(stats.disk.dropped.values()) + sum(s.dropped for s in stats.sinks)
    return [
        Tile(
            "input",
            rate_text(rates.input),
            f"{rate_text(rates.input_since_start)} since the deployment",
            [a for a, _ in both],
        ),
        Tile(
            "processing",
            rate_text(rates.processing),
            f"{rate_text(rates.processing_since_start)} since the deployment",
            [b for _, b in both],
        ),
        Tile(
            "micro-batch",
            _ms(times.last_ms),
            f"median {_ms(times.median_ms)}, p99 {_ms(times.p99_ms)}",
            [b.ms for b in stats.recent],
        ),
        Tile(
            "lag",
            format_count(stats.lag, "event"),
            f"{format_count(stats.waiting, 'entry', 'entries')} waiting",
            [b.arrived - b.committed for b in stats.recent],
        ),
        Tile("state", size(state), f"on {format_count(len(stats.nodes), 'node')}"),
        Tile("rejected", format_count(stats.errors, "error"), f"{format_count(dropped_events, 'event')} dropped"),
    ]


_FRAME = "min-width:8.5em;padding:.4em .7em;border:1px solid var(--jp-border-color2,#ddd);border-radius:4px"
_LARGE = "font-size:135%;white-space:nowrap;font-variant-numeric:tabular-nums"


def _tile_html(tile: Tile) -> str:
    return (
        f'<div style="{_FRAME}"><div style="{MUTED}">{html.escape(tile.name)}</div>'
        f'<div style="{_LARGE}">{html.escape(tile.value)}</div>'
        f"{sparkline(tile.values)}"
        f'<div style="{MUTED};white-space:nowrap">{html.escape(tile.more)}</div></div>'
    )


def sparkline(values: Sequence[float]) -> str:
    """Values as a small line from 0 up, without an axis, as SVG; nothing for fewer than two."""
    if len(values) < 2:
        return ""
    most = max(*values, 1e-9)
    across = (_WIDTH - 2) / (len(values) - 1)
    points = " ".join(
        f"{1 + i * across:.1f},{_HEIGHT - 1 - (_HEIGHT - 2) * max(0.0, v) / most:.1f}" for i, v in enumerate(values)
    )
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" aria-hidden="true" '
        f'style="display:block"><polyline points="{points}" fill="none" stroke="#0072b2" stroke-width="1.5" '
        'stroke-linejoin="round"/></svg>'
    )


def _ms(ms: float | None) -> str:
    return "–" if ms is None else f"{ms / 1000:,.1f} s" if ms >= 10_000 else f"{ms:,.0f} ms"


def _headline(stats: Stats) -> str:
    """`running · clock 2024-06-01 10:00:00 UTC · 1,200 events sent · 0 entries waiting · ...`."""
    of = "wall " if stats.clock_kind == "wall" else ""
    words = [
        stats.state,
        *([f"{of}clock {when(stats.clock)} UTC"] if stats.clock is not None else []),
        format_count(stats.events, "event") + " sent",
        format_count(stats.waiting, "entry", "entries") + " waiting",
        format_count(stats.micro_batches, "micro-batch", "micro-batches"),
        format_count(stats.errors, "error"),
        *sorted({f"runs {n.runs}" for n in stats.nodes.values() if n.runs.startswith("by chunk")}),
    ]
    return " · ".join(words)


def _speed_line(stats: Stats) -> str:
    """`input 1,200 events/s (900 events/s since the deployment) · ... · lag 0 events (0 entries waiting)`."""
    return " · ".join(f"{t.name} {t.value} ({t.more})" for t in tiles(stats)[:4])


def _grids(stats: Stats) -> list[Grid]:
    """Tables of the nodes, of the app's parts, of the parts' state on each node, and of sources and sinks."""
    nodes = [
        (
            n.shard,
            Figure(f"{n.events:,}"),
            Figure("" if n.events_per_second is None else f"{n.events_per_second:,.0f}"),
            Figure(f"{n.ms:,.1f} ms"),
            Figure(size(n.state_bytes)),
            "" if n.clock is None else when(n.clock),
        )
        for n in stats.nodes.values()
    ]
    sources = [
        (
            s.name,
            s.origin,
            Figure(f"{s.received:,}"),
            Figure(f"{s.events:,}"),
            Figure(f"{s.rejected:,}"),
            _behind(s),
            s.last_error or "",
        )
        for s in stats.sources
    ]
    sinks = [
        (
            s.name,
            s.target,
            s.promise,
            Figure(f"{s.sent:,}"),
            Figure(f"{s.pending:,}"),
            Figure(f"{s.failed:,}"),
            Figure(f"{s.dropped:,}"),
            s.last_error or "",
        )
        for s in stats.sinks
    ]
    grids = [
        Grid(["node", "events", "events/s", "last micro-batch", "state", "clock (UTC)"], nodes),
        _parts_grid(stats),
        _state_grid(list(stats.nodes.values())),
        Grid(["errors of", "count"], [(name, Figure(f"{n:,}")) for name, n in stats.faulty.items()]),
        Grid(["source", "reads", "messages", "events", "rejected", "not read yet", "last error"], sources),
        Grid(["sink", "target", "delivers", "sent", "pending", "failed", "dropped", "last error"], sinks),
    ]
    return [g for g in grids if g.cells]


def _behind(source: SourceFigures) -> str:
    """The backlog of a source: messages by partition, of many the most; bytes of files."""
    if source.lag is None or source.behind is None:
        return ""
    if source.type == "file":
        return size(source.lag) if source.lag else "0"
    most = sorted(((n, part) for part, n in source.behind.items() if n), reverse=True)
    more = f" and {len(most) - 3} more" if len(most) > 3 else ""
    parts = ", ".join(f"{part} {n:,}" for n, part in most[:3])
    return f"{source.lag:,}" + (f" ({parts}{more})" if len(source.behind) > 1 and most else "")


def _parts_grid(stats: Stats) -> Grid:
    counts = any(p.state_rows is not None for p in stats.parts)
    rows = [
        (
            p.kind,
            p.name,
            p.output or "",
            Figure("" if p.events_out is None else f"{p.events_out:,}"),
            Figure(size(p.state_bytes) if p.state_bytes else ""),
            *([Figure("" if p.state_rows is None else f"{p.state_rows:,}")] if counts else []),
        )
        for p in stats.parts
    ]
    return Grid(["kind", "name", "output", "events out", "state", *(["rows held"] if counts else [])], rows)


def _state_grid(nodes: Sequence[NodeStats]) -> Grid:
    """The contents of each of several nodes, a row for each query, table, window and aggregation."""
    names = dict.fromkeys(name for n in nodes for name in n.held) if len(nodes) > 1 else {}

    def cell(node: NodeStats, name: str) -> Figure:
        state_size = node.held.get(name)
        if state_size is None:
            return Figure("")
        bytes_ = size(state_size.bytes)
        return Figure(bytes_ if state_size.rows is None else f"{bytes_}, {format_count(state_size.rows, 'row')}")

    return Grid(["state of", *(n.shard for n in nodes)], [(name, *(cell(n, name) for n in nodes)) for name in names])


def _disk_line(stats: Stats) -> str:
    """`disk: recording 3.1 MB of 1.0 GB · outputs 12.0 MB of 10.0 GB · state 1.0 MB · store 0 B`."""
    disk, most = stats.disk, stats.disk.retention

    def of(used_bytes: int, limit: int | None) -> str:
        return size(used_bytes) if limit is None else f"{size(used_bytes)} of {size(limit)}"

    words = [
        f"recording {of(disk.recording, most.recording)}",
        f"outputs {of(disk.outputs, most.outputs)}",
        f"state {size(disk.state)}",
        f"store {size(disk.store)}",
        *([f"kept for {most.days:g} days"] if most.days is not None else []),
        *([f"{format_count(sum(disk.dropped.values()), 'output')} dropped"] if disk.dropped else []),
        *([f"{format_count(stats.dropped_errors, 'error')} dropped"] if stats.dropped_errors else []),
    ]
    return "disk: " + " · ".join(words)
