"""The command `sparkstream`: check, explain, graph, audit, test, fmt, replay, run, record, generate, split, query, ...

Exit codes: 0 success; 1 the app is wrong, or a case or run failed; 2 the command line is wrong; 130 interrupted.
Results go to standard output, short error messages to standard error.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TextIO

from ._version import __version__
from .cli_checks import add_trace, audit, check, describe_error, explain, graph, many, text_of, trace
from .cli_generate import add_generate_options, deployment_seed, generate_feeds, generate_file, times_of
from .errors import Misuse, SparkStreamError, nearest
from .option_values import attribute_and_share, port, positive, stream_and_count, stream_and_file
from .options import (
    RANDOM_RATE,
    CannotRead,
    HelpAsked,
    Options,
    add,
    add_deployment,
    add_reading,
    deployment_of,
    play_of,
    read_text,
    reading_of,
    write_text,
)

if TYPE_CHECKING:
    from .app import App, FeedReport
    from .plan import Plan
    from .sinks.delivery import SinkFigures
    from .sources.intake import SourceFigures

Case = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    _in_utf8()
    try:
        options = parser().parse_args(argv)
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except HelpAsked as asked:
        print(str(asked).rstrip())
        return 0
    except Misuse as e:
        text = str(e)
        print(text if text.startswith("sparkstream") else f"sparkstream: {text}", file=sys.stderr)
        return 2
    except SparkStreamError as e:
        print(describe_error(e), file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # `| head` has read enough
        return 0
    except KeyboardInterrupt:
        print("sparkstream: interrupted", file=sys.stderr)
        return 130


def _in_utf8() -> None:
    """Let this process read and write UTF-8, as files are: the encoding of a machine's language, which pipes have on
    Windows, lacks signs that are printed. An encoding that the user sets is left.
    """
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and "PYTHONIOENCODING" not in os.environ:
            if stream.encoding.lower().replace("-", "") != "utf8":
                stream.reconfigure(encoding="utf-8")


def parser() -> Options:
    """The command line."""
    p = Options(prog="sparkstream", description="Run SiddhiQL apps on simulated nodes, on Spark.")
    p.add_argument("--version", action="version", version=f"sparkstream {__version__}")
    sub = p.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[Any], int], what: str) -> Options:
        c: Options = sub.add_parser(name, help=what, description=what)
        c.set_defaults(run=run)
        c.example = f"sparkstream {name} {_EXAMPLES[name]}"
        return c

    for name, run, what in (
        ("check", check, "Check apps' syntax, names, types and rules, and whether this build can run them."),
        ("explain", explain, "Print apps' plans: where each part runs, and how routing affects each query."),
        ("graph", graph, "Print which parts of apps read and write which streams, and how routing affects each query."),
    ):
        c = command(name, run, what)
        c.add_argument("apps", metavar="APP.siddhi", nargs="+", help="the apps' texts; - is standard input")
        add(c, "--param", "--conf", "--allow-env")
        if name == "explain":
            c.add_argument(
                "--repair", action="store_true", help="print repairs that make each query right on several nodes"
            )
        if name != "check":
            c.add_argument("--svg", metavar="FILE", help="draw the app instead, into this file; - is standard output")

    c = command("trace", trace, "Print what a window holds over a feed, or a pattern's partial matches, or draw it.")
    add_trace(c)

    c = command("audit", audit, "Report how several nodes change the results of apps, why, and what to do about it. "
                "Exit code 1 where something depends on the node and is not accepted.")  # fmt: skip
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

    c = command("test", test, "Run the tests of apps in test files, without sources, sinks, databases, Spark and Java. "
                "Exit code 1 where an output differs, 2 where a test file or an app is wrong.")  # fmt: skip
    c.add_argument("paths", metavar="PATH", nargs="*", help=".siddhitest files, and folders with such files")
    c.add_argument("--examples", metavar="FOLDER", help="write the example apps and their tests into this new folder")
    c.add_argument("-k", metavar="TEXT", help="only tests with this text in the file's, the test's or the run's name")
    c.add_argument("--quiet", action="store_true", help="print only what did not pass, and the numbers")
    c.add_argument("--junit", metavar="FILE", help="write the results into this file as JUnit XML")
    c.add_argument("--update", action="store_true", help="write the actual results into the test files, for review")
    c.add_argument(
        "--coverage",
        action="store_true",
        help="report queries, pattern states and filter branches that no test reached",
    )
    c.add_argument(
        "--on", choices=("inline", "spark"), default="inline", metavar="WHAT", help="inline (default), or spark"
    )
    add(c, "--allow-scripts")

    c = command("fmt", fmt, "Format apps in place: layout only, comments are kept.")
    c.add_argument("files", metavar="FILE", nargs="+", help="an app's text; - is standard input and output")
    c.add_argument(
        "--check", action="store_true", help="change nothing; exit code 1 and a line for each file that would change"
    )

    c = command("replay", replay, "Run cases on a virtual clock, and write each case with its actual results.")
    c.add_argument("cases", metavar="CASES.jsonl", nargs="+")
    c.add_argument(
        "--on",
        choices=("engine", "spark"),
        default="engine",
        metavar="WHAT",
        help="engine, the node engine alone (default), or spark",
    )
    c.add_argument(
        "--out",
        metavar="RESULTS.jsonl",
        help="output file: each case with `got` or `failure`, one per line; - is standard output",
    )

    add(c, "--limits")

    c = command("run", run_app, "Deploy an app, run its feeds to their end, and print the output; follow its sources.")
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

    what = "Generate events of a stream by a seed, and write them into a file."
    add_generate_options(command("generate", generate_file, what))

    c = command("record", record_app, "Record what an app's sources read into a file, without computing anything.")
    c.add_argument("app", metavar="APP.siddhi", help="the app's text; - is standard input")
    c.add_argument("--into", metavar="FOLDER", required=True, help="the folder for the recording")
    c.add_argument(
        "--sample",
        action="append",
        default=[],
        type=attribute_and_share,
        metavar="ATTRIBUTE=SHARE",
        help="only a share of an attribute's values, each with all of its events, such as card=1%%",
    )
    c.add_argument(
        "--mask",
        action="append",
        default=[],
        metavar="ATTRIBUTE",
        help="replace an attribute's values by a hash under a key that is made and forgotten; equal ones stay equal",
    )
    c.add_argument("--seconds", type=positive, metavar="N", help="how long (default: until Ctrl-C or SIGTERM)")
    add(c, "--name", "--param", "--allow", "--allow-env")

    c = command("split", split_app, "Split an app by @dist into apps of their own, with Kafka topics between them.")
    c.add_argument("app", metavar="APP.siddhi", help="the app's text; - is standard input")
    c.add_argument("--kafka", metavar="HOST:PORT", required=True, help="the brokers, with commas")
    c.add_argument("--into", metavar="DIR", help="write the text of each app into a .siddhi file of this folder")
    c.add_argument("--make-topics", action="store_true", help="make the topics that do not exist; needs --allow")
    add(c, "--name", "--param")
    add(c, "--allow", help="kafka=HOST:PORT: the brokers at which topics may be made")

    c = command("query", query, "Answer an on-demand query from stored aggregations, without running the app.")
    c.add_argument("app", metavar="APP.siddhi", help="the app's text")
    c.add_argument("query", metavar="QUERY", help="such as \"from Prices within ... per 'days' select *\"")
    add(c, "--by-shard", "--as-wso2")
    add(c, "--limit", default=1000, help="rows to print (default: 1,000)")
    add(c, "--conf", "--store", "--home", "--name", "--param", "--allow-env")
    add(c, "--allow", help=_DATABASES)

    _add_store(command("store", store, "Look after stored aggregations: shards, and tables from before partitioning."))

    c = command("apps", apps, "List the apps that were deployed here and the disk space that they use, or remove some.")
    c.add_argument(
        "action",
        nargs="?",
        choices=("remove", "empty-trash"),
        metavar="remove|empty-trash",
        help="remove: the apps' folders, for good; empty-trash: state that earlier deployments dropped",
    )
    c.add_argument("names", nargs="*", metavar="NAME", help="the apps; of empty-trash all, where none is named")
    add(c, "--home", help="the app's folder, where it was deployed into one of its own")

    what = "Run a manager of a distributed deployment: it takes apps over HTTP, and from a directory."
    _add_manager(command("manager", manager, what))

    c = command("bench", bench, "Measure the throughput of workloads; prints one JSON line for each.")
    c.add_argument(
        "workloads", metavar="WORKLOADS.json", help="a JSON list of {name, app}, each app with one input stream"
    )
    c.add_argument("events", metavar="EVENTS.csv", help="the stream's events, without header, the time in ms last")
    c.add_argument(
        "--on",
        choices=("engine", "spark"),
        default="engine",
        metavar="WHAT",
        help="engine, one node alone (default), or spark",
    )
    c.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these workloads only")
    c.add_argument("--batch", type=positive, metavar="ROWS", help="events of a micro-batch")
    return p


_EXAMPLES = {
    "check": "trades.siddhi",
    "explain": "trades.siddhi --repair",
    "graph": "trades.siddhi --svg trades.svg",
    "trace": "trades.siddhi big --feed Trades=trades.csv --time at --svg big.svg",
    "audit": "apps/*.siddhi --html audit.html",
    "test": "tests --junit results.xml",
    "fmt": "trades.siddhi",
    "replay": "cases.jsonl --out results.jsonl",
    "run": "trades.siddhi --nodes 3 --feed Prices=prices.csv --time timestamp",
    "generate": "t.siddhi --stream Prices --rows 10000 --seed 7 --out prices.csv",
    "record": "trades.siddhi --into kept --mask card --allow kafka=localhost:9092",
    "split": "trades.siddhi --kafka localhost:9092 --into apps",
    "query": """t.siddhi "from Totals within '2024-**-**' per 'days' select *\"""",
    "store": "shards trades.siddhi",
    "apps": "remove Trades",
    "manager": "--conf manager-1.yaml --allow-env ADMIN_PASSWORD --watch apps",
    "bench": "workloads.json events.csv --only filter",
}
"""The arguments of each command in the example of its help."""


def _add_store(c: Options) -> None:
    c.add_argument("action", choices=_UPKEEP, metavar="ACTION", help="; ".join(f"{a}: {w}" for a, w in _UPKEEP.items()))
    c.add_argument("app", metavar="APP.siddhi", help="the app's text")
    c.add_argument("shards", metavar="SHARD", nargs="*", help="the shard ids that the action is for")
    c.add_argument("--from", dest="origin", metavar="FROM", help="rebuild: a finer duration, a .csv or a .parquet file")
    add(c, "--time", help="rebuild: the file's column of event times, for an aggregation without 'aggregate by'")
    c.add_argument("--aggregation", metavar="NAME", help="this aggregation only")
    c.add_argument("--dry-run", action="store_true", help="say what would be done, without doing it")
    add(c, "--conf", "--store", "--home", "--name", "--timezone", "--param", "--allow-env")
    add(c, "--allow", help=_DATABASES)


_DATABASES = "a database that the app's text may name by its address: jdbc=postgresql://HOST:PORT/DATABASE or file=DIR"
_UPKEEP = {
    "shards": "list them with their rows",
    "rename": "OLD NEW, give the rows of one shard to another, which may have some",
    "delete": "SHARD, delete its rows",
    "add-shard-id": "SHARD, add SHARD_ID to tables that lack it",
    "drop": "drop the tables",
    "rebuild": "make coarse durations of a finer one, or, with --from FILE, all of the events, as rows of SHARD",
}


def _add_manager(c: Options) -> None:
    add(c, "--conf", required=True, help="the manager's deployment.yaml; then, with --conf for each, or as their "
        "folder, the files of the rest of its deployment")  # fmt: skip
    c.add_argument("--host", metavar="HOST", help="where to listen (default: 127.0.0.1); elsewhere only with TLS")
    c.add_argument("--port", type=port, metavar="PORT", help="0: any free port (default: the file's)")
    c.add_argument("--tls-cert", metavar="FILE", help="listen with TLS, with this certificate (PEM)")
    c.add_argument("--tls-key", metavar="FILE", help="the certificate's key, without a password (PEM)")
    c.add_argument("--watch", metavar="DIR", help="deploy the .siddhi files of this directory, as they come and go")
    add(c, "--allow-env", help="an environment variable that the password of the deployment file may be in")


def manager(options: Any) -> int:
    """`sparkstream manager`."""
    from .app.manager.manager_command import ManagerOptions, run_manager

    o = options
    return run_manager(ManagerOptions(o.conf, o.host, o.port, o.tls_cert, o.tls_key, o.watch, o.allow_env))


def store(options: Any) -> int:
    """`sparkstream store`. No node of the app may run meanwhile."""
    from .app.config.grants import Grants
    from .app.config.secrets import References
    from .app.deployment.app_folder import default_home
    from .app.stored.maintenance import StoredApp, open_maintenance
    from .app.stored.rebuild_stored import EventFile

    file_given = options.origin is not None and Path(options.origin).suffix in (".csv", ".parquet")
    expected = {"rename": 2, "delete": 1, "add-shard-id": 1}.get(options.action, 0)
    if options.action == "rebuild" and file_given:
        expected = min(len(options.shards), 1)
    if options.action != "rebuild" and (options.origin, options.time) != (None, None):
        raise Misuse("--from and --time are for sparkstream store rebuild")
    if len(options.shards) != expected:
        raise Misuse(f"sparkstream store {options.action} takes {many(expected, 'shard id')} after the app")
    text, references = read_text(options.app), References(dict(options.param), tuple(options.allow_env))
    name = options.name or _compile_plan(options).name or Path(options.app).stem
    home = default_home(name) if options.home is None else Path(options.home)
    file = home / "store.duckdb" if options.store is None else Path(options.store)
    conf = [Path(p) for p in options.conf or ()]
    app = StoredApp(text, file, conf, references, options.timezone, Grants.of(options.allow))
    with open_maintenance(app, options.aggregation) as found:
        if options.action == "shards":
            lines = [f"{a}: shard '{s}', {many(n, 'row')}" for a, s, n in found.shards()] or ["no rows are stored"]
        elif options.action == "rename":
            lines = found.rename(*options.shards, dry_run=options.dry_run)
        elif options.action == "delete":
            lines = found.delete(*options.shards, dry_run=options.dry_run)
        elif options.action == "add-shard-id":
            lines = found.add_shard_id(*options.shards, dry_run=options.dry_run)
        elif options.action == "drop":
            lines = found.drop(dry_run=options.dry_run)
        elif file_given:
            log = EventFile(Path(options.origin), options.time)
            lines = found.rebuild_from(log, *options.shards, dry_run=options.dry_run)
        else:
            lines = found.rebuild(options.origin, dry_run=options.dry_run)
    print("\n".join([*lines, *(["nothing was changed (--dry-run)"] if options.dry_run else [])]))
    return 0


def query(options: Any) -> int:
    """`sparkstream query`. It only reads; nodes that write to a database may run meanwhile."""
    from dataclasses import replace

    from .app.config.grants import Grants
    from .app.config.secrets import References
    from .app.deployment.app_folder import default_home, document_home
    from .app.stored.maintenance import StoredApp
    from .app.stored.stored_queries import query_stored
    from .lab import connect

    connect()
    text, references = read_text(options.app), References(dict(options.param), tuple(options.allow_env))
    name = options.name or _compile_plan(options).name
    home = Path(options.home or (document_home(Path(options.app)) if name is None else default_home(name)))
    file = home / "store.duckdb" if options.store is None else Path(options.store)
    conf = [Path(p) for p in options.conf or ()]
    app = StoredApp(text, file, conf, references, grants=Grants.of(options.allow))
    found = query_stored(app, options.query, limit=options.limit, as_wso2=options.as_wso2)
    print(replace(found, beside=options.by_shard))
    return 0


def split_app(options: Any) -> int:
    """`sparkstream split`. Without --into and --make-topics it prints the apps and topics."""
    from .app.audit.splitting import split

    file = Path("app" if options.app == "-" else options.app)
    text = read_text(options.app)  # once: standard input is gone then
    name = options.name or _compile_plan(options, text).name or file.stem
    found = split(text, kafka=options.kafka, name=name, variables=dict(options.param))
    files = [] if options.into is None else found.write(options.into)
    made = found.make_topics(options.allow) if options.make_topics else None
    print(found)
    if made is not None:
        print(f"{many(len(made), 'topic')} made, {len(found.topics) - len(made)} there before")
    allowed = " ".join(f"--allow kafka={broker}" for broker in found.brokers.split(","))
    for path in files:
        print(f"sparkstream run {shlex.quote(str(path))} {allowed}")
    return 0


def _compile_plan(options: Any, text: str | None = None) -> Plan:
    """The plan of `options.app`, or of its `text` if that was read. With deployment files (`--conf`), which define
    `refs`, the plan on the first node. Raises `SiddhiError` with the text."""
    compile_text = _compiler(options)
    if text is not None:
        return compile_text(text)
    with text_of(options.app) as read:
        return compile_text(read)


def _compiler(options: Any) -> Callable[[str], Plan]:
    """Compilation of a text with the deployment files of `--conf`, and without any."""
    from .plan import compile_app

    variables = dict(options.param)
    if getattr(options, "conf", None):
        from .app.audit.checking import Surroundings  # it takes its time to load

        around = Surroundings.of(variables, options.conf, options.allow_env)
        return lambda text: around.compile_text(text)[0]
    # A deployment gives every node a shard id; the app is checked as if it ran on one of them.
    return lambda text: compile_app(text, {"shardId": "node-1"}, variables)


def test(options: Any) -> int:
    """`sparkstream test`."""
    from .testing.command import run_test_command, write_examples

    if options.examples is not None:
        print(f"{many(write_examples(options.examples), 'file')} written: sparkstream test {options.examples}")
        if not options.paths:
            return 0
    report = run_test_command(options)
    print("\n".join(report.lines()))
    return report.exit_code


def apps(options: Any) -> int:
    """`sparkstream apps`."""
    from .app import app_folders, empty_trash_of, remove_app
    from .lab import connect
    from .lab.attachable import removed_text

    connect()
    if options.action is None:
        print(app_folders(options.home))
        return 0
    if options.action == "remove" and not options.names:
        raise Misuse("which apps? Write sparkstream apps remove NAME; sparkstream apps lists them")
    carry_out = remove_app if options.action == "remove" else empty_trash_of
    for name in options.names or [found.name for found in app_folders(options.home)]:
        print(removed_text(carry_out(name, options.home)))
    return 0


def fmt(options: Any) -> int:
    """`sparkstream fmt`. A file that is wrong is left as it is, and the others are formatted."""
    failed = False
    for path in options.files:
        try:
            failed |= _format_file(path, check=options.check)
        except SparkStreamError as e:
            print(describe_error(e) if path in str(e) else f"sparkstream: {path}: {e}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


def _format_file(path: str, *, check: bool) -> bool:
    """Format a file, or standard input; with `check`, returns whether that would change it."""
    from .lang.format import format_text

    with text_of(path) as text:
        found = format_text(text)
    if check:
        if found != text:
            print(f"{path}: would change")
        return found != text
    if path == "-":
        print(found, end="")
    elif found != text:
        write_text(path, found)
        print(f"{path}: formatted")
    return False


# ------------------------------------------------------------------------------------------------------------- replay


def replay(options: Any) -> int:
    """`sparkstream replay`. A failing case gets `failure`, and the run continues."""
    run_case = _runner(options.on)
    counts: Counter[str] = Counter()
    began = perf_counter()
    out: TextIO | None = None
    try:
        if options.out:
            out = sys.stdout if options.out == "-" else _open_input(options.out)
        for case in _cases(options.cases):
            if options.limits is not None:
                case.setdefault("limits", str(options.limits))
            result = _answer(case, run_case)
            counts["failed" if "failure" in result else "answered"] += 1
            if "failure" in result:
                print(f"{case.get('id', '?')}: {result['failure']}", file=sys.stderr)
            if out is not None:
                print(json.dumps(result, ensure_ascii=False), file=out)
    finally:
        if out is not None and out is not sys.stdout:
            out.close()
    seconds = perf_counter() - began
    answered = f"{many(counts['answered'], 'case')} answered"
    summary = f"{answered}, {counts['failed']:,} failed, in {seconds:.1f} s on {options.on}"
    print(summary, file=sys.stderr if out is sys.stdout else sys.stdout)
    return 1 if counts["failed"] else 0


def _open_input(path: str) -> TextIO:
    try:
        return open(path, "w", encoding="utf-8")
    except OSError as e:
        raise CannotRead(f"{path} cannot be written: {e.strerror or e}") from None


def bench(options: Any) -> int:
    """`sparkstream bench`."""
    workloads = _workloads(options.workloads)
    if not Path(options.events).is_file():
        raise CannotRead(f"file not found: {options.events}")
    unknown = set(options.only) - {w["name"] for w in workloads}
    if unknown:
        name = min(unknown)
        raise Misuse(nearest(f"{options.workloads} has no workload '{name}'", name, (w["name"] for w in workloads)))
    for workload in workloads:
        if options.only and workload["name"] not in options.only:
            continue
        if options.on == "engine":
            from .engine import engine_bench as engine

            lines = [engine.run(workload, options.events, options.batch or engine.BATCH)]
        else:
            from .app import spark_bench as api

            lines = api.run(workload, options.events, options.batch)
        for line in lines:
            print(json.dumps(line), flush=True)
    return 0


def _workloads(path: str) -> list[dict[str, str]]:
    """The workloads of a file. Raises `CannotRead`."""
    try:
        found = json.loads(read_text(path))
    except json.JSONDecodeError as e:
        raise CannotRead(f"{path}, line {e.lineno} is not JSON: {e.msg}") from None
    if not isinstance(found, list) or not all(isinstance(w, dict) and {"name", "app"} <= w.keys() for w in found):
        raise CannotRead(f"{path} is not a JSON list of workloads, each with name and app")
    return found


def _runner(on: str) -> Callable[[Case], Any]:
    if on == "engine":
        from .engine.cases import run_case

        return run_case
    from .runners.spark.spark_cases import run_case as run_on_spark

    return run_on_spark


def _cases(paths: Sequence[str]) -> Iterator[Case]:
    """The cases of all files. Raises `CannotRead` for a line that is not a case."""
    for path in paths:
        for number, line in enumerate(read_text(path).splitlines(), 1):
            if not line.strip():
                continue
            try:
                case = json.loads(line)
            except json.JSONDecodeError as e:
                raise CannotRead(f"{path}, line {number} is not JSON: {e.msg}") from None
            if not isinstance(case, dict) or "app" not in case:
                raise CannotRead(f"{path}, line {number} is not a case: it has no app")
            yield case


def _answer(case: Case, run_case: Callable[[Case], Any]) -> Case:
    """The case with `got`, or with `failure`: an error in one case does not stop the others."""
    kept = {k: v for k, v in case.items() if k not in ("got", "failure")}
    try:
        return {**kept, "got": run_case(case)}
    except Exception as e:
        text = str(e).splitlines()
        return {**kept, "failure": f"{type(e).__name__}: {text[0] if text else ''}"[:300]}


# ---------------------------------------------------------------------------------------------------------------- run


def run_app(options: Any) -> int:
    """`sparkstream run`. Errors of app, feeds and options that can be found before Spark starts are reported before."""
    plan = _compile_plan(options)
    from .app import check_feed, deploy
    from .app.deployment.app_folder import document_home, document_name
    from .app.running.sent import columns_of_streams
    from .app.running.source_reading import AS_IT_IS, readings_of
    from .lab import connect
    from .lab.card import warnings_of
    from .plan import compile_retrieval
    from .sources.recordings import RecordingFile

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
            _follow(app, options.seconds)
        app.flush()
        _print_results(app, options)
    finally:
        app.stop()
        app.close()
    return 0


def _feed_files(app: App, files: Sequence[tuple[str, Path]], options: Any) -> None:
    """Feeds files, merged by event time if there are several, and prints the report."""
    from .app.deployment.fed import FedBefore

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


def record_app(options: Any) -> int:
    """`sparkstream record`. The recording is written at the end, with the time in its name."""
    from .app import deploy
    from .app.running.recorder import sources_only
    from .lab import connect

    connect()
    file = Path("app" if options.app == "-" else options.app)
    text = read_text(options.app)
    name = options.name or _compile_plan(options, text).name or file.stem
    folder = Path(options.into)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sparkstream-record-") as home:
        app = deploy(
            sources_only(text, dict(options.param)), name=name, home=home, master="inline",
            retention="recording=1TB", allow=options.allow, allow_env=options.allow_env,
        )  # fmt: skip
        try:
            _follow(app, options.seconds)
            app.flush()
            moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
            path = folder / f"{name}-{moment}.parquet"
            events = app.recording.save(path, sample=dict(options.sample), mask=options.mask)
            for source in app.stats().sources:
                print(_read(source))
        finally:
            app.stop()
            app.close()
    print(f"{path}: {many(events, 'event')}")
    return 0


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
        print(_read(source))
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


def _follow(app: App, seconds: int | None) -> None:
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


def _read(source: SourceFigures) -> str:
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
