"""Apps that run on the command line: deployed, fed, and closed at the end."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ..app import App, check_feed, deploy
from ..app.deployment.app_folder import document_home, document_name
from ..app.deployment.fed import FedBefore
from ..app.running.first_rows import check_first_rows
from ..app.running.sent import columns_of_streams
from ..app.running.source_reading import AS_IT_IS, readings_of
from ..lab import connect
from ..lab.card import warnings_of
from ..options import deployment_of, play_of, reading_of
from ..plan import Plan, compile_retrieval
from ..sources.recordings import RecordingFile
from ..synthetic.events import GeneratedEvents
from .generated_feeds import deployment_seed, generate_feeds, times_of
from .results import check_outputs, print_results, report_feed

_PATIENCE_SECONDS = 1.0
"""Time after an interrupt in which an app ends without a word."""


def run_plan(plan: Plan, options: Any) -> int:
    """Runs an app by the options of `sparkstream run`; returns the exit code. Errors of feeds and options that can be
    found before Spark starts are reported before."""
    connect()
    check_feeds(plan, options)
    generated_events = generate_feeds(plan, options)
    _check_outputs_and_queries(plan, options)
    app = _deploy(plan, options)
    _print_notes(app, options)
    with close_at_end(app):
        code = _feed_app(app, options, generated_events)
        sources = app.deployment.connections.sources
        if (sources and sources.read_outside) or options.seconds:
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
    check_outputs(plan, options.output)
    for query in options.query:
        compile_retrieval(query, plan)


def _deploy(plan: Plan, options: Any) -> App:
    """The app, deployed under its name, else that of its file."""
    how = {**deployment_of(options), "seed": deployment_seed(options)}
    name = options.name or plan.name
    if name is None:
        file = Path("app" if options.app == "-" else options.app)
        name, how["home"] = document_name(file), how["home"] or document_home(file)
    return deploy(plan.text, name=name, **how)


def _print_notes(app: App, options: Any) -> None:
    """Prints notes on the app's former state, on its nodes, and on feeds that are not merged."""
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
    feed_history = FedBefore()
    again = [f for f in files if feed_history.has(app.home, *f)]
    sources: dict[str, list[Path]] = {}
    for stream, path in files:
        sources.setdefault(stream, []).append(path)
    report = app.feed(sources, **reading_of(options), **play_of(options))
    if report.events:
        for stream, path in files:
            feed_history.add(app.home, stream, path)
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
