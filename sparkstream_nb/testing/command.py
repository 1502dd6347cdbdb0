"""The command `sparkstream test`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ..errors import Misuse
from ..options import CannotRead, write_text
from ..runners.choice import INLINE
from .reporting import ReportOptions, run_paths
from .suite_results import AppTestReport, to_junit
from .suite_runner import RunOptions


def run_test_command(options: Any) -> AppTestReport:
    """The report of `sparkstream test`, whose JUnit file is written. Raises `Misuse` for paths without tests."""
    if not options.paths:
        raise Misuse("which tests? Write sparkstream test FOLDER, or sparkstream test --examples NEW-FOLDER")
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


EXAMPLES = Path(__file__).parent / "examples"
"""Example apps and their tests."""


def write_examples(folder: str) -> int:
    """Writes the example apps and their tests into a new folder; returns the number of files. Raises `Misuse` for one
    that is there."""
    try:
        shutil.copytree(EXAMPLES, folder)
    except FileExistsError:
        raise Misuse(f"{folder} is there already: name a folder that is not") from None
    except OSError as error:
        raise Misuse(f"{folder} cannot be written: {error.strerror or error}") from None
    return sum(1 for path in Path(folder).iterdir() if path.is_file())
