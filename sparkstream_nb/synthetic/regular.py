"""Texts that a regular expression matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from ..errors import Misuse, shown
from ..types import Type
from .column import Draw, GeneratedColumn
from .drawn import Drawn
from .ieee_arithmetic import Array, scale_words

MOST_MORE = 8
"""Repetitions that `*`, `+` and `{m,}` add to the fewest at most."""
LONGEST = 1_000
"""Characters of a text at most."""
MOST_NESTED = 50
"""Groups in groups."""
_DIGITS = "0123456789"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_CLASSES = {"d": _DIGITS, "w": _LETTERS.upper() + _LETTERS + _DIGITS + "_", "s": " ", "t": "\t", "n": "\n"}
_ANY = "".join(map(chr, range(0x20, 0x7F)))
"""The characters that `.` and `[^...]` choose from."""


@dataclass(frozen=True)
class Letter:
    """One of several characters."""

    characters: str


@dataclass(frozen=True)
class RegexChain:
    """Parts one after the other."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Alternatives:
    """One of several parts, all equally likely."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Repetition:
    """A part several times: from `fewest` to `most`, all equally likely."""

    part: Part
    fewest: int
    most: int


Part = Letter | RegexChain | Alternatives | Repetition


@dataclass(frozen=True)
class Regex(GeneratedColumn):
    """Texts that match a regular expression. Characters, alternatives and numbers of repetitions are equally likely."""

    pattern: str

    label = "regex"
    types = frozenset({Type.STRING})

    def __post_init__(self) -> None:
        parse_pattern(self.pattern)

    def draw(self, draw: Draw) -> Drawn:
        texts = _draw_part(parse_pattern(self.pattern), draw, "")
        return Drawn(texts.astype(object))


def parse_pattern(pattern: str) -> Part:
    """The parts of a regular expression. Raises `Misuse`, with the place, for what is not known here."""
    if not isinstance(pattern, str):
        raise Misuse(f"regex: the pattern is a text, not {shown(pattern)}")
    expression = _PatternReader(pattern.removeprefix("^")).read()
    if _width(expression) > LONGEST:
        raise Misuse(f"regex: {shown(pattern)} has texts of more than {LONGEST:,} characters")
    return expression


class _PatternReader:
    """Reads characters, `.`, `\\d \\w \\s`, classes, groups, `|`, and `? * + {m} {m,n}`."""

    def __init__(self, pattern: str) -> None:
        self._pattern, self._at, self._depth = pattern, 0, 0

    def read(self) -> Part:
        expression = self._alternatives()
        if self._at < len(self._pattern):
            self._refuse("')' closes no group")
        return expression

    def _alternatives(self) -> Part:
        parts = [self._chain()]
        while self._take("|"):
            parts.append(self._chain())
        return parts[0] if len(parts) == 1 else Alternatives(tuple(parts))

    def _chain(self) -> Part:
        parts: list[Part] = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            if self._pattern[self._at :] == "$":
                self._at += 1
                break
            parts.append(self._repetition(self._one()))
        return RegexChain(tuple(parts))

    def _one(self) -> Part:
        character = self._next()
        if character == "(":
            if self._take("?") and not self._take(":"):
                self._refuse("a group with '?' is not known: only (?: ) is")
            self._depth += 1
            if self._depth > MOST_NESTED:
                self._refuse(f"groups are nested more than {MOST_NESTED} deep")
            group = self._alternatives()
            if not self._take(")"):
                self._refuse("a group is not closed")
            self._depth -= 1
            return group
        if character == "[":
            return Letter(self._class())
        if character == ".":
            return Letter(_ANY)
        if character == "\\":
            return Letter(self._escape())
        if character in "^$*+?{":
            self._refuse(f"'{character}' is not expected here: write \\{character} for the character itself")
        return Letter(character)

    def _repetition(self, part: Part) -> Part:
        if self._take("?"):
            bounds = (0, 1)
        elif self._take("*"):
            bounds = (0, MOST_MORE)
        elif self._take("+"):
            bounds = (1, MOST_MORE)
        elif self._take("{"):
            bounds = self._counts()
        else:
            return part
        self._take("?")  # a lazy repetition matches the same texts
        return Repetition(part, *bounds)

    def _counts(self) -> tuple[int, int]:
        text, brace, _ = self._pattern[self._at :].partition("}")
        first, comma, last = text.partition(",")
        if not brace or not first.isdecimal() or not (last.isdecimal() or not last) or len(text) > 40:
            self._refuse("a repetition is written {3} or {2,5}")
        self._at += len(text) + 1
        fewest = int(first)
        most = int(last) if last else fewest + MOST_MORE if comma else fewest
        if most < fewest or most > LONGEST:
            self._refuse(f"a repetition is from few to many, {LONGEST:,} at most")
        return fewest, most

    def _class(self) -> str:
        is_negated = self._take("^")
        characters: list[str] = []
        while not self._take("]"):
            first = self._next()
            if first == "\\":
                characters += self._escape()
            elif self._pattern[self._at : self._at + 1] == "-" and self._pattern[self._at + 1 : self._at + 2] != "]":
                self._at += 1
                last = self._next()
                last = self._escape() if last == "\\" else last
                if len(last) != 1 or last < first:
                    self._refuse(f"the range {first}-{last} has no characters")
                if first < "\ud800" and last > "\udfff":
                    self._refuse(f"the range {first}-{last} has halves of surrogate pairs in it")
                characters += map(chr, range(ord(first), ord(last) + 1))
            else:
                characters.append(first)
        letters = [c for c in _ANY if c not in characters] if is_negated else list(dict.fromkeys(characters))
        if not letters:
            self._refuse("a class has no characters")
        return "".join(letters)

    def _escape(self) -> str:
        character = self._next()
        if character in _CLASSES:
            return _CLASSES[character]
        if character.isalnum():
            self._refuse(f"\\{character} is not known: \\d, \\w, \\s and characters that are no letters are")
        return character

    def _take(self, character: str) -> bool:
        is_next = self._pattern.startswith(character, self._at)
        self._at += is_next
        return is_next

    def _next(self) -> str:
        if self._at >= len(self._pattern):
            self._refuse("it ends too early")
        self._at += 1
        character = self._pattern[self._at - 1]
        if character == "\0" or "\ud800" <= character <= "\udfff":
            self._refuse("a text cannot have this character")
        return character

    def _refuse(self, why: str) -> NoReturn:
        raise Misuse(f"regex: {shown(self._pattern)}, at column {self._at}: {why}")


def _width(part: Part) -> int:
    """Characters of the longest text."""
    if isinstance(part, Letter):
        return 1
    if isinstance(part, Repetition):
        # A group without a character is repeated as well.
        return max(1, _width(part.part)) * part.most
    widths = [_width(p) for p in part.parts]
    return sum(widths) if isinstance(part, RegexChain) else max(widths)


def _draw_part(part: Part, draw: Draw, path: str) -> Array:
    """Texts, `U`[n]. `path` is the part's place in the expression: each part has words of its own."""
    if isinstance(part, RegexChain):
        return _draw_chain(part.parts, draw, path)
    if isinstance(part, Alternatives):
        alternatives = scale_words(draw.draw_words(f"{path}|"), len(part.parts))
        out = np.full(draw.n, "", "U1")
        for i, one in enumerate(part.parts):
            out = np.where(alternatives == i, _draw_part(one, draw, f"{path}|{i}"), out)
        return out
    if isinstance(part, Repetition) and not isinstance(part.part, Letter):
        counts = part.fewest + scale_words(draw.draw_words(f"{path}#"), part.most - part.fewest + 1)
        out = np.full(draw.n, "", "U1")
        for i in range(part.most):
            once = _draw_part(part.part, draw, f"{path}#{i}")
            out = np.char.add(out, np.where(counts > i, once, ""))
        return out
    return _join_letters([_draw_letters(part, draw, path)])


def _draw_chain(parts: Sequence[Part], draw: Draw, path: str) -> Array:
    """The texts of parts one after the other. Neighbours of a fixed number of letters are drawn as one matrix."""
    texts: list[Array] = []
    letters: list[Array] = []
    for i, part in enumerate(parts):
        here = f"{path}.{i}"
        if isinstance(part, Letter) or (isinstance(part, Repetition) and isinstance(part.part, Letter)):
            letters.append(_draw_letters(part, draw, here))
            if isinstance(part, Letter) or part.fewest == part.most:
                continue
        if letters:
            texts.append(_join_letters(letters))
            letters = []
        if not isinstance(part, Letter) and not (isinstance(part, Repetition) and isinstance(part.part, Letter)):
            texts.append(_draw_part(part, draw, here))
    if letters:
        texts.append(_join_letters(letters))
    out = texts[0] if texts else np.full(draw.n, "", "U1")
    for text in texts[1:]:
        out = np.char.add(out, text)
    return out


def _draw_letters(part: Letter | Repetition, draw: Draw, path: str) -> Array:
    """The code points of a letter or of a repetition of one, uint32[n, most]; behind the last one of a row are 0s."""
    letter = part.part if isinstance(part, Repetition) else part
    assert isinstance(letter, Letter)
    fewest, most = (part.fewest, part.most) if isinstance(part, Repetition) else (1, 1)
    points = np.array([ord(c) for c in letter.characters], np.uint32)
    if len(points) == 1:
        matrix = np.full((draw.n, most), points[0])
    else:
        words = draw.draw_words(path, draw.n * most)
        matrix = points[scale_words(words, len(points)).astype(np.int64)].reshape(draw.n, most)
    if fewest < most:
        counts = fewest + scale_words(draw.draw_words(f"{path}#"), most - fewest + 1).astype(np.int64)
        matrix[np.arange(most) >= counts[:, None]] = 0
    return matrix


def _join_letters(matrices: Sequence[Array]) -> Array:
    """Texts of the code points of matrices side by side."""
    matrix = np.ascontiguousarray(matrices[0] if len(matrices) == 1 else np.concatenate(matrices, axis=1))
    if not matrix.shape[1]:
        return np.full(len(matrix), "", "U1")
    return matrix.view(f"U{matrix.shape[1]}")[:, 0]
