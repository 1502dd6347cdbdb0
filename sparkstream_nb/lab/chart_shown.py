"""The display of a stream's chart: its series as a table in plain text; as HTML a picture and a note."""

from __future__ import annotations

import numpy as np

from ..app.results.stream_chart import ChartSnapshot
from ..charts.value_texts import CountCell, format_count, time_of_day, when
from .drawings.image import image
from .drawings.result_blocks import muted_html, subject_html
from .drawings.text_tables import Grid


def chart_text(snapshot: ChartSnapshot) -> str:
    """A row for each series, with a note below."""
    lines = [f"{snapshot.app}.{snapshot.stream}: {headline(snapshot)}"]
    if snapshot.drawn:
        lines.append(series_grid(snapshot).text(footer=False))
    return "\n".join(line for line in (*lines, note(snapshot)) if line)


def chart_html(snapshot: ChartSnapshot) -> str:
    """The picture of the series, with a note below."""
    head = subject_html(f"{snapshot.app}.{snapshot.stream}", headline(snapshot))
    return head + (image(snapshot.picture()) if snapshot.drawn else "") + muted_html(note(snapshot))


def series_grid(snapshot: ChartSnapshot) -> Grid:
    """The numbers of each series: its points, the lowest, the highest and the last value."""
    rows = []
    for s in snapshot.series:
        y = s.points.y
        values = [float(y.min()), float(y.max()), float(y[-1])] if len(y) else [None, None, None]
        rows.append([s.label, CountCell(s.held), *values])
    return Grid(["series", "points", "lowest", "highest", "last"], rows, what="series")


def headline(snapshot: ChartSnapshot) -> str:
    """`1,200 events · from 2024-06-01 10:00:00 to 2024-06-01 10:20:00 UTC`."""
    if snapshot.range is None:
        return "no value yet" if snapshot.counts.total else "no event yet"
    start, end = snapshot.range
    if snapshot.over_time:
        ends = f"{when(int(start))} to {when(int(end))} UTC"
    else:
        ends = f"{snapshot.shape.x} from {start:.6g} to {end:.6g}"
    return f"{format_count(snapshot.counts.total, 'event')} · {ends}"


def note(snapshot: ChartSnapshot) -> str:
    """`1,600 of 120,000 points drawn: the lowest and the highest of each pixel column`, and what is left out else."""
    sentences, counts = [], snapshot.counts
    if counts.paused is not None:
        sentences.append(f"paused at {time_of_day(counts.paused)}: {counts.waiting:,} more since then")
    point_count = int(np.sum([s.held for s in snapshot.series]))
    is_scatter = snapshot.shape.kind == "points"
    if snapshot.drawn < point_count:
        kept_values = "one in each place" if is_scatter else "the lowest and the highest of each pixel column"
        sentences.append(f"{snapshot.drawn:,} of {point_count:,} points drawn: {kept_values}")
    if counts.thinned:
        kept_values = "one in each place" if is_scatter else "the lowest and the highest of each stretch"
        sentences.append(f"earlier points are held thinned, {kept_values}")
    if counts.not_read:
        sentences.append(f"{counts.not_read:,} events since {time_of_day(counts.since)} not read")
    if counts.series:
        further = format_count(counts.series, "further line")
        sentences.append(f"{further} not drawn: {len(snapshot.series)} are the most")
    return " · ".join(sentences)
