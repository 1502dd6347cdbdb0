"""Moments of an app, as text and as HTML."""

from __future__ import annotations

import html as markup
from dataclasses import asdict
from typing import Any

import pandas as pd

from ..app import Moment, QueryMoment
from ..app.pictures.history_picture import history_picture
from ..app.pictures.moment_picture import moment_picture
from ..app.results.moment import count_text
from ..charts.value_texts import format_count, row_text, when
from ..plan import nodes
from .display import html, limit_of, text
from .drawings.image import image
from .drawings.text_tables import Grid, paragraph


@text.register
def _(moment: Moment) -> str:
    return moment_text(moment, None)


@html.register
def _(moment: Moment) -> str:
    before = moment.back() if moment.position else None
    return moment_html(moment, before, changed_query(moment, before))


@text.register
def _(moment: QueryMoment) -> str:
    return moment_text(moment, None)


@html.register
def _(moment: QueryMoment) -> str:
    head = paragraph(f"<b>{markup.escape(_query_head(moment))}</b>")
    return head + "".join(g.html() for g in _query_grids(moment))


def moment_html(moment: Moment, before: Moment | None, query: str) -> str:
    """A moment with its time line and the picture of a query's state ("": of none). `before`: one step earlier."""
    state = moment_picture(moment, before, query) if query else None
    parts = [head_html(moment), image(history_picture(moment))]
    if query:
        parts.append(state_html(moment, query, "" if state is None else image(state)))
    return "".join([*parts, tables_html(moment)])


def state_html(moment: Moment, query: str, picture: str) -> str:
    """The `picture` of a query's state (HTML), and below it what no picture has: groups and outputs that wait."""
    return picture + "".join(g.html() for g in _group_grids(moment[query]))


def head_html(moment: Moment) -> str:
    """The time and step, the events of the step, and its outputs."""
    head, *rest = map(markup.escape, _lines(moment))
    return paragraph(f"<b>{head}</b>") + "".join(map(paragraph, rest))


def tables_html(moment: Moment) -> str:
    """The state of the queries by node, and the rows of tables and named windows."""
    return "".join(g.html() for g in _grids(moment))


def changed_query(moment: Moment, before: Moment | None) -> str:
    """The first query whose state the last step changed, else the first one with state; "" if there is none."""
    names = [q.name for q in moment.queries()]
    changed_names = (n for n in names if before is not None and moment[n].by_node != before[n].by_node)
    return next(changed_names, names[0] if names else "")


def moment_text(moment: Moment | QueryMoment, limit: int | None) -> str:
    """A moment, or a query at it, as text with `limit` events (None: as many as tables show)."""
    if isinstance(moment, QueryMoment):
        return "\n\n".join([_query_head(moment), *(g.text() for g in _query_grids(moment, limit))])
    return "\n\n".join(["\n".join(_lines(moment)), *(g.text() for g in _grids(moment))])


def moment_data(moment: Moment) -> dict[str, Any]:
    """A moment as plain data."""
    return {
        "app": moment.app, "step": moment.position, "steps": moment.steps, "clock": moment.clock,
        "events": [asdict(e) for e in moment.events], "outputs": [asdict(o) for o in moment.outputs],
        "queries": {q.name: query_data(q) for q in moment.queries()},
        "tables": {name: records(moment.rows(name)) for name in moment.row_names},
        "aggregations": {name: records(moment.buckets(name)) for name in moment.aggregations},
    }  # fmt: skip


def query_data(moment: QueryMoment) -> dict[str, Any]:
    """A query at a moment as plain data."""
    states = list(moment.by_node.values())
    data: dict[str, Any] = {"query": moment.name}
    if isinstance(moment.query.input, nodes.StateInput):
        data["partial_matches"] = records(moment.partial_matches)
    else:
        data["windows"] = [records(w) for w in moment.windows] if any(q.windows for q in states) else []
    if any(q.groups is not None for q in states):
        data["groups"] = records(moment.groups)
    if any(q.pending_outputs is not None for q in states):
        data["pending_outputs"] = records(moment.pending_outputs)
    return data


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as plain data, with None for what is missing."""
    rows = frame.astype(object)
    return rows.where(rows.notna(), None).to_dict("records")


def _lines(moment: Moment) -> list[str]:
    """The time and step, the events of the step, and its outputs."""
    clock = "before the first step" if moment.clock is None else when(moment.clock)
    lines = [f"{moment.app} at {clock}, step {moment.position:,} of {moment.steps:,}"]
    lines += [f"event {e.number:,}: {e.stream} {row_text(e.values)} to {e.node}" for e in moment.events]
    lines += [f"output: {o.stream} {row_text(o.values)} of {o.query or o.stream} on {o.node}" for o in moment.outputs]
    limit = limit_of(None)
    return lines if len(lines) <= limit else [*lines[:limit], f"and {len(lines) - limit:,} more"]


def _grids(moment: Moment) -> list[Grid]:
    """The state of the queries by node; and the rows of tables and named windows."""
    rows = []
    for query in moment.queries():
        for node, state in query.by_node.items():
            due = [t for t in (state.due, *(w.due for w in state.windows)) if t is not None]
            rows.append(
                [query.name, query.input_text, node, count_text(state, query.query), when(min(due)) if due else ""]
            )
    grids = [Grid(["query", "input", "node", "holds", "next timer"], rows)] if rows else []
    rows = []
    for node, state_of_node in moment.nodes.items():
        newest = {id: next(iter(by_duration.values())) for id, by_duration in state_of_node.buckets.items()}
        stores = [
            ("table", state_of_node.tables), ("window", state_of_node.windows), ("newest bucket", newest),
        ]  # fmt: skip
        rows += [
            [id, kind, node, format_count(len(r.rows), "row")] for kind, stores_of in stores
            for id, r in stores_of.items()
        ]  # fmt: skip
    if rows:
        grids.append(Grid(["name", "kind", "node", "holds"], rows))
    return grids


def _query_head(moment: QueryMoment) -> str:
    counts = "; ".join(f"{node}: {count_text(q, moment.query)}" for node, q in moment.by_node.items())
    return f"{moment.name} ({moment.input_text}), {counts}" if moment.input_text else f"{moment.name}: {counts}"


def _query_grids(moment: QueryMoment, limit: int | None = None) -> list[Grid]:
    states = list(moment.by_node.values())
    if isinstance(moment.query.input, nodes.StateInput):
        grids = [_grid(moment.partial_matches, ("began", "ends"), "row", limit)]
    else:
        windows = moment.windows if any(q.windows for q in states) else []
        grids = [_grid(frame, ("timestamp",), "event", limit) for frame in windows]
    return [*grids, *_group_grids(moment, limit)]


def _group_grids(moment: QueryMoment, limit: int | None = None) -> list[Grid]:
    """The groups of a select, and the outputs that a rate limit holds back."""
    states = list(moment.by_node.values())
    grids = []
    if any(q.groups is not None for q in states):
        grids.append(_grid(moment.groups, (), "group", limit))
    if any(q.pending_outputs is not None for q in states):
        grids.append(_grid(moment.pending_outputs, ("timestamp",), "output", limit))
    return grids


def _grid(frame: pd.DataFrame, times: tuple[str, ...], what: str, limit: int | None) -> Grid:
    """The first rows of a frame, with its times as texts, without columns that say nothing."""
    silent = [c for c in ("key", "waiting") if c in frame and not any(frame[c])]
    states = [c.partition(".")[0] for c in frame.columns if "." in c]
    no_events = {state for state in states if state in frame and not any(frame[state])}
    silent += [c for c in frame.columns if c.partition(".")[0] in no_events]
    rows = frame.head(limit_of(limit)).astype(object).drop(columns=silent)
    for column in times:
        rows[column] = ["" if pd.isna(t) else when(int(t)) for t in rows[column]]
    return Grid(list(rows.columns), rows.values.tolist(), total=len(frame), what=what)
