"""The display of a stream's tail: a table or one number, and how much is not shown; as text and as HTML."""

from __future__ import annotations

import html
from datetime import UTC, datetime

from ..app.results.stream_tail import TailSnapshot
from .drawings.text_tables import MUTED, CountCell, Grid, format_count, is_missing, paragraph, text_of


def tail_text(shown: TailSnapshot) -> str:
    """The rows as a table, or the number, with a note below."""
    head = f"{shown.app}.{shown.stream}: {headline(shown)}"
    if shown.shape.number is not None:
        body = f"{shown.shape.number} = {number_text(shown)}" if shown.rows else ""
    else:
        body = grid(shown).text(footer=False) if shown.rows else ""
    return "\n".join(line for line in (head, body, note(shown)) if line)


def tail_html(shown: TailSnapshot) -> str:
    """The same as HTML."""
    head = paragraph(
        f"<b>{html.escape(shown.app)}.{html.escape(shown.stream)}</b> "
        f'<span style="{MUTED}">{html.escape(headline(shown))}</span>'
    )
    if not shown.rows:
        body = ""
    elif shown.shape.number is not None:
        body = (
            f'<div style="{MUTED}">{html.escape(shown.shape.number)}</div>'
            f'<div style="font-size:300%;line-height:1.2;font-variant-numeric:tabular-nums">'
            f"{html.escape(number_text(shown))}</div>"
        )
    else:
        body = grid(shown).html(footer=False)
    said = note(shown)
    return head + body + (paragraph(f'<span style="{MUTED}">{html.escape(said)}</span>') if said else "")


def grid(shown: TailSnapshot) -> Grid:
    """The rows."""
    return Grid(shown.columns, shown.rows, total=shown.total, what="event")


def number_text(shown: TailSnapshot) -> str:
    """The number as it is shown; whole numbers with separators."""
    value = shown.number
    whole = not isinstance(value, (bool, str)) and not is_missing(value) and isinstance(value, int)
    return text_of(CountCell(value) if whole else value)


def headline(shown: TailSnapshot) -> str:
    """`the last 20 of 1,200 events · the newest first · times in UTC`."""
    shape = shown.shape
    if not shown.rows:
        return "no event yet"
    total = format_count(shown.total, "event")
    if shape.number is not None:
        return f"{shape.number} of the newest of {total}"
    if shape.latest is not None:
        values = (
            f"{shape.latest}, {len(shown.rows):,} of {shown.keys:,}" if shown.keys > len(shown.rows) else shape.latest
        )
        return f"the latest event by {values} · {total} · times in UTC"
    return f"the last {len(shown.rows):,} of {total} · the newest {shape.newest} · times in UTC"


def note(shown: TailSnapshot) -> str:
    """`12,345 more since 10:31:02 UTC not shown`, and since when it is paused."""
    said = []
    if shown.paused is not None:
        said.append(f"paused at {_time(shown.paused)}: {shown.waiting:,} more since then")
    if shown.not_shown:
        said.append(f"{shown.not_shown:,} more since {_time(shown.since)} not shown")
    return " · ".join(said)


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%H:%M:%S} UTC"
