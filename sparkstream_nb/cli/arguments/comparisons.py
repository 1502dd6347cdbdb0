"""Options of the commands that compare nodes with one node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...option_values import counts, outcome_bound, positive, stream_and_count, stream_and_file, values_to_try
from ...options import Options, add, add_compared, add_reading, add_wanted_output

_LIMIT = 20
_ROUTING = "which node gets an event: round_robin, hash:ATTRIBUTE, node:K, random:SEED, or sticky"


def add_divergence(c: Options) -> None:
    """Options of `sparkstream divergence`."""
    _add_common(c)
    c.add_argument("--nodes", type=positive, default=2, metavar="N", help="the number of nodes (default: 2)")
    c.add_argument("--routing", default="round_robin", metavar="HOW", help=f"{_ROUTING} (default: round_robin)")
    add(c, "--limit", help=f"outputs that differ to list (default: {_LIMIT})", default=_LIMIT)


def add_report(c: Options) -> None:
    """Options of `sparkstream report`."""
    c.add_argument("app", metavar="APP.siddhi", help="the app's text; - is standard input")
    c.add_argument("out", metavar="OUT.html", help="the file that the report is written into")
    _add_events(c)
    add(c, "--nodes", "--mode", "--routing")


def add_study(c: Options) -> None:
    """Options of `sparkstream study`."""
    _add_common(c)
    c.add_argument(
        "--nodes", type=counts, default=[2, 3, 4], metavar="A-B", help="numbers of nodes, as 2-4 or 2,8 (default: 2-4)"
    )
    c.add_argument(
        "--routing", action="append", metavar="HOW",
        help=f"{_ROUTING}; may be given several times (default: those that suit the app)",
    )  # fmt: skip
    add(c, "--limit", help="combinations to list (default: 100)", default=100)


def add_failover(c: Options) -> None:
    """Options of `sparkstream failover`."""
    _add_common(c)
    add(c, "--faults", "--seed")
    add(c, "--limit", help=f"incidents to list (default: {_LIMIT})", default=_LIMIT)


def add_compare(c: Options) -> None:
    """Options of `sparkstream compare`."""
    c.add_argument("app", metavar="OLD.siddhi", help="the app's text; - is standard input")
    c.add_argument("new", metavar="NEW.siddhi", help="the other text")
    _add_feed(c)
    c.add_argument("--nodes", type=positive, metavar="N", help="compare on so many nodes (default: 1)")
    c.add_argument("--routing", metavar="HOW", help=f"{_ROUTING} (default: round_robin)")
    add_compared(c)
    _add_several(
        c, "--at-most", outcome_bound, "OUTCOME=N",
        "exit with 1 where more outputs are gone, new, other-values, other-time or different: gone=0, new=5%%",
    )  # fmt: skip
    c.add_argument("--junit", metavar="FILE", help="write JUnit XML into this file, with a test for each --at-most")
    c.add_argument("--sarif", metavar="FILE", help="write SARIF into this file, with a result for each changed clause")
    _add_several(
        c, "--vary", values_to_try, "NAME=VALUES",
        "count the outputs for each value of ${NAME} in the new text: LIMIT=100..500:50 or SPAN=1 min,5 min; of "
        "several names for each combination",
    )  # fmt: skip
    c.add_argument("--labels", metavar="FILE", help="with --vary: a .csv file of cases, for precision and recall")
    c.add_argument("--label-time", default="time", metavar="COLUMN", help="its column of times (default: time)")
    c.add_argument("--tolerance", default="0 sec", metavar="DURATION", help="how far off an output may be (default: 0)")
    add(c, "--limit", help=f"outputs that differ to list (default: {_LIMIT})", default=_LIMIT)


def add_at(c: Options) -> None:
    """Options of `sparkstream at`."""
    c.add_argument("app", metavar="APP.siddhi", help="the app's text; - is standard input")
    c.add_argument("moment", metavar="TIME", nargs="?", help="ms since 1970, or a time in UTC (default: the end)")
    c.add_argument("--event", type=positive, metavar="N", help="after the event with this number")
    c.add_argument("--output", type=stream_and_count, metavar="STREAM=N", help="after this output of a stream")
    c.add_argument("--query", metavar="QUERY", help="only what this query held, event by event")
    _add_replay(c)


def add_whynot(c: Options) -> None:
    """Options of `sparkstream whynot`."""
    c.add_argument("app", metavar="APP.siddhi", help="the app's text; - is standard input")
    add_wanted_output(c)
    _add_replay(c)


def add_follow(c: Options) -> None:
    """Options of `sparkstream follow`."""
    c.add_argument("app", metavar="APP.siddhi", help="the app's text; - is standard input")
    c.add_argument("--event", type=positive, metavar="N", help="the event with this number, the first is 1")
    c.add_argument("--output", type=stream_and_count, metavar="STREAM=N", help="this output of a stream")
    _add_replay(c)


def _add_replay(c: Options) -> None:
    """Options of a feed that is replayed, and whose events are listed."""
    _add_feed(c)
    c.add_argument("--nodes", type=positive, metavar="N", help="on so many nodes (default: 1)")
    c.add_argument("--routing", metavar="HOW", help=f"{_ROUTING} (default: round_robin)")
    add(c, "--limit", help=f"events to list (default: {_LIMIT})", default=_LIMIT)


def _add_several(c: Options, option: str, of_text: Callable[[str], Any], metavar: str, help: str) -> None:
    """An option that may be given several times."""
    help += "; may be given several times"
    c.add_argument(option, action="append", default=[], type=of_text, metavar=metavar, help=help)


def _add_common(c: Options) -> None:
    c.add_argument("app", metavar="APP.siddhi", help="the app's text; - is standard input")
    _add_feed(c)


def _add_feed(c: Options) -> None:
    _add_events(c)
    c.add_argument("--json", action="store_true", help="print JSON")
    c.add_argument("--html", metavar="FILE", help="write a page into this file")


def _add_events(c: Options) -> None:
    """Options of the events, and of the text."""
    _add_several(
        c, "--feed", stream_and_file, "STREAM=FILE", "the events, a .csv or .parquet file; a recording needs no STREAM="
    )  # fmt: skip
    add_reading(c)
    add(c, "--param", "--conf", "--allow-env", "--allow-scripts")
