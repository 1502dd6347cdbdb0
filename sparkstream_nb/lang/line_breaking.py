"""Breaks the parts of a line of SiddhiQL into lines that are not too long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

WIDTH = 120
"""Columns of a line, if there is a place to break it."""
_INDENT = 4
_JOIN_WORDS = frozenset({"_INNER", "_LEFT", "_RIGHT", "_FULL", "_OUTER"})

_BREAKS = (
    frozenset({"ARROW", "_ON", "_WITHIN", "_PER", "_SET", "_JOIN", *_JOIN_WORDS}),
    frozenset({"COMMA"}),
    frozenset({"OR"}),
    frozenset({"AND"}),
)
"""Kinds of pieces that a line is broken at, those that bind the least first: before them, and after a comma."""


@dataclass
class TextPiece:
    """A token: its `kind`, its `text` with the comments behind it within a line, and its place in the text.

    `before`: comments on lines of their own above it. `after`: comments behind it that end the line. `space`: whether a
    space is before it within a line.
    """

    kind: str
    text: str
    start: int
    end: int
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    space: bool = False


@dataclass
class BracketGroup:
    """Brackets with their contents."""

    open: TextPiece
    inner: list[Part]
    close: TextPiece


Part = TextPiece | BracketGroup


def lay_out(parts: Sequence[Part], indent: int, hang: int = _INDENT) -> list[str]:
    """The lines of `parts` from column `indent` on; where they are broken, the next ones `hang` further right."""
    text = _flat(parts)
    if text is not None and indent + len(text) <= WIDTH:
        return _line(parts, text, indent)
    for kinds in _BREAKS:
        segments = _split(parts, kinds)
        if len(segments) > 1:
            return _lines(segments, indent, hang)
    pieces = list(_pieces(parts))
    if text is None and not any(isinstance(p, BracketGroup) and _flat([p]) is None for p in parts):
        return _lines(_split_at_comments(parts), indent, hang)
    at = _group_to_break(parts, hard=text is None)
    if at is None:
        return _line(parts, text or "".join(p.text for p in pieces), indent)
    group = parts[at]
    assert isinstance(group, BracketGroup)
    head = lay_out([*parts[:at], group.open], indent, hang)
    inner = lay_out(group.inner, indent + _INDENT, 0) if group.inner else []
    return head + inner + lay_out([group.close, *parts[at + 1 :]], indent, hang)


def _lines(segments: Sequence[Sequence[Part]], indent: int, hang: int) -> list[str]:
    out = lay_out(segments[0], indent)
    for segment in segments[1:]:
        out += lay_out(segment, indent + hang)
    return out


def _pieces(parts: Sequence[Part]) -> Iterator[TextPiece]:
    for part in parts:
        if isinstance(part, TextPiece):
            yield part
        else:
            yield from _pieces([part.open, *part.inner, part.close])


def _flat(parts: Sequence[Part]) -> str | None:
    """The parts on one line; None if a comment among them ends or begins one."""
    pieces = list(_pieces(parts))
    if any(p.after for p in pieces[:-1]) or any(p.before for p in pieces[1:]):
        return None
    return "".join(f" {p.text}" if p.space and i else p.text for i, p in enumerate(pieces))


def _line(parts: Sequence[Part], text: str, indent: int) -> list[str]:
    """The line, below its comments."""
    pieces = list(_pieces(parts))
    lead = " " * indent
    comments = [f"{lead}{c}".rstrip() for c in pieces[0].before]
    return [*comments, f"{lead}{' '.join([text, *pieces[-1].after])}"]


def _split(parts: Sequence[Part], kinds: frozenset[str]) -> list[list[Part]]:
    out: list[list[Part]] = [[]]
    for i, part in enumerate(parts):
        kind = part.kind if isinstance(part, TextPiece) else ""
        before = parts[i - 1] if i else None
        within_join = isinstance(before, TextPiece) and before.kind in _JOIN_WORDS
        if kind in kinds and kind != "COMMA" and out[-1] and not within_join:
            out.append([])
        out[-1].append(part)
        if kind in kinds and kind == "COMMA":
            out.append([])
    if "COMMA" in kinds and len(out) > 1 and isinstance(parts[0], TextPiece) and parts[0].kind == "_SELECT":
        out = [[parts[0]], out[0][1:], *out[1:]]
    return [segment for segment in out if segment]


def _split_at_comments(parts: Sequence[Part]) -> list[list[Part]]:
    out: list[list[Part]] = [[]]
    for part in parts:
        first, last = (part, part) if isinstance(part, TextPiece) else (part.open, part.close)
        if first.before and out[-1]:
            out.append([])
        out[-1].append(part)
        if last.after:
            out.append([])
    return [segment for segment in out if segment]


def _group_to_break(parts: Sequence[Part], *, hard: bool) -> int | None:
    """The place of the widest group that can be broken; where comments break lines, of the first that has them."""
    widths: dict[int, int] = {}
    for i, part in enumerate(parts):
        if isinstance(part, BracketGroup) and (part.inner or part.close.before or part.open.after):
            text = _flat([part])
            if hard and text is None:
                return i
            widths[i] = len(text or "")
    return max(widths, key=widths.__getitem__) if widths else None
