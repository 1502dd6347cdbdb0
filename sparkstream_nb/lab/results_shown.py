"""The display of apps and the results of running ones: feeds, tables, figures, divergence, nodes that fail."""

from __future__ import annotations

import html as markup
from typing import Any

import pandas as pd

from ..app import (
    App,
    Apps,
    Chart,
    ChartSnapshot,
    Cluster,
    ClusterSnapshot,
    Divergence,
    Errors,
    Events,
    Failover,
    FailoverStudy,
    Feed,
    FeedReport,
    Feeds,
    FrameFeed,
    Result,
    Sent,
    SplitApp,
    Stats,
    Study,
    Tail,
    TailSnapshot,
)
from ..app.attaching import attachable_names
from ..app.results.divergence import VERDICTS
from ..app.results.feed_progress import span
from ..app.results.reasons import group_reasons
from ..app.running.input_recording import AppRecording
from ..ingest.ingest import TEXT_OF_ROW
from ..wording import has_magics, is_in_shell
from .card import card_html, card_text
from .chart_shown import chart_html, chart_text
from .cluster_shown import cluster_html, cluster_text
from .display import html, limit_of, text
from .drawings.bars import bar_html
from .drawings.heatmap import image as study_image
from .drawings.text_tables import (
    MUTED,
    CountCell,
    Figure,
    Grid,
    WholeText,
    escaped_lines,
    format_count,
    paragraph,
    text_of,
    when,
)
from .drawings.timeline_drawing import Timeline, whole, worst
from .drawings.timeline_drawing import image as timeline_image
from .failover_shown import failover_html, failover_text, study_html, study_text
from .stats_shown import stats_html, stats_text
from .tail_shown import tail_html, tail_text

# --------------------------------------------------------------------------------------------------------------- apps


@text.register
def _(shown: App) -> str:
    return card_text(shown)


@html.register
def _(shown: App) -> str:
    return card_html(shown)


def _apps_grid(shown: Apps) -> Grid:
    rows = [(name, a.state, a.nodes, a.mode, ", ".join(a.shard_ids)) for name, a in sorted(shown.items())]
    return Grid(["app", "state", "nodes", "mode", "shards"], rows, what="app")


@text.register
def _(shown: Apps) -> str:
    return _apps_grid(shown).text() if shown else _no_apps()


def _no_apps() -> str:
    before = attachable_names()
    if not before:
        magic, call = "%%siddhi NAME deploys the text of a cell", "sparkstream_nb.deploy(text) deploys one"
        return f"No app yet. {magic if has_magics() else call}."
    named = ", ".join(before[:5]) + (f" and {len(before) - 5:,} more" if len(before) > 5 else "")
    here, attach = ("kernel", "%siddhi attach NAME") if has_magics() else ("process", "sparkstream_nb.attach(NAME)")
    return f"No app in this {here}. Deployed before: {named}. {attach} continues one."


@html.register
def _(shown: Apps) -> str:
    return _apps_grid(shown).html() if shown else paragraph(markup.escape(text(shown)))


# --------------------------------------------------------------------------------------------------------------- feeds


def _format_feed_rate(shown: FeedReport) -> str:
    """`336,776 events in 12.3 s elapsed, 27,380 events/s`."""
    events = f"{shown.events:,} event{'' if shown.events == 1 else 's'}"
    fed = f"{events} in {shown.seconds:.1f} s elapsed, {shown.events_per_second:,.0f} events/s"
    fits = shown.rows - shown.rejected
    return f"{fed}; stopped at {shown.events:,} of {fits:,}" if shown.not_fed else fed


_MOST_GROUPS = 5
"""Groups of reasons shown for a feed."""


def _list_rejected(shown: FeedReport) -> list[str]:
    if not shown.rejected:
        return []
    known = sum(shown.reasons.values())
    there = known if shown.kept is None else min(known, shown.kept)
    kept = " and are kept" if there >= shown.rejected else f"; {there:,} of them {'is' if there == 1 else 'are'} kept"
    where = "" if is_in_shell() else f": %siddhi errors {shown.app}" if has_magics() else ": app.errors"
    kept = f"{shown.rejected:,} of {shown.rows:,} rows did not fit the stream{kept}{where}"
    part = [f"of the first {known:,}:"] if known < shown.rejected else []
    found = group_reasons(shown.reasons, shown.time)
    more = [f"and {format_count(len(found) - _MOST_GROUPS, 'more reason')}"] if len(found) > _MOST_GROUPS else []
    return [kept, *part, *(f"{k.count:,} × {k.words}" for k in found[:_MOST_GROUPS]), *more]


@text.register
def _(shown: FeedReport) -> str:
    lines = [f"{shown.app}.{shown.stream}: {_format_feed_rate(shown)}"]
    lines += [f"  → {stream}: {n:,}" for stream, n in sorted(shown.outputs.items())]
    lines += [f"  {'!' if i == 0 else ' '} {line}" for i, line in enumerate(_list_rejected(shown))]
    lines += [f"  ! {note}" for note in shown.notes]
    return "\n".join(lines)


@html.register
def _(shown: FeedReport) -> str:
    out = [
        paragraph(
            f"<b>{markup.escape(shown.app)}.{markup.escape(shown.stream)}</b> "
            f'<span style="{MUTED}">{markup.escape(_format_feed_rate(shown))}</span>'
        )
    ]
    out += [paragraph(f"→ <b>{markup.escape(s)}</b> {n:,}") for s, n in sorted(shown.outputs.items())]
    if lines := _list_rejected(shown):
        out.append(paragraph(f"⚠ {'<br>'.join(markup.escape(line) for line in lines)}"))
    out += [paragraph(f"⚠ {markup.escape(note)}") for note in shown.notes]
    return "".join(out)


def _feed_words(shown: Feed) -> str:
    """`feed 1, running: Trades.S: 200 of 400 events · 1 s`."""
    finishing = shown.under_way if shown.state in ("paused", "stopping") else 0
    under_way = f" ({format_count(finishing, 'event')} under way still)" if finishing else ""
    where = f"feed {shown.id}, {shown.state}{under_way}: {shown.app}."
    progress = shown.progress.describe(shown.state)
    return f"{where}{shown.stream}: {shown.error}" if shown.error else f"{where}{progress}"


@text.register
def _(shown: Feed) -> str:
    return text(shown.report) if shown.report else _feed_words(shown)


@html.register
def _(shown: Feed) -> str:
    return feed_bar(shown)


def position_words(feed: Feed) -> str:
    """`200 events fed, at 2024-06-01 10:00:00 UTC, 200 remaining · 60 times event time`."""
    if feed.state == "reading":
        return "being read"
    pace = f" · {feed.pace}" if feed.active else ""
    return f"{feed.position}{pace}"


def feed_bar(shown: Feed) -> str:
    """A feed's bar, report or error as HTML."""
    if shown.report:
        return html(shown.report)
    if shown.error:
        return paragraph(f"✗ {markup.escape(_feed_words(shown))}")
    finishing = shown.under_way if shown.state in ("paused", "stopping") else 0
    state = f"{shown.state}, {finishing:,} under way" if finishing else shown.state
    return bar_html(shown.progress, before=f"feed {shown.id}", state=state)


def _feeds_grid(shown: Feeds) -> Grid:
    rows = []
    for f in shown.values():
        p = f.progress
        left = f"{span(p.seconds_left)} left" if f.state == "running" and p.seconds_left else ""
        total = Figure("" if p.total is None else f"{p.total:,}")
        rate = Figure(f"{p.events_per_second:,.0f}" if p.done else "")
        rows.append((f.id, f.app, f.stream, f.state, Figure(f"{p.done:,}"), total, rate, str(f.error or left)))
    return Grid(["feed", "app", "stream", "state", "done", "of events", "events/s", ""], rows, what="feed")


@text.register
def _(shown: Feeds) -> str:
    return _feeds_grid(shown).text() if shown else "No feed in the background yet: %siddhi feed ... --background"


@html.register
def _(shown: Feeds) -> str:
    return _feeds_grid(shown).html() if shown else paragraph(markup.escape(text(shown)))


@text.register
def _(shown: FrameFeed) -> str:
    return shown.summary()


@html.register
def _(shown: FrameFeed) -> str:
    return paragraph(markup.escape(shown.summary()))


# -------------------------------------------------------------------------------------------------------------- tables


def _result_grid(shown: Result) -> Grid:
    return Grid(
        [n for n, _ in shown.columns],
        shown.rows[: limit_of(shown.limit)],
        total=len(shown.rows),
        notes=[t for _, t in shown.columns],
    )


NO_SHARDS = "The rows belong to no shard: there is nothing to show by shard."


def _shards_grid(shown: Result) -> Grid | None:
    """The contents of each shard; None if the rows belong to no shard."""
    frame = shown.by_shard
    return None if frame is None else Grid.of_frame(frame, limit=limit_of(shown.limit))


@text.register
def _(shown: Result) -> str:
    merged = _result_grid(shown).text() + (f"\n{shown.hint}" if shown.hint else "")
    if not shown.beside:
        return merged
    shards = _shards_grid(shown)
    return f"{merged}\n\n" + (NO_SHARDS if shards is None else f"by shard\n{shards.text()}")


@html.register
def _(shown: Result) -> str:
    merged = _result_grid(shown).html() + (paragraph(markup.escape(shown.hint)) if shown.hint else "")
    if not shown.beside:
        return merged
    shards = _shards_grid(shown)
    return merged + (paragraph(NO_SHARDS) if shards is None else paragraph("by shard") + shards.html())


def _events_grid(shown: Events) -> Grid:
    limit = limit_of(shown.limit)
    if shown.came is None:
        return Grid.of_frame(shown.frame, limit=limit, what="event")
    grid = Grid.of_frame(shown.frame.tail(limit), what="event")
    grid.total = shown.came.total
    return grid


NOT_KEPT = "not kept any more, as the retention of the app says."


def _events_note(shown: Events) -> str:
    """A note on events that are not shown, or on their absence."""
    if shown.came is None and shown.dropped:
        return f"{format_count(shown.dropped, 'earlier event')} {'is' if shown.dropped == 1 else 'are'} {NOT_KEPT}"
    if shown.came is None:
        return "" if len(shown) else f"{shown.stream} has put out nothing yet."
    if not shown.came.total:
        return f"No events on {shown.stream} yet."
    if shown.came.gone:
        earlier = format_count(shown.came.gone, "earlier event")
        return f"{earlier} came in and cannot be shown: {'it is' if shown.came.gone == 1 else 'they are'} {NOT_KEPT}"
    return ""


def _waiting_note(shown: Events) -> str:
    """A note on events whose outputs are not computed yet."""
    if not shown.waiting:
        return ""
    are, them = ("is", "it") if shown.waiting == 1 else ("are", "them")
    return f"{format_count(shown.waiting, 'event')} that came in {are} not computed yet: flush() waits for {them}."


@text.register
def _(shown: Events) -> str:
    table = _events_grid(shown).text() if len(shown) else ""
    return "\n".join(t for t in (table, _events_note(shown), _waiting_note(shown)) if t)


@html.register
def _(shown: Events) -> str:
    table = _events_grid(shown).html() if len(shown) else ""
    notes = [n for n in (_events_note(shown), _waiting_note(shown)) if n]
    return table + "".join(paragraph(markup.escape(note)) for note in notes)


def _sent(shown: Sent) -> list[str]:
    where = f" to {', '.join(shown.nodes)}" if shown.nodes else ""
    head = f"{shown.app}.{shown.stream}: {format_count(shown.events, 'event')} sent{where}, at {when(shown.at)}"
    if shown.outputs is not None:
        put_out = ", ".join(f"{stream} {n:,}" for stream, n in sorted(shown.outputs.items()))
        head += f" → {put_out or 'no outputs'}"
    lines = [head]
    if shown.clock is not None:
        clock = when(shown.clock)
        lines.append(f"That is this machine's time; the app's clock was at {clock}. Another time: --at, at=.")
    if shown.started:
        lines.append(f"{shown.app} was stopped, and runs again.")
    return lines


@text.register
def _(shown: Sent) -> str:
    return "\n".join(_sent(shown))


@html.register
def _(shown: Sent) -> str:
    return paragraph("<br>".join(markup.escape(line) for line in _sent(shown)))


_ROW_SHOWN = 200
"""Characters of a row that is not whole."""


def _error_values(values: Any) -> Any:
    """Values of an error: of a message that could not be read, its text. Of a row that is not whole, its
    text too."""
    if not isinstance(values, dict):
        return values
    return WholeText(str(values[TEXT_OF_ROW])[:_ROW_SHOWN]) if TEXT_OF_ROW in values else values.get("message", "")


def _errors_grids(shown: Errors) -> tuple[Grid, Grid]:
    """The number of errors for each reason, and the first of them."""
    limit = limit_of(shown.limit)
    reasons = [(CountCell(k.count), WholeText(k.words)) for k in group_reasons(shown.reasons)]
    counts = Grid(["count", "reason"], reasons, limit=limit, what="reason")
    frame = shown.frame.reset_index(names="id")
    frame["values"] = pd.Series([_error_values(v) for v in frame["values"]], frame.index, dtype=object)
    return counts, Grid.of_frame(frame, limit=limit, what="error")


@text.register
def _(shown: Errors) -> str:
    grids = [g.text() for g in _errors_grids(shown)] if len(shown) else []
    return "\n\n".join([*grids, *_errors_notes(shown)])


def _errors_notes(shown: Errors) -> list[str]:
    """A note on errors that are not shown, and on how to mend them."""
    app = f"sparkstream_nb.get('{shown.app}')"
    if is_in_shell():
        mend = [
            "To send them again, correct the file and feed it, or in Python: "
            f"app = sparkstream_nb.attach('{shown.app}'), then app.replay(), or app.replay(FRAME) with corrected rows "
            "of app.errors.frame; where --home was given, attach(..., home=FOLDER)."
        ]
    elif not has_magics():
        mend = ["app.replay() sends them again; app.replay(frame) sends mended rows of app.errors.frame."]
    else:
        again = f"%siddhi errors {shown.app} --replay sends them again"
        mend = [f"{again}; mended rows of {app}.errors.frame: .replay(frame)."]
    if shown.dropped:
        kept = f"{format_count(shown.dropped, 'older error')} {'is' if shown.dropped == 1 else 'are'} {NOT_KEPT}"
        return [kept, *shown.away, *mend]
    if len(shown):
        return [*shown.away, *mend]
    if shown.away:
        return [*shown.away]
    return [f"{shown.app} has no errors: every row and event was accepted."]


@html.register
def _(shown: Errors) -> str:
    grids = [g.html() for g in _errors_grids(shown)] if len(shown) else []
    return "".join([*grids, *(paragraph(markup.escape(n)) for n in _errors_notes(shown))])


@text.register
def _(shown: Stats) -> str:
    return stats_text(shown)


@html.register
def _(shown: Stats) -> str:
    return stats_html(shown)


@text.register
def _(shown: Tail) -> str:
    return tail_text(shown.snapshot())


@text.register
def _(shown: TailSnapshot) -> str:
    return tail_text(shown)


@html.register
def _(shown: Tail) -> str:
    return tail_html(shown.snapshot())


@html.register
def _(shown: TailSnapshot) -> str:
    return tail_html(shown)


@text.register
def _(shown: Chart) -> str:
    return chart_text(shown.snapshot())


@text.register
def _(shown: ChartSnapshot) -> str:
    return chart_text(shown)


@html.register
def _(shown: Chart) -> str:
    return chart_html(shown.snapshot())


@html.register
def _(shown: ChartSnapshot) -> str:
    return chart_html(shown)


# ---------------------------------------------------------------------------------------------------------- divergence


def _divergence_grids(shown: Divergence, limit: int | None = None) -> list[Grid]:
    """Counts by query, the first outputs that differ, and the aggregations."""
    grids = []
    if shown.matches:
        counts = shown.counts.astype(object)
        for verdict in VERDICTS:
            counts[verdict] = [CountCell(n) for n in counts[verdict]]
        if repairs := {q: r for q, r in shown.repairs.items() if r is not None}:
            counts["repaired by"] = [repairs.get(q, "") for q in counts["query"]]
        grids.append(Grid.of_frame(counts, what="stream"))
    if shown.differences:
        first = shown.first_differences(limit_of(limit))
        first["node"] = first["node"].fillna("")
        first["values"] = [", ".join(text_of(v) for v in row) for row in first["values"]]
        grids.append(Grid(list(first.columns), first.values.tolist(), total=shown.differences, what="difference"))
    if shown.merged:
        rows = [[a, CountCell(c.rows), CountCell(len(c.differing))] for a, c in shown.merged.items()]
        grids.append(Grid(["aggregation", "merged rows", "differing"], rows, what="aggregation"))
    return grids


def _divergence_head(shown: Divergence) -> str:
    routed = "as the events came" if shown.way.route is None else f"under {shown.way.route}"
    head = f"{shown.app} on {format_count(shown.nodes, 'node')}, {routed}, against one node"
    if not shown.events:
        return f"{head}: no events yet"
    if not any(shown.matches.values()) and not shown.merged:
        return f"{head}: no query has an output, on one node or on several"
    return head if shown.diverges else f"{head}: nothing differs"


@text.register
def _(shown: Divergence) -> str:
    return divergence_text(shown, None)


def divergence_text(shown: Divergence, limit: int | None) -> str:
    """A divergence as text with the first `limit` outputs that differ (None: as many as tables show)."""
    grids = [g.text(footer=g.what == "difference") for g in _divergence_grids(shown, limit)]
    warning, advice = ([said] if said else [] for said in (shown.warning, shown.advice))
    return "\n\n".join([_divergence_head(shown), *warning, *grids, *advice])


@html.register
def _(shown: Divergence) -> str:
    return divergence_html(shown, None)


def divergence_html(shown: Divergence, drawn: Timeline | None, limit: int | None = None) -> str:
    """A divergence as HTML with the time line `drawn`; None: of the query that lost most. `limit` as in
    `divergence_text`."""
    if drawn is None and shown.matches:
        drawn = whole(shown, worst(shown))
    out = [paragraph(f"<b>{markup.escape(_divergence_head(shown))}</b>")]
    out += [paragraph(markup.escape(shown.warning))] if shown.warning else []
    out += [paragraph(markup.escape(shown.advice))] if shown.advice else []
    out += [timeline_image(drawn)] if drawn is not None else []
    grids = _divergence_grids(shown, limit)
    out += [g.html(footer=False) for g in grids if g.what != "difference"]
    out += [
        f"<details><summary>{markup.escape(g.footer)}</summary>{g.html()}</details>"
        for g in grids
        if g.what == "difference"
    ]
    return "".join(out)


# ------------------------------------------------------------------------------------------------- nodes that fail


@text.register
def _(shown: Cluster) -> str:
    return cluster_text(shown.snapshot(), limit_of())


@html.register
def _(shown: Cluster) -> str:
    return cluster_html(shown.snapshot(), limit_of())


@text.register
def _(shown: ClusterSnapshot) -> str:
    return cluster_text(shown, limit_of())


@html.register
def _(shown: ClusterSnapshot) -> str:
    return cluster_html(shown, limit_of())


@text.register
def _(shown: Failover) -> str:
    return failover_text(shown, limit_of())


@html.register
def _(shown: Failover) -> str:
    return failover_html(shown, limit_of())


@text.register
def _(shown: FailoverStudy) -> str:
    return study_text(shown, limit_of())


@html.register
def _(shown: FailoverStudy) -> str:
    return study_html(shown, limit_of())


def _study_grid(shown: Study, limit: int | None = None) -> Grid:
    named = [[r.disorder] if shown.disordered else [] for r in shown.frame.itertuples()]
    rows = [
        [*name, r.nodes, r.routing, *map(CountCell, (r.same, r.lost, r.spurious, n)), Figure(f"{r.skew:.2f}")]
        for name, r, n in zip(named, shown.frame.itertuples(), shown.frame["duplicated"], strict=True)
    ]
    return Grid(list(shown.frame.columns), rows[:limit_of(limit)], total=len(rows), what="combination")


@text.register
def _(shown: Study) -> str:
    return count_text(shown, None)


def count_text(shown: Study, limit: int | None) -> str:
    """A study as text with the first `limit` combinations (None: as many as tables show)."""
    return f"{shown.app}: {shown.recommendation}\n\n{_study_grid(shown, limit).text()}"


@html.register
def _(shown: Study) -> str:
    table = f"<details><summary>table</summary>{_study_grid(shown).html()}</details>"
    said = paragraph(f"<b>{markup.escape(shown.app)}</b>: {markup.escape(shown.recommendation)}")
    return f"{said}{study_image(shown)}{table}"


@text.register
def _(shown: AppRecording) -> str:
    events = format_count(shown.events, "event")
    recording = f"sparkstream_nb.get('{shown.app}').recording"
    return f"{shown.app}: {events} came in. {recording}.save('FILE.parquet') writes them."


@html.register
def _(shown: AppRecording) -> str:
    return paragraph(markup.escape(text(shown)))


@text.register
def _(shown: SplitApp) -> str:
    return str(shown)


@html.register
def _(shown: SplitApp) -> str:
    return escaped_lines(str(shown))
