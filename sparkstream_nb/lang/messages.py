"""From a place where reading failed to an error in a person's words."""

from __future__ import annotations

from ..errors import SiddhiSyntaxError, Span, did_you_mean
from .fixits import Failure, advice
from .keywords import FOREIGN_WORDS, TYPES, WORDS_OF
from .reading import END
from .source import SourceText

_PUNCTUATION = {
    "SEMICOLON": ";", "COMMA": ",", "RPAR": ")", "RSQB": "]", "LPAR": "(", "LSQB": "[", "DOT": ".", "COLON": ":", "EQUAL": "=",
    "ARROW": "->", "ELLIPSIS": "...", "HASH": "#", "AT": "@", "BANG": "!", "LT": "<", "GT": ">", "STAR": "*", "PLUS": "+",
    "MINUS": "-", "QUESTION": "?",
}  # fmt: skip
_OPERATORS = frozenset("PLUS MINUS STAR SLASH PERCENT EQ NE LT LE GT GE AND OR _IN _IS".split())
_EXPRESSION = frozenset("ID KWNAME INT LONG FLOAT DOUBLE STRING TRUTH PLUS MINUS LPAR _NOT HASH BANG".split())
_STREAM = frozenset("ID KWNAME HASH BANG".split())
_PATTERN_SIGNS = frozenset("ARROW COMMA AND OR LT STAR PLUS QUESTION _WITHIN EQUAL".split())
_JOINS = frozenset("_JOIN _LEFT _RIGHT _FULL _INNER _OUTER UNIDIRECTIONAL".split())
_OUTPUTS = frozenset("_INSERT _UPDATE _DELETE _RETURN".split())

# What to say for a set of terminals that fit together; the first entries are said first.
_PHRASES: tuple[tuple[frozenset[str], frozenset[str], str], ...] = (
    (frozenset({"_DEFINE", "_FROM"}), frozenset({"_DEFINE", "_FROM", "_PARTITION", "AT"}), "a definition or a query"),
    (frozenset({"_DEFINE"}), frozenset({"_DEFINE", "AT"}), "a definition"),
    (frozenset({"_FROM", "_SELECT", "_DELETE"}), _OUTPUTS | {"_FROM", "_SELECT"}, "'from', 'select', 'delete' or 'update'"),
    (frozenset({"_FROM", "AT"}), frozenset({"_FROM", "_PARTITION", "AT"}), "a query"),
    (frozenset({"TYPE"}), frozenset({"TYPE"}), f"a type ({', '.join(TYPES)})"),
    (frozenset({"INT", "DOUBLE", "ID"}), _EXPRESSION | {"STAR"}, "an expression"),
    (frozenset({"_NOT", "_EVERY", "ID"}), _EXPRESSION | {"_EVERY", "_FROM"}, "a stream, or a pattern"),
    (frozenset({"_NOT", "BANG", "ID"}), _STREAM | {"_NOT"}, "a stream"),
    (frozenset({"BANG", "ID"}), _STREAM, "a stream or table"),
    (frozenset({"INT", "DOUBLE"}), frozenset({"INT", "LONG", "FLOAT", "DOUBLE"}), "a number"),
    (frozenset({"UNIT"}), frozenset({"UNIT"}), "a time unit such as 'sec'"),
    (frozenset({"ID"}), frozenset({"ID", "KWNAME"}), "a name"),
    (frozenset({"STRING"}), frozenset({"STRING"}), "a text in quotes"),
    (frozenset({"SCRIPT"}), frozenset({"SCRIPT"}), "a body in braces"),
    (frozenset({"INT"}), frozenset({"INT"}), "a whole number"),
)  # fmt: skip
_SAID_LATE: tuple[tuple[frozenset[str], frozenset[str], str], ...] = (
    (frozenset({"PLUS", "SLASH"}), _OPERATORS, "an operator"),
    (frozenset({"_INSERT", "_SELECT"}), _OUTPUTS, "'insert into'"),
    (frozenset({"_INSERT", "_DELETE"}), _OUTPUTS, "'insert into', 'update' or 'delete'"),
    (frozenset({"_JOIN", "_LEFT"}), _JOINS, "'join'"),
    (frozenset({"ARROW", "COMMA"}), _PATTERN_SIGNS, "'->'"),
    (frozenset({"ARROW"}), _PATTERN_SIGNS - {"COMMA"}, "'->'"),
)
_MOST_WORDS = 5


def syntax_error(source: SourceText, failure: Failure) -> SiddhiSyntaxError:
    """The error for a failure: what was found, what was expected, and what to type where that can be guessed."""
    known = advice(failure)
    if known is not None:
        return SiddhiSyntaxError(known.message, _span(source, failure, known.offset), hint=known.hint)
    expected = expected_words(failure.expected)
    return SiddhiSyntaxError(
        f"found {_found(source, failure)}, expected {expected}", _span(source, failure, 0), hint=_spelling(failure)
    )


def expected_words(expected: frozenset[str]) -> str:
    """What a set of terminals means to a person: "a name, ',' or ')'"."""
    rest = set(expected)
    said: list[str] = []
    late: list[str] = []
    for phrases, out in ((_PHRASES, said), (_SAID_LATE, late)):
        for needed, covered, phrase in phrases:
            if needed <= rest:
                rest -= covered
                out.append(phrase)
    if "SEMICOLON" in rest:
        rest.discard(END)
    said += [f"'{sign}'" for kind, sign in _PUNCTUATION.items() if kind in rest and kind not in ("AT", "HASH")]
    words = sorted(f"'{WORDS_OF[kind][0]}'" for kind in rest if kind in WORDS_OF)
    said += words if len(words) <= _MOST_WORDS else []
    said += late
    if END in rest:
        said.append("the end of the text")
    if not said:
        said = words or sorted(f"'{_PUNCTUATION[k]}'" for k in rest if k in _PUNCTUATION)
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} or {said[-1]}"


def _found(source: SourceText, failure: Failure) -> str:
    token = failure.token()
    if token is None:
        return "the end of the text"
    span = source.span(token.start_pos or 0, token.end_pos or 0)
    text = source.original[span.start : span.end]
    return f"'{text[:30]}...'" if len(text) > 33 else f"'{text}'"


def _span(source: SourceText, failure: Failure, offset: int) -> Span:
    token = failure.token(offset)
    if token is None:
        end = len(source.text.rstrip())
        return source.span(end, end)
    return source.span(token.start_pos or 0, token.end_pos or 0)


def _spelling(failure: Failure) -> str | None:
    """"Did you mean 'from'?" for a word that is near to a keyword that would fit."""
    token = failure.token()
    if token is None or not token[:1].isalpha():
        return None
    fitting = [word for kind in failure.expected for word in WORDS_OF.get(kind, ()) if kind != "KWNAME"]
    foreign = FOREIGN_WORDS.get(token.lower())
    if foreign in fitting:
        return f"Did you mean '{foreign}'?"
    return did_you_mean(str(token), (w for w in fitting if w != token.lower()))
