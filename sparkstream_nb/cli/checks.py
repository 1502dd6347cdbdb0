"""The commands that only look at apps' texts: `sparkstream check`, `explain`, `graph`, `audit`, `trace`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Misuse, NotInThisBuild, SparkStreamError, escape_controls
from ..option_values import names, stream_and_file
from ..options import CannotRead, add, add_reading, read_text, reading_of, write_text
from .app_texts import describe_error, many, text_of
from .commands import Commands
from .replays_shown import show_replays

if TYPE_CHECKING:
    from ..plan import Plan


@dataclass(frozen=True)
class _Checked:
    """An app's plan on one node, and the notes on it."""

    plan: Plan
    notes: list[str]


def _opener(options: Any) -> Callable[[str], _Checked]:
    """Compilation of apps with the deployment files of `--conf`, and without any."""
    from ..plan.open_names import compile_open
    from ..plan.remarks import notes

    variables = dict(options.param)
    surroundings = None
    if options.conf:
        from ..app.audit.checking import Surroundings  # it takes its time to load

        surroundings = Surroundings.of(variables, options.conf, options.allow_env)

    def open_app(path: str) -> _Checked:
        with text_of(path) as text:
            if surroundings is None:
                plan, names = compile_open(text, {"shardId": "node-1"}, variables)
            else:
                plan, names = surroundings.compile_text(text)
            return _Checked(plan, [f"note: {note}" for note in notes(plan, names)])

    return open_app


def _each(options: Any, one: Callable[[str], None]) -> int:
    """Run `one` for each app; its errors are printed, and the exit code is 1 then."""
    code = 0
    for path in options.apps:
        try:
            one(path)
        except Misuse:
            raise
        except SparkStreamError as e:
            print(describe_error(e), file=sys.stderr)
            code = 1
    return code


def add_checks(commands: Commands) -> None:
    """Add `sparkstream check`, `explain` and `graph`."""
    for name, run, what, example in (
        (
            "check",
            check,
            "Check apps' syntax, names, types and rules, and whether this build can run them.",
            "trades.siddhi",
        ),
        (
            "explain",
            explain,
            "Print apps' plans: where each part runs, and how routing affects each query.",
            "trades.siddhi --repair",
        ),
        (
            "graph",
            graph,
            "Print which parts of apps read and write which streams, and how routing affects each query.",
            "trades.siddhi --svg trades.svg",
        ),
    ):
        c = commands.add(name, run, what, example)
        c.add_argument("apps", metavar="APP.siddhi", nargs="+", help="the apps' texts; - is standard input")
        add(c, "--param", "--conf", "--allow-env")
        if name == "explain":
            c.add_argument(
                "--repair", action="store_true", help="print repairs that make each query right on several nodes"
            )
        if name != "check":
            c.add_argument("--svg", metavar="FILE", help="draw the app instead, into this file; - is standard output")


def check(options: Any) -> int:
    """`sparkstream check`. Parts that this build cannot run are printed; they are no mistakes: the exit code is 0."""
    from ..plan.gaps import found_so_far, what_cannot_run

    open_app = _opener(options)

    def one(path: str) -> None:
        try:
            checked_app = open_app(path)
        except NotInThisBuild as gap:
            print(f"{path}: {found_so_far(gap)}")
            return
        plan = checked_app.plan
        queries = f"{len(plan.queries):,} {'query' if len(plan.queries) == 1 else 'queries'}"
        summary = f"no mistakes found ({queries}, {many(len(plan.aggregations), 'aggregation')})"
        gaps = what_cannot_run(plan)
        print(f"{path}: {summary}{f', but this build cannot run {gaps}' if gaps else ''}")
        for note in checked_app.notes:
            print(f"{path}: {note}")

    return _each(options, one)


def explain(options: Any) -> int:
    """`sparkstream explain`."""
    from ..plan.reports.explain import explain as plan_text

    return _print_repair(options) if options.repair else _print_plans(options, plan_text)


def graph(options: Any) -> int:
    """`sparkstream graph`."""
    from ..lab.graph.graph_drawing import text as drawn
    from ..plan.reports.app_graph import graph_of

    return _print_plans(options, lambda plan: drawn(graph_of(plan)))


def _print_plans(options: Any, describe: Callable[[Plan], str]) -> int:
    """Prints each app's plan as `describe` writes it, or draws the apps, where `--svg` names a file."""
    if options.svg is not None:
        return _draw_app(options)
    open_app = _opener(options)

    def one(path: str) -> None:
        checked_app = open_app(path)
        _head(options, path)
        print("\n".join([describe(checked_app.plan), *checked_app.notes]))

    return _each(options, one)


def _head(options: Any, path: str) -> None:
    if len(options.apps) > 1:
        print(f"{path}:")


def _print_repair(options: Any) -> int:
    from ..app import repair
    from ..lab import connect

    connect()
    arguments = {"variables": dict(options.param), "conf": options.conf, "allow_env": options.allow_env}

    def one(path: str) -> None:
        with text_of(path) as text:
            proposal = repair(text, **arguments)
        _head(options, path)
        print("\n".join([str(proposal), *(f"note: {note}" for note in proposal.notes)]))

    return _each(options, one)


def _draw_app(options: Any) -> int:
    """The picture of one app."""
    from ..lab.graph.graph_drawing import svg
    from ..plan.reports.app_graph import graph_of

    if len(options.apps) != 1:
        raise Misuse("--svg draws one app")
    checked_app = _opener(options)(options.apps[0])
    for note in checked_app.notes:
        print(f"{options.apps[0]}: {note}", file=sys.stderr)
    _write_picture(options.svg, svg(graph_of(checked_app.plan)))
    return 0


def _write_picture(path: str, picture: str) -> None:
    """Writes an SVG element into a file; `-` is standard output. Raises `Misuse` where that cannot be."""
    picture = escape_controls(picture)
    if path == "-":
        print(picture)
        return
    try:
        Path(path).write_text(picture + "\n", encoding="utf-8")
    except OSError as e:
        raise Misuse(f"{path} cannot be written: {e.strerror}") from e


def add_trace(commands: Commands) -> None:
    """Add `sparkstream trace`."""
    what = "Print what a window holds over a feed, or a pattern's partial matches, or draw it."
    example = "trades.siddhi big --feed Trades=trades.csv --time at --svg big.svg"
    c = commands.add("trace", trace, what, example)
    c.add_argument("app", metavar="APP.siddhi", help="the app's text; - is standard input")
    c.add_argument("query", metavar="QUERY", nargs="?", help="a query or a named window (default: the only one)")
    c.add_argument(
        "--feed", action="append", default=[], type=stream_and_file, metavar="STREAM=FILE",
        help="the events, a .csv or .parquet file; may be given several times",
    )  # fmt: skip
    add_reading(c, apart="1 s")
    c.add_argument("--start", metavar="TIME", help="when the clock starts (default: with the first event)")
    c.add_argument("--until", metavar="TIME", help="when the trace ends (default: when no timer is awaited)")
    add(c, "--limit", help="only the first N events (200)")
    c.add_argument("--labels", type=names, metavar="A,B", help="attributes in the labels of events")
    add(c, "--param")
    add(c, "--allow-scripts")
    c.add_argument("--svg", metavar="FILE", help="draw it instead, into this file; - is standard output")


def trace(options: Any) -> int:
    """`sparkstream trace`."""
    from ..app.tracing.tracing import TraceOptions, trace_plan
    from ..lab.display import text as text_form
    from ..lab.drawings.trace_drawings import svg as draw_trace

    if not options.feed or any(not stream for stream, _ in options.feed):
        raise Misuse("sparkstream trace: name the events to trace the app with: --feed STREAM=FILE")
    how = TraceOptions.of(
        reading_of(options),
        options.start,
        options.until,
        options.limit,
        labels=options.labels,
        allow_scripts=options.allow_scripts,
    )
    from ..plan.open_names import compile_open

    with text_of(options.app) as text:
        plan, _ = compile_open(text, {"shardId": "node-1"}, dict(options.param))
        feed = {stream: Path(file) for stream, file in options.feed}
        plan_trace = trace_plan(plan, options.query, feed, how)
    if options.svg is not None:
        _write_picture(options.svg, draw_trace(plan_trace))
    else:
        print(text_form(plan_trace))
    return 0


def add_audit(commands: Commands) -> None:
    """Add `sparkstream audit`."""
    c = commands.add(
        "audit",
        audit,
        "Report how several nodes change the results of apps, why, and what to do about it. "
        "Exit code 1 where something depends on the node and is not accepted.",
        "apps/*.siddhi --html audit.html",
    )
    c.add_argument("apps", metavar="APP.siddhi", nargs="+", help="the apps' texts")
    c.add_argument(
        "--deployment",
        action="extend",
        nargs="+",
        default=[],
        metavar="FILE",
        help="the nodes' deployment.yaml files, or their folder; behind the apps; as --conf",
    )
    add(c, "--conf", "--allow-env")
    c.add_argument(
        "--feed",
        action="append",
        default=[],
        type=stream_and_file,
        metavar="STREAM=FILE",
        help="count the outputs that differ on two to four nodes, with a .csv or .parquet file; may be given several "
        "times",
    )
    add_reading(c)
    add(c, "--param")
    form = c.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--sarif", metavar="FILE", help="write SARIF 2.1.0 for code hosts into this file")
    c.add_argument("--html", metavar="FILE", help="write a page into this file")


def audit(options: Any) -> int:
    """`sparkstream audit`. Feeds that cannot be read and reports that cannot be written are errors of use."""
    from ..app.audit.audit_answers import FeedFiles
    from ..app.audit.auditing import AppAudit, AuditReport, as_json, as_sarif, audit_text
    from ..app.config.conf import DISTRIBUTED, HA, node_files
    from ..app.config.secrets import References
    from ..lab import connect
    from ..lab.drawings.text_tables import fit_terminal
    from ..lab.plans_shown import page

    connect()
    conf = [*options.deployment, *(options.conf or [])]
    references = References(dict(options.param), tuple(options.allow_env))
    files = node_files(conf, ("", HA, DISTRIBUTED), references) if conf else []
    feeds = FeedFiles(options.feed, reading_of(options))
    apps = []
    for path in options.apps:
        try:
            text = read_text(path)
        except SparkStreamError as e:
            apps.append(AppAudit(path, error=e))
            continue
        try:
            with show_replays(f"{path}: the nodes are replayed; Ctrl-C ends it") if feeds.files else nullcontext():
                apps.append(audit_text(path, text, files, dict(options.param), feeds))
        except SparkStreamError as e:
            raise Misuse(str(e)) from None
    unknown = next((s for s, _ in feeds.files if not any(s in a.fed for a in apps)), None)
    if unknown is not None and any(a.error is None for a in apps):
        raise Misuse(f"--feed: no app has a stream '{unknown}'")
    report = AuditReport(apps)
    try:
        if options.sarif is not None:
            write_text(options.sarif, as_sarif(report) + "\n")
        if options.html is not None:
            write_text(options.html, escape_controls(page(report)))
    except CannotRead as e:
        raise Misuse(str(e)) from None
    with fit_terminal():
        print(as_json(report) if options.json else report)
    if sys.stdout.isatty() and not options.json and options.html is None:
        print("--html FILE writes a page with these tables", file=sys.stderr)
    return report.exit_code
