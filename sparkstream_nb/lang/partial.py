"""Reads unfinished text: the tokens that the grammar allows at a cursor, and the statements around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lark import Token

from .parser import machinery
from .source_text import STRAY, SourceText, tokens
from .token_reader import ParseStop

Start = Literal["app", "only_on_demand"]
_QUOTES = ("'", '"')


@dataclass(frozen=True)
class Unfinished:
    """The statement before a cursor.

    `tokens` are decided: a keyword with one meaning has its own terminal. `expected` holds the terminals that can
    come next, None if the statement is wrong before. `quote` is the quote of the text that the cursor is in, if any.
    """

    tokens: tuple[Token, ...]
    expected: frozenset[str] | None
    quote: str | None = None

    def open_brackets(self) -> tuple[int, ...]:
        """The places of the brackets that are open at the cursor, the innermost last."""
        out: list[int] = []
        for i, token in enumerate(self.tokens):
            if token.type in ("LPAR", "LSQB"):
                out.append(i)
            elif token.type in ("RPAR", "RSQB") and out:
                out.pop()
        return tuple(out)


def lex_text(text: str) -> list[Token]:
    """The tokens at the beginning of `text` that can be read. Variables (`${NAME}`) are left as they are."""
    return tokens(SourceText(text, substitute=False), machinery()[0])


def before_cursor(text: str, start: Start) -> Unfinished | None:
    """The text before a cursor at the end of `text`; None inside a comment or a script."""
    # A letter at the cursor becomes a token of its own or part of the last one, but not inside of a comment.
    read = lex_text(f"{text} x")
    if not read or (read[-1].end_pos != len(text) + 2 and read[-1].type != STRAY):
        return None
    last = read.pop()
    if last.type == STRAY and last not in _QUOTES:
        return None if last == "{" else Unfinished(tuple(read), None)
    statement = statements(read)[-1]
    result = machinery()[1].read(statement, start)
    quote = str(last) if last.type == STRAY else None
    if not isinstance(result, ParseStop):  # the text may end here, and more may follow
        terminals = machinery()[1].expected_after(result, start)
        return Unfinished(tuple(result), terminals, quote)
    complete = result.at >= len(result.tokens)
    return Unfinished(tuple(result.tokens), result.expected if complete else None, quote)


def statements(read: Sequence[Token]) -> list[list[Token]]:
    """The tokens by statement, queries of a partition apart; the last statement may be empty."""
    out: list[list[Token]] = [[]]
    depth = 0
    for token in read:
        word = token.lower() if token.type == "ID" else ""
        depth = max(0, depth + {"LPAR": 1, "LSQB": 1, "RPAR": -1, "RSQB": -1}.get(token.type, 0))
        if token.type == "SEMICOLON":
            depth = 0
            out.append([])
        elif depth == 0 and word == "begin" and any(t.lower() == "partition" for t in out[-1]):
            out[-1].append(token)
            out.append([])
        elif word == "end" and not out[-1]:
            out.append([])
        else:
            out[-1].append(token)
    return out
