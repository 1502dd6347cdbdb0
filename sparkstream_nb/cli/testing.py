"""Tests of apps: `sparkstream test`."""

from __future__ import annotations

from typing import Any

from ..options import add
from .app_texts import many
from .commands import Commands


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
