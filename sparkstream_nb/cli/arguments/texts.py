"""Options of the commands that write apps' texts."""

from __future__ import annotations

from ...options import Options, add


def add_fmt(c: Options) -> None:
    """Options of `sparkstream fmt`."""
    c.add_argument("files", metavar="FILE", nargs="+", help="an app's text; - is standard input and output")
    c.add_argument(
        "--check", action="store_true", help="change nothing; exit code 1 and a line for each file that would change"
    )


def add_split(c: Options) -> None:
    """Options of `sparkstream split`."""
    c.add_argument("app", metavar="APP.siddhi", help="the app's text; - is standard input")
    layer = c.add_mutually_exclusive_group(required=True)
    layer.add_argument("--kafka", metavar="HOST:PORT", help="the brokers of Kafka, with commas")
    layer.add_argument("--nats", metavar="HOST:PORT", help="the servers of NATS, with commas")
    c.add_argument("--into", metavar="DIR", help="write the text of each app into a .siddhi file of this folder")
    c.add_argument(
        "--make-topics", action="store_true", help="make the topics of Kafka that do not exist; needs --allow"
    )
    add(c, "--name", "--param")
    add(c, "--allow", help="kafka=HOST:PORT: the brokers at which topics may be made")
