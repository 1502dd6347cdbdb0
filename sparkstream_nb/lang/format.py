"""Formats SiddhiQL: the same tokens and comments, with line breaks and spaces in their places.

Tokens are never changed, so a text keeps its meaning. A comment on a line of its own stays above the token that
follows it; one behind a token stays there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from lark import Token

from .fixits import SyntaxFailure
from .line_breaking import BracketGroup, Part, TextPiece, lay_out
from .parser import machinery
from .source_text import SourceText, tokens
from .syntax_messages import syntax_error
from .token_reader import ParseStop

_VARIABLE = re.compile(r"\$\{\w+\}", re.ASCII)
_COMMENT = re.compile(r"--[^\r\n]*|/\*(?s:.*?)(?:\*/|\Z)")
_CLAUSES = frozenset(
    {
        *("_FROM", "_SELECT", "_GROUP", "_HAVING", "_ORDER", "_LIMIT", "_OFFSET", "_AGGREGATE"),
        *("_OUTPUT", "_INSERT", "_DELETE", "_UPDATE", "_RETURN"),
    }
)
"""Keywords that begin a line of a query or an aggregation."""
_OPEN = {"LPAR": "RPAR", "LSQB": "RSQB"}
_NAMES = ("ID", "KWNAME")
_OPERANDS = frozenset(
    {*_NAMES, "STRING", "INT", "LONG", "FLOAT", "DOUBLE", "TRUTH", "RPAR", "RSQB", "LAST", "UNIT", "_NULL"}
)
"""Tokens before a `-` that is not a sign."""
_TIGHT = ("DOT", "COLON")
_INDENT = 4


def format_text(text: str) -> str:
    """The app `text`, formatted. Raises SiddhiSyntaxError if it is not an app; `${NAME}` needs no value."""
    pieces, rest = _with_comments(text, read_tokens(text))
    lines: list[str] = []
    for statement in _statements(pieces):
        lines += ["", *_statement(statement, 0)] if lines else _statement(statement, 0)
    if rest:
        lines += ["", *rest] if lines else rest
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------------------------------------- reading


_STAND_INS = ("name", "number", "text", "type")
"""Kinds of text that a `${NAME}` may be replaced by, in the order in which they are tried."""


def read_tokens(text: str) -> list[Token]:
    """The tokens of an app, with keywords and names distinguished. A `${NAME}` is a token of a kind that fits there.

    Raises SiddhiSyntaxError.
    """
    lark, reader = machinery()
    places = [m.span() for m in _VARIABLE.finditer(text)]
    kinds = [0] * len(places)
    first: ParseStop | None = None
    while True:
        characters = list(text)
        for (start, end), kind in zip(places, kinds, strict=True):
            characters[start:end] = _stand_in(_STAND_INS[kind], end - start)
        all_tokens = tokens(SourceText("".join(characters), substitute=False), lark)
        read = reader.read(all_tokens, "app")
        if not isinstance(read, ParseStop):
            return _as_written(text, read, dict(places))
        first = first or read
        # The one that was refused, or the last one before the place, may have to stand for something else.
        at = all_tokens[read.at].start_pos or 0 if read.at < len(all_tokens) else len(text)
        starts = {t.start_pos for t in all_tokens}
        candidates = [
            i for i, (s, _) in enumerate(places) if s <= at and s in starts and kinds[i] + 1 < len(_STAND_INS)
        ]
        if not candidates:
            failure = SyntaxFailure(first.tokens, first.at, first.expected, "app")
            raise syntax_error(SourceText(text, substitute=False), failure).with_source(text)
        kinds[candidates[-1]] += 1


def _stand_in(kind: str, width: int) -> str:
    """A token of a kind that is as wide as the `${NAME}`, or followed by space."""
    match kind:
        case "name":
            return "x".ljust(width, "_")
        case "number":
            return "1".ljust(width, "0")
        case "text":
            return f"'{'x' * (width - 2)}'"
    return "int".ljust(width)


def _as_written(text: str, read: Sequence[Token], variables: dict[int, int]) -> list[Token]:
    """The tokens with their original text. `variables`: where each `${NAME}` begins, and ends."""
    out = []
    for token in read:
        start = token.start_pos or 0
        end = max(token.end_pos or 0, variables.get(start, 0))
        out.append(Token(token.type, text[start:end], start_pos=start, end_pos=end))
    return out


def _with_comments(text: str, read: Sequence[Token]) -> tuple[list[TextPiece], list[str]]:
    """The tokens as pieces with their comments, a `;` after each statement; the comments below the last."""
    out: list[TextPiece] = []
    for token in read:
        start, end = token.start_pos or 0, token.end_pos or 0
        kind = token.type
        if kind == "_END" and out[-1].kind not in ("SEMICOLON", "_BEGIN"):
            out.append(TextPiece("SEMICOLON", ";", out[-1].end, out[-1].end))
        out.append(TextPiece(kind, text[start:end], start, end))
    if out and out[-1].kind != "SEMICOLON":
        out.append(TextPiece("SEMICOLON", ";", out[-1].end, out[-1].end))
    at = 0
    before: TextPiece | None = None
    for piece in out:
        piece.before = _comments(text, at, piece.start, before)
        before, at = piece, piece.end
    rest = _comments(text, at, len(text), before)
    for here, follows in pairwise(out):
        # `a -- why` + `,` is `a, -- why`.
        bare = len(follows.text) == 1 and not follows.before and not follows.after
        if follows.kind in ("COMMA", "SEMICOLON") and here.after and bare:
            here.after, follows.after = [], here.after
    return out, rest


def _comments(text: str, start: int, end: int, previous: TextPiece | None) -> list[str]:
    """The comments in a gap between tokens; comments on the line of the `previous` token go to it.

    Between statements, "" among them is an empty line.
    """
    comments: list[str] = []
    between = previous is None or previous.kind in ("SEMICOLON", "_BEGIN")
    at = start
    for m in _COMMENT.finditer(text, start, end):
        comment = m.group().rstrip()
        if comments and between and text.count("\n", at, m.start()) > 1:
            comments.append("")
        if previous is None or comments or "\n" in text[at : m.start()]:
            comments.append(comment)
        elif previous.after or comment.startswith("--") or "\n" in comment:
            previous.after.append(comment)
        else:
            previous.text += f" {comment}"
        at = m.end()
    if comments and between and end < len(text) and text.count("\n", at, end) > 1:
        comments.append("")
    return comments


# ---------------------------------------------------------------------------------------------------------- statements


def _statements(pieces: Sequence[TextPiece]) -> list[list[TextPiece]]:
    """The pieces of each statement, with its `;`; a partition is one statement."""
    out: list[list[TextPiece]] = [[]]
    inside = 0
    for piece in pieces:
        inside += {"_BEGIN": 1, "_END": -1}.get(piece.kind, 0)
        out[-1].append(piece)
        if piece.kind == "SEMICOLON" and not inside:
            out.append([])
    return [s for s in out if s]


def _statement(pieces: Sequence[TextPiece], indent: int) -> list[str]:
    """The lines of a statement, from column `indent` on."""
    lines: list[str] = []
    rest = list(pieces)
    while rest[0].kind == "AT":
        annotation, rest = _annotation(rest)
        lines += lay_out(_nest_brackets(annotation), indent)
        if annotation[1].kind == "_APP" and [p.kind for p in rest[:2]] != ["AT", "_APP"]:
            lines.append("")
    if rest[0].kind == "_PARTITION":
        return lines + _partition(rest, indent)
    _space(rest)
    for clause in _clauses(rest):
        lines += lay_out(_nest_brackets(clause), indent)
    return lines


def _annotation(pieces: list[TextPiece]) -> tuple[list[TextPiece], list[TextPiece]]:
    """The pieces of the annotation that comes first, and the rest."""
    end = 4 if pieces[1].kind == "_APP" else 2
    depth = 0
    while depth or pieces[end].kind == "LPAR":
        depth += {"LPAR": 1, "RPAR": -1}.get(pieces[end].kind, 0)
        end += 1
    annotation = pieces[:end]
    for before, piece in pairwise(annotation):
        piece.space = before.kind == "COMMA"
    return annotation, pieces[end:]


def _partition(pieces: list[TextPiece], indent: int) -> list[str]:
    kinds = [p.kind for p in pieces]
    begin, end = kinds.index("_BEGIN"), len(kinds) - 1 - kinds[::-1].index("_END")
    head = pieces[:begin]
    _space(head)
    lines = lay_out(_nest_brackets(head), indent) + lay_out(pieces[begin : begin + 1], indent)
    for i, query in enumerate(_statements(pieces[begin + 1 : end])):
        lines += ["", *_statement(query, indent + _INDENT)] if i else _statement(query, indent + _INDENT)
    pieces[-1].space = False
    return lines + lay_out(pieces[end:], indent)


def _clauses(pieces: Sequence[TextPiece]) -> list[list[TextPiece]]:
    """A statement in the pieces of its lines."""
    define = pieces[1].kind if pieces[0].kind == "_DEFINE" else None
    if define is not None and define != "_AGGREGATION":
        return [list(pieces)]
    out: list[list[TextPiece]] = [[]]
    depth = 0
    for i, piece in enumerate(pieces):
        depth += 1 if piece.kind in _OPEN else -1 if piece.kind in _OPEN.values() else 0
        or_insert = piece.kind == "_INSERT" and i > 0 and pieces[i - 1].kind == "OR"
        if depth == 0 and piece.kind in _CLAUSES and out[-1] and not or_insert:
            out.append([])
        out[-1].append(piece)
    return out


def _nest_brackets(pieces: Sequence[TextPiece]) -> list[Part]:
    """The pieces, with bracketed parts as groups."""
    stack: list[list[Part]] = [[]]
    open_brackets: list[TextPiece] = []
    for piece in pieces:
        if piece.kind in _OPEN:
            open_brackets.append(piece)
            stack.append([])
        elif piece.kind in _OPEN.values():
            inner = stack.pop()
            stack[-1].append(BracketGroup(open_brackets.pop(), inner, piece))
        else:
            stack[-1].append(piece)
    return stack[0]


# -------------------------------------------------------------------------------------------------------------- spaces


@dataclass
class _SpacingPlace:
    """Context of the spacing: whether the signs `<`, `*`, `+`, `?` count states there, and `=` names one."""

    states: bool = False
    outer: list[bool] = field(default_factory=list)


def _space(pieces: Sequence[TextPiece]) -> None:
    """Set for each piece of a statement without annotations whether a space is before it."""
    define = pieces[0].kind == "_DEFINE" and pieces[1].kind in ("_STREAM", "_TABLE", "_WINDOW")
    place = _SpacingPlace()
    for i in range(1, len(pieces)):
        before, piece = pieces[i - 1], pieces[i]
        _step(place, before, pieces[i - 2] if i > 1 else None)
        attributes = define and piece.kind == "LPAR"
        piece.space = attributes or _needs_space(pieces, i, states=place.states)
        define = define and not attributes


def _step(place: _SpacingPlace, piece: TextPiece, before: TextPiece | None) -> None:
    """Takes the place past a piece."""
    if piece.kind == "_FROM":
        place.states = True
    elif piece.kind in ("_SELECT", "_ON", "_SET", "_WITHIN", "_HAVING"):
        place.states = False
    elif piece.kind in _OPEN:
        call = before is not None and before.kind in (*_NAMES, "_WITH")
        place.outer.append(place.states)
        place.states = place.states and piece.kind == "LPAR" and not call
    elif piece.kind in _OPEN.values():
        place.states = place.outer.pop()


def _needs_space(pieces: Sequence[TextPiece], i: int, *, states: bool) -> bool:
    """True if a space is before piece `i`, if it does not begin a line."""
    before, kind = pieces[i - 1], pieces[i].kind
    if kind in ("RPAR", "RSQB", "COMMA", "SEMICOLON") or before.kind in ("HASH", "BANG", "AT", *_OPEN):
        return False
    if kind in _TIGHT or before.kind in _TIGHT:
        return False
    if kind == "LPAR":
        return before.kind not in _NAMES
    if kind in ("LSQB", "HASH"):
        return before.kind not in (*_NAMES, "RPAR", "RSQB", "EQUAL")
    if before.kind in ("PLUS", "MINUS") and not states:
        return i > 1 and pieces[i - 2].kind in _OPERANDS
    if not states:
        return True
    if "EQUAL" in (kind, before.kind) or before.kind == "LT":
        return False
    return kind not in ("LT", "GT", "STAR", "PLUS", "QUESTION")
