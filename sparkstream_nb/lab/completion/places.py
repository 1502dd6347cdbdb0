"""Completions at a cursor: the grammar gives the possible next terminals, the clause the meaning of a name there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lark import Token

from ...lang.keywords import WORDS_OF
from ...lang.partial import Start, Unfinished, before_cursor
from ...plan.functions import AGGREGATORS, SCALARS, STREAM_FUNCTIONS, WINDOWS
from . import app_names
from .annotation_keys import KEYS, AnnotationPlace, keys_of, values_of

_FRAGMENT = re.compile(r"[@#!]?[\w.:]*$")
_WORD = re.compile(r"\w*$")

_SOURCES = frozenset({"_FROM", "_JOIN"})
_TARGETS = frozenset({"_INTO", "_UPDATE", "_DELETE"})
_EXPRESSIONS = frozenset({"_SELECT", "_HAVING", "_ON", "_BY", "_SET", "_WITH", "LSQB"})
_CLAUSES = _SOURCES | _TARGETS | _EXPRESSIONS | {"_OF", "_IN", "_LIMIT", "_OFFSET", "_DEFINE", "_WITHIN", "_PER"}
_BEFORE_SOURCE = frozenset(
    {"_FROM", "_JOIN", "_EVERY", "_NOT", "ARROW", "COMMA", "LPAR", "EQUAL", "AND", "OR"}
)  # what stands before a source among the inputs
_AFTER_INPUTS = frozenset({"_SELECT", "_INSERT", "_UPDATE", "_DELETE", "_ON", "_WITHIN", "_OUTPUT", "_RETURN"})
_PHRASES = {"_GROUP": "group by", "_ORDER": "order by", "_INSERT": "insert into", "_PARTITION": "partition with"}
# Keywords in the order in which one writes them; the others follow.
_ORDER = [
    "_DEFINE", "_FROM", "_PARTITION", "_STREAM", "_TABLE", "_AGGREGATION", "_WINDOW",
    "_TRIGGER", "_FUNCTION", "_SELECT", "_AS", "_JOIN", "_ON", "_WITHIN",
    "_PER", "_GROUP", "_HAVING", "_ORDER", "_LIMIT", "_OFFSET", "_AGGREGATE",
    "_OUTPUT", "_INSERT", "_INTO", "_UPDATE", "_DELETE", "AND", "OR",
    "_IN", "_IS",
]  # fmt: skip
_NAMES = ("ID", "KWNAME")


@dataclass(frozen=True)
class CompletionQuery:
    """A text with a cursor. `running` are the names of the app that an on-demand query is for; None in an app."""

    before: str
    after: str
    running: app_names.CompletionNames | None = None


@dataclass(frozen=True)
class Completions:
    """Replacements of `fragment`, which ends at the cursor; the best fit first."""

    fragment: str
    words: tuple[str, ...]


def at_cursor(query: CompletionQuery) -> Completions:
    """The completions of a text that need not be finished, nor right."""
    match = _FRAGMENT.search(query.before)
    prefix = match[0] if match else ""
    start: Start = "app" if query.running is None else "only_on_demand"
    read = before_cursor(query.before[: len(query.before) - len(prefix)], start)
    if read is None or prefix[:1].isdigit():
        return Completions(prefix, ())
    if read.quote is not None:
        word = _WORD.search(query.before)
        return _fitting_completions(word[0] if word else "", _in_quotes(read, query))
    return _fitting_completions(prefix, _words(read, prefix, query))


def _fitting_completions(prefix: str, words: Iterable[str]) -> Completions:
    lower = prefix.lower()
    fits = (w for w in dict.fromkeys(words) if w.lower().startswith(lower) and w != prefix)
    return Completions(prefix, tuple(fits))


def _defined_names(query: CompletionQuery, quote: str | None = None) -> app_names.CompletionNames:
    if query.running is not None:
        return query.running
    # The rest of this statement is not a statement of its own; nor is the rest of a text in quotes.
    after = query.after.partition(quote)[2] if quote is not None else query.after
    return app_names.of_text(query.before, after.partition(";")[2])


def _in_quotes(read: Unfinished, query: CompletionQuery) -> Sequence[str]:
    last = read.tokens[-1].type if read.tokens else ""
    if last == "_PER":
        names = _defined_names(query, read.quote)
        duration_lists = [
            names.definitions[s].durations
            for s in _CursorScope(read.tokens, names).sources
            if s in names.definitions
        ]
        return [d for durations in duration_lists for d in durations]
    annotation = _annotation(read)
    if annotation is not None and last == "EQUAL":
        return values_of(annotation, _key(read.tokens))
    return ()


def _words(read: Unfinished, prefix: str, query: CompletionQuery) -> list[str]:
    annotation = _annotation(read)
    if annotation is not None:
        follows_element = read.tokens[-1].type in ("LPAR", "COMMA") if read.tokens else False
        return [*(f"{k}=" for k in keys_of(annotation)), "@map", "@store"] if follows_element else []
    if prefix.startswith("@"):
        return [f"@{a}" for a in KEYS] if read.expected is None or "AT" in read.expected else []
    scope = _CursorScope(read.tokens, _defined_names(query))
    if prefix.startswith("#"):
        return _behind_hash(read, scope)
    if prefix.startswith("!"):
        return [f"!{s}" for s in scope.defined_names.of("stream")]
    if "." in prefix:
        owner = prefix.rpartition(".")[0]
        if owner == "" and read.tokens:  # `e1[0].`: the index stands between
            return [f".{a}" for a in scope.attributes_of(_indexed_name(read.tokens))]
        return [f"{owner}.{a}" for a in scope.attributes_of(owner)]
    expected_tokens = read.expected
    names = _list_kinds(read, scope) if expected_tokens is None or expected_tokens & set(_NAMES) else []
    signs = ["#window."] if expected_tokens and "HASH" in expected_tokens and _after_source(read) else []
    return [*names, *signs, *_keywords(expected_tokens or frozenset())]


def _behind_hash(read: Unfinished, scope: _CursorScope) -> list[str]:
    if _after_source(read):
        return [*(f"#window.{w}" for w in WINDOWS), *(f"#{f}" for f in STREAM_FUNCTIONS)]
    return [f"#{s}" for s in scope.defined_names.of("stream")]


def _after_source(read: Unfinished) -> bool:
    """True if the cursor is right behind a source or one of its handlers."""
    return bool(read.tokens) and read.tokens[-1].type in (*_NAMES, "RSQB", "RPAR")


def _keywords(expected_tokens: frozenset[str]) -> list[str]:
    place = {terminal: i for i, terminal in enumerate(_ORDER)}
    terminals = sorted(
        (t for t in expected_tokens if t in WORDS_OF and t != "KWNAME"), key=lambda t: (place.get(t, 99), t)
    )
    return [w for t in terminals for w in ((_PHRASES[t],) if t in _PHRASES else WORDS_OF[t])]


def _list_kinds(read: Unfinished, scope: _CursorScope) -> list[str]:
    """The kinds of names that fit at the cursor."""
    defined_names = scope.defined_names
    last = read.tokens[-1].type if read.tokens else ""
    if last == "_AS":
        return []
    clause = _clause(read.tokens)
    if clause in _SOURCES:
        return defined_names.of("stream", "table", "window", "aggregation", "trigger") if last in _BEFORE_SOURCE else []
    if clause == "_INTO":
        return defined_names.of("stream", "table", "window")
    if clause in ("_UPDATE", "_DELETE", "_IN"):
        return defined_names.of("table", "window") if clause == "_IN" else defined_names.of("table")
    if clause == "_OF":
        return defined_names.of("stream")
    if clause not in _EXPRESSIONS:
        return []
    if last == "_BY":
        return scope.attributes()
    aggregators = AGGREGATORS if clause in ("_SELECT", "_HAVING") else ()
    return [*scope.attributes(), *scope.references(), *aggregators, *SCALARS]


def _clause(tokens: Sequence[Token]) -> str:
    """The keyword, or the bracket of a filter, that begins the part of the statement in which the cursor is."""
    closing_depth = 0
    for token in reversed(tokens):
        if token.type in ("RPAR", "RSQB"):
            closing_depth += 1
        elif token.type in ("LPAR", "LSQB"):
            if closing_depth:
                closing_depth -= 1
            elif token.type == "LSQB":
                return "LSQB"
        elif not closing_depth and token.type in _CLAUSES:
            return token.type
    return ""


def _annotation(read: Unfinished) -> AnnotationPlace | None:
    """The annotation in whose brackets the cursor is, with those around it; None elsewhere."""
    place = None
    for i in read.open_brackets():
        name = _annotation_name(read.tokens, i)
        place = None if name is None else AnnotationPlace(name, _given_options(read.tokens[i + 1 :]), place)
    return place


def _annotation_name(t: Sequence[Token], i: int) -> str | None:
    """The name of the annotation whose bracket opens at `i`; None for a bracket of something else."""
    if i >= 4 and t[i - 2].type == "COLON" and t[i - 4].type == "AT":
        return _spelt(f"{t[i - 3]}:{t[i - 1]}")
    return _spelt(str(t[i - 1])) if i >= 2 and t[i - 2].type == "AT" else None


def _given_options(tokens: Sequence[Token]) -> dict[str, str]:
    """The options at the beginning of an annotation, whose bracket is before `tokens`, without inner annotations'."""
    out: dict[str, str] = {}
    depth = 0
    for i, token in enumerate(tokens):
        depth += (token.type == "LPAR") - (token.type == "RPAR")
        if depth == 0 and token.type == "STRING" and i and tokens[i - 1].type == "EQUAL":
            out.setdefault(_key(tokens[:i]), str(token).strip("'\""))
    return out


def _spelt(annotation: str) -> str:
    return next((a for a in KEYS if a.lower() == annotation.lower()), annotation)


def _key(tokens: Sequence[Token]) -> str:
    """The key before the `=` that ends `tokens`."""
    out: list[str] = []
    for token in reversed(tokens[:-1]):
        if token.type in ("LPAR", "COMMA"):
            break
        out.append(str(token))
    return "".join(reversed(out))


def _indexed_name(tokens: Sequence[Token]) -> str:
    """The name before the index that ends `tokens`: `e1` of `e1[0]`."""
    at = next((i for i in range(len(tokens) - 1, 0, -1) if tokens[i].type == "LSQB"), 0)
    return app_names.plain(tokens[at - 1]) if at else ""


def _changed_tables(tokens: Sequence[Token]) -> list[str]:
    """The table that the statement updates or deletes from, whose attributes its conditions may name."""
    changes = any(t.type in ("_UPDATE", "_DELETE") for t in tokens)
    before = ("_UPDATE", "_DELETE", "_INTO")
    pairs = pairwise(tokens)
    return [app_names.plain(b) for a, b in pairs if changes and a.type in before and b.type in _NAMES]


class _CursorScope:
    """The sources of the statement before the cursor, and the meanings of their aliases and event references."""

    def __init__(self, tokens: Sequence[Token], defined_names: app_names.CompletionNames) -> None:
        self.defined_names = defined_names
        self.aliases: dict[str, str] = {}
        self.sources: list[str] = []
        begin = next((i for i, t in enumerate(tokens) if t.type == "_FROM"), None)
        if begin is not None:
            self._read(tokens[begin:])
        elif any(t.type == "_PARTITION" for t in tokens):
            self.sources = defined_names.of("stream")
        self.sources += _changed_tables(tokens)

    def _read(self, tokens: Sequence[Token]) -> None:
        brackets: list[bool] = []  # for each open one, whether sources stand in it
        for i, token in enumerate(tokens):
            before = tokens[i - 1].type if i else ""
            if token.type in ("LPAR", "LSQB"):
                brackets.append(token.type == "LPAR" and before not in _NAMES)
            elif token.type in ("RPAR", "RSQB"):
                if brackets:
                    brackets.pop()
            elif token.type in _AFTER_INPUTS and not brackets:
                return
            elif all(brackets) and token.type in _NAMES:
                self._name(token, before, tokens[i + 1] if i + 1 < len(tokens) else None, tokens[:i])

    def _name(self, token: Token, before: str, following: Token | None, earlier: Sequence[Token]) -> None:
        name = app_names.plain(token)
        if before == "_AS":
            if self.sources:
                self.aliases[name] = self.sources[-1]
        elif following is not None and following.type == "EQUAL":
            self.aliases[name] = ""
        elif before in _BEFORE_SOURCE:
            self.sources.append(name)
            if before == "EQUAL" and len(earlier) > 1:
                self.aliases[app_names.plain(earlier[-2])] = name

    def attributes(self) -> list[str]:
        """The attributes of all sources."""
        return [a for s in self.sources for a in self.defined_names.attributes(s)]

    def references(self) -> list[str]:
        """Aliases, event references and the sources' own names, each with its dot."""
        return [f"{r}." for r in (*self.aliases, *self.sources)]

    def attributes_of(self, reference: str) -> tuple[str, ...]:
        """The attributes behind `reference.`, an alias or a source's name."""
        return self.defined_names.attributes(self.aliases.get(reference, reference))
