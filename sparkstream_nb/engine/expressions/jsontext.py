"""Parses and writes JSON as the two libraries that Siddhi's extensions use.

Parsing is lenient: quotes may be single or missing, and extra commas are ignored. Writing follows Gson
(`json:*`) or org.json (`map:*`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from .java_texts import object_text
from .java_values import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, Long, RowFailure
from .objects import NULL, HashMap, Null, walk

_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_INTEGER = re.compile(r"-?\d+", re.ASCII)
_DECIMAL = re.compile(r"-?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
_ORG_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class JsonError(Exception):
    """The text is not JSON, not even leniently read."""


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """A document whose values that are neither objects nor arrays are changed."""
    if isinstance(value, dict):
        return {k: map_leaves(v, change) for k, v in value.items()}
    if isinstance(value, list):
        return [map_leaves(v, change) for v in value]
    return change(value)


class _JsonReader:
    """A recursive reader. `org`: org.json's ways (`=` and `;` as separators, NULL), else json-smart's.

    `as_hash_maps`: objects become hash tables and lose their order.
    """

    def __init__(self, text: str, org: bool, as_hash_maps: bool) -> None:
        self.text = text
        self.at = 0
        self.org = org
        self.as_hash_maps = as_hash_maps

    def space(self) -> str:
        """Passes over white space; the character that comes next, "" at the end."""
        while self.at < len(self.text) and self.text[self.at] <= " ":
            self.at += 1
        return self.text[self.at] if self.at < len(self.text) else ""

    def value(self, stops: str) -> Any:
        c = self.space()
        if c == "{":
            return self.object()
        if c == "[":
            return self.array()
        if c in ("'", '"') and c:
            return self.read_quoted()
        return self.bare(stops)

    def object(self) -> dict[Any, Any]:
        out: dict[Any, Any] = HashMap() if self.as_hash_maps else {}
        self.at += 1
        while True:
            c = self.space()
            if c == "}":
                self.at += 1
                return out
            if c == "," and not self.org:
                self.at += 1
                continue
            if not c:
                raise JsonError("an object is not closed")
            key = self.read_quoted() if c in "'\"" else self.word(":=" if self.org else ":")
            c = self.space()
            if c != ":" and not (self.org and c == "="):
                raise JsonError(f"no value after the name '{key}'")
            self.at += 1
            if self.org and c == "=" and self.text[self.at : self.at + 1] == ">":
                self.at += 1
            out[key] = self.value(",;}]" if self.org else ",}")
            c = self.space()
            if c == "," or (self.org and c == ";"):
                self.at += 1
            elif c != "}":
                raise JsonError("a comma or a closing brace is missing")

    def array(self) -> list[Any]:
        out: list[Any] = []
        self.at += 1
        while True:
            c = self.space()
            if c == "]":
                self.at += 1
                return out
            if c == ",":
                self.at += 1
                if self.org:
                    out.append(NULL)
                continue
            if not c:
                raise JsonError("an array is not closed")
            out.append(self.value(",;}]" if self.org else ",]"))
            c = self.space()
            if c == "," or (self.org and c == ";"):
                self.at += 1
            elif c != "]":
                raise JsonError("a comma or a closing bracket is missing")

    def read_quoted(self) -> str:
        quote = self.text[self.at]
        self.at += 1
        out: list[str] = []
        while True:
            if self.at >= len(self.text):
                raise JsonError("a text is not closed")
            c = self.text[self.at]
            self.at += 1
            if c == quote:
                return "".join(out)
            if c == "\\":
                e = self.text[self.at : self.at + 1]
                self.at += 1
                if e == "u":
                    try:
                        out.append(chr(int(self.text[self.at : self.at + 4], 16)))
                    except ValueError:
                        raise JsonError("a \\u escape needs four digits") from None
                    self.at += 4
                else:
                    out.append(_ESCAPES.get(e, e))
            else:
                out.append(c)

    def word(self, stops: str) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in stops:
            self.at += 1
        return self.text[start : self.at].strip()

    def bare(self, stops: str) -> Any:
        word = self.word(stops)
        if not word and stops:
            raise JsonError("a value is missing")
        return _org_scalar(word) if self.org else _smart_scalar(word)


def _smart_scalar(word: str) -> Any:
    if word in ("true", "false"):
        return word == "true"
    if word == "null":
        return None
    if word == "NaN":
        return math.nan
    if _INTEGER.fullmatch(word):
        return _integer(int(word))
    return float(word) if _DECIMAL.fullmatch(word) else word


def _integer(value: int) -> int:
    return value if INT_MIN <= value <= INT_MAX else Long(value)


def _org_scalar(word: str) -> Any:
    lower = word.lower()
    if lower in ("true", "false"):
        return lower == "true"
    if lower == "null":
        return NULL
    if _ORG_DECIMAL.fullmatch(word):
        if not set(word) & set(".eE"):
            value = int(word)
            return _integer(value) if LONG_MIN <= value <= LONG_MAX else word
        return float(word)
    return word


def read_smart(text: str, *, as_hash_maps: bool = False) -> Any:
    """A JSON text as json-smart's permissive parser reads it; `as_hash_maps`: into `HashMap`s. Raises JsonError."""
    reader = _JsonReader(text, False, as_hash_maps)
    value = reader.value("")
    if reader.space():
        raise JsonError("text after the end")
    return value


def read_org(text: str) -> HashMap:
    """A JSON object as org.json's `new JSONObject(text)` reads it. Raises JsonError."""
    reader = _JsonReader(text, True, True)
    if reader.space() != "{":
        raise JsonError("an object begins with '{'")
    value = reader.object()
    assert isinstance(value, HashMap)
    return value


# ---------------------------------------------------------------------------------------------------------- writing

_GSON = {c: f"\\u{ord(c):04x}" for c in [*map(chr, range(32)), "<", ">", "&", "=", "'", "\u2028", "\u2029"]} | {
    '"': '\\"', "\\": "\\\\", "\t": "\\t", "\b": "\\b", "\n": "\\n", "\r": "\\r", "\f": "\\f"
}  # fmt: skip


def _gson_text(text: str) -> str:
    return '"' + "".join(_GSON.get(c, c) for c in text) + '"'


def write_gson(value: Any) -> str:
    """`Gson.toJson` with nulls kept. Raises RowFailure for a number that is not finite."""
    return _write(value, _gson_text, _gson_number)


def _write(
    value: Any, quote: Callable[[str], str], number: Callable[[Any], str], *, has_null_keys: bool = True
) -> str:
    """A value as JSON; `quote` writes texts, `number` numbers and booleans. Without `has_null_keys` a map with such a
    key is null."""
    if value is None or isinstance(value, Null):
        return "null"
    if isinstance(value, str):
        return quote(value)
    if not isinstance(value, dict | list | tuple | set | frozenset):
        return number(value)
    write = partial(_write, quote=quote, number=number, has_null_keys=has_null_keys)
    if not isinstance(value, dict):
        return "[" + ",".join(map(write, walk(value))) + "]"
    if not has_null_keys and None in value:
        return "null"
    return "{" + ",".join(f"{quote(object_text(k))}:{write(value[k])}" for k in walk(value)) + "}"


def _gson_number(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        raise RowFailure(f"{object_text(value)} cannot be written as JSON")
    return object_text(value)


_ORG = {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\b": "\\b", "\n": "\\n", "\r": "\\r", "\f": "\\f"}


def _org_text(text: str) -> str:
    out = []
    for i, c in enumerate(text):
        if c in _ORG:
            out.append(_ORG[c])
        elif c == "/" and i and text[i - 1] == "<":
            out.append("\\/")
        elif c < " " or "\x80" <= c < "\xa0" or "\u2000" <= c < "\u2100":
            out.append(f"\\u{ord(c):04x}")
        else:
            out.append(c)
    return '"' + "".join(out) + '"'


def write_org(value: Any) -> str:
    """`JSONObject.toString` of org.json: decimals without their last zeros, and null for a map with a null key."""
    return _write(value, _org_text, _org_number, has_null_keys=False)


def _org_number(value: Any) -> str:
    text = object_text(value)
    if isinstance(value, float) and "." in text and "E" not in text:
        text = text.rstrip("0").rstrip(".")
    return text
