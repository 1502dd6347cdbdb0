"""Java's regular expressions (`java.util.regex`, JDK 17) on the `regex` package.

Patterns are translated to the package's dialect and cached. A pattern may come with an event: its size, also after
expanding repetitions, is limited before it is compiled, and matching has a time limit, so that a pattern that asks for
too much fails its row only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, TypeVar

import regex

from .java_values import RowFailure

LIMIT = 1.0
"""Seconds that one match may take."""
MOST_CHARACTERS = 100_000
"""A pattern has no more. The package takes up to 10 microseconds for one."""
MOST_PIECES = 100_000
"""A pattern has no more pieces, of which `(ab){3}` are twelve: the package makes each repetition that must be there,
and the body of the loop for the others, with up to 300 bytes for a piece. Java counts."""
MOST_NESTED = 200
"""Groups, or classes, are nested no deeper."""
_HIGHEST = 2**31 - 1
"""The most repetitions that Java can count."""
_KEPT = 400_000
"""The weight of the patterns that stay compiled: some 100 MB."""

_T = TypeVar("_T")
_ENDS = r"\n\r\u0085\u2028\u2029"
_LINE_END = rf"(?:\r\n|[{_ENDS}])"

_CLASSES: Mapping[str, str] = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7F",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1F\x7F",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0B\f\r",
    "L1": r"\x00-\xFF",
    "javaLowerCase": r"\p{Lowercase}",
    "javaUpperCase": r"\p{Uppercase}",
    "javaWhitespace": r"\p{Zs}\p{Zl}\p{Zp}\t-\r\x1C-\x1F--[\u00A0\u2007\u202F]",
    "javaAlphabetic": r"\p{Alphabetic}",
    "javaLetter": r"\p{L}",
    "javaDigit": r"\p{Nd}",
    "javaLetterOrDigit": r"\p{L}\p{Nd}",
    "javaMirrored": r"\p{Bidi_Mirrored}",
    "LC": r"\p{Lu}\p{Ll}\p{Lt}",
    "LD": r"\p{L}\p{Nd}",
    "all": r"\x00-\U0010FFFF",
}
# Meaning of a backslash and a letter, as the inside of a character class.
_ESCAPES: Mapping[str, str] = {
    "d": "0-9",
    "w": "a-zA-Z0-9_",
    "s": r" \t\n\x0B\f\r",
    "h": r" \t\xA0\u1680\u180E\u2000-\u200A\u202F\u205F\u3000",
    "v": r"\n\x0B\f\r\x85\u2028\u2029",
}
_SIMPLE: Mapping[str, str] = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f", "a": r"\a", "e": r"\x1B"}
_FLAGS = frozenset("idmsuxU")


def _shown(text: str) -> str:
    """The beginning of a text on one line, as messages show it."""
    line = " ".join(text[:1000].split())
    return line if len(line) <= 60 else line[:59] + "…"


class _Translator:
    """One pass over a Java pattern. `self.flags` holds the inline flags in force, a copy a group.

    `self.pieces` counts the pieces of each open group, as often as they are repeated; the first is for the pattern.
    """

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.label = f"the pattern '{_shown(pattern)}'"
        self.at = 0
        self.flags = [frozenset[str]()]
        self.pieces = [0]
        self.last = 0
        """The pieces that a quantifier would repeat: those read last."""

    def make_failure(self, why: str) -> RowFailure:
        return RowFailure(f"{self.label} {why}")

    def peek(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def take(self) -> str:
        if self.at >= len(self.text):
            raise self.make_failure("ends too early")
        self.at += 1
        return self.text[self.at - 1]

    def run(self) -> str:
        if len(self.text) > MOST_CHARACTERS:
            raise self.make_failure(f"has {len(self.text):,} characters: at most {MOST_CHARACTERS:,} are compiled")
        out, size = [], 0
        while self.at < len(self.text):
            out.append(self.one())
            size += len(out[-1])
            if size > 4 * MOST_CHARACTERS:
                raise self.make_failure("is too long")
        return "".join(out)

    def weigh(self, pieces: int) -> None:
        """Counts a piece of the innermost open group."""
        self.pieces[-1] += pieces
        self.last = pieces
        if self.pieces[-1] > MOST_PIECES:
            raise self.make_failure(f"repeats too much: at most {MOST_PIECES:,} pieces are compiled")

    def open_group(self) -> None:
        """A group begins."""
        self.pieces.append(0)
        if len(self.pieces) > MOST_NESTED:
            raise self.make_failure("is nested too deep")

    def one(self) -> str:
        """The next piece, group, end of a group or quantifier."""
        c = self.take()
        if c == "{":
            return self.repetition()
        if c == ")":
            if len(self.flags) > 1:
                self.flags.pop()
                self.weigh(self.pieces.pop() + 1)
            return c
        if c == "(":
            return self.group()
        if c in "*+?":
            self.repeat(int(c == "+"))
            return c
        if c == "|":
            return c
        before = self.last
        self.weigh(1)
        piece = self.piece(c)
        if not piece:  # blanks, a comment or \Q\E: a quantifier repeats the piece before them
            self.last = before
        return piece

    def repeat(self, least: int, most: int | None = None) -> None:
        """Counts the copies of a quantifier, which may stand behind another one to make it lazy or possessive."""
        if (least, most) == (1, 1):  # the package leaves it out
            return
        self.weigh(self.last * least)
        self.last = 0

    def repetition(self) -> str:
        """A quantifier in braces, the first of which was read."""
        match = regex.compile(r"(\d+)(,(\d*))?\}").match(self.text, self.at)
        if match is None:
            raise self.make_failure("has an illegal repetition")
        digits = [match[1], match[3] or match[1]]
        if max(map(len, digits)) > 10 or max(map(int, digits)) > _HIGHEST or int(digits[0]) > int(digits[1]):
            raise self.make_failure(f"has an illegal repetition range, {{{_shown(match[0])}")
        self.at = match.end()
        self.repeat(int(digits[0]), int(digits[1]) if match[3] or match[2] is None else None)
        return f"{{{match[0]}"

    def piece(self, c: str) -> str:
        """Translation of one character, or of the escape or class that it begins, to the other dialect."""
        if c == "\\":
            return self.caseless(self.escape())
        if c == "[":
            return self.caseless(self.char_class())
        flags = self.flags[-1]
        if c == ".":
            if "s" in flags:
                return r"[\x00-\U0010FFFF]"
            return r"[^\n]" if "d" in flags else f"[^{_ENDS}]"
        if c == "$":
            end = r"\n" if "d" in flags else _LINE_END
            return rf"(?={end}|\Z)" if "m" in flags else rf"(?={end}?\Z)"
        if c == "^" and "m" in flags:
            return rf"(?:(?<!\r(?=\n))(?<=\A|[{_ENDS}])(?!(?<=[{_ENDS}])\Z))"
        if c == "#" and "x" in flags:
            while self.at < len(self.text) and self.take() not in "\n\r":
                pass
            return ""
        if c.isspace() and "x" in flags:
            return ""
        if c in "}]&~-#" or c.isspace():
            return "\\" + c
        return self.caseless(c) if c.isalpha() else c

    def caseless(self, piece: str) -> str:
        """`piece` in the case that the flags ask for: without `u` only ASCII letters have a twin."""
        flags = self.flags[-1]
        if "i" not in flags or not (len(piece) > 2 or piece.isalpha() or (piece[:1] == "\\" and piece[1:].isdigit())):
            return piece
        if len(piece) == 1 and "u" not in flags:
            return f"[{piece.lower()}{piece.upper()}]" if piece.isascii() else piece
        return f"(?i:{piece})"

    def group(self) -> str:
        flags = self.flags[-1]
        if not self.peek("?"):
            self.flags.append(flags)
            self.open_group()
            return "("
        if match := regex.compile(r"\?([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])").match(self.text, self.at):
            on, off, end = match.group(1), match.group(2) or "", match.group(3)
            if set(on + off) - _FLAGS:
                raise self.make_failure("has an unknown inline modifier")
            self.at = match.end()
            new = (flags | set(on)) - set(off)
            if end == ")":
                self.flags[-1] = new
                return ""
            self.flags.append(new)
            self.open_group()
            return "(?:"
        for lead in ("?=", "?!", "?<=", "?<!", "?>"):
            if self.peek(lead):
                self.at += len(lead)
                self.flags.append(flags)
                self.open_group()
                return "(" + lead
        if match := regex.compile(r"\?<([a-zA-Z][a-zA-Z0-9]*)>").match(self.text, self.at):
            self.at = match.end()
            self.flags.append(flags)
            self.open_group()
            return f"(?P<{match.group(1)}>"
        raise self.make_failure("has an unknown group")

    def escape(self) -> str:
        """An escape outside a class."""
        c = self.take()
        if c == "Q":
            body = self.read_quoted()
            self.weigh(len(body))
            self.last = 1
            return "".join(regex.escape(ch, special_only=False) for ch in body)
        if c in "bBAGRX":
            return "\\" + c
        if c == "z":
            return r"\Z"
        if c == "Z":
            return rf"(?={_LINE_END}?\Z)"
        if c == "k":
            if match := regex.compile(r"<([a-zA-Z][a-zA-Z0-9]*)>").match(self.text, self.at):
                self.at = match.end()
                return f"(?P={match.group(1)})"
            raise self.make_failure("has a \\k that is not followed by '<name>'")
        if c in "123456789":
            return f"(?:\\{c})"
        inside = self.set_escape(c)
        return inside if inside.startswith("\\") and len(inside) == 2 else f"[{inside}]"

    def read_quoted(self) -> str:
        end = self.text.find("\\E", self.at)
        body = self.text[self.at :] if end < 0 else self.text[self.at : end]
        self.at = len(self.text) if end < 0 else end + 2
        return body

    def set_escape(self, c: str) -> str:
        """An escape in its form inside a class."""
        if c in _SIMPLE:
            return _SIMPLE[c]
        if c in _ESCAPES:
            return _ESCAPES[c]
        if c.lower() in _ESCAPES:
            return f"[^{_ESCAPES[c.lower()]}]"
        if c in "pP":
            return self.property(c == "P")
        if c == "x" and self.peek("{"):
            match = regex.compile(r"\{0*([0-9a-fA-F]{1,6})\}").match(self.text, self.at)
            if match is None or int(match[1], 16) > 0x10FFFF:
                raise self.make_failure("has an illegal or unclosed \\x{...}")
            self.at = match.end()
            return _code(int(match[1], 16))
        if c == "x":
            return _code(self.number(2, "x"))
        if c == "u":
            return _code(self.number(4, "u"))
        if c == "0":
            match = regex.compile(r"[0-3]?[0-7]{1,2}").match(self.text, self.at)
            if match is None:
                raise self.make_failure("has an illegal octal escape")
            self.at = match.end()
            return _code(int(match.group(), 8))
        if c == "c":
            return _code(ord(self.take()) ^ 64)
        if c.isascii() and c.isalpha():
            raise self.make_failure(f"has an unknown escape \\{c}")
        return "\\" + c if not c.isalnum() else c

    def number(self, length: int, kind: str) -> int:
        digits = self.text[self.at : self.at + length]
        self.at += length
        if len(digits) == length and all(d in "0123456789abcdefABCDEF" for d in digits):
            return int(digits, 16)
        raise self.make_failure(f"has an illegal \\{kind} escape")

    def property(self, is_negated: bool) -> str:
        if self.peek("{"):
            end = self.text.find("}", self.at)
            if end < 0:
                raise self.make_failure("has an unclosed character family")
            name, self.at = self.text[self.at + 1 : end], end + 1
        else:
            name = self.take()
        inside = _CLASSES.get(name)
        if inside is None:
            name = name.split("=")[-1] if "=" in name else name
            bare = name[2:] if name.startswith(("Is", "In")) else name
            inside = rf"\p{{{bare}}}"
            try:
                regex.compile(inside)
            except regex.error:
                raise self.make_failure(f"has an unknown character property '{_shown(name)}'") from None
        return f"[{'^' if is_negated else ''}{inside}]"

    def char_class(self, depth: int = 1) -> str:
        if depth > MOST_NESTED:
            raise self.make_failure("is nested too deep")
        out = ["["]
        if self.peek("^"):
            self.at += 1
            out.append("^")
        first = True
        while True:
            c = self.take()
            if c == "]" and not first:
                return "".join(out) + "]"
            first = False
            if c == "[":
                out.append(self.char_class(depth + 1))
            elif c == "&" and self.peek("&"):
                self.at += 1
                out.append("&&")
            elif c == "\\":
                e = self.take()
                if e == "Q":
                    out.append("".join("\\" + ch if not ch.isalnum() else ch for ch in self.read_quoted()))
                elif e in "bB":
                    raise self.make_failure(f"has \\{e} inside a class")
                else:
                    out.append(self.set_escape(e))
            elif c == "-" and not self.peek("]") and out[-1] not in ("[", "^"):
                out.append("-")
            elif c.isspace() and "x" in self.flags[-1]:
                pass
            else:
                out.append(c if c.isalnum() or c == "_" else "\\" + c)


def _code(value: int) -> str:
    return f"\\U{value:08X}"


class _Compiled:
    """The patterns that were asked for last, as many as `_KEPT` allows."""

    def __init__(self) -> None:
        self._entries: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._weight = 0
        self._lock = Lock()

    def of(self, pattern: str) -> Any:
        with self._lock:
            entry = self._entries.get(pattern)
            if entry is not None:
                self._entries.move_to_end(pattern)
                return entry[0]
        matcher, weight = _compile_pattern(pattern)
        with self._lock:
            if pattern not in self._entries:
                self._entries[pattern] = matcher, weight
                self._weight += weight
            while self._weight > _KEPT and len(self._entries) > 1:
                self._weight -= self._entries.popitem(last=False)[1][1]
        return matcher


_COMPILED = _Compiled()


def _compile_pattern(pattern: str) -> tuple[Any, int]:
    """A pattern compiled, and its weight: its characters and pieces, and something for itself."""
    translator = _Translator(pattern)
    try:
        python_pattern = translator.run()
        matcher = regex.compile(python_pattern, regex.V1, cache_pattern=False)
    except RowFailure:
        raise
    except RecursionError:
        raise translator.make_failure("is nested too deep") from None
    except Exception as e:  # the package reports patterns that it cannot compile in several ways
        raise translator.make_failure(f"is not a regular expression: {getattr(e, 'msg', e)}") from None
    return matcher, 400 + len(pattern) + len(python_pattern) + translator.pieces[0]


def compile_java(pattern: str) -> Any:
    """The compiled pattern. Raises RowFailure if Java raises PatternSyntaxException, and for patterns over the limits:
    `MOST_CHARACTERS`, `MOST_PIECES` or `MOST_NESTED`.
    """
    return _COMPILED.of(pattern)


def match_in_time(match: Callable[..., _T], *args: Any) -> _T:
    """`match(*args)` of the `regex` package under the time limit."""
    try:
        return match(*args, timeout=LIMIT)
    except TimeoutError:
        raise RowFailure(f"matching took more than {LIMIT:g} s: the pattern backtracks too much") from None


def expand(match: Any, replacement: str) -> str:
    """Java's replacement text for one match: `$1`, `${name}`, and a backslash before a literal character."""
    out, at, groups = [], 0, match.re.groups
    while at < len(replacement):
        c = replacement[at]
        at += 1
        if c == "\\":
            if at == len(replacement):
                raise RowFailure("a replacement ends in a backslash")
            out.append(replacement[at])
            at += 1
        elif c != "$":
            out.append(c)
        elif reference := regex.compile(r"\{([a-zA-Z][a-zA-Z0-9]*)\}").match(replacement, at):
            at = reference.end()
            if reference.group(1) not in match.re.groupindex:
                raise RowFailure(f"no group named '{reference.group(1)}'")
            out.append(match.group(reference.group(1)) or "")
        elif at < len(replacement) and replacement[at] in "0123456789":
            number = int(replacement[at])
            at += 1
            if number > groups:
                raise RowFailure(f"no group {number}")
            while at < len(replacement) and replacement[at] in "0123456789":
                longer = number * 10 + int(replacement[at])
                if longer > groups:
                    break
                number = longer
                at += 1
            out.append(match.group(number) or "")
        else:
            raise RowFailure("illegal group reference in a replacement")
    return "".join(out)


def replace(source: str, pattern: str, replacement: str, count: int = 0) -> str:
    """`String.replaceAll`; with `count` 1 `String.replaceFirst`."""
    matcher = compile_java(pattern)
    return match_in_time(
        lambda timeout: str(matcher.sub(lambda m: expand(m, replacement), source, count, timeout=timeout))
    )


def split(source: str, pattern: str) -> list[str]:
    """`String.split`: empty texts at the end are dropped, and there is none before a match of no width at the start."""
    matcher = compile_java(pattern)

    def cut(timeout: float) -> list[str]:
        out, last = [], 0
        for m in matcher.finditer(source, timeout=timeout):
            if m.end() == 0:
                continue
            if m.start() == m.end() == len(source):
                continue
            out.append(source[last : m.start()])
            last = m.end()
        return [*out, source[last:]] if last else [source]

    parts = match_in_time(cut)
    if len(parts) > 1:
        while parts and not parts[-1]:
            parts.pop()
    return parts
