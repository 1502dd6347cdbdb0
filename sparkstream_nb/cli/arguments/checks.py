"""Options of the commands that only look at apps' texts."""

from __future__ import annotations

from ...options import Options, add, add_reading, add_trace_bounds


def add_check(c: Options) -> None:
    """Options of `sparkstream check`."""
    c.add_argument("apps", metavar="APP.siddhi", nargs="+", help="the apps' texts; - is standard input")
    add(c, "--param", "--conf", "--allow-env")


def add_explain(c: Options) -> None:
    """Options of `sparkstream explain`."""
    add_check(c)
    c.add_argument("--repair", action="store_true", help="print repairs that make each query right on several nodes")
    _add_picture(c)


def add_graph(c: Options) -> None:
    """Options of `sparkstream graph`."""
    add_check(c)
    _add_picture(c)


def _add_picture(c: Options) -> None:
    c.add_argument("--svg", metavar="FILE", help="draw the app instead, into this file; - is standard output")


def add_trace(c: Options) -> None:
    """Options of `sparkstream trace`."""
    c.add_argument("app", metavar="APP.siddhi", help="the app's text; - is standard input")
    c.add_argument("query", metavar="QUERY", nargs="?", help="a query or a named window (default: the only one)")
    add(c, "--feed", help="the events, a .csv or .parquet file; may be given several times")
    add_trace_bounds(c)
    add(c, "--param")
    add(c, "--allow-scripts")
    c.add_argument("--svg", metavar="FILE", help="draw it instead, into this file; - is standard output")


def add_audit(c: Options) -> None:
    """Options of `sparkstream audit`."""
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
    add(
        c,
        "--feed",
        help="count the outputs that differ on two to four nodes, with a .csv or .parquet file; may be given several "
        "times",
    )
    add_reading(c)
    add(c, "--param")
    form = c.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--sarif", metavar="FILE", help="write SARIF 2.1.0 for code hosts into this file")
    c.add_argument("--html", metavar="FILE", help="write a page into this file")
