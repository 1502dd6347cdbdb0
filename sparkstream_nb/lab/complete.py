"""Completion in `%%siddhi` cells and `%siddhi` lines: SiddhiQL by its place, commands and options."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher

from .. import app as api
from ..app.attaching import attachable_names
from ..ingest.feed_files import header_of_file
from ..lang.keywords import KEYWORDS, TYPES, UNIT_SPELLINGS
from ..options import Options
from ..plan.functions import AGGREGATORS, SCALARS, STREAM_FUNCTIONS, WINDOWS
from ..plan.nodes import DURATIONS
from ..request import MODES
from ..testing.model import SUFFIX
from .completion import CompletionQuery, at_cursor
from .completion.app_names import CompletionNames, of_plan
from .sql_lines import relation_names
from .trace_line import traceable

_WORD = re.compile(r"[@#%]?[\w:.\-]*$")
_COLUMN = re.compile(r"--(?:map\s+[\w`]+=|time\s+)(?P<word>\"[^\"]*|[^\s\"]*)$")
"""An option of a feed that ends with the beginning of a column's name."""
_PLAIN = re.compile(r"[\w:.\-]+")
"""A word that needs no quotes."""

ROUTED = ("round_robin", "hash:", "node:", "random:", "sticky")
"""The beginnings of values of --routing."""
_STREAM = re.compile(r"\bdefine\s+stream\s+\S+\s*\(([^()]*)", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"(\w+)\s+\w+\s*(?:,|$)")


def _list_attributes(text: str) -> list[str]:
    """The attributes of the streams that an app's text defines, finished or not."""
    return list(dict.fromkeys(a for schema in _STREAM.findall(text) for a in _ATTRIBUTE.findall(schema)))


class Completer:
    """A matcher for IPython's completer. `names` is the notebook's namespace, for data frames to feed."""

    def __init__(self, names: Mapping[str, Any], commands: Mapping[str, Options], cell: Options) -> None:
        self._names, self._commands, self._cell = names, commands, cell

        @context_matcher(identifier="sparkstream.siddhi", priority=200)
        def matches(context: CompletionContext) -> dict[str, Any]:
            return self._matches(context)

        self.matches = matches

    def _matches(self, context: CompletionContext) -> dict[str, Any]:
        text, row = context.full_text, context.cursor_line
        line = context.line_with_cursor[: context.cursor_position]
        if text.lstrip().startswith("%%siddhi") and row > 0:
            if "--sql" in text.lstrip().partition("\n")[0].split():
                return _completions(line, relation_names())
            completions = at_cursor(self._body(text, row, context.cursor_position))
            return _result(completions.fragment, completions.words)
        if text.lstrip().startswith("%%siddhi"):
            words = self._on_cell_line(line, text)
        elif re.match(r"\s*%siddhi\b", line):
            if re.match(r"\s*%siddhi\s+query\s+\S+\s", line):
                completions = at_cursor(self._query_on_line(line))
                if completions.words:
                    return _result(completions.fragment, completions.words)
            if re.match(r"\s*%siddhi\s+sql\s", line):
                return _completions(line, relation_names())
            column = _COLUMN.search(line) if re.match(r"\s*%siddhi\s+feed\s", line) else None
            if column is not None:
                return self._columns(line, column["word"])
            words = self._on_command(line)
        else:
            return {"completions": []}
        return _completions(line, words, self._commands)

    @staticmethod
    def _body(text: str, row: int, column: int) -> CompletionQuery:
        """The body of a cell, parted at the cursor. Row 0 is the line of the magic."""
        lines = text.split("\n")
        words = lines[0].split()
        before = "\n".join([*lines[1:row], lines[row][:column]])
        after = "\n".join([lines[row][column:], *lines[row + 1 :]])
        if "--query" not in words:
            return CompletionQuery(before, after)
        running = [a for n, a in api.apps().items() if n in words]
        return CompletionQuery(before, after, of_plan(running[0].plan) if running else CompletionNames())

    @staticmethod
    def _query_on_line(line: str) -> CompletionQuery:
        """The query of a line `%siddhi query NAME "from ...`, which ends at the cursor."""
        name, _, text = line.split(None, 2)[2].partition(" ")
        app = api.apps().get(name)
        return CompletionQuery(text.lstrip().lstrip("\"'"), "", of_plan(app.plan) if app else CompletionNames())

    def _on_cell_line(self, line: str, text: str) -> list[str]:
        before = line.split()[:-1] if not line.endswith(" ") else line.split()
        if before and before[-1] == "--mode":
            return list(MODES)
        if before and before[-1] == "--routing":
            return [*ROUTED, *(f"hash:{a}" for a in _list_attributes(text.partition("\n")[2]))]
        return [*self._cell._option_string_actions, *api.apps()]

    def _on_command(self, line: str) -> list[str]:
        words = line.split()
        before = words[:-1] if not line.endswith(" ") else words
        if len(before) < 2:
            return list(self._commands)
        if before[-1] == "--per":
            return list(DURATIONS)
        if before[-1] == "--newest":
            return ["first", "last"]
        if before[1] == "chart" and before[-1] == "--kind":
            return ["line", "bar", "points"]
        if before[1] == "chart" and before[-1] in ("--y", "--by", "--x"):
            more = {"--y": [], "--by": ["node"], "--x": ["time"]}[before[-1]]
            return [*self._attributes(before[2], numeric=before[-1] != "--by"), *more]
        if before[1] == "tail" and before[-1] in ("--latest", "--number"):
            return self._attributes(before[2])
        if before[-1] in ("--routing", "--route"):
            app = api.apps().get(before[2].partition(".")[0]) if len(before) > 2 else None
            streams = [] if app is None else [s.source.schema for s in app.plan.streams.values() if s.kind == "defined"]
            return [*ROUTED, *dict.fromkeys(f"hash:{name}" for schema in streams for name in schema.names)]
        command = before[1]
        options = list(self._commands[command]._option_string_actions) if command in self._commands else []
        apps = api.apps()
        if command in ("feed", "send", "output", "tail", "chart"):
            parts = [f"{n}.{s}" for n, a in apps.items() for s in a.plan.streams]
            if command == "feed" and len(before) == 3:
                return [*self._frames(), *_files(line, (".csv", ".parquet")), *options]
            return [*parts, *options, *(self._frames() if command == "feed" else [])]
        if command == "trace":
            sources = [*self._frames(), *_files(line, (".csv", ".parquet"))] if len(before) > 2 else traceable(apps)
            return [*sources, *options]
        if command == "test":
            return [*_files(line, (SUFFIX,)), *options]
        if command == "attach":
            return [*attachable_names(), *options]
        if command == "view":
            return [*(f"{n}.{g}" for n, a in apps.items() for g in a.plan.aggregations), *options]
        return [*apps, *options]

    @staticmethod
    def _attributes(stream: str, *, numeric: bool = False) -> list[str]:
        """The attributes of a stream that is written `App.Stream`; with `numeric` the numbers only."""
        schemas = {f"{n}.{s}": d.source.schema for n, a in api.apps().items() for s, d in a.plan.streams.items()}
        attributes = schemas.get(stream, ())
        return [a.name for a in attributes if a.type.numeric or not numeric]

    def _columns(self, line: str, word: str) -> dict[str, Any]:
        """The columns of the source of a feed whose option ends at the cursor with the beginning `word` of one."""
        words = line.split()
        source = words[3].strip("\"'") if len(words) > 3 else ""
        frame = self._names.get(source)
        columns = header_of_file(Path(source)) if frame is None else [str(c) for c in getattr(frame, "columns", ())]
        within = word.startswith('"')
        fits = [c for c in columns if c.lower().startswith(word.lstrip('"').lower())]
        return _result(word, [f'"{c}"' if within or not _PLAIN.fullmatch(c) else c for c in fits])

    def _frames(self) -> list[str]:
        return [
            n
            for n, v in self._names.items()
            if not n.startswith("_") and hasattr(v, "columns") and not isinstance(v, type)
        ]


def _files(line: str, suffixes: tuple[str, ...]) -> list[str]:
    """The files with these suffixes, and the folders, where the path that ends `line` leads."""
    folder = Path((re.search(r"\S*$", line) or [""])[0].rpartition("/")[0] or ".")
    try:
        paths = [p for p in folder.iterdir() if not p.name.startswith(".") and _PLAIN.fullmatch(p.name)]
        return [f"{p.name}/" if p.is_dir() else p.name for p in paths if p.is_dir() or p.suffix in suffixes]
    except OSError:
        return []


def _completions(line: str, words: Iterable[str], commands: Collection[str] = ()) -> dict[str, Any]:
    """The words that begin as the last one of a line does, and are not that one."""
    prefix = _WORD.search(line)
    prefix_text = prefix[0] if prefix else ""
    fits = [c for c in words if c.lower().startswith(prefix_text.lower()) and c != prefix_text]
    return _result(prefix_text, sorted(fits, key=lambda c: (c.lower(), c)), commands)


_KINDS: Sequence[tuple[str, Collection[str]]] = (
    ("type", TYPES), ("unit", UNIT_SPELLINGS), ("keyword", KEYWORDS), ("aggregate", AGGREGATORS),
    ("function", SCALARS), ("window", WINDOWS), ("stream function", STREAM_FUNCTIONS),
)  # fmt: skip


def _kind_of(word: str, commands: Collection[str]) -> str:
    """The kind of a word, which JupyterLab shows beside it."""
    signs = {"--": "option", "@": "annotation", "#window.": "window", "#": "stream function"}
    if (kind := next((kind for sign, kind in signs.items() if word.startswith(sign)), None)) is not None:
        return kind
    if word.endswith("="):
        return "option"
    if word in commands:
        return "command"
    first = word.partition("\u00a0")[0]  # of several keywords, as `insert into`
    return next((kind for kind, words in _KINDS if first in words or first.lower() in words), "name")


def _result(prefix: str, words: Iterable[str], commands: Collection[str] = ()) -> dict[str, Any]:
    """A matcher's answer: these words, in this order, and no others."""
    completions = [SimpleCompletion(w, type=_kind_of(w, commands)) for w in words]
    return {"completions": completions, "matched_fragment": prefix, "suppress": True, "ordered": True}
