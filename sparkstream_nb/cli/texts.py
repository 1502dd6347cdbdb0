"""Apps' texts as others: `sparkstream fmt`, `sparkstream split`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from ..errors import SparkStreamError
from ..options import add, read_text, write_text
from .app_texts import compile_plan, describe_error, many, text_of
from .commands import Commands
from .printing import print_exactly


def add_fmt(commands: Commands) -> None:
    """Add `sparkstream fmt`."""
    c = commands.add(
        "fmt",
        fmt,
        "Format apps in place: layout only, comments are kept.",
        "trades.siddhi",
    )
    c.add_argument("files", metavar="FILE", nargs="+", help="an app's text; - is standard input and output")
    c.add_argument(
        "--check", action="store_true", help="change nothing; exit code 1 and a line for each file that would change"
    )


def fmt(options: Any) -> int:
    """`sparkstream fmt`. A file that is wrong is left as it is, and the others are formatted."""
    any_failed = False
    for path in options.files:
        try:
            any_failed |= _format_file(path, check=options.check)
        except SparkStreamError as e:
            print(describe_error(e) if path in str(e) else f"sparkstream: {path}: {e}", file=sys.stderr)
            any_failed = True
    return 1 if any_failed else 0


def _format_file(path: str, *, check: bool) -> bool:
    """Format a file, or standard input; with `check`, returns whether that would change it."""
    from ..lang.format import format_text

    with text_of(path) as text:
        formatted_text = format_text(text)
    if check:
        if formatted_text != text:
            print(f"{path}: would change")
        return formatted_text != text
    if path == "-":
        print_exactly(formatted_text)
    elif formatted_text != text:
        write_text(path, formatted_text)
        print(f"{path}: formatted")
    return False


def add_split(commands: Commands) -> None:
    """Add `sparkstream split`."""
    c = commands.add(
        "split",
        split_app,
        "Split an app by @dist into apps of their own, with Kafka topics between them.",
        "trades.siddhi --kafka localhost:9092 --into apps",
    )
    c.add_argument("app", metavar="APP.siddhi", help="the app's text; - is standard input")
    c.add_argument("--kafka", metavar="HOST:PORT", required=True, help="the brokers, with commas")
    c.add_argument("--into", metavar="DIR", help="write the text of each app into a .siddhi file of this folder")
    c.add_argument("--make-topics", action="store_true", help="make the topics that do not exist; needs --allow")
    add(c, "--name", "--param")
    add(c, "--allow", help="kafka=HOST:PORT: the brokers at which topics may be made")


def split_app(options: Any) -> int:
    """`sparkstream split`. Without --into and --make-topics it prints the apps and topics."""
    from ..app.audit.splitting import split

    file = Path("app" if options.app == "-" else options.app)
    text = read_text(options.app)  # once: standard input is gone then
    name = options.name or compile_plan(options, text).name or file.stem
    parts = split(text, kafka=options.kafka, name=name, variables=dict(options.param))
    files = [] if options.into is None else parts.write(options.into)
    new_topics = parts.make_topics(options.allow) if options.make_topics else None
    print(parts)
    if new_topics is not None:
        print(f"{many(len(new_topics), 'topic')} made, {len(parts.topics) - len(new_topics)} there before")
    grants = " ".join(f"--allow kafka={broker}" for broker in parts.brokers.split(","))
    for path in files:
        print(f"sparkstream run {shlex.quote(str(path))} {grants}")
    return 0
