"""Options of the commands that run apps, and make and record their events."""

from __future__ import annotations

from ...option_values import attribute_and_share, number, positive, stream_and_count
from ...options import RANDOM_RATE, Options, add, add_deployment, add_reading, add_seed


def add_run(c: Options) -> None:
    """Options of `sparkstream run`."""
    c.add_argument("app", metavar="APP.siddhi", help="the app's text; - is standard input")
    add(c, "--name")
    add(
        c,
        "--feed",
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
    output_options = c.add_mutually_exclusive_group()
    output_options.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="STREAM",
        help="print the output of this stream; may be given several times (default: every stream that a query writes)",
    )
    output_options.add_argument("--no-output", action="store_true", help="print no output")
    add(c, "--last", default=10, help="only the last N events of a stream (default: 10)")
    add(c, "--limit", default=1000, help="rows of a query's answer to print (default: 1,000)")
    c.add_argument(
        "--seconds",
        type=positive,
        metavar="N",
        help="how long the app runs (default: one with sources until Ctrl-C or SIGTERM, others until their feeds end)",
    )


def add_generate(c: Options) -> None:
    """Options of `sparkstream generate`."""
    c.add_argument("app", metavar="APP.siddhi", help="the app's text; - is standard input")
    c.add_argument("--stream", metavar="STREAM", help="the stream (default: the app's only one)")
    c.add_argument("--rows", type=positive, metavar="N", required=True, help="the number of events")
    c.add_argument("--out", metavar="FILE", required=True, help="the .csv or .parquet file to write")
    add_seed(c)
    c.add_argument("--rate", type=number, metavar="N", help="events a second of event time (default: 10)")
    c.add_argument("--start", metavar="TIME", help="the first event time: ms since 1970, or a time in UTC (2024-01-01)")
    c.add_argument("--arrivals", default="poisson", metavar="HOW", help="poisson, steady or bursts (default: poisson)")
    c.add_argument("--time", metavar="COLUMN", help="the column of event times (default: by name, else timestamp)")
    c.add_argument("--like", metavar="PROFILE.json", help="imitate the frame of a profile that Python has saved")
    add(c, "--param")


def add_record(c: Options) -> None:
    """Options of `sparkstream record`."""
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
