"""Completion in `%%siddhi` cells and `%siddhi` lines: SiddhiQL keywords, the app's own names, commands and options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher

from .. import cluster
from ..lang.keywords import KEYWORDS
from ..options import MODES, Options
from ..plan.functions import AGGREGATORS, SCALARS, STREAM_FUNCTIONS, WINDOWS
from ..plan.nodes import DURATIONS

ANNOTATIONS = (
    "@app:name",
    "@app:description",
    "@info",
    "@store",
    "@PrimaryKey",
    "@Index",
    "@PartitionById",
    "@purge",
    "@OnError",
    "@source",
    "@sink",
    "@map",
    "@async",
    "@dist",
)
_WORD = re.compile(r"[@#%]?[\w:.\-]*$")
_DEFINED = re.compile(
    r"\b(?:define\s+(?:stream|table|window|aggregation|trigger)|insert\s+(?:\w+\s+events\s+)?into)\s+([A-Za-z_]\w*)",
    re.I,
)
_SCHEMA = re.compile(r"\bdefine\s+(?:stream|table|window)\s+\w+\s*\(([^)]*)\)", re.I)
_ALIAS = re.compile(r"\bas\s+([A-Za-z_]\w*)", re.I)


@cache
def vocabulary() -> tuple[str, ...]:
    """Keywords, functions and aggregators; windows and stream functions with the sign before them."""
    words = [
        *KEYWORDS,
        *SCALARS,
        *AGGREGATORS,
        *(f"#window.{w}" for w in WINDOWS),
        *(f"#{f}" for f in STREAM_FUNCTIONS),
    ]
    return tuple(dict.fromkeys([*words, *ANNOTATIONS]))


def own_names(text: str) -> list[str]:
    """Streams, tables, attributes and aliases that an app's text introduces, even if it does not parse."""
    attributes = [a.split()[0] for schema in _SCHEMA.findall(text) for a in schema.split(",") if a.split()]
    return list(dict.fromkeys([*_DEFINED.findall(text), *attributes, *_ALIAS.findall(text)]))


class Completer:
    """A matcher for IPython's completer. `names` is the notebook's namespace, for data frames to feed."""

    def __init__(self, names: Mapping[str, Any], commands: Mapping[str, Options], cell: Options) -> None:
        self._names, self._commands, self._cell = names, commands, cell

        @context_matcher(identifier="sparkstream.siddhi", priority=200)
        def matches(context: CompletionContext) -> dict[str, Any]:
            return self._matches(context)

        self.matches = matches

    def _matches(self, context: CompletionContext) -> dict[str, Any]:
        line = context.line_with_cursor[: context.cursor_position]
        found = self.candidates(context.full_text, context.cursor_line, line)
        if found is None:
            return {"completions": []}
        prefix = _WORD.search(line)
        fragment = prefix[0] if prefix else ""
        fits = [c for c in found if c.lower().startswith(fragment.lower()) and c != fragment]
        return {
            "completions": [SimpleCompletion(c, type="siddhi") for c in sorted(fits, key=lambda c: (c.lower(), c))],
            "matched_fragment": fragment,
            "suppress": True,
        }

    def candidates(self, text: str, row: int, line: str) -> Iterable[str] | None:
        """Completions at the end of `line`, line `row` (from 0) of the cell `text`; None outside these magics."""
        if text.lstrip().startswith("%%siddhi"):
            if row == 0:
                return self._on_cell_line(line)
            return [*own_names(text), *vocabulary(), *self._query_names(text)]
        if re.match(r"\s*%siddhi\b", line):
            return self._on_command(line)
        return None

    def _on_cell_line(self, line: str) -> list[str]:
        before = line.split()[:-1] if not line.endswith(" ") else line.split()
        if before and before[-1] == "--mode":
            return list(MODES)
        if before and before[-1] == "--routing":
            return ["round_robin", "hash:", "node:"]
        return [*self._cell._option_string_actions, *cluster.apps()]

    def _on_command(self, line: str) -> list[str]:
        words = line.split()
        before = words[:-1] if not line.endswith(" ") else words
        if len(before) < 2:
            return list(self._commands)
        if before[-1] == "--per":
            return list(DURATIONS)
        command = before[1]
        options = list(self._commands[command]._option_string_actions) if command in self._commands else []
        apps = cluster.apps()
        if command in ("feed", "send", "output"):
            parts = [f"{n}.{s}" for n, a in apps.items() for s in a.plan.streams]
            return [*parts, *options, *(self._frames() if command == "feed" else [])]
        if command == "view":
            return [*(f"{n}.{g}" for n, a in apps.items() for g in a.plan.aggregations), *options]
        return [
            *apps,
            *options,
            *(self._query_names(line) if command == "query" else []),
            *(vocabulary() if command == "query" else []),
        ]

    def _frames(self) -> list[str]:
        return [
            n
            for n, v in self._names.items()
            if not n.startswith("_") and hasattr(v, "columns") and not isinstance(v, type)
        ]

    def _query_names(self, text: str) -> list[str]:
        """Tables, aggregations and attributes of the running app that a query's line names."""
        for name, app in cluster.apps().items():
            if re.search(rf"\b{re.escape(name)}\b", text.split("\n", 1)[0]):
                plan = app.plan
                sources = [*plan.tables, *plan.windows, *plan.aggregations]
                return [*sources, *(a for s in sources for a in plan.schema(s).names)]
        return []
