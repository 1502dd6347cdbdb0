"""An app that runs: `sparkstream run`."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..option_values import positive, stream_and_count, stream_and_file
from ..options import RANDOM_RATE, add, add_deployment, add_reading, deployment_of, play_of, reading_of
from .app_texts import compile_plan
from .commands import Commands
from .generate_command import deployment_seed, generate_feeds, times_of
from .results import check_outputs, print_results, report_feed

if TYPE_CHECKING:
    from ..app import App
    from ..plan import Plan
    from ..synthetic.events import GeneratedEvents


_PATIENCE_SECONDS = 1.0
"""Time after an interrupt in which an app ends without a word."""


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
    output_options = c.add_mutually_exclusive_group()
    output_options.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="STREAM",
        help="print the output of this stream; may be given several times (default: every stream that a query writes)",
    )
    output_options.add_argument("--no-output", action="store_true", help="print no output")
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
    from ..lab import connect

    connect()
    check_feeds(plan, options)
    generated_events = generate_feeds(plan, options)
    _check_outputs_and_queries(plan, options)
    app = _deploy(plan, options)
    _print_notes(app, options)
    with close_at_end(app):
        code = _feed_app(app, options, generated_events)
        if app.deployment.connections.sources or options.seconds:
            follow(app, options.seconds)
        app.flush()
        print_results(app, options)
    return code


@contextmanager
def close_at_end(app: App) -> Iterator[None]:
    """Stops and closes the app at the end of the block. Where an interrupt waits for events under way, a line on
    standard error says so."""
    line = f"{app.name}: events that are under way are processed first; Ctrl-C once more ends at once"
    notice = threading.Timer(_PATIENCE_SECONDS, partial(print, line, file=sys.stderr, flush=True))
    notice.daemon = True
    try:
        yield
    except KeyboardInterrupt:
        notice.start()
        raise
    finally:
        try:
            app.stop()
            app.close()
        finally:
            notice.cancel()


def check_feeds(plan: Plan, options: Any) -> None:
    """Raises SparkStreamError for a feed that the app would refuse."""
    from ..app import check_feed
    from ..app.running.first_rows import check_first_rows
    from ..app.running.sent import columns_of_streams
    from ..app.running.source_reading import AS_IT_IS, readings_of
    from ..sources.recordings import RecordingFile

    schemas = {s: plan.schema(s) for s, _ in options.feed if s in plan.streams}
    columns_of_streams(schemas, dict(options.map))  # its error names the option
    readings = readings_of(schemas, **reading_of(options))
    for stream, path in options.feed:
        if stream:
            shape = check_feed(plan, stream, Path(path), readings.get(stream, AS_IT_IS))
            check_first_rows(Path(path), shape)
        else:
            RecordingFile.open(Path(path)).match({s: d.source.schema for s, d in plan.streams.items()})


def _check_outputs_and_queries(plan: Plan, options: Any) -> None:
    """Raises SparkStreamError for an output or a query that the app cannot give."""
    from ..plan import compile_retrieval

    check_outputs(plan, options.output)
    for query in options.query:
        compile_retrieval(query, plan)


def _deploy(plan: Plan, options: Any) -> App:
    """The app, deployed under its name, else that of its file."""
    from ..app import deploy
    from ..app.deployment.app_folder import document_home, document_name

    how = {**deployment_of(options), "seed": deployment_seed(options)}
    name = options.name or plan.name
    if name is None:
        file = Path("app" if options.app == "-" else options.app)
        name, how["home"] = document_name(file), how["home"] or document_home(file)
    return deploy(plan.text, name=name, **how)


def _print_notes(app: App, options: Any) -> None:
    """Prints notes on the app's former state, on its nodes, and on feeds that are not merged."""
    from ..lab.card import warnings_of

    notes = [f"{app.redeployed} --fresh starts without it."] if app.redeployed and not options.fresh else []
    notes += [*app.emptied, *warnings_of(app)]
    if len(options.feed) > 1 and not (_is_merged(options) and all(stream for stream, _ in options.feed)):
        notes.append(_one_after_the_other([(stream or "all streams", path) for stream, path in options.feed]))
    for note in notes:
        print(f"{app.name}: {note}", file=sys.stderr)


def _is_merged(options: Any) -> bool:
    """True if several files are fed by event time, as one feed."""
    return options.time is not None and sum(1 for stream, _ in options.feed if stream) > 1


def _feed_app(app: App, options: Any, generated_events: Mapping[str, GeneratedEvents]) -> int:
    """Feeds recordings, files, and generated events; returns the exit code."""
    code = 0
    files = [(stream, Path(path)) for stream, path in options.feed if stream]
    for stream, path in options.feed:
        if not stream:
            code |= report_feed(app, app.feed(Path(path), **play_of(options)))
    for group in [files] if _is_merged(options) else [[feed] for feed in files]:
        code |= _feed_files(app, group, options)
    if generated_events:
        # --rate was the rate of their event times, and is not their pace.
        play = {**play_of(options), "rate": None}
        frames = {stream: events.frame for stream, events in generated_events.items()}
        code |= report_feed(app, app.feed(frames, time=times_of(generated_events), **play))
    return code


def _feed_files(app: App, files: Sequence[tuple[str, Path]], options: Any) -> int:
    """Feeds files, merged by event time if there are several, and prints the report. Returns the exit code."""
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
    return report_feed(app, report)


def _one_after_the_other(feeds: Sequence[tuple[str, str]]) -> str:
    """The warning that several feeds are not merged by event time."""
    sequence = ", then ".join(f"{stream} from {path}" for stream, path in feeds)
    return (
        f"the feeds are not merged by time: {sequence}, each to its end. Patterns, joins, windows, and "
        "aggregations without `aggregate by`, do not see events of several files in the order of their times. --time "
        "names the column of event times (STREAM=COLUMN for each stream), and merges them."
    )


def follow(app: App, seconds: int | None) -> None:
    """Let an app run, for `seconds` or until it is ended."""
    end_event = threading.Event()
    until = "for Ctrl-C" if seconds is None else f"{seconds} s, or for Ctrl-C"
    print(f"{app.name} runs; it waits {until}.", file=sys.stderr)
    previous_handler = signal.signal(signal.SIGTERM, lambda *_: end_event.set())
    try:
        end_event.wait(seconds)
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, previous_handler)
