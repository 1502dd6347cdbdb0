"""The display of apps and the results of running ones: feeds, tables, figures, divergence, nodes that fail."""

from __future__ import annotations

import html as markup
from collections.abc import Callable
from typing import Any, TypeVar

import pandas as pd

from ..app import (
    App,
    Apps,
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
    SqlAnswer,
    SqlRelations,
    Stats,
    Study,
    TailSnapshot,
)
from ..app.attaching import attachable_names
from ..app.pictures.study_picture import study_picture
from ..app.pictures.timeline_picture import Timeline, full_timeline, timeline_picture, worst
from ..app.results.divergence import VERDICTS
from ..app.results.feed_progress import span
from ..app.results.followed_stream import FollowedStream
from ..app.results.frontend import Displayed
from ..app.results.reasons import group_reasons
from ..app.running.input_recording import AppRecording
from ..charts.value_texts import CountCell, Figure, WholeText, format_count, text_of, when
from ..ingest.ingest import TEXT_OF_ROW
from ..wording import has_magics, is_in_shell
from .card import card_html, card_text
from .chart_shown import chart_html, chart_text
from .cluster_shown import cluster_html, cluster_text
from .display import blocks_of, html, limit_of, text
from .drawings.bars import bar_html
from .drawings.frame_tables import grid_of_frame
from .drawings.image import image
from .drawings.result_blocks import Block, Heading, blocks_html, folded_html, subject_html
from .drawings.text_tables import Grid, escaped_lines, paragraph
from .failover_shown import failover_html, failover_text, study_html, study_text
from .stats_shown import stats_html, stats_text
from .tail_shown import tail_html, tail_text

T = TypeVar("T", bound=Displayed)

# --------------------------------------------------------------------------------------------------------------- apps


text.register(App, card_text)
html.register(App, card_html)


@blocks_of(Apps)
def _(apps: Apps) -> list[Block]:
    rows = [(name, a.state, a.nodes, a.mode, ", ".join(a.shard_ids)) for name, a in sorted(apps.items())]
    return [Grid(["app", "state", "nodes", "mode", "shards"], rows, what="app") if apps else _no_apps()]


def _no_apps() -> str:
    before = attachable_names()
    if not before:
        magic, call = "%%siddhi NAME deploys the text of a cell", "sparkstream_nb.deploy(text) deploys one"
        return f"No app yet. {magic if has_magics() else call}."
    names = ", ".join(before[:5]) + (f" and {len(before) - 5:,} more" if len(before) > 5 else "")
    here, attach = ("kernel", "%siddhi attach NAME") if has_magics() else ("process", "sparkstream_nb.attach(NAME)")
    return f"No app in this {here}. Deployed before: {names}. {attach} continues one."


# --------------------------------------------------------------------------------------------------------------- feeds


def _format_feed_rate(report: FeedReport) -> str:
    """`336,776 events in 12.3 s elapsed, 27,380 events/s`."""
    events = f"{report.events:,} event{'' if report.events == 1 else 's'}"
    rate_text = f"{events} in {report.seconds:.1f} s elapsed, {report.events_per_second:,.0f} events/s"
    fits = report.rows - report.rejected
    return f"{rate_text}; stopped at {report.events:,} of {fits:,}" if report.not_fed else rate_text


_MOST_GROUPS = 5
"""Groups of reasons shown for a feed."""


def _list_rejected(report: FeedReport) -> list[str]:
    if not report.rejected:
        return []
    reason_count = sum(report.reasons.values())
    kept_count = reason_count if report.kept is None else min(reason_count, report.kept)
    kept_text = (
        " and are kept"
        if kept_count >= report.rejected
        else f"; {kept_count:,} of them {'is' if kept_count == 1 else 'are'} kept"
    )
    where = "" if is_in_shell() else f": %siddhi errors {report.app}" if has_magics() else ": app.errors"
    kept_text = f"{report.rejected:,} of {report.rows:,} rows did not fit the stream{kept_text}{where}"
    part = [f"of the first {reason_count:,}:"] if reason_count < report.rejected else []
    reason_groups = group_reasons(report.reasons, report.time)
    more = (
        [f"and {format_count(len(reason_groups) - _MOST_GROUPS, 'more reason')}"]
        if len(reason_groups) > _MOST_GROUPS
        else []
    )
    return [kept_text, *part, *(f"{k.count:,} × {k.words}" for k in reason_groups[:_MOST_GROUPS]), *more]


@text.register
def _(report: FeedReport) -> str:
    lines = [f"{report.app}.{report.stream}: {_format_feed_rate(report)}"]
    lines += [f"  → {stream}: {n:,}" for stream, n in sorted(report.outputs.items())]
    lines += [f"  {'!' if i == 0 else ' '} {line}" for i, line in enumerate(_list_rejected(report))]
    lines += [f"  ! {note}" for note in report.notes]
    return "\n".join(lines)


@html.register
def _(report: FeedReport) -> str:
    out = [subject_html(f"{report.app}.{report.stream}", _format_feed_rate(report))]
    out += [paragraph(f"→ <b>{markup.escape(s)}</b> {n:,}") for s, n in sorted(report.outputs.items())]
    if lines := _list_rejected(report):
        out.append(paragraph(f"⚠ {'<br>'.join(markup.escape(line) for line in lines)}"))
    out += [paragraph(f"⚠ {markup.escape(note)}") for note in report.notes]
    return "".join(out)


def _feed_words(feed: Feed) -> str:
    """`feed 1, running: Trades.S: 200 of 400 events · 1 s`."""
    finishing = feed.under_way if feed.state in ("paused", "stopping") else 0
    under_way = f" ({format_count(finishing, 'event')} under way still)" if finishing else ""
    where = f"feed {feed.id}, {feed.state}{under_way}: {feed.app}."
    progress = feed.progress.describe(feed.state)
    return f"{where}{feed.stream}: {feed.error}" if feed.error else f"{where}{progress}"


@text.register
def _(feed: Feed) -> str:
    return text(feed.report) if feed.report else _feed_words(feed)


def position_words(feed: Feed) -> str:
    """`200 events fed, at 2024-06-01 10:00:00 UTC, 200 remaining · 60 times event time`."""
    if feed.state == "reading":
        return "being read"
    pace = f" · {feed.pace}" if feed.active else ""
    return f"{feed.position}{pace}"


@html.register
def feed_bar(feed: Feed) -> str:
    """A feed's bar, report or error as HTML."""
    if feed.report:
        return html(feed.report)
    if feed.error:
        return paragraph(f"✗ {markup.escape(_feed_words(feed))}")
    finishing = feed.under_way if feed.state in ("paused", "stopping") else 0
    state = f"{feed.state}, {finishing:,} under way" if finishing else feed.state
    return bar_html(feed.progress, before=f"feed {feed.id}", state=state)


@blocks_of(Feeds)
def _(feeds: Feeds) -> list[Block]:
    rows = []
    for f in feeds.values():
        p = f.progress
        left = f"{span(p.seconds_left)} left" if f.state == "running" and p.seconds_left else ""
        total = Figure("" if p.total is None else f"{p.total:,}")
        rate = Figure(f"{p.events_per_second:,.0f}" if p.done else "")
        rows.append((f.id, f.app, f.stream, f.state, Figure(f"{p.done:,}"), total, rate, str(f.error or left)))
    grid = Grid(["feed", "app", "stream", "state", "done", "of events", "events/s", ""], rows, what="feed")
    return [grid if feeds else "No feed in the background yet: %siddhi feed ... --background"]


@blocks_of(FrameFeed)
def _(feed: FrameFeed) -> list[Block]:
    return [feed.summary()]


# -------------------------------------------------------------------------------------------------------------- tables


def _result_grid(result: Result) -> Grid:
    return Grid(
        [n for n, _ in result.columns],
        result.rows[: limit_of(result.limit)],
        total=len(result.rows),
        notes=[t for _, t in result.columns],
    )


NO_SHARDS = "The rows belong to no shard: there is nothing to show by shard."


def _shards_grid(result: Result) -> Grid | None:
    """The contents of each shard; None if the rows belong to no shard."""
    frame = result.by_shard
    return None if frame is None else grid_of_frame(frame, limit=limit_of(result.limit))


@text.register
def _(result: Result) -> str:
    rows_text = _result_grid(result).text() + (f"\n{result.hint}" if result.hint else "")
    if not result.beside:
        return rows_text
    shards = _shards_grid(result)
    return f"{rows_text}\n\n" + (NO_SHARDS if shards is None else f"by shard\n{shards.text()}")


@html.register
def _(result: Result) -> str:
    rows: list[Block] = [_result_grid(result), *([result.hint] if result.hint else [])]
    if not result.beside:
        return blocks_html(rows)
    shards = _shards_grid(result)
    return blocks_html([*rows, *([NO_SHARDS] if shards is None else ["by shard", shards])])


@blocks_of(SqlAnswer)
def _(answer: SqlAnswer) -> list[Block]:
    return [grid_of_frame(answer.frame, limit=limit_of(answer.limit)), *answer.notes]


@blocks_of(SqlRelations)
def _(relations: SqlRelations) -> list[Block]:
    if not relations:
        return [_no_apps()]
    rows = [(r.name, ", ".join(f"{name} {type}" for name, type in r.columns)) for r in relations]
    return [Grid(["relation", "columns"], rows, what="relation")]


def _events_grid(events: Events) -> Grid:
    limit = limit_of(events.limit)
    if events.came is None:
        return grid_of_frame(events.frame, limit=limit, what="event")
    grid = grid_of_frame(events.frame.tail(limit), what="event")
    grid.total = events.came.total
    return grid


NOT_KEPT = "not kept any more, as the retention of the app says."


def _events_note(events: Events) -> str:
    """A note on events that are not shown, or on their absence."""
    if events.came is None and events.dropped:
        return f"{format_count(events.dropped, 'earlier event')} {'is' if events.dropped == 1 else 'are'} {NOT_KEPT}"
    if events.came is None:
        return "" if len(events) else f"{events.stream} has put out nothing yet."
    if not events.came.total:
        return f"No events on {events.stream} yet."
    if events.came.gone:
        earlier = format_count(events.came.gone, "earlier event")
        return f"{earlier} came in and cannot be shown: {'it is' if events.came.gone == 1 else 'they are'} {NOT_KEPT}"
    return ""


def _waiting_note(events: Events) -> str:
    """A note on events whose outputs are not computed yet."""
    if not events.waiting:
        return ""
    are, them = ("is", "it") if events.waiting == 1 else ("are", "them")
    return f"{format_count(events.waiting, 'event')} that came in {are} not computed yet: flush() waits for {them}."


@text.register
def _(events: Events) -> str:
    table = _events_grid(events).text() if len(events) else ""
    return "\n".join(t for t in (table, _events_note(events), _waiting_note(events)) if t)


@html.register
def _(events: Events) -> str:
    table = [_events_grid(events)] if len(events) else []
    return blocks_html([*table, *(n for n in (_events_note(events), _waiting_note(events)) if n)])


def _sent_lines(answer: Sent) -> list[str]:
    where = f" to {', '.join(answer.nodes)}" if answer.nodes else ""
    head = f"{answer.app}.{answer.stream}: {format_count(answer.events, 'event')} sent{where}, at {when(answer.at)}"
    if answer.outputs is not None:
        put_out = ", ".join(f"{stream} {n:,}" for stream, n in sorted(answer.outputs.items()))
        head += f" → {put_out or 'no outputs'}"
    lines = [head]
    if answer.clock is not None:
        clock = when(answer.clock)
        lines.append(f"That is this machine's time; the app's clock was at {clock}. Another time: --at, at=.")
    if answer.started:
        lines.append(f"{answer.app} was stopped, and runs again.")
    return lines


@text.register
def _(answer: Sent) -> str:
    return "\n".join(_sent_lines(answer))


@html.register
def _(answer: Sent) -> str:
    return paragraph("<br>".join(markup.escape(line) for line in _sent_lines(answer)))


_ROW_SHOWN = 200
"""Characters of a row that is not whole."""


def _error_values(values: Any) -> Any:
    """Values of an error: of a message that could not be read, its text. Of a row that is not whole, its
    text too."""
    if not isinstance(values, dict):
        return values
    return WholeText(str(values[TEXT_OF_ROW])[:_ROW_SHOWN]) if TEXT_OF_ROW in values else values.get("message", "")


def _errors_grids(errors: Errors) -> tuple[Grid, Grid]:
    """The number of errors for each reason, and the first of them."""
    limit = limit_of(errors.limit)
    reasons = [(CountCell(k.count), WholeText(k.words)) for k in group_reasons(errors.reasons)]
    counts = Grid(["count", "reason"], reasons, limit=limit, what="reason")
    frame = errors.frame.reset_index(names="id")
    frame["values"] = pd.Series([_error_values(v) for v in frame["values"]], frame.index, dtype=object)
    return counts, grid_of_frame(frame, limit=limit, what="error")


@blocks_of(Errors)
def _(errors: Errors) -> list[Block]:
    return [*(_errors_grids(errors) if len(errors) else []), *_errors_notes(errors)]


def _errors_notes(errors: Errors) -> list[str]:
    """A note on errors that are not shown, and on how to mend them."""
    app = f"sparkstream_nb.get('{errors.app}')"
    if is_in_shell():
        mend = [
            "To send them again, correct the file and feed it, or in Python: "
            f"app = sparkstream_nb.attach('{errors.app}'), then app.replay(), or app.replay(FRAME) with corrected rows "
            "of app.errors.frame; where --home was given, attach(..., home=FOLDER)."
        ]
    elif not has_magics():
        mend = ["app.replay() sends them again; app.replay(frame) sends mended rows of app.errors.frame."]
    else:
        again = f"%siddhi errors {errors.app} --replay sends them again"
        mend = [f"{again}; mended rows of {app}.errors.frame: .replay(frame)."]
    if errors.dropped:
        dropped_text = (
            f"{format_count(errors.dropped, 'older error')} {'is' if errors.dropped == 1 else 'are'} {NOT_KEPT}"
        )
        return [dropped_text, *errors.away, *mend]
    if len(errors):
        return [*errors.away, *mend]
    if errors.away:
        return [*errors.away]
    return [f"{errors.app} has no errors: every row and event was accepted."]


text.register(Stats, stats_text)
html.register(Stats, stats_html)


@text.register
def _(view: FollowedStream) -> str:
    return text(view.snapshot())


@html.register
def _(view: FollowedStream) -> str:
    return html(view.snapshot())


text.register(TailSnapshot, tail_text)
html.register(TailSnapshot, tail_html)
text.register(ChartSnapshot, chart_text)
html.register(ChartSnapshot, chart_html)


# ---------------------------------------------------------------------------------------------------------- divergence


def _divergence_grids(divergence: Divergence, limit: int | None = None) -> list[Grid]:
    """Counts by query, the first outputs that differ, and the aggregations."""
    grids = []
    if divergence.matches:
        counts = divergence.counts
        if repairs := {q: r for q, r in divergence.repairs.items() if r is not None}:
            counts = counts.assign(**{"repaired by": [repairs.get(q, "") for q in counts["query"]]})
        grids.append(grid_of_frame(counts, counts=VERDICTS, what="stream"))
    if divergence.differences:
        first = divergence.first_differences(limit_of(limit))
        first["node"] = first["node"].fillna("")
        first["values"] = [", ".join(text_of(v) for v in row) for row in first["values"]]
        grids.append(Grid(list(first.columns), first.values.tolist(), total=divergence.differences, what="difference"))
    if divergence.merged:
        rows = [[a, CountCell(c.rows), CountCell(len(c.differing))] for a, c in divergence.merged.items()]
        grids.append(Grid(["aggregation", "merged rows", "differing"], rows, what="aggregation"))
    return grids


def _divergence_head(divergence: Divergence) -> str:
    routing_text = "as the events came" if divergence.way.route is None else f"under {divergence.way.route}"
    head = f"{divergence.app} on {format_count(divergence.nodes, 'node')}, {routing_text}, against one node"
    if not divergence.events:
        return f"{head}: no events yet"
    if not any(divergence.matches.values()) and not divergence.merged:
        return f"{head}: no query has an output, on one node or on several"
    return head if divergence.diverges else f"{head}: nothing differs"


@text.register
def _(divergence: Divergence) -> str:
    return divergence_text(divergence, None)


def divergence_text(divergence: Divergence, limit: int | None) -> str:
    """A divergence as text with the first `limit` outputs that differ (None: as many as tables show)."""
    grids = [g.text(footer=g.what == "difference") for g in _divergence_grids(divergence, limit)]
    warning, advice = ([sentence] if sentence else [] for sentence in (divergence.warning, divergence.advice))
    return "\n\n".join([_divergence_head(divergence), *warning, *grids, *advice])


@html.register
def _(divergence: Divergence) -> str:
    return divergence_html(divergence, None)


def divergence_html(divergence: Divergence, timeline: Timeline | None, limit: int | None = None) -> str:
    """A divergence as HTML with its `timeline`; None: of the query that lost most. `limit` as in
    `divergence_text`."""
    if timeline is None and divergence.matches:
        timeline = full_timeline(divergence, worst(divergence))
    notes = filter(None, (divergence.warning, divergence.advice))
    out = [blocks_html([Heading(_divergence_head(divergence)), *notes])]
    out += [image(timeline_picture(timeline, has_titles=False))] if timeline is not None else []
    grids = _divergence_grids(divergence, limit)
    out += [g.html(footer=False) for g in grids if g.what != "difference"]
    out += [folded_html(g.footer, g.html()) for g in grids if g.what == "difference"]
    return "".join(out)


# ------------------------------------------------------------------------------------------------- nodes that fail


@text.register
def _(cluster: Cluster) -> str:
    return cluster_text(cluster.snapshot(), limit_of())


@html.register
def _(cluster: Cluster) -> str:
    return cluster_html(cluster.snapshot(), limit_of())


def _register_limited(kind: type[T], as_text: Callable[[T, int], str], as_html: Callable[[T, int], str]) -> None:
    """The forms of a result whose rows are cut at the limit of the notebook."""
    text.register(kind, lambda result: as_text(result, limit_of()))
    html.register(kind, lambda result: as_html(result, limit_of()))


_register_limited(ClusterSnapshot, cluster_text, cluster_html)
_register_limited(Failover, failover_text, failover_html)
_register_limited(FailoverStudy, study_text, study_html)


def _study_grid(study: Study, limit: int | None = None) -> Grid:
    routing_cells = [[r.disorder] if study.disordered else [] for r in study.frame.itertuples()]
    rows = [
        [*name, r.nodes, r.routing, *map(CountCell, (r.same, r.lost, r.spurious, n)), Figure(f"{r.skew:.2f}")]
        for name, r, n in zip(routing_cells, study.frame.itertuples(), study.frame["duplicated"], strict=True)
    ]
    return Grid(list(study.frame.columns), rows[:limit_of(limit)], total=len(rows), what="combination")


@text.register
def _(study: Study) -> str:
    return count_text(study, None)


def count_text(study: Study, limit: int | None) -> str:
    """A study as text with the first `limit` combinations (None: as many as tables show)."""
    return f"{study.app}: {study.recommendation}\n\n{_study_grid(study, limit).text()}"


@html.register
def _(study: Study) -> str:
    table = folded_html("table", _study_grid(study).html())
    summary = paragraph(f"<b>{markup.escape(study.app)}</b>: {markup.escape(study.recommendation)}")
    return f"{summary}{image(study_picture(study))}{table}"


@blocks_of(AppRecording)
def _(recording: AppRecording) -> list[Block]:
    events = format_count(recording.events, "event")
    attribute = f"sparkstream_nb.get('{recording.app}').recording"
    return [f"{recording.app}: {events} came in. {attribute}.save('FILE.parquet') writes them."]


text.register(SplitApp, str)


@html.register
def _(split_app: SplitApp) -> str:
    return escaped_lines(str(split_app))
