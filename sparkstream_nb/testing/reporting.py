"""Test runs over files and folders: their report, and what `--update` and `--coverage` add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter

from ..errors import Misuse, SparkStreamError
from .coverage import measure_coverage
from .model import AppTestFile
from .suite_results import AppTestReport, AppTestResult, FileError
from .suite_runner import RunOptions, TestedRun, find_test_files, is_wanted, read_test_file, run_file
from .updating import update_text


@dataclass(frozen=True)
class ReportOptions:
    """Options of a report: how tests run, and whether actual results are written into the files, the coverage is
    counted, and only what did not pass is shown."""

    run: RunOptions = field(default_factory=RunOptions)
    update: bool = False
    coverage: bool = False
    quiet: bool = False


def run_paths(paths: Sequence[str | Path], options: ReportOptions | None = None) -> AppTestReport:
    """Runs the tests of files and folders.

    Raises `Misuse` for a path that does not exist, and where nothing is left to run. Files and apps that are wrong are
    in the report.
    """
    began, options = perf_counter(), options or ReportOptions()
    results: list[AppTestResult] = []
    wrong: list[FileError] = []
    updated_files: list[Path] = []
    files: list[AppTestFile] = []
    for path in find_test_files(paths):
        try:
            file = read_test_file(path)
        except SparkStreamError as error:
            wrong.append(FileError(path, error))
            continue
        files.append(file)
        test_runs = list(run_file(file, options.run))
        if options.update and _write_actual(file, test_runs):
            updated_files.append(path)
            file = read_test_file(path)
            test_runs = list(run_file(file, options.run))
        results += [t.result for t in test_runs]
    report = AppTestReport(tuple(results), tuple(wrong), 0.0, None, tuple(updated_files), options.quiet)
    if options.coverage:
        active_runs = [
            (f, t, r) for f in files for t in f.tests for r in t.active_runs if is_wanted(f, t, r, options.run.only)
        ]
        report = replace(report, coverage=measure_coverage(active_runs, options.run))
    return replace(report, seconds=perf_counter() - began)


def _write_actual(file: AppTestFile, test_runs: Sequence[TestedRun]) -> bool:
    """Writes the actual rows of expectations that do not hold; returns whether there were any. Of several runs the
    first counts."""
    first = {c.expect.span.start: c for t in reversed(test_runs) for c in t.checked}
    text = update_text(file.text, list(first.values()))
    if all(c.holds for c in first.values()):
        return False
    try:
        newline = "\r\n" if b"\r\n" in file.path.read_bytes() else "\n"
        file.path.write_text(text, encoding="utf-8", newline=newline)
    except OSError as error:
        raise Misuse(f"{file.path} cannot be written: {error.strerror or error}") from None
    return True
