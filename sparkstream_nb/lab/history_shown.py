"""Histories of events and origins of outputs, as text, as HTML and as plain data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..app import EventHistory, OutputOrigin
from ..charts.value_texts import row_text, when
from .display import html, limit_of, text
from .drawings.result_blocks import Heading, blocks_html
from .drawings.text_tables import Grid

_MOST_ENTRIES = 100


@text.register
def _(history: EventHistory) -> str:
    return history_text(history, None)


@text.register
def _(origin: OutputOrigin) -> str:
    return history_text(origin, None)


@html.register
def _(history: EventHistory) -> str:
    return blocks_html([Heading(history.title), history.sentence, *history.notes, _entry_grid(history, None)])


@html.register
def _(origin: OutputOrigin) -> str:
    return blocks_html([Heading(origin.title), origin.sentence, _event_grid(origin, None)])


def history_text(answer: EventHistory | OutputOrigin, limit: int | None) -> str:
    """An answer as text with `limit` rows (None: as many as tables show)."""
    if isinstance(answer, OutputOrigin):
        return "\n".join([answer.title, answer.sentence, "", _event_grid(answer, limit).text()])
    return "\n".join([answer.title, answer.sentence, *answer.notes, "", _entry_grid(answer, limit).text()])


def history_data(answer: EventHistory | OutputOrigin, limit: int) -> dict[str, Any]:
    """An answer as plain data, with `limit` rows."""
    if isinstance(answer, OutputOrigin):
        events = [asdict(e) for e in answer.events[:limit]]
        return {"app": answer.app, "output": asdict(answer.output), "events": events, "count": answer.count}
    entries = [{**asdict(e), "kind": e.kind.value} for e in answer.entries[:limit]]
    return {
        "app": answer.app, "event": asdict(answer.event), "sentence": answer.sentence, "entries": entries,
        "rest": list(answer.rest), "notes": list(answer.notes),
    }  # fmt: skip


def _entry_grid(history: EventHistory, limit: int | None) -> Grid:
    rows = [[e.position, when(e.clock), e.node, e.subject, e.kind.value, e.text] for e in history.entries]
    columns = ["step", "time", "node", "in", "what", ""]
    return Grid(columns, rows[: limit or _MOST_ENTRIES], total=len(rows), what="row")


def _event_grid(origin: OutputOrigin, limit: int | None) -> Grid:
    rows = [[e.number, e.stream, when(e.time), e.node, row_text(e.values)] for e in origin.events]
    columns = ["event", "stream", "time", "node", "values"]
    return Grid(columns, rows[: limit_of(limit)], total=len(rows), what="event")
