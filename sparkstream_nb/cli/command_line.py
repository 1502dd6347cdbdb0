"""The command line: its parser, and its `main`."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from .._version import __version__
from ..errors import Misuse, SparkStreamError
from ..options import HelpAsked, Options
from ..wording import speak_of_options
from .app_texts import describe_error
from .printing import printable_output
from .registry import COMMANDS

_REMOVED = {
    "bench": "To time an app on your own events: sparkstream run APP.siddhi --feed STREAM=FILE --no-output",
    "replay": "Write the events and the expected outputs into a test file: sparkstream test FILE.siddhitest",
}
"""Commands of earlier versions, and what to write in their place."""

BROKEN_PIPE = 141
"""The exit code where the reader of a pipe has ended (`| head -1`), as if SIGPIPE had ended the program."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    _in_utf8()
    try:
        try:
            with speak_of_options(shell=True), printable_output():
                code = _run(argv)
        except KeyboardInterrupt:
            print("sparkstream: interrupted", file=sys.stderr)
            code = 130
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        _discard_unread()
        return BROKEN_PIPE
    return code


def _run(argv: Sequence[str] | None) -> int:
    words = sys.argv[1:] if argv is None else argv
    try:
        if words and words[0] in _REMOVED:
            raise Misuse(f"the command '{words[0]}' was removed. {_REMOVED[words[0]]}")
        options = parser().parse_args(words)
        code: int = options.run(options)
    except HelpAsked as help_text:
        print(str(help_text).rstrip())
        return 0
    except Misuse as e:
        text = str(e)
        print(text if text.startswith("sparkstream") else f"sparkstream: {text}", file=sys.stderr)
        return 2
    except SparkStreamError as e:
        print(describe_error(e), file=sys.stderr)
        return 1
    return code


def _discard_unread() -> None:
    """Discards the rest of standard output where its reader has ended: the interpreter flushes it at its end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _in_utf8() -> None:
    """Let this process read and write UTF-8, as files are: the encoding of a machine's language, which pipes have on
    Windows, lacks signs that are printed. An encoding that the user sets is left.
    """
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and "PYTHONIOENCODING" not in os.environ:
            if stream.encoding.lower().replace("-", "") != "utf8":
                stream.reconfigure(encoding="utf-8")


def parser() -> Options:
    """The command line."""
    p = Options(prog="sparkstream", description="Run SiddhiQL apps on simulated nodes, on Spark.")
    p.add_argument("--version", action="version", version=f"sparkstream {__version__}")
    parsers: argparse._SubParsersAction[Options] = p.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        c: Options = parsers.add_parser(command.name, help=command.summary, description=command.summary)
        c.set_defaults(run=command.run)
        c.example = f"sparkstream {command.name} {command.example}"
        command.add_options(c)
    return p
