"""The tools of `sparkstream mcp`: each is a command of the command line, called with texts in place of files.

An agent's arguments become files of a folder and the words of a command line (`request_of`): nothing is done here that
the command does not do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from ...app.config.grants import Grants
from ...errors import Misuse, SiddhiError, has_surrogate, nearest, shown
from ...testing.siddhitest_parser import parse_test_file

APP_FILE, TEST_FILE = "app.siddhi", "app.siddhitest"
MOST_CHARACTERS = 1_000_000
"""Characters of all texts of a call together."""
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


ArgumentUse = Enum(
    "ArgumentUse", "FILE FILE_BESIDE WORD OPTION NUMBER FLAG OPTIONS VARIABLES FEED FEED_FILES CONNECTED QUESTION"
)
"""The use of an argument on the command line: the text of a file that is a word of it, or that another file names; a
word; one option or several; values of `--param` and `--feed`; `--offline` left out; what the search is asked."""
_JSON_TYPES: Mapping[ArgumentUse, str] = {
    ArgumentUse.NUMBER: "integer", ArgumentUse.FLAG: "boolean", ArgumentUse.CONNECTED: "boolean",
    ArgumentUse.OPTIONS: "array", ArgumentUse.VARIABLES: "object", ArgumentUse.FEED: "object",
    ArgumentUse.FEED_FILES: "object",
}  # fmt: skip
"""The types of arguments that are not one text."""
_PYTHON_TYPES: Mapping[str, type] = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}


@dataclass(frozen=True)
class ToolArgument:
    """An argument of a tool. `file`: the name of the file that its text is written to."""

    name: str
    use: ArgumentUse
    help: str
    file: str = ""

    @property
    def json_type(self) -> str:
        return _JSON_TYPES.get(self.use, "string")

    @property
    def is_required(self) -> bool:
        return self.use in (ArgumentUse.FILE, ArgumentUse.QUESTION)

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""
        out: dict[str, Any] = {"type": self.json_type, "description": self.help}
        if self.json_type == "object":
            out["additionalProperties"] = {"type": "string"}
        if self.json_type == "array":
            out["items"] = {"type": "string"}
        return out


@dataclass(frozen=True)
class AgentTool:
    """A tool: its name, as the command is called, a description, and its arguments. `verdicts`: exit codes of the
    command whose output is an answer, such as the mistakes that `check` finds. `has_env`, `has_scripts`: whether the
    command has `--allow-env` and `--allow-scripts`."""

    name: str
    description: str
    arguments: tuple[ToolArgument, ...]
    verdicts: frozenset[int] = frozenset({0})
    has_env: bool = True
    has_scripts: bool = True

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        return {
            "type": "object",
            "properties": {a.name: a.schema() for a in self.arguments},
            "required": [a.name for a in self.arguments if a.is_required],
            "additionalProperties": False,
        }


APP = ToolArgument("app", ArgumentUse.FILE, "the app: SiddhiQL text", file=APP_FILE)
VARIABLES = ToolArgument("variables", ArgumentUse.VARIABLES, "the values of ${NAME} in the text, by name")
TIME = ToolArgument("time", ArgumentUse.OPTION, "the column of event times (ms since 1970, or a time)")
FEED = ToolArgument(
    "feed", ArgumentUse.FEED, "events, by stream: CSV with a first line that names the columns, in order of time"
)
FEED_FILES = ToolArgument(
    "feed_files", ArgumentUse.FEED_FILES, "events, by stream: the path of a .csv or .parquet file that is granted"
)
NODES = ToolArgument("nodes", ArgumentUse.NUMBER, "the number of nodes")
ROUTING = ToolArgument("routing", ArgumentUse.OPTION, "which node gets an event: round_robin, hash:ATTRIBUTE, node:K")
OF_FEED = (APP, FEED, FEED_FILES, TIME, VARIABLES)
OF_NODES = (*OF_FEED, NODES, ROUTING)
OF_RUN = (
    ToolArgument("query", ArgumentUse.OPTIONS, "on-demand queries to answer at the end"),
    ToolArgument("last", ArgumentUse.NUMBER, "print the last so many events of each stream (default: 10)"),
    ToolArgument("connected", ArgumentUse.CONNECTED, "use the sources, sinks and databases of the text"),
    ToolArgument("seconds", ArgumentUse.NUMBER, "how long a connected app runs after its feed (default: 5)"),
)

TOOLS = (
    AgentTool(
        "check",
        "Check an app's syntax, names, types and rules. Mistakes have line and column.",
        (APP, VARIABLES),
        frozenset({0, 1}),
        has_scripts=False,
    ),
    AgentTool(
        "explain",
        "Print an app's plan: where each part runs, how routing to several nodes affects each query, and why.",
        (
            APP,
            VARIABLES,
            ToolArgument("repair", ArgumentUse.FLAG, "print repairs that make each query right on several nodes"),
        ),
        has_scripts=False,
    ),
    AgentTool(
        "run",
        "Run an app over events and print its outputs, errors, and answers to on-demand queries. Sources, sinks and "
        "databases are left out, unless `connected` is true: then those that are granted take part.",
        (*OF_NODES, *OF_RUN),
    ),
    AgentTool(
        "trace",
        "Print step by step what a window holds over events, or a pattern's partial matches.",
        (*OF_FEED, ToolArgument("query", ArgumentUse.WORD, "a query or named window (default: the only one)")),
        has_env=False,
    ),
    AgentTool(
        "follow",
        "Print the history of an event (filters, windows, partial matches, tables, outputs), or the events of an "
        "output.",
        (
            *OF_NODES,
            ToolArgument("event", ArgumentUse.NUMBER, "the event with this number; the first of the feed is 1"),
            ToolArgument("output", ArgumentUse.OPTION, "an output: STREAM=N is the Nth of the stream"),
        ),
    ),
    AgentTool(
        "test",
        "Run the tests of a test file: steps `send STREAM` and `expect STREAM`, each with a table below it.",
        (
            ToolArgument(
                "test", ArgumentUse.FILE, f"the test file; `app: {APP_FILE}` in it means the app, or `app:` with the "
                "app's text in the lines below", file=TEST_FILE,
            ),
            ToolArgument("app", ArgumentUse.FILE_BESIDE, "the app: SiddhiQL text", file=APP_FILE),
        ),
        frozenset({0, 1}),
        has_env=False,
    ),
    AgentTool(
        "compare",
        "Compare two texts of an app over the same events: outputs that are gone, new or other, with the clause that "
        "causes it.",
        (
            *OF_NODES,
            ToolArgument("new", ArgumentUse.FILE, "the other text", file="new.siddhi"),
        ),
    ),
    AgentTool(
        "divergence",
        "List the outputs that several nodes lose, repeat or invent, against one node, with their causes.",
        OF_NODES,
    ),
    AgentTool(
        "search_documentation",
        "Search the documentation of SparkStream Notebook and of SiddhiQL's windows and functions.",
        (ToolArgument("query", ArgumentUse.QUESTION, "a few words"),),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class AgentGrants:
    """The rights of agents, given on the command line. `rows`: of the feeds of a call; `seconds`: of a call."""

    allow: tuple[str, ...] = ()
    allow_env: tuple[str, ...] = ()
    allow_scripts: bool = False
    rows: int = 10_000
    seconds: int = 120

    def parse(self) -> Grants:
        """The grants of connections and folders. Raises `Misuse` for one that is wrong."""
        return Grants.of(self.allow)


@dataclass
class ToolRequest:
    """A call as a command: its `words`, and the `files` that they name."""

    words: list[str]
    files: dict[str, str] = field(default_factory=dict)


def tool_of(name: str) -> AgentTool:
    """Raises `Misuse` for another name."""
    for tool in TOOLS:
        if tool.name == name:
            return tool
    raise Misuse(nearest(f"there is no tool {shown(name)}", name, [t.name for t in TOOLS]))


def check_arguments(tool: AgentTool, values: Mapping[str, Any]) -> None:
    """Raises `Misuse` for arguments that the tool does not have, that are missing, or are of another type."""
    by_name = {a.name: a for a in tool.arguments}
    for name, value in values.items():
        if name not in by_name:
            raise Misuse(nearest(f"{tool.name} has no argument {shown(name)}", name, by_name))
        type_ = by_name[name].json_type
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
        is_right = isinstance(value, _PYTHON_TYPES[type_]) and (type_ == "boolean" or not isinstance(value, bool))
        if not is_right or not all(isinstance(item, str) for item in items):
            of_texts = " of texts" if type_ in ("array", "object") else ""
            raise Misuse(f"{name} of {tool.name} is of type {type_}{of_texts}, not {shown(value)}")
    for argument in tool.arguments:
        if argument.is_required and not values.get(argument.name):
            raise Misuse(f"{tool.name} needs {argument.name}: {argument.help}")


def request_of(tool: AgentTool, values: Mapping[str, Any], grants: AgentGrants) -> ToolRequest:
    """The command of a call. Raises `Misuse` for wrong arguments and for texts that are too long, and NotAllowed for a
    file that is not granted."""
    check_arguments(tool, values)
    request = ToolRequest([tool.name])
    options: list[str] = []
    for argument in tool.arguments:
        if (value := values.get(argument.name)) is not None:
            options += _words(argument, value, grants, request)
    _check_sizes(request, values, grants)
    if tool.name == "run":
        options += ["--home=home", "--master=inline", *_connection_words(values, grants)]
    if tool.name == "test":
        _check_test(request.files[TEST_FILE])
    if grants.allow_scripts and tool.has_scripts:
        options.append("--allow-scripts")
    if grants.allow_env and tool.has_env:
        options.append(f"--allow-env={','.join(grants.allow_env)}")
    request.words[1:1] = options
    for word in request.words:
        if "\0" in word or has_surrogate(word):
            raise Misuse(f"a command cannot have a NUL or half of a surrogate pair in a word: {shown(word)}")
    return request


def _words(argument: ToolArgument, value: Any, grants: AgentGrants, request: ToolRequest) -> Iterator[str]:
    """The options of an argument; files and their names go into `request`."""
    match argument.use:
        case ArgumentUse.FILE:
            request.files[argument.file] = value
            request.words.append(argument.file)
        case ArgumentUse.FILE_BESIDE:
            request.files[argument.file] = value
        case ArgumentUse.WORD:
            if value.startswith("-"):
                raise Misuse(f"{argument.name} begins with '-', which no name does: {shown(value)}")
            request.words.append(value)
        case ArgumentUse.OPTION | ArgumentUse.NUMBER:
            yield f"--{argument.name}={value}"
        case ArgumentUse.FLAG:
            if value:
                yield f"--{argument.name}"
        case ArgumentUse.OPTIONS:
            yield from (f"--{argument.name}={text}" for text in value)
        case ArgumentUse.VARIABLES:
            yield from (f"--param={_name(name, 'a variable')}={text}" for name, text in value.items())
        case ArgumentUse.FEED:
            for number, (stream, text) in enumerate(value.items()):
                request.files[f"feed-{number}.csv"] = text
                yield f"--feed={_name(stream, 'a stream')}=feed-{number}.csv"
        case ArgumentUse.FEED_FILES:
            for stream, path in value.items():
                grants.parse().folder_of(Path(path), f"the feed of {stream}:", file=True)
                yield f"--feed={_name(stream, 'a stream')}={Path(path).resolve()}"


def _name(name: str, what: str) -> str:
    if not _NAME.fullmatch(name):
        raise Misuse(f"{shown(name)} is not the name of {what}")
    return name


def _connection_words(values: Mapping[str, Any], grants: AgentGrants) -> Iterator[str]:
    if not values.get("connected"):
        if "seconds" in values:
            raise Misuse("seconds is for an app that is connected: give connected as well")
        yield "--offline"
        return
    yield from (f"--allow={text}" for text in grants.allow)
    if "seconds" not in values:
        yield "--seconds=5"


def _check_sizes(request: ToolRequest, values: Mapping[str, Any], grants: AgentGrants) -> None:
    characters = sum(map(len, request.files.values()))
    if characters > MOST_CHARACTERS:
        raise Misuse(f"the texts of a call have {MOST_CHARACTERS:,} characters at most, and these {characters:,}")
    rows = sum(max(text.count("\n"), text.count("\r")) for text in values.get("feed", {}).values())
    if rows > grants.rows + len(values.get("feed", {})):
        raise Misuse(f"the feed of a call has {grants.rows:,} rows at most, and this one about {rows:,}")


def _check_test(text: str) -> None:
    """Raises `Misuse` for a test of an app in a file of this machine. Other mistakes are the command's to tell."""
    try:
        tests = parse_test_file(Path(TEST_FILE), text).tests
    except SiddhiError:
        return
    for test in tests:
        if test.app.path not in (None, Path(APP_FILE)):
            raise Misuse(f"app: {shown(str(test.app.path))} is not this call's: write app: {APP_FILE}")
