"""Tests, cases and workloads: `sparkstream test`, `sparkstream replay`, `sparkstream bench`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, TextIO

from ..errors import Misuse, nearest
from ..option_values import positive
from ..options import CannotRead, add, read_text
from .app_texts import many
from .commands import Commands

Case = dict[str, Any]


def add_test(commands: Commands) -> None:
    """Add `sparkstream test`."""
    c = commands.add(
        "test",
        test,
        "Run the tests of apps in test files, without sources, sinks, databases, Spark and Java. "
        "Exit code 1 where an output differs, 2 where a test file or an app is wrong.",
        "tests --junit results.xml",
    )
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


def test(options: Any) -> int:
    """`sparkstream test`."""
    from ..testing.command import run_test_command, write_examples

    if options.examples is not None:
        print(f"{many(write_examples(options.examples), 'file')} written: sparkstream test {options.examples}")
        if not options.paths:
            return 0
    report = run_test_command(options)
    print("\n".join(report.lines()))
    return report.exit_code


def add_replay(commands: Commands) -> None:
    """Add `sparkstream replay`."""
    c = commands.add(
        "replay",
        replay,
        "Run cases on a virtual clock, and write each case with its actual results.",
        "cases.jsonl --out results.jsonl",
    )
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


def _runner(on: str) -> Callable[[Case], Any]:
    if on == "engine":
        from ..engine.cases import run_case

        return run_case
    from ..runners.spark.spark_cases import run_case as run_on_spark

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


def add_bench(commands: Commands) -> None:
    """Add `sparkstream bench`."""
    c = commands.add(
        "bench",
        bench,
        "Measure the throughput of workloads; prints one JSON line for each.",
        "workloads.json events.csv --only filter",
    )
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
            from ..engine import engine_bench as engine

            lines = [engine.run(workload, options.events, options.batch or engine.BATCH)]
        else:
            from ..app import spark_bench as api

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
