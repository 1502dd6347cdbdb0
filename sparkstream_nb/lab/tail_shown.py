"""The display of a stream's tail: a table or one number, and how much is not shown; as text and as HTML."""

from __future__ import annotations

import html

from ..app.results.stream_tail import TailSnapshot
from ..charts.value_texts import CountCell, format_count, is_missing, text_of, time_of_day
from .drawings.result_blocks import muted_html, subject_html
from .drawings.text_tables import MUTED, Grid


def tail_text(snapshot: TailSnapshot) -> str:
    """The rows as a table, or the number, with a note below."""
    head = f"{snapshot.app}.{snapshot.stream}: {headline(snapshot)}"
    if snapshot.shape.number is not None:
        body = f"{snapshot.shape.number} = {number_text(snapshot)}" if snapshot.rows else ""
    else:
        body = grid(snapshot).text(footer=False) if snapshot.rows else ""
    return "\n".join(line for line in (head, body, note(snapshot)) if line)


def tail_html(snapshot: TailSnapshot) -> str:
    """The same as HTML."""
    head = subject_html(f"{snapshot.app}.{snapshot.stream}", headline(snapshot))
    if not snapshot.rows:
        body = ""
    elif snapshot.shape.number is not None:
        body = (
            f'<div style="{MUTED}">{html.escape(snapshot.shape.number)}</div>'
            f'<div style="font-size:300%;line-height:1.2;font-variant-numeric:tabular-nums">'
            f"{html.escape(number_text(snapshot))}</div>"
        )
    else:
        body = grid(snapshot).html(footer=False)
    return head + body + muted_html(note(snapshot))


def grid(snapshot: TailSnapshot) -> Grid:
    """The rows."""
    return Grid(snapshot.columns, snapshot.rows, total=snapshot.total, what="event")


def number_text(snapshot: TailSnapshot) -> str:
    """The number as it is shown; whole numbers with separators."""
    value = snapshot.number
    is_integer = not isinstance(value, (bool, str)) and not is_missing(value) and isinstance(value, int)
    return text_of(CountCell(value) if is_integer else value)


def headline(snapshot: TailSnapshot) -> str:
    """`the last 20 of 1,200 events · the newest first · times in UTC`."""
    shape = snapshot.shape
    if not snapshot.rows:
        return "no event yet"
    total = format_count(snapshot.total, "event")
    if shape.number is not None:
        return f"{shape.number} of the newest of {total}"
    if shape.latest is not None:
        values = (
            f"{shape.latest}, {len(snapshot.rows):,} of {snapshot.keys:,}"
            if snapshot.keys > len(snapshot.rows)
            else shape.latest
        )
        return f"the latest event by {values} · {total} · times in UTC"
    return f"the last {len(snapshot.rows):,} of {total} · the newest {shape.newest} · times in UTC"


def note(snapshot: TailSnapshot) -> str:
    """`12,345 more since 10:31:02 UTC not shown`, and since when it is paused."""
    sentences = []
    if snapshot.paused is not None:
        sentences.append(f"paused at {time_of_day(snapshot.paused)}: {snapshot.waiting:,} more since then")
    if snapshot.not_shown:
        sentences.append(f"{snapshot.not_shown:,} more since {time_of_day(snapshot.since)} not shown")
    return " · ".join(sentences)
