"""The reference page of patterns and sequences: each operator with its meaning, an example and a drawing."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sparkstream_nb import trace
from sparkstream_nb.app.results.traces import PatternTrace

from .markdown import code, fence, table
from .trace_blocks import drawing

_STREAMS = {
    "Order": "define stream Order (id int, amount double);",
    "Payment": "define stream Payment (id int);",
    "Cancel": "define stream Cancel (id int);",
}


@dataclass(frozen=True)
class OperatorExample:
    """An operator: the title of its section, its meaning, a query, and events `[stream, seconds, values...]`."""

    title: str
    meaning: str
    query: str
    feed: list[list[Any]]

    @property
    def app(self) -> str:
        """The app: the streams that the query or the feed has, and the query."""
        used = [s for s in _STREAMS if s in self.query or any(e[0] == s for e in self.feed)]
        return "\n".join([*(_STREAMS[s] for s in used), "", "@info(name = 'q')", self.query.strip()])

    def trace(self) -> PatternTrace:
        """What the engine makes of it."""
        events = [(stream, round(1000 * at), values) for stream, at, *values in self.feed]
        found = trace(self.app, "q", events)
        assert isinstance(found, PatternTrace)
        return found


@dataclass(frozen=True)
class OperatorGroup:
    """Operators that belong together."""

    title: str
    meaning: str
    operators: list[OperatorExample]


@cache
def groups() -> list[OperatorGroup]:
    """All operators, as `pattern_examples.toml` has them."""
    found = tomllib.loads((Path(__file__).parent / "pattern_examples.toml").read_text(encoding="utf-8"))["groups"]
    return [
        OperatorGroup(g["title"], g["meaning"].strip(), [OperatorExample(**o) for o in g["operators"]]) for g in found
    ]


def patterns() -> str:
    """The page of patterns and sequences."""
    rows = [
        (f"[{o.title}](#{anchor(o.title)})", g.title, o.meaning.split(". ")[0].rstrip(".") + ".")
        for g in groups()
        for o in g.operators
    ]
    out = [
        "# Patterns and sequences",
        "",
        "A pattern (`->`) or sequence (`,`) finds events that belong together: `from every e1=A -> e2=B[x == e1.x] "
        "select ...`. Until all its states have their events it is a *partial match*; then it is a *match*, and the "
        "query has an output. The drawings below come from `sparkstream_nb.trace`, which draws every app of yours "
        "likewise. Above are the events by stream: filled ones are captured by a partial match. Each lane below is "
        "one partial match, with the names of the states over the events that they hold.",
        "",
        table(["operator", "of", "meaning"], rows),
    ]
    for group in groups():
        out += [f"## {group.title}", "", group.meaning, ""]
        for o in group.operators:
            out += _section(o)
    return "\n".join(out)


def _section(o: OperatorExample) -> Iterator[str]:
    found = o.trace()
    yield from (f"### {o.title} {{ #{anchor(o.title)} }}", "", o.meaning, "", fence(o.app, "siddhi"), drawing(found))
    rows = [
        (f"{x.time / 1000:g}", code(", ".join(f"{k} {_value(v)}" for k, v in x.values.items()))) for x in found.outputs
    ]
    yield from ("Output:", "", table(["at (s)", "event"], rows) or "Nothing.\n")


def _value(value: Any) -> str:
    return "null" if value is None else str(value)


def anchor(title: str) -> str:
    """The anchor of an operator's section."""
    kept = "".join(c if c.isalnum() else " " for c in title.lower())
    signs = {"->": "followed-by", ",": "next", "+": "plus", "*": "star", "?": "optional"}
    words = kept.split()
    return "-".join(words) if words else signs[title]
