"""The command `sparkstream`: check, explain, replay, run, bench.

Exit codes: 0 success; 1 the app is wrong, or a case or run failed; 2 the command line is wrong; 130 interrupted.
Results go to standard output, short error messages to standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, TextIO

from ._version import __version__
from .errors import SiddhiError, SparkStreamError

Case = dict[str, Any]


class CannotRead(SparkStreamError):
    """A given file is missing or has the wrong content."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    options = parser().parse_args(argv)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except SparkStreamError as e:
        print(f"sparkstream: {e}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # `| head` has read enough
        return 0
    except KeyboardInterrupt:
        print("sparkstream: interrupted", file=sys.stderr)
        return 130


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(prog="sparkstream", description="Run SiddhiQL apps on simulated nodes, on Spark.")
    p.add_argument("--version", action="version", version=f"sparkstream {__version__}")
    sub = p.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[Any], int], what: str) -> argparse.ArgumentParser:
        c = sub.add_parser(name, help=what, description=what)
        c.set_defaults(run=run)
        return c

    for name, run, what in (
        ("check", check, "Check an app's syntax, names, types and rules without running it."),
        ("explain", explain, "Print an app's plan: what runs where, and what routing does to each query."),
    ):
        c = command(name, run, what)
        c.add_argument("app", metavar="APP.siddhi")
        c.add_argument(
            "--param", action="append", default=[], type=_pair, metavar="K=V", help="the value of ${K} in the text"
        )

    c = command("replay", replay, "Run cases on a virtual clock, and write each case with its actual results.")
    c.add_argument("cases", metavar="CASES.jsonl", nargs="+")
    c.add_argument(
        "--on", choices=("engine", "spark"), default="engine", help="the node engine alone (default), or Spark"
    )
    c.add_argument(
        "--out",
        metavar="RESULTS.jsonl",
        help="output file: each case with `got` or `failure`, one per line; - is standard output",
    )

    c = command("run", run_app, "Deploy an app, run its feeds to their end, and print the output.")
    c.add_argument("app", metavar="APP.siddhi")
    c.add_argument(
        "--feed",
        action="append",
        default=[],
        type=_pair,
        metavar="STREAM=FILE",
        help=".csv or .parquet; may be repeated",
    )
    c.add_argument("--time", metavar="COLUMN", help="column of the feeds' event time")
    c.add_argument("--nodes", type=int, default=1, metavar="N", help="simulated nodes (default: 1)")
    c.add_argument("--mode", choices=("single", "active-active"), help="default: active-active for several nodes")
    c.add_argument("--routing", default="round_robin", metavar="HOW", help="round_robin, hash:ATTRIBUTE or node:N")
    c.add_argument("--master", metavar="URL", help="Spark master or Connect address (default: local)")
    c.add_argument("--store", metavar="FILE", help="DuckDB file of the aggregations")
    c.add_argument("--query", action="append", default=[], metavar="TEXT", help="an on-demand query to run at the end")
    c.add_argument("--allow-scripts", action="store_true", help="allow the app's script functions to run, with limits")
    c.add_argument(
        "--start", metavar="TIME", help="where the clock starts: ms since 1970 or a time (default: the first event)"
    )
    c.add_argument("--timezone", default="UTC", metavar="ZONE", help="time zone of cron expressions (default: UTC)")
    c.add_argument("--last", type=int, default=10, metavar="N", help="events to print of each stream (default: 10)")
    c.add_argument(
        "--param", action="append", default=[], type=_pair, metavar="K=V", help="the value of ${K} in the text"
    )

    c = command("bench", bench, "Measure the throughput of workloads; prints one JSON line for each.")
    c.add_argument(
        "workloads", metavar="WORKLOADS.json", help="a JSON list of {name, app}, each app with one input stream"
    )
    c.add_argument("events", metavar="EVENTS.csv", help="the stream's events, without header, the time in ms last")
    c.add_argument("--on", choices=("engine", "spark"), default="engine", help="one node alone (default), or Spark")
    c.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these workloads only")
    c.add_argument("--batch", type=int, metavar="ROWS", help="events of a micro-batch")
    return p


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE")
    return name, value


def _read(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CannotRead(f"file not found: {path}") from None
    except (OSError, UnicodeDecodeError) as e:
        raise CannotRead(f"{path} cannot be read: {e}") from None


def _compiled(options: Any) -> Any:
    """The plan of `options.app`. Raises `SiddhiError` with the text, for the caret."""
    from .plan import compile_app

    text = _read(options.app)
    try:
        # A deployment gives every node a shard id; the app is checked as if it ran on one of them.
        return compile_app(text, {"shardId": "node-1"}, dict(options.param))
    except SiddhiError as e:
        raise e.with_source(text) from None


def check(options: Any) -> int:
    """`sparkstream check`."""
    plan = _compiled(options)
    print(f"{options.app}: no mistakes found ({len(plan.queries)} queries, {len(plan.aggregations)} aggregations)")
    return 0


def explain(options: Any) -> int:
    """`sparkstream explain`."""
    from .plan.explain import explain as text_of

    print(text_of(_compiled(options)))
    return 0


# ------------------------------------------------------------------------------------------------------------- replay


def replay(options: Any) -> int:
    """`sparkstream replay`. A failing case gets `failure`, and the run continues."""
    run_case = _runner(options.on)
    counts: Counter[str] = Counter()
    began = perf_counter()
    out: TextIO | None = None
    try:
        if options.out:
            out = sys.stdout if options.out == "-" else open(options.out, "w", encoding="utf-8")  # noqa: SIM115
        for case in _cases(options.cases):
            answered = _answer(case, run_case)
            counts["failed" if "failure" in answered else "answered"] += 1
            if "failure" in answered:
                print(f"{case.get('id', '?')}: {answered['failure']}", file=sys.stderr)
            if out is not None:
                print(json.dumps(answered, ensure_ascii=False), file=out)
    finally:
        if out is not None and out is not sys.stdout:
            out.close()
    seconds = perf_counter() - began
    summary = f"{counts['answered']:,} cases answered, {counts['failed']:,} failed, in {seconds:.1f} s on {options.on}"
    print(summary, file=sys.stderr if out is sys.stdout else sys.stdout)
    return 1 if counts["failed"] else 0


def bench(options: Any) -> int:
    """`sparkstream bench`."""
    workloads = json.loads(_read(options.workloads))
    unknown = set(options.only) - {w["name"] for w in workloads}
    if unknown:
        raise CannotRead(f"unknown workload {', '.join(sorted(unknown))}")
    for workload in workloads:
        if options.only and workload["name"] not in options.only:
            continue
        if options.on == "engine":
            from .engine import bench as engine

            lines = [engine.run(workload, options.events, options.batch or engine.BATCH)]
        else:
            from .cluster import bench as cluster

            lines = cluster.run(workload, options.events, options.batch)
        for line in lines:
            print(json.dumps(line), flush=True)
    return 0


def _runner(on: str) -> Callable[[Case], Any]:
    if on == "engine":
        from .engine.cases import run_case

        return run_case
    from .spark.cases import run_case as run_on_spark

    return run_on_spark


def _cases(paths: Sequence[str]) -> Iterator[Case]:
    """The cases of all files. Raises `CannotRead` for a line that is not a case."""
    for path in paths:
        for number, line in enumerate(_read(path).splitlines(), 1):
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
    """`sparkstream run`."""
    text = _read(options.app)
    for _, path in options.feed:
        if not Path(path).exists():
            raise CannotRead(f"file not found: {path}")
    from .cluster import deploy

    app = deploy(
        text,
        nodes=options.nodes,
        mode=options.mode,
        routing=options.routing,
        master=options.master,
        store=options.store,
        variables=dict(options.param),
        allow_scripts=options.allow_scripts,
        start=options.start,
        timezone=options.timezone,
    )
    try:
        for stream, path in options.feed:
            r = app.feed(stream, Path(path), time=options.time)
            print(
                f"{stream}: {r.rows - r.rejected:,} events in {r.seconds:.1f} s, {r.events_per_second:,.0f} events/s"
                + (f", {r.rejected:,} rows rejected" if r.rejected else "")
            )
        app.flush()
        for stream, definition in app.plan.streams.items():
            if definition.kind == "inferred":
                _print_frame(f"\n{stream}", app.output(stream, last=options.last).frame)
        for query in options.query:
            _print_frame(f"\n{query}", app.query(query).frame)
        if len(app.errors):
            _print_frame("\nerrors", app.errors.frame.groupby("reason").size().reset_index(name="count"))
    finally:
        app.stop()
        app.close()
    return 0


def _print_frame(title: str, frame: Any) -> None:
    print(title)
    print(frame.to_string(index=False) if len(frame) else "  (nothing)")
