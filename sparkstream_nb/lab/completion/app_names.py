"""The names that an app introduces, from its text, which need not parse, or from the plan of a running app."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from lark import Token

from ...lang.keywords import UNIT_SPELLINGS
from ...lang.partial import lex_text, statements
from ...plan.nodes import DURATIONS, Plan

Kind = Literal["stream", "table", "window", "aggregation", "trigger"]
_KINDS: dict[str, Kind] = {k: k for k in ("stream", "table", "window", "aggregation", "trigger")}
# Words behind a query's select.
_AFTER_SELECT = frozenset({"group", "having", "order", "limit", "offset", "insert", "update", "delete", "return"})
_AFTER_SELECT_OF_AGGREGATION = frozenset({"group", "aggregate"})


@dataclass(frozen=True)
class Defined:
    """A stream, table, window, aggregation or trigger. `durations` are those that an aggregation keeps."""

    name: str
    kind: Kind
    attributes: tuple[str, ...] = ()
    durations: tuple[str, ...] = ()


@dataclass
class CompletionNames:
    """Definitions by name."""

    definitions: dict[str, Defined] = field(default_factory=dict)

    def of(self, *kinds: Kind) -> list[str]:
        """The names of these kinds, in the order of the text."""
        return [d.name for d in self.definitions.values() if d.kind in kinds]

    def attributes(self, name: str) -> tuple[str, ...]:
        """The attributes of `name`; none if it is not known."""
        return self.definitions[name].attributes if name in self.definitions else ()


def of_text(*pieces: str) -> CompletionNames:
    """The names that the statements of `pieces` introduce."""
    names = CompletionNames()
    read = [s for piece in pieces for s in statements(lex_text(piece))]
    for statement in read:
        for d in _definition(statement):
            names.definitions[d.name] = d
    for statement in read:
        for d in _infer_stream(statement, names):
            names.definitions.setdefault(d.name, d)
    return names


def of_plan(plan: Plan) -> CompletionNames:
    """Names that a retrieval query on a running app can use."""
    all_names = CompletionNames()
    names_by_kind: tuple[tuple[Kind, Sequence[str]], ...] = (("table", [*plan.tables]), ("window", [*plan.windows]))
    for kind, names in names_by_kind:
        for name in names:
            all_names.definitions[name] = Defined(name, kind, tuple(plan.schema(name).names))
    for name, a in plan.aggregations.items():
        all_names.definitions[name] = Defined(name, "aggregation", tuple(plan.schema(name).names), tuple(a.durations))
    return all_names


def plain(token: Token) -> str:
    """A name without its back quotes."""
    return str(token).strip("`")


def _definition(statement: Sequence[Token]) -> Iterator[Defined]:
    at = _word(statement, "define")
    if at is None or at + 2 >= len(statement):
        return
    kind, name = _KINDS.get(statement[at + 1].lower()), plain(statement[at + 2])
    if kind is None or statement[at + 2].type != "ID":
        return
    rest = statement[at + 3 :]
    if kind == "aggregation":
        selected_names = _selected_names(rest, _AFTER_SELECT_OF_AGGREGATION)
        yield Defined(name, kind, ("AGG_TIMESTAMP", *selected_names), _durations(rest))
    elif kind == "trigger":
        yield Defined(name, kind, ("triggered_time",))
    else:
        # `name TYPE` pairs, until the bracket closes; the type may not be written yet.
        end = next((i for i, t in enumerate(rest) if t.type == "RPAR"), len(rest))
        inside = rest[:end]
        starts = [i + 1 for i, t in enumerate(inside) if t.type in ("LPAR", "COMMA")]
        attributes = tuple(plain(inside[i]) for i in starts if i < len(inside) and inside[i].type == "ID")
        yield Defined(name, kind, attributes)


def _infer_stream(statement: Sequence[Token], defined_names: CompletionNames) -> Iterator[Defined]:
    """The stream that a query inserts into."""
    into = _word(statement, "into")
    if into is None or into + 1 >= len(statement) or statement[into + 1].type != "ID":
        return
    attributes = _selected_names(statement, _AFTER_SELECT)
    if not attributes:  # select * passes on the input's attributes
        source = _word(statement, "from")
        name = plain(statement[source + 1]) if source is not None and source + 1 < into else ""
        attributes = defined_names.attributes(name)
    yield Defined(plain(statement[into + 1]), "stream", attributes)


def _selected_names(statement: Sequence[Token], end_tokens: frozenset[str]) -> tuple[str, ...]:
    """The names that a select gives: behind each `as`, or of a plain attribute."""
    begin = _word(statement, "select")
    if begin is None:
        return ()
    out: list[str] = []
    depth = 0
    for i in range(begin + 1, len(statement)):
        token = statement[i]
        depth += {"LPAR": 1, "RPAR": -1}.get(token.type, 0)
        following = statement[i + 1] if i + 1 < len(statement) else None
        if depth == 0 and token.lower() in end_tokens:
            break
        ends = following is None or following.type == "COMMA" or following.lower() in end_tokens
        if depth == 0 and token.type == "ID" and ends:
            out.append(plain(token))
    return tuple(out)


def _durations(rest: Sequence[Token]) -> tuple[str, ...]:
    at = _word(rest, "every")
    if at is None:
        return DURATIONS
    units = [UNIT_SPELLINGS.get(t.lower(), "") for t in rest[at + 1 :] if t.type == "ID"]
    indexes = [i for i, duration in enumerate(DURATIONS) if duration in units]
    if indexes and any(t.type == "ELLIPSIS" for t in rest[at + 1 :]):
        return DURATIONS[min(indexes) : max(indexes) + 1 if len(indexes) > 1 else len(DURATIONS)]
    return tuple(DURATIONS[i] for i in indexes) or DURATIONS


def _word(statement: Sequence[Token], word: str) -> int | None:
    """The place of a keyword outside of brackets."""
    depth = 0
    for i, token in enumerate(statement):
        depth += {"LPAR": 1, "LSQB": 1, "RPAR": -1, "RSQB": -1}.get(token.type, 0)
        if depth == 0 and token.type == "ID" and token.lower() == word:
            return i
    return None
