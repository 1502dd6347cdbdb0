"""The state that JupyterLab's side panel shows of a process: its apps with feeds, nodes and parts, and its variables.

All of it is plain data with texts as they are: the page puts them in as texts, never as HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...app import App, Feed
from ...app.results.answers import Stats
from ...app.results.frontend import Displayed
from ...app.results.overview import NODE_COLUMNS, AppOverview, app_figures, node_cells, rate_text
from ...app.running.app_stats import read_stats
from ...app.running.overviews import overview_with
from ...charts.value_texts import format_count
from ...errors import SparkStreamError
from ..card import durations_of
from ..widgets.feed import PaceMenu, pace_menu

MOST = 100
"""Parts of an app, and variables, that are listed at most."""
_FEEDS_OVER = 3
"""Feeds that are over and still listed, of each app."""


@dataclass(frozen=True)
class PanelFeed:
    """A feed in the background: its progress in words and as a `fraction` (None: not known yet), and its pace."""

    id: int
    stream: str
    state: str
    words: str
    fraction: float | None
    active: bool
    pace: PaceMenu


@dataclass(frozen=True)
class PanelEntry:
    """A part of an app, or a variable. `kind`: stream, trigger, table, window or aggregation; of a variable, frame or
    the class of its value. `about`: its size, or the app that it is about. `has_tail`: a stream that can be followed.
    """

    kind: str
    name: str
    about: str = ""
    has_tail: bool = False


@dataclass(frozen=True)
class PanelApp:
    """An app. `figures` are (name, value) pairs; `nodes` has the cells of `node_columns` for each node, without empty
    columns; `tail` is the stream that is followed where none is named. `left_out`: parts that are not listed.
    """

    name: str
    state: str
    mode: str
    rate: str
    errors: int
    figures: Sequence[tuple[str, str]]
    problems: Sequence[str]
    nodes: Sequence[Sequence[str]]
    node_columns: Sequence[str]
    feeds: Sequence[PanelFeed]
    parts: Sequence[PanelEntry]
    tail: str | None
    left_out: int = 0


@dataclass(frozen=True)
class PanelState:
    """The apps by name, and the variables in the order in which they were bound."""

    apps: Sequence[PanelApp]
    variables: Sequence[PanelEntry]


def panel_state(apps: Mapping[str, App], namespace: Mapping[str, Any]) -> PanelState:
    """The state of these apps, as of their last commits, and of a shell's `namespace`. Nothing is waited for."""
    return PanelState(
        [entry for _, app in sorted(apps.items()) if (entry := _app(app)) is not None],
        list(_variables(namespace))[:MOST],
    )


def _app(app: App) -> PanelApp | None:
    """An app's state; None while it is closed or deployed again."""
    if app.closed:
        return None
    try:
        stats = read_stats(app.runtime)
        overview = overview_with(app, stats)
    except SparkStreamError:
        return None
    parts = list(_parts(app, stats))
    cells = [node_cells(n) for n in overview.nodes]
    columns = [i for i in range(len(NODE_COLUMNS)) if any(row[i] for row in cells)]
    return PanelApp(
        name=app.name,
        state=app.state,
        mode=_mode(app),
        rate=rate_text(overview.input_per_second or 0.0),
        errors=overview.errors,
        figures=app_figures(overview),
        problems=_problems(overview),
        nodes=[[row[i] for i in columns] for row in cells],
        node_columns=[NODE_COLUMNS[i] for i in columns],
        feeds=_feeds(app),
        parts=parts[:MOST],
        tail=default_tail(app, stats),
        left_out=max(0, len(parts) - MOST),
    )


def _mode(app: App) -> str:
    nodes = format_count(app.nodes, "node")
    return nodes if app.mode == "single" else f"{nodes}, {app.mode}"


def _problems(overview: AppOverview) -> list[str]:
    return [" ".join(p.split()) for p in overview.problems]


def _feeds(app: App) -> list[PanelFeed]:
    """The feeds that run, and the last ones that are over."""
    feeds = list(app.feeds.values())
    over = [f for f in feeds if not f.active][-_FEEDS_OVER:]
    return [_feed(f) for f in feeds if f.active or f in over]


def _feed(feed: Feed) -> PanelFeed:
    progress, state = feed.progress, feed.state
    words = str(feed.error) if feed.error is not None else progress.describe(state)
    fraction = None if progress.total is None else progress.fraction
    return PanelFeed(feed.id, feed.stream, state, " ".join(words.split()), fraction, feed.active, pace_menu(feed))


def _parts(app: App, stats: Stats) -> Iterator[PanelEntry]:
    """Streams with their events, tables and windows with their rows, aggregations with their durations."""
    rows = {(p.kind, p.name): p.state_rows for p in stats.parts}
    for name in _followed_streams(app):
        events = stats.came.get(name, 0) + stats.outputs.get(name, 0)
        kind = "trigger" if app.plan.streams[name].kind == "trigger" else "stream"
        yield PanelEntry(kind, name, format_count(events, "event"), has_tail=True)
    for kind, names in (("table", app.plan.tables), ("window", app.plan.windows)):
        for name in names:
            count = rows.get((kind, name))
            yield PanelEntry(kind, name, "" if count is None else format_count(count, "row"))
    for aggregation in app.plan.aggregations.values():
        yield PanelEntry("aggregation", aggregation.id, f"every {durations_of(aggregation)}")


def _followed_streams(app: App) -> list[str]:
    """The streams outside partitions, in the order of the text; fault streams are not counted."""
    return [s.source.id for s in app.plan.streams.values() if s.kind != "fault" and "#" not in s.source.id]


def default_tail(app: App, stats: Stats) -> str | None:
    """The last stream of the text with outputs, else the first one."""
    streams = _followed_streams(app)
    return next((s for s in reversed(streams) if stats.outputs.get(s)), streams[0] if streams else None)


def _variables(namespace: Mapping[str, Any]) -> Iterator[PanelEntry]:
    for name, value in list(namespace.items()):
        if name.startswith("_"):
            continue
        kind = type(value)
        shape = getattr(value, "shape", None) if kind.__name__ in ("DataFrame", "Table") else None
        if isinstance(shape, tuple) and len(shape) == 2:
            about = f"{format_count(shape[0], 'row')}, {format_count(shape[1], 'column')}"
            yield PanelEntry("frame", name, about)
        elif isinstance(value, Displayed) or kind.__module__.partition(".")[0] == "sparkstream_nb":
            yield PanelEntry(kind.__name__, name, _subject(value))


def _subject(value: Any) -> str:
    """The app that a value is about, and its stream, as far as it has them."""
    names = (getattr(value, a, None) for a in ("app", "stream"))
    app = [value.name] if isinstance(value, App) else []
    return ".".join([*app, *(n for n in names if isinstance(n, str))])
