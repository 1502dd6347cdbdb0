"""Results of `sparkstream run`: outputs, answers, errors, figures of feeds, sources and sinks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from ..charts.value_texts import format_count
from ..errors import Misuse, nearest

if TYPE_CHECKING:
    from ..app import App, FeedReport
    from ..plan import Plan
    from ..sinks.delivery import SinkFigures
    from ..sources.intake import SourceFigures


def list_outputs(plan: Plan) -> list[str]:
    """The streams that a query writes to, defined or not, in the order of the plan, without inner streams."""
    targets = {q.output.target.id for q in plan.queries}
    return [s for s, d in plan.streams.items() if "#" not in s and (d.kind == "inferred" or s in targets)]


def check_outputs(plan: Plan, streams: Sequence[str]) -> None:
    """Raises `Misuse` for a stream of `--output` that no query writes to."""
    outputs = list_outputs(plan)
    for stream in streams:
        if stream not in outputs:
            what = "no query writes to" if stream in plan.streams else f"{plan.name or 'the app'} has no stream"
            raise Misuse(nearest(f"--output: {what} '{stream}'", stream, outputs))


def print_results(app: App, options: Any) -> None:
    """Prints outputs, answers, errors, and the figures of sources and sinks, which have sent all by then."""
    counts = app.stats().outputs
    for stream in options.output or ([] if options.no_output else list_outputs(app.plan)):
        rows = app.output(stream, last=options.last, limit=options.last)
        total = counts.get(stream, 0)
        print(f"\n{stream}" + (f", the last {len(rows):,} of {total:,}" if total > len(rows) else ""))
        print(rows)
    for query in options.query:
        print(f"\n{query}\n{app.query(query, limit=options.limit)}")
    if len(app.errors):
        print(f"\nerrors\n{app.errors}")
    for source in app.stats().sources:
        print(format_source_stats(source))
    if app.deployment.connections.sinks:
        app.drain()
        for sink in app.stats().sinks:
            print(_format_sink_stats(sink))


def report_feed(app: App, report: FeedReport, out: TextIO | None = None) -> int:
    """Prints the report of a feed, on standard output if `out` is None; returns the exit code: 1 where all rows of a
    stream were rejected."""
    print(_format_feed_report(report), file=out)
    for note in report.notes:
        print(f"{app.name}: {note}", file=sys.stderr)
    for stream in report.unfit_streams:
        print(f"{app.name}: no row of the feed fits {stream}: all were rejected", file=sys.stderr)
    return 1 if report.unfit_streams else 0


def format_source_stats(source: SourceFigures) -> str:
    """`source Trades-kafka-1 (trades at localhost:9092): 1,200 messages, 3 rejected, 40 not read yet`."""
    words = [f"{source.received:,} messages"]
    words += [f"{n:,} {what}" for n, what in ((source.rejected, "rejected"), (source.lag, "not read yet")) if n]
    why = f": {source.last_error}" if source.last_error else ""
    return f"source {source.name} ({source.origin}): {', '.join(words)}{why}"


def _format_sink_stats(sink: SinkFigures) -> str:
    """`sink Alerts-http-1 (http://host/in): 3 sent, 1 failed, 2 still to be sent: the server answered 503`."""
    words = [f"{sink.sent:,} sent"]
    words += [f"{n:,} {what}" for n, what in ((sink.failed, "failed"), (sink.dropped, "dropped")) if n]
    if sink.pending:
        words.append(f"{sink.pending:,} still to be sent, which the next run continues with")
    why = f": {sink.last_error}" if sink.last_error else ""
    return f"sink {sink.name} ({sink.target}): {', '.join(words)}{why}"


def _format_feed_report(report: FeedReport) -> str:
    """`Trades: 3 events in 1.2 s, 3 events/s, 1 row rejected`; why is among the errors."""
    events = report.rows - report.rejected
    words = [f"{format_count(events, 'event')} in {report.seconds:.1f} s", f"{report.events_per_second:,.0f} events/s"]
    if report.rejected:
        words.append(f"{format_count(report.rejected, 'row')} rejected")
    return f"{report.stream}: {', '.join(words)}"
