"""A search in the documentation: the pages of `docs/`, and the lines of help of windows and functions."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path

from ...errors import Misuse
from ...plan.signatures.help import help_lines

PAGES = "documentation.json"
"""The pages by their path, in a package that was built; a checkout has `docs/` itself."""
LEFT_OUT = ("docs/notes/", "docs/performance.md")
MOST_SECTIONS, MOST_CHARACTERS = 5, 2_000
_HEADING = re.compile(r"(?m)^(#{1,4}) +(.+?) *(?:\{[^{}]*\})?$")
_FENCE = re.compile(r"(?ms)^```.*?^```[^\n]*$")
_WORD = re.compile(r"[a-z0-9_]+")
_TITLE_WEIGHT = 4


@dataclass(frozen=True)
class Section:
    """A part of a page below a heading: the `place` of the page, its titles from the first heading on, and its text."""

    place: str
    title: str
    text: str
    counts: Mapping[str, float] = field(repr=False)

    @staticmethod
    def of(place: str, title: str, text: str) -> Section:
        counts: Counter[str] = Counter(_words_of(text))
        for word in _words_of(f"{title} {place}"):
            counts[word] += _TITLE_WEIGHT
        return Section(place, title, text.strip(), counts)

    @property
    def length(self) -> float:
        return sum(self.counts.values())


def search_documentation(question: str) -> str:
    """The sections that fit a question best, by BM25. Raises `Misuse` for a question without a word."""
    words = list(dict.fromkeys(_words_of(question)))
    if not words:
        raise Misuse("query needs a word to search for")
    sections = all_sections()
    mean = sum(s.length for s in sections) / len(sections)
    weights = {w: math.log(1 + len(sections) / (1 + sum(w in s.counts for s in sections))) for w in words}

    def score(section: Section) -> float:
        room = 0.4 + 1.1 * section.length / mean
        return sum(weights[w] * 2.2 * c / (c + room) for w in words if (c := section.counts.get(w, 0)))

    best = sorted(((score(s), -i) for i, s in enumerate(sections)), reverse=True)[:MOST_SECTIONS]
    texts = [_section_text(sections[-i]) for points, i in best if points > 0]
    return "\n\n".join(texts) or "Nothing in the documentation has these words."


@cache
def all_sections() -> tuple[Section, ...]:
    """All sections, in the order of the pages."""
    out = [Section.of("reference", f"{kind[:-1].replace('_', ' ')} {name}", text)
           for kind, lines in help_lines().items() for name, text in lines.items()]  # fmt: skip
    for place, text in pages().items():
        out += sections_of(place, text)
    return tuple(out)


def pages() -> Mapping[str, str]:
    """The text of each page, by its path."""
    index = resources.files(__package__).joinpath(PAGES)
    if index.is_file():
        texts: dict[str, str] = json.loads(index.read_text("utf-8"))
    else:
        checkout = Path(__file__).parents[3]
        files = sorted((checkout / "docs").rglob("*.md"))
        texts = {f.relative_to(checkout).as_posix(): f.read_text(encoding="utf-8") for f in files}
    return {place: text for place, text in texts.items() if not place.startswith(LEFT_OUT)}


def sections_of(place: str, text: str) -> Iterator[Section]:
    """The sections of a page."""
    fences = [m.span() for m in _FENCE.finditer(text)]
    headings = [m for m in _HEADING.finditer(text) if not any(a <= m.start() < b for a, b in fences)]
    titles: list[str] = []
    for i, heading in enumerate(headings):
        titles[len(heading[1]) - 1 :] = [heading[2]]
        end = headings[i + 1].start() if i + 1 < len(headings) else len(text)
        if text[heading.end() : end].strip():
            yield Section.of(place, " > ".join(titles), text[heading.end() : end])


def _words_of(text: str) -> list[str]:
    """The words of a text, without the endings of plurals."""
    words = _WORD.findall(text.lower())
    return [w[:-1] if len(w) > 3 and w.endswith("s") and not w.endswith("ss") else w for w in words]


def _section_text(section: Section) -> str:
    text = section.text
    if len(text) > MOST_CHARACTERS:
        text = f"{text[:MOST_CHARACTERS].rpartition(chr(10))[0]}\n..."
    return f"## {section.title} ({section.place})\n{text}"
