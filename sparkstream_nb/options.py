"""Options of the `sparkstream` command and of the magics: their parser, and those that both front ends share.

Loads little but the standard library, so that `sparkstream check` starts at once.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import stat
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

from .errors import Misuse, SparkStreamError, did_you_mean, nearest
from .option_values import (
    attribute_and_column,
    attribute_and_value,
    decimal_separator,
    names,
    new_name,
    number,
    positive,
    stream_and_file,
    whole,
)
from .request import ROUTES, parameters

WIDTH = 88
"""Columns of a help text. Fixed, as help is part of notebooks' saved outputs; no wider than a notebook's cell."""


_DETECTED = "The separator of a CSV file is found out: a comma, semicolon, tab or bar"
_HEADER = "The first line of a CSV file names its columns; --map ATTRIBUTE=COLUMN says which one an attribute has"
READ_OTHERWISE = {
    **dict.fromkeys(("--sep", "--separator", "--delimiter", "--delim"), _DETECTED),
    **dict.fromkeys(("--header", "--no-header", "--names", "--columns"), _HEADER),
    "--encoding": "The encoding of a CSV file is found out: UTF-8, UTF-16, Windows-1252 or Latin-1",
    **dict.fromkeys(("--na-values", "--na", "--null", "--nulls"), "Did you mean '--missing'?"),
    **dict.fromkeys(("--date-format", "--format"), "Did you mean '--time-format'?"),
    **dict.fromkeys(("--tz", "--timezone-of-times"), "Did you mean '--time-zone'?"),
}
"""Options of other readers of CSV, and their equivalents here."""


class HelpAsked(Exception):
    """`--help` was among the words: `str()` is the help text."""


class CannotRead(SparkStreamError):
    """A given file is missing, has the wrong content, or cannot be written."""


class _HelpFormatter(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=WIDTH)


class TimeColumns(argparse.Action):
    """`--time COLUMN`, or `--time STREAM=COLUMN` for each of several streams: a text, or a dict by stream."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        stream, equals, column = values.partition("=")
        columns = getattr(namespace, self.dest)
        if not equals or not stream.isidentifier():
            if columns is not None:
                parser.error("--time names one column, or several as STREAM=COLUMN")
            setattr(namespace, self.dest, values)
            return
        if isinstance(columns, str):
            parser.error("--time names one column, or several as STREAM=COLUMN")
        setattr(namespace, self.dest, {**(columns or {}), stream: column})


def _refuse_value(flag: str, value: str) -> str:
    """The message about a value after an option that has none."""
    to_file = f". To write a file: {flag} > {value}" if flag == "--json" else ""
    return f"{flag} has no value: leave '{value}' out{to_file}"


class Options(argparse.ArgumentParser):
    """An argument parser that raises `Misuse` with the nearest name on errors, and `HelpAsked` for help."""

    example = ""
    """A call, shown at the end of the help."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, "formatter_class": _HelpFormatter, **kwargs})

    def format_help(self) -> str:
        return super().format_help() + (f"\nexample:\n  {self.example}\n" if self.example else "")

    def parse(self, words: list[str]) -> argparse.Namespace:
        """`words` as a namespace. Raises `Misuse`, `HelpAsked`."""
        return self.parse_args(words)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """A parser that refuses options which it does not know: a subcommand names its own options."""
        for argument in args or ():
            action = argument.removeprefix("--")
            if argument != action and argument not in self._option_string_actions and action in self._choices:
                raise Misuse(f"{self.prog}: {argument} is no option: write {self.prog} {action} ...")
        options, unknown = super().parse_known_args(args, namespace)
        if not unknown:
            return options, unknown
        word = unknown[0].split("=")[0]
        if word.startswith("-"):
            names = [n for n in self._option_string_actions if n.startswith("--")]
            if "--decimal" in names and word in READ_OTHERWISE:
                raise Misuse(f"{self.prog}: unknown option {word}. {READ_OTHERWISE[word]}")
            raise Misuse(nearest(f"{self.prog}: unknown option {word}", word, names))
        flag = self._flag_before(unknown[0], args or ())
        if flag is not None and not unknown[0].endswith(".siddhi"):
            raise Misuse(f"{self.prog}: {_refuse_value(flag, unknown[0])}")
        maps = getattr(options, "map", None)
        if maps:
            attribute, column = maps[-1]
            advice = f'A value with spaces is in quotes, such as --map {attribute}="{column} {unknown[0]}"'
            raise Misuse(f"{self.prog}: unexpected argument '{unknown[0]}'. {advice}")
        raise Misuse(f"{self.prog}: unexpected argument '{unknown[0]}'. {self._usage_line(self.example)}")

    def _flag_before(self, value: str, words: Sequence[str]) -> str | None:
        """The option without a value that stands before this word; None for none."""
        for option, word in pairwise(words):
            action = self._option_string_actions.get(option)
            if word == value and action is not None and action.nargs == 0:
                return option
        return None

    @property
    def _choices(self) -> set[str]:
        """The words that an argument without an option may be, except subcommands."""
        plain = (a for a in self._actions if not a.option_strings and not isinstance(a, argparse._SubParsersAction))
        return {str(c) for a in plain for c in a.choices or ()}

    def error(self, message: str) -> NoReturn:
        choice = re.match(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", message)
        if choice:
            name, word, names = choice[1], choice[2], [n.strip(" '") for n in choice[3].split(",")]
            wrong = f"there is no command '{word}'" if name == "COMMAND" else f"{name} cannot be '{word}'"
            raise Misuse(nearest(f"{self.prog}: {wrong}", word, names))
        if missing := re.match(r"the following arguments are required: (.*)", message):
            words = missing[1].split(", ")
            raise Misuse(
                f"{self.prog}: {_list_words(words)} {'is' if len(words) == 1 else 'are'} missing. {self._usage_line()}"
            )
        if one_of := re.fullmatch(r"one of the arguments (.*) is required", message):
            raise Misuse(f"{self.prog}: {one_of[1].replace(' ', ' or ')} is missing. {self._usage_line()}")
        message = message.removeprefix("argument ")
        if with_value := re.fullmatch(r"(--\S+): ignored explicit argument '(.*)'", message):
            raise Misuse(f"{self.prog}: {_refuse_value(with_value[1], with_value[2])}")
        if message.endswith(": expected one argument"):
            option = message.split(":")[0].split("/")[-1]
            metavar = self._option_string_actions[option].metavar if option in self._option_string_actions else "VALUE"
            message = f"{option} needs a value: {option} {metavar}"
        raise Misuse(f"{self.prog}: {message}. See {self.prog} --help")

    def _usage_line(self, example: str = "") -> str:
        """`Write sparkstream check APP.siddhi`: the words that a call needs, and an example of one."""
        words = [f"[{a.metavar}]" if a.nargs == "?" else str(a.metavar) for a in self._actions if not a.option_strings]
        such = f", such as {example}" if example else ""
        return f"Write {' '.join([self.prog, *words])}{such}; {self.prog} --help lists the options"

    def print_help(self, file: Any = None) -> None:
        raise HelpAsked(self.format_help())


def _list_words(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


# --------------------------------------------------------------------------------------------------------------- files


LARGEST_TEXT = 1 << 26
"""Bytes of a file that is read as one text, at most."""


def read_text(path: str) -> str:
    """The text of a file, without a byte order mark; of standard input for `-`. Raises `CannotRead`."""
    if "\0" in path:
        raise CannotRead(f"a path cannot have the character NUL: {path!r}")
    try:
        if path == "-":
            return sys.stdin.read()
        with Path(path).open("rb") as file:
            if stat.S_ISCHR(os.fstat(file.fileno()).st_mode):
                raise CannotRead(f"{path} is a device: name a file")
            data = file.read(LARGEST_TEXT + 1)
        if len(data) > LARGEST_TEXT:
            raise CannotRead(f"{path} has more than {LARGEST_TEXT:,} bytes: a text has at most as many")
        return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig").read()
    except FileNotFoundError:
        folder = Path(path).parent
        near = did_you_mean(Path(path).name, (p.name for p in folder.iterdir())) if folder.is_dir() else None
        raise CannotRead(f"file not found: {path}" + (f". {near}" if near else "")) from None
    except IsADirectoryError:
        raise CannotRead(f"{path} is a folder: name a file in it") from None
    except UnicodeDecodeError as e:
        line = e.object.count(b"\n", 0, e.start) + 1
        raise CannotRead(f"{path} is not UTF-8 text (line {line}): save it as UTF-8") from None
    except OSError as e:
        raise CannotRead(f"{path} cannot be read: {e.strerror or e}") from None


def write_text(path: str, text: str) -> None:
    """Writes a file. Raises `CannotRead`."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as e:
        raise CannotRead(f"{path} cannot be written: {e.strerror or e}") from None


# ------------------------------------------------------------------------------------------------------ shared options

_DEPLOYMENT = {p.option.name: dict(p.option.words) for p in parameters() if p.option is not None}
_SHARED: dict[str, dict[str, Any]] = {
    **_DEPLOYMENT,
    "--route": {"metavar": "HOW", "help": f"the routing of this feed: {ROUTES} (default: the app's)"},
    "--name": {"metavar": "NAME", "help": "the app's name (default: @app:name, else the file's name)"},
    "--time": {
        "action": TimeColumns,
        "metavar": "COLUMN",
        "help": "the column of event times: ms since 1970, times, or text; STREAM=COLUMN where streams have columns of "
        "their own (default: events are 1 ms apart)",
    },
    "--speed": {
        "type": number,
        "metavar": "X",
        "help": "event time relative to this machine's: 60 plays a minute in a second (default: as fast as possible)",
    },
    "--disorder": {
        "metavar": "HOW",
        "help": "changes by a seed, such as late=5%%,delay=3 sec,swapped=1%%,duplicated=1%%,dropped=1%%,node-2=+3 sec,"
        "seed=7: events come late, swapped, twice, not at all, or with a clock that is off",
    },
    "--feed": {
        "action": "append",
        "default": [],
        "type": stream_and_file,
        "metavar": "STREAM=FILE",
        "help": "feed a stream with a .csv or .parquet file; may be given several times",
    },
    "--rate": {"type": number, "metavar": "N", "help": "events a second (default: as fast as possible)"},
    "--time-format": {
        "metavar": "FORMAT",
        "help": "how event times are written, such as '%%d.%%m.%%Y %%H:%%M:%%S' (as Python's strptime takes it), or "
        "s, ms, us or ns for numbers since 1970 (default: ms, or ISO 8601)",
    },
    "--time-zone": {
        "metavar": "ZONE",
        "help": "the time zone of event times that name none, such as Europe/Berlin (default: UTC); of a time that its "
        "clocks showed twice, the first is taken",
    },
    "--map": {
        "action": "append",
        "default": [],
        "type": attribute_and_column,
        "metavar": "ATTRIBUTE=COLUMN",
        "help": "the source column of an attribute that has another name; STREAM.ATTRIBUTE=COLUMN for one of several "
        "streams; ATTRIBUTE= alone: it is null; may be given several times",
    },
    "--decimal": {
        "type": decimal_separator,
        "metavar": "SIGN",
        "help": "the decimal separator of numbers that are texts: with a comma, 1.234,5 is read (default: a point)",
    },
    "--missing": {
        "type": names,
        "metavar": "A,B",
        "help": "texts that mean that there is no value, such as n/a,- or --missing=-,n/a (default: an empty cell "
        "alone)",
    },
    "--last": {"type": positive, "metavar": "N", "help": "only the last N events of a stream"},
    "--by-shard": {"action": "store_true", "help": "show the rows of each shard too, below the merged answer"},
    "--as-wso2": {
        "action": "store_true",
        "help": "answer as WSO2's servers would: without the buckets that are still open on each node",
    },
    "--as-node": {
        "metavar": "SHARD",
        "help": "as --as-wso2, of the server of this shard; alive: of servers without playback",
    },
    "--limit": {"type": positive, "metavar": "N", "help": "rows to show"},
}


def add(p: argparse.ArgumentParser, *names: str, **keywords: Any) -> None:
    """Adds shared options to `p`. `keywords` are other words for this use, such as `help`."""
    for name in names:
        p.add_argument(name, **{**_SHARED[name], **keywords})


def add_deployment(p: argparse.ArgumentParser, **help_texts: str) -> None:
    """Adds the options of a deployment. `help_texts` are other help texts for this use, by the option's name."""
    for name in _DEPLOYMENT:
        help_text = help_texts.get(name.removeprefix("--"))
        add(p, name, **({} if help_text is None else {"help": help_text}))


def add_seed(p: argparse.ArgumentParser) -> None:
    """Adds the seed of generated events."""
    p.add_argument(
        "--seed", type=whole, metavar="N",
        help="the seed of generated events: the same one gives the same events everywhere (default: 0)",
    )  # fmt: skip


def add_reading(p: argparse.ArgumentParser, *, apart: str = "1 ms") -> None:
    """Adds the options that say how a feed is read. `apart`: the distance of events without times."""
    add(p, "--time", help=str(_SHARED["--time"]["help"]).replace("1 ms", apart))
    add(p, "--time-format", "--time-zone", "--map", "--decimal", "--missing")


def add_trace_bounds(p: argparse.ArgumentParser) -> None:
    """Options of a trace: how its feed is read, and which part of it."""
    add_reading(p, apart="1 s")
    p.add_argument("--start", metavar="TIME", help="when the clock starts (default: with the first event)")
    p.add_argument("--until", metavar="TIME", help="when the trace ends (default: when no timer is awaited)")
    add(p, "--limit", help="only the first N events (200)")
    p.add_argument("--labels", type=names, metavar="A,B", help="attributes in the labels of events")


def add_wanted_output(p: argparse.ArgumentParser) -> None:
    """Options that say which output did not come."""
    p.add_argument("output", metavar="STREAM", help="the stream that it should come from, or a query that writes one")
    p.add_argument(
        "values", nargs="*", type=attribute_and_value, metavar="ATTRIBUTE=VALUE", help="values that it should have"
    )
    p.add_argument("--at", metavar="TIME", help="about when it should have come (default: any time)")
    p.add_argument(
        "--event", type=positive, action="append", default=[], metavar="N",
        help="the number of an event that it should come from; may be given several times",
    )  # fmt: skip


def add_compared(p: argparse.ArgumentParser, prefix: str = "") -> None:
    """Options that say which outputs of two texts are compared, and how; `prefix` begins the help of each."""
    p.add_argument(
        "--rename", action="append", default=[], type=new_name, metavar="OLD=NEW",
        help=f"{prefix}the stream or attribute OLD is called NEW in the new text; STREAM.OLD=STREAM.NEW for an "
        "attribute of one stream alone (default: names that have plainly changed)",
    )  # fmt: skip
    p.add_argument(
        "--warm-up", default="0 sec", metavar="DURATION",
        help=f"{prefix}do not judge outputs of the first DURATION: a recording may begin in the middle (default: 0)",
    )  # fmt: skip
    p.add_argument(
        "--ignore", action="append", default=[], metavar="ATTRIBUTE",
        help=f"{prefix}compare outputs without this attribute, such as one of UUID(); may be given several times",
    )  # fmt: skip
    p.add_argument(
        "--freeze", action="store_true",
        help=f"{prefix}UUID(), math:rand and the wall clock give both texts equal values for an event",
    )  # fmt: skip


def compared_of(o: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `App.compare` that the options of `add_compared` set."""
    return {"new_names": dict(o.rename), "warm_up": o.warm_up, "ignore": o.ignore, "freeze": o.freeze}


def add_pace(p: argparse.ArgumentParser) -> None:
    """Adds the options that say how fast a feed is."""
    add(p, "--speed", "--rate")


RANDOM_RATE = (
    "events a second (default: as fast as possible); with --random of event time (default: 10), which --speed 1 "
    "plays at that rate"
)
"""The help of `--rate` where events can be generated."""


def play_of(o: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `App.feed` that the options of `add_pace` and `--disorder` set. Raises `Misuse` for a
    disorder that is none."""
    arguments = {name: getattr(o, name) for name in ("speed", "rate") if getattr(o, name) is not None}
    if o.disorder is None:
        return arguments
    from .sources.disorder import Disorder

    return {**arguments, "disorder": Disorder.parse(o.disorder)}


def reading_of(o: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `App.feed` that the options of `add_reading` set."""
    names = ("time", "time_format", "time_zone", "decimal", "missing")
    return {**{name: getattr(o, name) for name in names}, "columns": dict(o.map) or None}


def deployment_of(o: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `app.deploy` that the options of a deployment set."""
    names = [p.name for p in parameters() if p.option is not None and p.name != "variables"]
    return {**{name: getattr(o, name) for name in names}, "variables": dict(o.param)}
