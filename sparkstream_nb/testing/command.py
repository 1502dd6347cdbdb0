"""The command `sparkstream test`."""

from __future__ import annotations

from typing import Any

from ..errors import Misuse
from ..options import CannotRead, write_text
from ..runners.choice import INLINE
from .reporting import ReportOptions, run_paths
from .results import AppTestReport, to_junit
from .running import RunOptions


def run_test_command(options: Any) -> AppTestReport:
    """The report of `sparkstream test`, whose JUnit file is written. Raises `Misuse` for paths without tests."""
    run = RunOptions(INLINE if options.on == "inline" else None, options.allow_scripts, options.k or "")
    report = run_paths(options.paths, ReportOptions(run, options.update, options.coverage, options.quiet))
    if not report.results and not report.wrong_files:
        raise Misuse(f"no test has '{options.k}' in its name: leave -k out to run all")
    if options.junit is not None:
        try:
            write_text(options.junit, to_junit(report))
        except CannotRead as error:
            raise Misuse(str(error)) from None
    return report
