"""Turns a syntax error of the parser into a readable message."""

from __future__ import annotations

from ..errors import SiddhiSyntaxError, Span, did_you_mean
from ..masking import mask_passwords
from .fixits import SyntaxFailure, advice
from .keywords import FOREIGN_WORDS, TYPES, WORDS_OF
from .source_text import SourceText
from .token_reader import END


def _kinds(names: str) -> frozenset[str]:
    return frozenset(names.split())


_PUNCTUATION = {
    "SEMICOLON": ";", "COMMA": ",", "RPAR": ")", "RSQB": "]", "EQUAL": "=", "ARROW": "->",
    "ELLIPSIS": "...", "HASH": "#", "AT": "@", "BANG": "!", "LT": "<", "GT": ">", "STAR": "*", "PLUS": "+",
    "MINUS": "-", "QUESTION": "?", "LPAR": "(", "LSQB": "[", "DOT": ".", "COLON": ":",
}  # fmt: skip
_OPERATORS = _kinds("PLUS MINUS STAR SLASH PERCENT EQ NE LT LE GT GE AND OR _IN _IS")
_EXPRESSION = _kinds("ID KWNAME INT LONG FLOAT DOUBLE STRING TRUTH PLUS MINUS LPAR _NOT HASH BANG")
_STREAM = _kinds("ID KWNAME HASH BANG")
_PATTERN_SIGNS = _kinds("ARROW COMMA AND OR LT STAR PLUS QUESTION _WITHIN EQUAL")
_JOINS = _kinds("_JOIN _LEFT _RIGHT _FULL _INNER _OUTER UNIDIRECTIONAL")
_OUTPUTS = _kinds("_INSERT _UPDATE _DELETE _RETURN")

# Phrases for sets of terminals; the first entries come first in the message.
_PHRASES: tuple[tuple[frozenset[str], frozenset[str], tuple[str, ...]], ...] = (
    (_kinds("_DEFINE _FROM"), _kinds("_DEFINE _FROM _PARTITION AT"), ("a definition", "a query")),
    (_kinds("_DEFINE"), _kinds("_DEFINE AT"), ("a definition",)),
    (_kinds("_FROM _SELECT _DELETE"), _OUTPUTS | {"_FROM", "_SELECT"}, ("'from'", "'select'", "'delete'", "'update'")),
    (_kinds("_FROM AT"), _kinds("_FROM _PARTITION AT"), ("a query",)),
    (_kinds("TYPE"), _kinds("TYPE"), (f"a type ({', '.join(TYPES)})",)),
    (_kinds("INT DOUBLE ID"), _EXPRESSION | {"STAR"}, ("an expression",)),
    (_kinds("_NOT _EVERY ID"), _EXPRESSION | {"_EVERY", "_FROM"}, ("a stream", "a pattern")),
    (_kinds("_NOT BANG ID"), _STREAM | {"_NOT"}, ("a stream",)),
    (_kinds("BANG ID"), _STREAM, ("a stream or table",)),
    (_kinds("INT DOUBLE"), _kinds("INT LONG FLOAT DOUBLE"), ("a number",)),
    (_kinds("ID"), _kinds("ID KWNAME"), ("a name",)),
    (_kinds("STRING"), _kinds("STRING"), ("a quoted string",)),
    (_kinds("SCRIPT"), _kinds("SCRIPT"), ("a body in braces",)),
    (_kinds("INT"), _kinds("INT"), ("a whole number",)),
)  # fmt: skip
_SAID_LATE: tuple[tuple[frozenset[str], frozenset[str], tuple[str, ...]], ...] = (
    (_kinds("PLUS SLASH"), _OPERATORS, ("an operator",)),
    (_kinds("_INSERT _SELECT"), _OUTPUTS, ("'insert into'",)),
    (_kinds("_INSERT _DELETE"), _OUTPUTS, ("'insert into'", "'update'", "'delete'")),
    (_kinds("_JOIN _LEFT"), _JOINS, ("'join'",)),
    (_kinds("ARROW COMMA"), _PATTERN_SIGNS, ("'->'",)),
    (_kinds("ARROW"), _PATTERN_SIGNS - {"COMMA"}, ("'->'",)),
)
# Terminals that can follow a name or number in any clause: mentioned only if nothing else is expected.
_CONTINUATIONS = _kinds("LPAR LSQB DOT COLON UNIT AT HASH")
_MOST_WORDS = 5


def syntax_error(source: SourceText, failure: SyntaxFailure) -> SiddhiSyntaxError:
    """The error for a failure: the token found, the expected ones, and a hint if there is one."""
    fixit = advice(failure)
    if fixit is not None:
        return SiddhiSyntaxError(fixit.message, _span(source, failure, fixit.offset), hint=fixit.hint)
    words = expected_words(failure.expected)
    return SiddhiSyntaxError(
        f"found {_describe_token(source, failure)}, expected {words}",
        _span(source, failure, 0),
        hint=_suggest_spelling(failure) or _keyword_as_name(failure),
    )


def expected_words(expected: frozenset[str]) -> str:
    """A readable list of a set of terminals: "a name, ',' or ')'"."""
    rest = set(expected)
    phrases_said: list[str] = []
    late: list[str] = []
    for phrases, out in ((_PHRASES, phrases_said), (_SAID_LATE, late)):
        for needed_terminals, covered_terminals, words in phrases:
            if needed_terminals <= rest:
                rest -= covered_terminals
                out += words
    if "SEMICOLON" in rest:
        rest.discard(END)
    if len(rest) > len(rest & _CONTINUATIONS):
        rest -= _CONTINUATIONS
    phrases_said += [f"'{sign}'" for kind, sign in _PUNCTUATION.items() if kind in rest]
    keywords = sorted(f"'{WORDS_OF[kind][0]}'" for kind in rest if kind in WORDS_OF)
    phrases_said += (
        ["a time unit such as 'sec'"] if "UNIT" in rest else keywords if len(keywords) <= _MOST_WORDS else []
    )
    phrases_said += late
    if END in rest:
        phrases_said.append("the end of the text")
    if not phrases_said:
        phrases_said = keywords or sorted(f"'{_PUNCTUATION[k]}'" for k in rest if k in _PUNCTUATION)
    return phrases_said[0] if len(phrases_said) == 1 else f"{', '.join(phrases_said[:-1])} or {phrases_said[-1]}"


def _describe_token(source: SourceText, failure: SyntaxFailure) -> str:
    token = failure.token()
    if token is None:
        return "the end of the text"
    span = source.span(token.start_pos or 0, token.end_pos or 0)
    text = mask_passwords(source.original)[span.start : span.end]  # which are as long
    return f"'{text[:30]}...'" if len(text) > 33 else f"'{text}'"


def _span(source: SourceText, failure: SyntaxFailure, offset: int) -> Span:
    token = failure.token(offset)
    if token is None:
        end = len(source.text.rstrip())
        return source.span(end, end)
    return source.span(token.start_pos or 0, token.end_pos or 0)


def _suggest_spelling(failure: SyntaxFailure) -> str | None:
    """ "Did you mean 'from'?" for a word close to an expected keyword."""
    token = failure.token()
    if token is None or not token[:1].isalpha():
        return None
    fitting = [word for kind in failure.expected for word in WORDS_OF.get(kind, ()) if kind != "KWNAME"]
    foreign = FOREIGN_WORDS.get(token.lower())
    if foreign in fitting:
        return f"Did you mean '{foreign}'?"
    return did_you_mean(str(token), (w for w in fitting if w != token.lower()))


def _keyword_as_name(failure: SyntaxFailure) -> str | None:
    before = failure.token(-1)
    if before is None or before.type != "KWNAME":
        return None
    return f"'{before}' is read as a name here."
