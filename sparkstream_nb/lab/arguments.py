"""Parses the arguments of `%siddhi` and `%%siddhi`: splits a line into words, parses options, and prints help.

A line is split as in a shell, with two differences for SiddhiQL and JSON: text in brackets is one word whatever it
contains, and there are no escapes.
"""

from __future__ import annotations

import argparse
import re
from typing import Any, NoReturn

from ..cluster.deployment import MODES
from ..errors import Misuse, nearest

_CLOSING = {"[": "]", "(": ")", "{": "}"}


class HelpAsked(Exception):
    """`--help` was among the words: `str()` is the help text."""


def split(line: str) -> list[str]:
    """The words of `line`. A quoted word loses its quotes; `[...]`, `(...)` and `{...}` stay one word.

    Raises `Misuse` if a quote or a bracket is not closed.
    """
    words, at = [], 0
    while at < len(line):
        if line[at].isspace():
            at += 1
            continue
        word, at = _word(line, at)
        words.append(word)
    return words


def _word(line: str, at: int) -> tuple[str, int]:
    """The word that starts at `at`, and the position behind it."""
    out: list[str] = []
    open_brackets: list[str] = []
    while at < len(line) and (open_brackets or not line[at].isspace()):
        c = line[at]
        if c in "'\"":
            end = line.find(c, at + 1)
            if end < 0:
                raise Misuse(f"the quote {c} at column {at + 1} is not closed: {line}")
            out.append(line[at : end + 1] if open_brackets else line[at + 1 : end])
            at = end
        else:
            out.append(c)
            if c in _CLOSING:
                open_brackets.append(_CLOSING[c])
            elif open_brackets and c == open_brackets[-1]:
                open_brackets.pop()
        at += 1
    if open_brackets:
        raise Misuse(f"a closing {open_brackets[-1]} is missing: {line}")
    return "".join(out), at


def split_query(line: str) -> tuple[list[str], str]:
    """The words around a query's text, and the text: `-o df App "from A select *" --limit 5` gives `["-o", "df", "App",
    "--limit", "5"]` and `from A select *`. The text may be in either kind of quotes, and contain both kinds, or be
    unquoted.
    """
    found = re.search(r"(?:^|\s)(['\"]?)(?=(?:from|select|delete|update)\b)", line, re.IGNORECASE)
    if not found:
        return split(line), ""
    before, rest = line[: found.start()], line[found.end() :]
    if found[1]:
        end = rest.rfind(found[1])
        if end < 0:
            raise Misuse(f"the quote {found[1]} before the query is not closed")
        return split(before) + split(rest[end + 1 :]), rest[:end].strip()
    behind = re.search(r"(?:\s+(?:-o|--out|--limit)[ =]\S+)+\s*$", rest)
    if behind:
        return split(before) + split(rest[behind.start() :]), rest[: behind.start()].strip()
    return split(before), rest.strip()


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Fixed width: help is part of notebooks' saved outputs, and must not depend on the terminal."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=110)


class Options(argparse.ArgumentParser):
    """An argument parser that raises `Misuse` with the nearest name on errors, and `HelpAsked` for help."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.allow_abbrev = False
        self.formatter_class = _HelpFormatter

    def parse(self, words: list[str]) -> argparse.Namespace:
        """`words` as a namespace. Raises `Misuse`, `HelpAsked`."""
        found, unknown = self.parse_known_args(words)
        if unknown:
            word = unknown[0]
            if word.startswith("-"):
                raise Misuse(nearest(f"{self.prog}: unknown option {word}", word, self._option_string_actions))
            raise Misuse(f"{self.prog}: unexpected argument '{word}'")
        return found

    def error(self, message: str) -> NoReturn:
        choice = re.match(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", message)
        if choice:
            names = [n.strip(" '") for n in choice[3].split(",")]
            raise Misuse(nearest(f"{self.prog}: {choice[1]} cannot be '{choice[2]}'", choice[2], names))
        raise Misuse(f"{self.prog}: {message}. See {self.prog} --help")

    def print_help(self, file: Any = None) -> None:
        raise HelpAsked(self.format_help())


def name_and_value(text: str) -> tuple[str, str]:
    """`k=v` as a pair, for `--param`."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE")
    return name, value


def variable(text: str) -> str:
    """A valid Python variable name, for `-o`."""
    if not text.isidentifier():
        raise argparse.ArgumentTypeError(f"'{text}' is not a variable's name")
    return text


def deploy_options() -> Options:
    """Options of the cell magic."""
    p = Options(
        prog="%%siddhi",
        description="Deploys the SiddhiQL app in the cell. Run the cell again to redeploy it under the same name.",
    )
    p.add_argument("name", nargs="?", metavar="NAME", help="the app's name (default: that of @app:name)")
    p.add_argument("--nodes", type=int, default=1, metavar="N", help="simulated nodes, each one shard (default: 1)")
    p.add_argument(
        "--mode", choices=MODES, help="how the nodes work together (default: active-active for several nodes)"
    )
    p.add_argument(
        "--routing",
        default="round_robin",
        metavar="HOW",
        help="which node gets an event: round_robin, hash:ATTRIBUTE, node:N (default: round_robin)",
    )
    p.add_argument("--shard-ids", metavar="A,B", help="the nodes' shard ids (default: node-1, node-2, ...)")
    p.add_argument(
        "--master", metavar="URL", help="Spark: local[2], spark://host:7077, sc://host:15002 (default: local)"
    )
    p.add_argument("--store", metavar="FILE", help="the DuckDB file of the aggregations (default: one for each app)")
    p.add_argument(
        "--fresh", action="store_true", help="start without the state and the aggregations of an earlier run"
    )
    p.add_argument(
        "--param",
        action="append",
        default=[],
        type=name_and_value,
        metavar="K=V",
        help="the value of ${K} in the text; may be given several times",
    )
    p.add_argument("--allow-scripts", action="store_true", help="allow the app's script functions to run, with limits")
    p.add_argument(
        "--start", metavar="TIME", help="where the clock starts: ms since 1970 or a time (default: the first event)"
    )
    p.add_argument("--timezone", default="UTC", metavar="ZONE", help="time zone of cron expressions (default: UTC)")
    p.add_argument(
        "-o", "--out", type=variable, metavar="VAR", help="store the app, or the query's data frame, in this variable"
    )
    p.add_argument("--check", action="store_true", help="only check the text, without running it")
    p.add_argument("--explain", action="store_true", help="only show the plan, without running it")
    p.add_argument("--query", action="store_true", help="the cell is an on-demand query on the running app NAME")
    p.add_argument("--limit", type=int, metavar="N", help="rows to show of a query's answer")
    return p


def line_options() -> dict[str, Options]:
    """Options of each `%siddhi COMMAND`, in the order of the help."""
    out: dict[str, Options] = {}

    def command(name: str, description: str) -> Options:
        out[name] = Options(prog=f"%siddhi {name}", description=description)
        return out[name]

    p = command("feed", "Feeds a stream with a data frame or a file, and waits until all of it is committed.")
    p.add_argument("stream", metavar="NAME.Stream")
    p.add_argument("source", metavar="SOURCE", help="a variable that holds a data frame, or a .csv or .parquet file")
    p.add_argument("--time", metavar="COLUMN", help="column of the event time: ms, a date and time, or text")
    p.add_argument("--route", metavar="HOW", help="for this feed: round_robin, hash:ATTRIBUTE, node:N")
    p.add_argument("--limit", type=int, metavar="N", help="only the first N rows")
    p.add_argument("--background", action="store_true", help="do not wait: other cells run meanwhile (%%siddhi feeds)")
    p.add_argument("-o", "--out", type=variable, metavar="VAR", help="store the report (or the feed) in this variable")

    p = command("feeds", "Lists the feeds in the background, or pauses, resumes or stops one of them.")
    p.add_argument("action", nargs="?", choices=("pause", "resume", "stop"), metavar="pause|resume|stop")
    p.add_argument("feed", nargs="?", type=int, metavar="ID", help="the feed's number in the list")

    p = command("send", "Sends one event, or a list of them, to a stream.")
    p.add_argument("stream", metavar="NAME.Stream")
    p.add_argument(
        "values", metavar="VALUES", help="""'["wso2", 100.0, 10]', a list of such lists, or '{"symbol": "wso2"}'"""
    )
    p.add_argument("--node", type=int, metavar="N", help="the node that receives it (default: by routing)")
    p.add_argument("--at", metavar="TIME", help="event time: ms since 1970, or '2013-01-01 06:00:00' (UTC)")

    p = command("query", "Answers an on-demand query, merged over all shards.")
    p.add_argument("app", metavar="NAME")
    p.add_argument("--limit", type=int, metavar="N", help="rows to show")
    p.add_argument(
        "-o", "--out", type=variable, metavar="VAR", help="store the answer as a data frame in this variable"
    )

    p = command("view", "Draws an aggregation, by shard and merged.")
    p.add_argument("aggregation", metavar="NAME.Aggregation")
    p.add_argument("--per", metavar="DURATION", help="initial granularity: sec, min, hour, day, month or year")
    p.add_argument("--measure", metavar="ATTRIBUTE", help="initial attribute")

    p = command("output", "Shows the events of a stream so far, and which node sent them.")
    p.add_argument("stream", metavar="NAME.Stream")
    p.add_argument("--last", type=int, metavar="N", help="only the last N events")
    p.add_argument("--limit", type=int, metavar="N", help="rows to show")
    p.add_argument(
        "-o", "--out", type=variable, metavar="VAR", help="store the events as a data frame in this variable"
    )

    p = command("explain", "Shows the plan of an app: what runs where, and what routing does to each query.")
    p.add_argument("app", metavar="NAME")

    p = command("check", "Checks a .siddhi file, or the text in a variable, without running it.")
    p.add_argument("source", metavar="SOURCE")

    command("list", "Lists the apps of this notebook.")

    p = command("stop", "Stops an app and keeps its stored data.")
    p.add_argument("app", nargs="?", metavar="NAME")
    p.add_argument("--all", action="store_true", help="all apps of this notebook")

    p = command("errors", "Shows the rejected rows and failed events of an app, and why.")
    p.add_argument("app", metavar="NAME")
    p.add_argument("--limit", type=int, metavar="N", help="rows to show")
    p.add_argument("-o", "--out", type=variable, metavar="VAR", help="store them as a data frame in this variable")

    p = command("stats", "Shows the state size and throughput of each node.")
    p.add_argument("app", metavar="NAME")

    command("tb", "Shows the whole traceback of the last error.")
    return out


def overview(commands: dict[str, Options]) -> str:
    """The help of `%siddhi`: every command with its first sentence, and the cell's options."""
    lines = ["%%siddhi NAME [options]       deploys the app in the cell; %%siddhi --help lists the options", ""]
    for name, options in commands.items():
        words = " ".join(str(a.metavar or a.dest) for a in options._actions if not a.option_strings)
        lines.append(f"%siddhi {f'{name} {words}':<21} {(options.description or '').split('.')[0].strip()}")
    lines += ["", "%siddhi COMMAND --help describes one command; %config SiddhiMagic lists the settings."]
    return "\n".join(lines)
