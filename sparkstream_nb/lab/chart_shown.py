"""The display of a stream's chart: its series as a table in plain text; as HTML a picture and a note."""

from __future__ import annotations

import html
from datetime import UTC, datetime

import numpy as np

from ..app.results.stream_chart import ChartSnapshot
from .drawings.series_drawing import image
from .drawings.text_tables import MUTED, CountCell, Grid, format_count, paragraph, when


def chart_text(shown: ChartSnapshot) -> str:
    """A row for each series, with a note below."""
    lines = [f"{shown.app}.{shown.stream}: {headline(shown)}"]
    if shown.drawn:
        lines.append(series_grid(shown).text(footer=False))
    return "\n".join(line for line in (*lines, note(shown)) if line)


def chart_html(shown: ChartSnapshot) -> str:
    """The picture of the series, with a note below."""
    head = paragraph(
        f"<b>{html.escape(shown.app)}.{html.escape(shown.stream)}</b> "
        f'<span style="{MUTED}">{html.escape(headline(shown))}</span>'
    )
    said = note(shown)
    below = paragraph(f'<span style="{MUTED}">{html.escape(said)}</span>') if said else ""
    return head + (image(shown) if shown.drawn else "") + below


def series_grid(shown: ChartSnapshot) -> Grid:
    """The numbers of each series: its points, the lowest, the highest and the last value."""
    rows = []
    for s in shown.series:
        y = s.points.y
        values = [float(y.min()), float(y.max()), float(y[-1])] if len(y) else [None, None, None]
        rows.append([s.label, CountCell(s.held), *values])
    return Grid(["series", "points", "lowest", "highest", "last"], rows, what="series")


def headline(shown: ChartSnapshot) -> str:
    """`1,200 events · from 2024-06-01 10:00:00 to 2024-06-01 10:20:00 UTC`."""
    if shown.range is None:
        return "no value yet" if shown.counts.total else "no event yet"
    start, end = shown.range
    if shown.over_time:
        ends = f"{when(int(start))} to {when(int(end))} UTC"
    else:
        ends = f"{shown.shape.x} from {start:.6g} to {end:.6g}"
    return f"{format_count(shown.counts.total, 'event')} · {ends}"


def note(shown: ChartSnapshot) -> str:
    """`1,600 of 120,000 points drawn: the lowest and the highest of each pixel column`, and what is left out else."""
    said, counts = [], shown.counts
    if counts.paused is not None:
        said.append(f"paused at {_time(counts.paused)}: {counts.waiting:,} more since then")
    held = int(np.sum([s.held for s in shown.series]))
    scattered = shown.shape.kind == "points"
    if shown.drawn < held:
        kept = "one in each place" if scattered else "the lowest and the highest of each pixel column"
        said.append(f"{shown.drawn:,} of {held:,} points drawn: {kept}")
    if counts.thinned:
        kept = "one in each place" if scattered else "the lowest and the highest of each stretch"
        said.append(f"earlier points are held thinned, {kept}")
    if counts.not_read:
        said.append(f"{counts.not_read:,} events since {_time(counts.since)} not read")
    if counts.series:
        further = format_count(counts.series, "further line")
        said.append(f"{further} not drawn: {len(shown.series)} are the most")
    return " · ".join(said)


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%H:%M:%S} UTC"
