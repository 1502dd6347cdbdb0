"""Distinguishes keywords from names: parses tokens with the LALR tables of `grammar.lark`, with backtracking where both
are possible.

A keyword is read as a keyword wherever the tables allow it, else as a name. If the parse fails later, the last keyword
that could have been a name is read as a name, and so on. (Siddhi's ANTLR parser uses unlimited lookahead instead.)
The parser stack is a linked list, so that backtracking is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from lark import Lark, Token
from lark.parsers.lalr_analysis import Shift

from .keywords import KEYWORDS

END = "$END"
_MAX_RETRIES = 10_000


class Stack(NamedTuple):
    """The parser's states, the newest first."""

    state: int
    below: Stack | None


@dataclass(frozen=True)
class ParseStop:
    """A failed parse: `tokens[at]` is unexpected (the end of the text if `at == len(tokens)`).

    `expected` holds the terminals that were possible there, `tokens` the tokens up to it.
    """

    tokens: list[Token]
    at: int
    expected: frozenset[str]


class TokenReader:
    """Reads token lists with the tables of one Lark grammar."""

    def __init__(self, lark: Lark) -> None:
        table: Any = lark.parse_interactive("", start=lark.options.start[0]).parser_state.parse_conf.parse_table
        self._rows: dict[int, dict[str, tuple[Any, Any]]] = table.states
        self._starts: dict[str, int] = table.start_states
        self._ends: dict[str, int] = table.end_states

    def read(self, tokens: list[Token], start: str) -> list[Token] | ParseStop:
        """The tokens with their terminals decided, or where the longest parse failed."""
        stack = Stack(self._starts[start], None)
        out: list[Token] = []
        branches: list[tuple[int, Stack]] = []
        furthest: tuple[int, list[Token], Stack] | None = None
        name_at = -1
        retries = 0
        while True:
            i = len(out)
            after: Stack | None = None
            if i < len(tokens):
                for kind in ("KWNAME",) if i == name_at else self._kinds(tokens[i]):
                    after = self._step(stack, kind)
                    if after is not None:
                        if kind not in ("KWNAME", tokens[i].type) and "KWNAME" in self._rows[stack.state]:
                            branches.append((i, stack))
                        out.append(tokens[i] if kind == tokens[i].type else tokens[i].update(type=kind))
                        stack = after
                        break
            elif self._finish(stack, start):
                return out
            if after is None:
                if furthest is None or i > furthest[0]:
                    furthest = (i, out[:], stack)
                if not branches or retries > _MAX_RETRIES:
                    at, read, furthest_stack = furthest
                    return ParseStop([*read, *tokens[at:]], at, self.expected_terminals(furthest_stack, start))
                retries += 1
                name_at, stack = branches.pop()
                del out[name_at:]

    def expected_after(self, tokens: list[Token], start: str) -> frozenset[str]:
        """The terminals that could follow tokens that `read` has decided."""
        stack = Stack(self._starts[start], None)
        for token in tokens:
            after = self._step(stack, token.type)
            assert after is not None
            stack = after
        return self.expected_terminals(stack, start)

    def expected_terminals(self, stack: Stack, start: str) -> frozenset[str]:
        """The terminals that could come next, `$END` among them where the text may end."""
        kinds = {k for k in self._rows[stack.state] if k.isupper() and k != END and self._step(stack, k) is not None}
        if self._finish(stack, start):
            kinds.add(END)
        return frozenset(kinds)

    @staticmethod
    def _kinds(token: Token) -> tuple[str, ...]:
        if token.type != "ID":
            return (token.type,)
        keyword = KEYWORDS.get(token.lower())
        if keyword is None:
            return ("ID",)
        return ("KWNAME",) if keyword == "KWNAME" else (keyword, "KWNAME")

    def _step(self, stack: Stack, kind: str) -> Stack | None:
        """The stack after the reductions and the shift that `kind` causes, or None if it does not fit."""
        while True:
            action = self._rows[stack.state].get(kind)
            if action is None:
                return None
            what, arg = action
            if what is Shift:
                return Stack(arg, stack)
            stack = self._reduce(stack, arg)

    def _reduce(self, stack: Stack, rule: Any) -> Stack:
        for _ in rule.expansion:
            assert stack.below is not None
            stack = stack.below
        _, target = self._rows[stack.state][rule.origin.name]
        return Stack(target, stack)

    def _finish(self, stack: Stack, start: str) -> bool:
        while stack.state != self._ends[start]:
            action = self._rows[stack.state].get(END)
            if action is None:
                return False
            what, arg = action
            if what is Shift:
                return bool(arg == self._ends[start])
            stack = self._reduce(stack, arg)
        return True
