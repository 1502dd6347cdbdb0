"""An app that runs: `sparkstream run`."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..option_values import positive, stream_and_count, stream_and_file
from ..options import RANDOM_RATE, add, add_deployment, add_reading, deployment_of, play_of, reading_of
from .app_texts import compile_plan, many
from .commands import Commands
from .generating import deployment_seed, generate_feeds, times_of

if TYPE_CHECKING:
    from ..app import App, FeedReport
    from ..sinks.delivery import SinkFigures
    from ..sources.intake import SourceFigures


def add_run(commands: Commands) -> None:
    """Add `sparkstream run`."""
    c = commands.add(
        "run",
        run_app,
        "Deploy an app, run its feeds to their end, and print the output; follow its sources.",
        "trades.siddhi --nodes 3 --feed Prices=prices.csv --time timestamp",
    )
    c.add_argument("app", metavar="APP.siddhi", help="the app's text; - is standard input")
    add(c, "--name")
    c.add_argument(
        "--feed",
        action="append",
        default=[],
        type=stream_and_file,
        metavar="STREAM=FILE",
        help="feed a stream with a .csv or .parquet file; several, of one stream or of many, are merged by --time; a "
        "recording needs no STREAM=",
    )
    add_reading(c)
    add(c, "--speed")
    add(c, "--rate", help=RANDOM_RATE)
    add(c, "--disorder")
    c.add_argument(
        "--random",
        action="append",
        default=[],
        type=stream_and_count,
        metavar="STREAM=N",
        help="feed a stream with N generated events, after the files; may be given for several streams, whose events "
        "are merged by time",
    )
    add_deployment(
        c, seed="a whole number: the seed of --random, and in mode ha of loops and random faults (default: 0)"
    )
    c.add_argument(
        "--query",
        action="append",
        default=[],
        metavar="QUERY",
        help="an on-demand query to run at the end; may be given several times",
    )
    add(c, "--last", default=10, help="only the last N events of a stream (default: 10)")
    add(c, "--limit", default=1000, help="rows of a query's answer to print (default: 1,000)")
    c.add_argument(
        "--seconds",
        type=positive,
        metavar="N",
        help="how long the app runs (default: one with sources until Ctrl-C or SIGTERM, others until their feeds end)",
    )


def run_app(options: Any) -> int:
    """`sparkstream run`. Errors of app, feeds and options that can be found before Spark starts are reported before."""
    plan = compile_plan(options)
    from ..app import check_feed, deploy
    from ..app.deployment.app_folder import document_home, document_name
    from ..app.running.sent import columns_of_streams
    from ..app.running.source_reading import AS_IT_IS, readings_of
    from ..lab import connect
    from ..lab.card import warnings_of
    from ..plan import compile_retrieval
    from ..sources.recordings import RecordingFile

    connect()
    fed = {s: plan.schema(s) for s, _ in options.feed if s in plan.streams}
    columns_of_streams(fed, dict(options.map))  # its error names the option
    readings = readings_of(fed, **reading_of(options))
    recordings = [path for stream, path in options.feed if not stream]
    for stream, path in options.feed:
        if stream:
            check_feed(plan, stream, Path(path), readings.get(stream, AS_IT_IS))
    for path in recordings:
        RecordingFile.open(Path(path)).match({s: d.source.schema for s, d in plan.streams.items()})
    generated = generate_feeds(plan, options)
    for query in options.query:
        compile_retrieval(query, plan)
    how = {**deployment_of(options), "seed": deployment_seed(options)}
    name = options.name or plan.name
    if name is None:
        file = Path("app" if options.app == "-" else options.app)
        name, how["home"] = document_name(file), how["home"] or document_home(file)
    app = deploy(plan.text, name=name, **how)
    notes = [f"{app.redeployed} --fresh starts without it."] if app.redeployed and not options.fresh else []
    notes += [*app.emptied, *warnings_of(app)]
    files = [feed for feed in options.feed if feed[0]]
    merged = len(files) > 1 and options.time is not None
    if len(options.feed) > 1 and not (merged and not recordings):
        notes.append(_one_after_the_other([(stream or "all streams", path) for stream, path in options.feed]))
    for note in notes:
        print(f"{name}: {note}", file=sys.stderr)
    try:
        for path in recordings:
            _report_feed(app, app.feed(Path(path), **play_of(options)))
        for group in [files] if merged else [[feed] for feed in files]:
            _feed_files(app, [(stream, Path(path)) for stream, path in group], options)
        if generated:
            # --rate was the rate of their event times, and is not their pace.
            play = {**play_of(options), "rate": None}
            frames = {stream: events.frame for stream, events in generated.items()}
            _report_feed(app, app.feed(frames, time=times_of(generated), **play))
        if app.deployment.sources or options.seconds:
            follow(app, options.seconds)
        app.flush()
        _print_results(app, options)
    finally:
        app.stop()
        app.close()
    return 0


def _feed_files(app: App, files: Sequence[tuple[str, Path]], options: Any) -> None:
    """Feeds files, merged by event time if there are several, and prints the report."""
    from ..app.deployment.fed import FedBefore

    fed = FedBefore()
    again = [f for f in files if fed.has(app.home, *f)]
    sources: dict[str, list[Path]] = {}
    for stream, path in files:
        sources.setdefault(stream, []).append(path)
    report = app.feed(sources, **reading_of(options), **play_of(options))
    if report.events:
        for stream, path in files:
            fed.add(app.home, stream, path)
    for stream, path in again if report.events else ():
        twice = "its events are counted twice. --fresh starts from scratch."
        print(f"{app.name}: {path} was fed to {stream} before: {twice}", file=sys.stderr)
    _report_feed(app, report)


def _report_feed(app: App, report: FeedReport) -> None:
    print(_format_feed_report(report))
    for note in report.notes:
        print(f"{app.name}: {note}", file=sys.stderr)


def _print_results(app: App, options: Any) -> None:
    """Prints outputs, answers, errors, and the figures of sources and sinks, which have sent all by then."""
    outputs = app.stats().outputs
    for stream, definition in app.plan.streams.items():
        if definition.kind == "inferred":
            found = app.output(stream, last=options.last, limit=options.last)
            there = outputs.get(stream, 0)
            print(f"\n{stream}" + (f", the last {len(found):,} of {there:,}" if there > len(found) else ""))
            print(found)
    for query in options.query:
        print(f"\n{query}\n{app.query(query, limit=options.limit)}")
    if len(app.errors):
        print(f"\nerrors\n{app.errors}")
    for source in app.stats().sources:
        print(format_source_stats(source))
    if app.deployment.sinks:
        app.drain()
        for sink in app.stats().sinks:
            print(_format_sink_stats(sink))


def _one_after_the_other(feeds: Sequence[tuple[str, str]]) -> str:
    """The warning that several feeds are not merged by event time."""
    named = ", then ".join(f"{stream} from {path}" for stream, path in feeds)
    return (
        f"the feeds are not merged by time: {named}, each to its end. Patterns, joins, windows, and "
        "aggregations without `aggregate by`, do not see events of several files in the order of their times. --time "
        "names the column of event times (STREAM=COLUMN for each stream), and merges them."
    )


def follow(app: App, seconds: int | None) -> None:
    """Let an app run, for `seconds` or until it is ended."""
    ended = threading.Event()
    until = "for Ctrl-C" if seconds is None else f"{seconds} s, or for Ctrl-C"
    print(f"{app.name} runs; it waits {until}.", file=sys.stderr)
    former = signal.signal(signal.SIGTERM, lambda *_: ended.set())
    try:
        ended.wait(seconds)
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, former)


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
    taken = report.rows - report.rejected
    words = [f"{many(taken, 'event')} in {report.seconds:.1f} s", f"{report.events_per_second:,.0f} events/s"]
    if report.rejected:
        words.append(f"{many(report.rejected, 'row')} rejected")
    return f"{report.stream}: {', '.join(words)}"
