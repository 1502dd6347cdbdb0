"""Markdown as the site's parser wants it: from pages that are written for a code host."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

LINK = re.compile(
    r"(!?)\[((?:`[^`]*`|[^\[\]`]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)|(?P<ticks>`+)[^`].*?(?P=ticks)", re.DOTALL
)
"""A link or a picture; or code, in which nothing is one: its first groups are None."""
_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")
_CELL = re.compile(r" *(?:%%?siddhi |@|define )")
_ITEM = re.compile(r"(?:[-*+]|\d+[.)])\s+")


def cell(text: str) -> str:
    """A text in a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def code(text: str) -> str:
    """A text as code, also within a cell of a table; backticks in it are kept."""
    ticks = "``" if "`" in text else "`"
    pad = " " if "`" in text else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; empty where it has no rows."""
    lines = [f"| {' | '.join(cell(c) for c in row)} |" for row in rows]
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *lines]) + "\n"


def fence(text: str, language: str) -> str:
    """A block of code, in a fence that is longer than any in it."""
    longest = max((len(m) for m in re.findall(r"`{3,}", text)), default=2)
    ticks = "`" * (longest + 1)
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}\n"


def without_fences(text: str) -> Iterator[tuple[bool, str]]:
    """The lines of a page: (whether it is within a fence or one of its ends, line)."""
    closing = ""
    for line in text.splitlines():
        found = _FENCE.fullmatch(line)
        if closing:
            yield True, line
            if found and found[1].startswith(closing) and not found[2].strip():
                closing = ""
        elif found:
            closing = found[1]
            yield True, line
        else:
            yield False, line


def relink(text: str, change: Callable[[str], str | None]) -> str:
    """A page with the target of each relative link changed; where `change` gives None, the link's text stays alone."""

    def one(m: re.Match[str]) -> str:
        image, words, target, _ = m.groups()
        if target is None or "://" in target or target.startswith("mailto:"):
            return m[0]
        new = change(target)
        return words if new is None else f"{image}[{words}]({new})"

    out: list[str] = []
    prose: list[str] = []

    def flush() -> None:
        # A link may go over the end of a line, so the text between fences is changed as a whole.
        if prose:
            out.append(LINK.sub(one, "\n".join(prose)))
            prose.clear()

    for fenced, line in without_fences(text):
        if fenced:
            flush()
            out.append(line)
        else:
            prose.append(line)
    flush()
    return "\n".join(out) + "\n"


def relative(from_page: str, to: str) -> str:
    """The address of `to` as a link on `from_page` has it; both from the top of the site."""
    place, hash_, anchor = to.partition("#")
    if place == from_page and anchor:
        return f"#{anchor}"
    return posixpath.relpath(place, posixpath.dirname(from_page) or ".") + hash_ + anchor


def name_anchor(name: str) -> str:
    """The anchor of a heading that is only a name, such as of a function or of a type of sources."""
    return name.lower().replace(":", "")


def for_site(text: str) -> str:
    """A page with lists and tables as Python-Markdown reads them: a blank line before each, four spaces a level.

    On code hosts two spaces are a level, and no blank line is needed. Blocks that are cells of SiddhiQL say so, and
    have its colours.
    """
    text = _with_languages(text)
    out: list[str] = []
    levels: list[int] = []
    before, was_fenced, shift = "", False, 0
    for fenced, line in without_fences(text):
        body = line.lstrip(" ")
        indent = len(line) - len(body)
        if fenced:
            if not was_fenced:
                if not _continues(levels, indent):
                    levels = []
                while levels and indent < levels[-1]:
                    levels.pop()
                shift = 4 * len(levels) - indent if levels else 0
                if before.strip():
                    out.append("")
            out.append(" " * max(0, indent + shift) + body if body else "")
            was_fenced, before = True, line
            continue
        if was_fenced and body:
            out.append("")
        was_fenced = False
        if not body:
            out.append("")
            before = line
            continue
        item = _ITEM.match(body)
        if indent == 0 and not item and (not before.strip() or not levels):
            levels = []
        while levels and indent < levels[-1]:
            levels.pop()
        depth, lead = len(levels), indent - (levels[-1] if levels else 0)
        if not levels and item and lead < 4:
            lead = 0
        starts_list = item and before.strip() and not _is_item(before) and not depth
        starts_table = body.startswith("|") and before.strip() and not before.lstrip().startswith("|")
        if out and out[-1] and ((starts_list and not _in_list(out)) or starts_table):
            out.append("")
        out.append(" " * (4 * depth + lead) + body)
        if item:
            levels.append(indent + item.end())
        before = line
    return "\n".join(out) + "\n"


def _with_languages(text: str) -> str:
    """A page in which each fence without a language that begins a cell of SiddhiQL says so."""
    out: list[str] = []
    was_fenced = opened = False
    for fenced, line in without_fences(text):
        if was_fenced and out[-1].strip() == "```" and opened and _CELL.match(line):
            out[-1] += "siddhi"
        opened = fenced and not was_fenced
        was_fenced = fenced
        out.append(line)
    return "\n".join(out) + "\n"


def _continues(levels: Sequence[int], indent: int) -> bool:
    return bool(levels) and indent > 0


def _is_item(line: str) -> bool:
    return bool(_ITEM.match(line.lstrip(" ")))


def _in_list(out: Sequence[str]) -> bool:
    """True if the last lines, up to a blank one, belong to a list."""
    for line in reversed(out):
        if not line.strip():
            return False
        if _is_item(line):
            return True
    return False
