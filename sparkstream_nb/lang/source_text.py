"""An app's text before parsing: substitutes `${NAME}` and splits it into tokens with offsets into the original text."""

from __future__ import annotations

import bisect
import re
from collections.abc import Mapping

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters

from ..errors import SiddhiSyntaxError, Span, did_you_mean

_VARIABLE = re.compile(r"\$\{(\w+)\}", re.ASCII)
_SCRIPT_PART = re.compile(r"""[{}]|//[^\r\n]*|/\*(?s:.*?)\*/|"(?:\\.|[^"\\\r\n])*"|'(?:\\.|[^'\\\r\n])*'""")
_BRACE = re.compile(r"[{}]")

STRAY = "STRAY"
"""The type of a token for a character that begins nothing in SiddhiQL. No rule takes it."""


class SourceText:
    """A text with its variables filled in. `original` is the written text, `text` the parsed one.

    Offsets refer to `text`, spans to `original`, so that carets match the user's text and the values of
    variables, which may be secrets, do not appear in messages.
    """

    def __init__(self, original: str, variables: Mapping[str, str] | None = None, *, substitute: bool = True) -> None:
        """Fills in every `${NAME}`, in strings and comments too, as `SiddhiCompiler.updateVariables` does.

        Raises SiddhiSyntaxError for a name that `variables` lacks. Unlike Siddhi, never looks at the environment.
        """
        self.original = original
        self._line_starts = [0, *(m.end() for m in re.finditer("\n", original))]
        self._cuts = [0]  # offsets in `text` where a copied or a filled-in piece begins
        self._origins = [(0, True)]  # (offset in `original`, whether the piece is a copy)
        out: list[str] = []
        length = at = 0
        for m in _VARIABLE.finditer(original) if substitute else ():
            value = self._value(m, variables or {})
            out += [original[at : m.start()], value]
            length += m.start() - at
            self._cut(length, m.start(), is_copy=False)
            length += len(value)
            self._cut(length, m.end(), is_copy=True)
            at = m.end()
        out.append(original[at:])
        self.text = "".join(out)

    def _value(self, m: re.Match[str], variables: Mapping[str, str]) -> str:
        name = m.group(1)
        if name in variables:
            return variables[name]
        hint = did_you_mean(name, variables) or (
            f"Give it as --param {name}=VALUE, or variables={{'{name}': ...}} in Python; the environment is not used."
        )
        span = self.original_span(m.start(), m.end())
        raise SiddhiSyntaxError(f"no value is given for '${{{name}}}'", span, hint=hint, source=self.original)

    def _cut(self, offset: int, origin: int, *, is_copy: bool) -> None:
        self._cuts.append(offset)
        self._origins.append((origin, is_copy))

    def _origin(self, offset: int) -> int:
        i = bisect.bisect_right(self._cuts, offset) - 1
        start, is_copy = self._origins[i]
        return start + offset - self._cuts[i] if is_copy else start

    def original_span(self, start: int, end: int) -> Span:
        """The span of `original[start:end]`."""
        line = bisect.bisect_right(self._line_starts, start)
        return Span(start, end, line, start - self._line_starts[line - 1])

    def span(self, start: int, end: int) -> Span:
        """The span in `original` from which `text[start:end]` comes."""
        if len(self._cuts) == 1:
            return self.original_span(start, end)
        first = self._origin(start)
        return self.original_span(first, max(first, self._origin(end)))


def variables_in(text: str) -> list[tuple[str, Span]]:
    """The places of `${NAME}` in a text, in order: the name and its span."""
    source = SourceText(text, substitute=False)
    return [(m.group(1), source.original_span(m.start(), m.end())) for m in _VARIABLE.finditer(text)]


def tokens(source: SourceText, lexer: Lark) -> list[Token]:
    """The tokens of `source.text`, comments and space left out, function bodies as one SCRIPT token.

    Stops after the first character that starts no token, which becomes a STRAY token. Siddhi's lexer takes the longest
    reading of a script; here braces in strings and comments do not count, and if that never closes, all braces do.
    """
    text = source.text
    out: list[Token] = []
    base = 0
    while base < len(text):
        restart = len(text)
        try:
            for token in lexer.lex(text[base:]):
                start, end = base + (token.start_pos or 0), base + (token.end_pos or 0)
                if token.type == "SCRIPT":
                    body_end = _script_end(text, start)
                    if body_end is None:
                        out.append(_token(STRAY, text, start, start + 1))
                        return out
                    out.append(_token("SCRIPT", text, start, body_end))
                    restart = body_end
                    break
                out.append(_token(token.type, text, start, end))
        except UnexpectedCharacters as e:
            start = base + (e.pos_in_stream or 0)
            out.append(_token(STRAY, text, start, start + 1))
            return out
        base = restart
    return out


def _token(kind: str, text: str, start: int, end: int) -> Token:
    return Token(kind, text[start:end], start_pos=start, end_pos=end, line=0, column=0, end_line=0, end_column=0)


def _script_end(text: str, start: int) -> int | None:
    """The offset behind the brace that closes the one at `start`, or None."""
    for part in (_SCRIPT_PART, _BRACE):
        depth = 0
        for m in part.finditer(text, start):
            depth += {"{": 1, "}": -1}.get(m.group(), 0)
            if depth == 0:
                return m.end()
    return None
