"""JSONPath as the Jayway library reads it: `$.a.b[0]`, `..name`, `[*]`, slices, `[?(@.x > 1)]`, `.length()`.

A path is definite if it can match one place only; then a read returns a value or raises `NotFound`. Otherwise it
returns the list of matches.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .java_values import RowFailure
from .javaregex import compile_java, match_in_time
from .objects import same


class NotFound(Exception):
    """The path names a place that the document does not have."""


@dataclass(frozen=True)
class JsonNames:
    """`.a`, `['a']`, `['a', 'b']`."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Indexes:
    """`[0]`, `[0, 2]`, `[-1]`."""

    indexes: tuple[int, ...]


@dataclass(frozen=True)
class Slice:
    start: int | None
    end: int | None


@dataclass(frozen=True)
class Wildcard:
    pass


@dataclass(frozen=True)
class Scan:
    """`..`: the next part, at every depth."""


@dataclass(frozen=True)
class JsonFilter:
    test: Callable[[Any, Any], bool]


@dataclass(frozen=True)
class JsonFunction:
    name: str


Part = JsonNames | Indexes | Slice | Wildcard | Scan | JsonFilter | JsonFunction

_NAME = re.compile(r"[^.\[\]()\s]+")
_FUNCTION = re.compile(r"(length|size|min|max|avg|sum|stddev|keys)\(\)\s*$")
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_BRACKET_NAMES = re.compile(rf"\[\s*((?:{_QUOTED})(?:\s*,\s*(?:{_QUOTED}))*)\s*\]")
_BRACKET_INDEXES = re.compile(r"\[\s*(-?\d+(?:\s*,\s*-?\d+)*)\s*\]")
_BRACKET_SLICE = re.compile(r"\[\s*(-?\d+)?\s*:\s*(-?\d+)?\s*\]")


@lru_cache(maxsize=512)
def compile_path(path: str) -> tuple[Part, ...]:
    """The parts of a path. Raises RowFailure for text that is not a path."""
    text = path.strip()
    if not text.startswith(("$", "@")):
        text = "$." + text
    return _parts(text, path)


def _parts(text: str, path: str) -> tuple[Part, ...]:
    out: list[Part] = []
    at = 1
    while at < len(text):
        has_dot = False
        if text.startswith("..", at):
            out.append(Scan())
            at += 2
            has_dot = text[at : at + 1] != "["
        elif text[at] == ".":
            at += 1
            has_dot = text[at : at + 1] != "["
        if has_dot:
            if match := _FUNCTION.match(text, at):
                out.append(JsonFunction(match.group(1)))
            elif text.startswith("*", at):
                out.append(Wildcard())
                at += 1
                continue
            elif match := _NAME.match(text, at):
                out.append(JsonNames((match.group(),)))
            else:
                break
            at = match.end()
        elif match := _BRACKET_NAMES.match(text, at):
            quoted_names = re.findall(_QUOTED, match.group(1))
            out.append(JsonNames(tuple(re.sub(r"\\(.)", r"\1", n[1:-1]) for n in quoted_names)))
            at = match.end()
        elif match := _BRACKET_INDEXES.match(text, at):
            out.append(Indexes(tuple(int(i) for i in match.group(1).split(","))))
            at = match.end()
        elif (match := _BRACKET_SLICE.match(text, at)) and match.group(1, 2) != (None, None):
            start, end = match.groups()
            out.append(Slice(None if start is None else int(start), None if end is None else int(end)))
            at = match.end()
        elif match := re.compile(r"\[\s*\*\s*\]").match(text, at):
            out.append(Wildcard())
            at = match.end()
        elif match := re.compile(r"\[\s*\?\s*\(").match(text, at):
            end = _find_closing(text, match.end() - 1)
            close = re.compile(r"\s*\]").match(text, end + 1) if end >= 0 else None
            if close is None:
                break
            out.append(JsonFilter(_JsonCondition(text[match.end() : end]).parse()))
            at = close.end()
        else:
            break
    if at < len(text) or text.endswith("."):
        raise RowFailure(f"'{path}' is not a JSON path")
    return tuple(out)


def _find_closing(text: str, start: int) -> int:
    """Position of the parenthesis that closes the one at `start`; -1 if it is not closed."""
    depth, quote = 0, ""
    for i in range(start, len(text)):
        c = text[i]
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        else:
            depth += (c == "(") - (c == ")")
            if depth == 0:
                return i
    return -1


def definite(parts: tuple[Part, ...]) -> bool:
    """True if a path can name one place only."""
    return not any(
        isinstance(p, Wildcard | Scan | Slice | JsonFilter) or (isinstance(p, Indexes) and len(p.indexes) > 1)
        for p in parts
    )


# A place: the container and the key or index in it; (None, None) is the document itself.
Place = tuple[Any, Any]


def _get(place: Place, document: Any) -> Any:
    container, key = place
    return document if container is None else container[key]


def places(document: Any, parts: tuple[Part, ...]) -> list[Place]:
    """The places that a path without functions matches, in the document's order. Raises NotFound if it is definite."""
    matches: list[Place] = [(None, None)]
    sure = True  # whether the path so far is definite, so that a missing part is an error
    i = 0
    while i < len(parts):
        part = parts[i]
        if isinstance(part, Scan):
            sure = False
            i += 1
            matches = [p for f in matches for p in _scan(_get(f, document), parts[i], document)]
        else:
            matches = [p for f in matches for p in _step(_get(f, document), part, sure, document)]
            sure = sure and definite((part,))
        i += 1
    return matches


def _scan(value: Any, part: Part, document: Any) -> list[Place]:
    out: list[Place] = []
    if isinstance(value, dict | list):
        out += _step(value, part, False, document)
        for child in value.values() if isinstance(value, dict) else value:
            out += _scan(child, part, document)
    return out


def _step(value: Any, part: Part, sure: bool, document: Any) -> list[Place]:
    out: list[Place] = []
    if isinstance(part, JsonNames) and isinstance(value, dict):
        out = [(value, n) for n in part.names if n in value]
        if len(out) < len(part.names) and len(part.names) > 1:
            return out
    elif isinstance(part, Indexes) and isinstance(value, list):
        out = [(value, i % len(value)) for i in part.indexes if -len(value) <= i < len(value)]
        if len(part.indexes) > 1:
            return out
    elif isinstance(part, Slice) and isinstance(value, list):
        return [(value, i) for i in range(len(value))[part.start : part.end]]
    elif isinstance(part, Wildcard):
        if isinstance(value, dict | list):
            return [(value, k) for k in (value if isinstance(value, dict) else range(len(value)))]
        return []
    elif isinstance(part, JsonFilter):
        if isinstance(value, list):
            return [(value, i) for i, v in enumerate(value) if part.test(v, document)]
        if isinstance(value, dict):
            return [((value,), 0)] if part.test(value, document) else []
        return []
    if not out and sure:
        raise NotFound
    return out


def read(document: Any, path: str) -> Any:
    """The value at `path` if the path is definite, else a list. Raises NotFound, Failure for a bad path."""
    parts = compile_path(path)
    if parts and isinstance(parts[-1], JsonFunction):
        return _apply(parts[-1].name, _value(document, parts[:-1]))
    return _value(document, parts)


def _value(document: Any, parts: tuple[Part, ...]) -> Any:
    last = parts[-1] if parts else None
    if isinstance(last, JsonNames) and len(last.names) > 1:
        owners = [_get(p, document) for p in places(document, parts[:-1])]
        objects = [{n: o[n] for n in last.names if n in o} for o in owners if isinstance(o, dict)]
        if not definite(parts):
            return objects
        if not objects:
            raise NotFound
        return objects[0]
    values = [_get(p, document) for p in places(document, parts)]
    return values[0] if definite(parts) else values


def _apply(name: str, value: Any) -> Any:
    if name in ("length", "size"):
        return len(value) if isinstance(value, dict | list | str) else None
    if name == "keys":
        return list(value) if isinstance(value, dict) else None
    numbers = [float(v) for v in value if isinstance(v, int | float)] if isinstance(value, list) else []
    if not numbers:
        raise RowFailure(f"{name}() of a JSON path finds no numbers")
    mean = sum(numbers) / len(numbers)
    return {
        "min": min(numbers),
        "max": max(numbers),
        "sum": sum(numbers),
        "avg": mean,
        "stddev": (sum((n - mean) ** 2 for n in numbers) / len(numbers)) ** 0.5,
    }[name]


# ---------------------------------------------------------------------------------------------------------- filters

_MISSING = object()
_TOKEN = re.compile(
    rf"\s*(?:(?P<path>[@$](?:\.\.?[^\s.\[\]()=<>!&|,~]+|\[\s*(?:{_QUOTED}|-?\d+|\*)\s*\])*)"
    rf"|(?P<text>{_QUOTED})|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<regex>/(?:[^/\\]|\\.)*/i?)"
    r"|(?P<op>&&|\|\||==|!=|<=|>=|=~|<|>|!|\(|\)|\[|\]|,)|(?P<word>\w+))"
)
_Operand = Callable[[Any, Any], Any]
_Test = Callable[[Any, Any], bool]


class _JsonCondition:
    """The condition of a filter: comparisons of `@` paths with literals, joined by `&&`, `||`, `!`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.error()
            kind = match.lastgroup or ""
            self.tokens.append((kind, match.group(kind)))
            at = match.end()
        self.at = 0

    def error(self) -> RowFailure:
        return RowFailure(f"'{self.text}' is not a condition of a JSON path")

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("", "")

    def accept(self, *texts: str) -> str | None:
        kind, text = self.peek()
        if kind in ("op", "word") and text.lower() in texts:
            self.at += 1
            return text.lower()
        return None

    def parse(self) -> _Test:
        test = self.either()
        if self.at < len(self.tokens):
            raise self.error()
        return test

    def either(self) -> _Test:
        tests = [self.both()]
        while self.accept("||"):
            tests.append(self.both())
        return lambda v, d: any(t(v, d) for t in tests)

    def both(self) -> _Test:
        tests = [self.single()]
        while self.accept("&&"):
            tests.append(self.single())
        return lambda v, d: all(t(v, d) for t in tests)

    def single(self) -> _Test:
        if self.accept("!"):
            inner = self.single()
            return lambda v, d: not inner(v, d)
        if self.accept("("):
            test = self.either()
            if not self.accept(")"):
                raise self.error()
            return test
        left = self.operand()
        op = self.accept("==", "!=", "<", "<=", ">", ">=", "=~", "in", "nin")
        if op is None:
            return lambda v, d: left(v, d) is not _MISSING
        if op == "=~":
            kind, text = self.peek()
            self.at += 1
            if kind != "regex":
                raise self.error()
            pattern = compile_java("(?i)" + text[1:-2] if text.endswith("i") else text[1:-1])
            return lambda v, d: isinstance(left(v, d), str) and match_in_time(pattern.fullmatch, left(v, d)) is not None
        right = self.operand()
        return lambda v, d: _compare(op, left(v, d), right(v, d))

    def operand(self) -> _Operand:
        if self.accept("["):
            items: list[_Operand] = []
            while not self.accept("]"):
                items.append(self.operand())
                self.accept(",")
            return lambda v, d: [i(v, d) for i in items]
        kind, text = self.peek()
        self.at += 1
        if kind == "path":
            parts = _parts("$" + text[1:], text)
            return lambda v, d: _lookup(v if text[0] == "@" else d, parts)
        value: Any
        if kind == "text":
            value = re.sub(r"\\(.)", r"\1", text[1:-1])
        elif kind == "number":
            value = float(text) if set(text) & set(".eE") else int(text)
        elif kind == "word" and text.lower() in ("true", "false", "null"):
            value = {"true": True, "false": False, "null": None}[text.lower()]
        else:
            raise self.error()
        return lambda v, d: value


def _lookup(value: Any, parts: tuple[Part, ...]) -> Any:
    try:
        return _value(value, parts)
    except NotFound:
        return _MISSING


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b) if _number(a) and _number(b) else same(a, b)


def _compare(op: str, a: Any, b: Any) -> bool:
    if a is _MISSING or b is _MISSING:
        return op == "!=" and a is not b
    if op in ("==", "!="):
        return _equal(a, b) == (op == "==")
    if op in ("in", "nin"):
        return isinstance(b, list) and any(_equal(a, x) for x in b) == (op == "in")
    if not (_number(a) and _number(b)) and not (isinstance(a, str) and isinstance(b, str)):
        return False
    return bool({"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op])
