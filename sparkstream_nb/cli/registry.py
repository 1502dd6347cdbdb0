"""The commands of the parser: each module of this folder adds its own."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from ..options import Options


class Commands:
    """The commands that were added to a parser, in the order of its help."""

    def __init__(self, parser: Options) -> None:
        self._parsers: argparse._SubParsersAction[Options] = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(self, name: str, run: Callable[[Any], int], what: str, example: str) -> Options:
        """Add a command, and return its parser. `run` takes the parsed options and returns the exit code; `example`:
        the arguments of a call, for its help."""
        command: Options = self._parsers.add_parser(name, help=what, description=what)
        command.set_defaults(run=run)
        command.example = f"sparkstream {name} {example}"
        return command
