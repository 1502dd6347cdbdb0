"""Options of the command that runs tests of apps."""

from __future__ import annotations

from ...options import Options, add


def add_test(c: Options) -> None:
    """Options of `sparkstream test`."""
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
