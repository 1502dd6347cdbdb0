"""Hints for common mistakes in text pasted from manuals and web pages.

`FIXITS` inspect the place of a syntax error. The `refuse_...` functions reject text that parses but is certainly a
mistake.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from lark import Token

from ..errors import SiddhiSyntaxError
from .keywords import FOREIGN_WORDS, TYPES, UNIT_SPELLINGS
from .source_text import STRAY
from .tree import Annotation, Expression, Variable


@dataclass(frozen=True)
class SyntaxFailure:
    """A syntax error at `tokens[at]` (None: the end), with the expected terminals and the start rule."""

    tokens: list[Token]
    at: int
    expected: frozenset[str]
    start: str

    def token(self, offset: int = 0) -> Token | None:
        """The token `offset` places from the error, or None outside the text."""
        i = self.at + offset
        return self.tokens[i] if 0 <= i < len(self.tokens) else None

    def word(self, offset: int = 0) -> str:
        """Text of the token at `offset` in lower case; empty outside the text."""
        token = self.token(offset)
        return "" if token is None else str(token).lower()

    def inside_annotation(self) -> bool:
        """True if the innermost open parenthesis belongs to an annotation."""
        depth = 0
        for i in range(self.at - 1, 1, -1):
            depth += {"RPAR": 1, "LPAR": -1}.get(self.tokens[i].type, 0)
            if depth < 0:
                return self.tokens[i - 2].type == "AT" or self.tokens[i - 2].type == "COLON"
        return False


@dataclass(frozen=True)
class Advice:
    """The error and the fix, for the token `offset` places from the error."""

    message: str
    hint: str
    offset: int = 0


_SMART_QUOTES = "‘’‚‛“”„‟«»`´′″"
_ARROWS = "→⟶➔➜⇒–—"
_STATEMENTS = frozenset({"define", "from", "partition", "@"})


def _smart_quotes(f: SyntaxFailure) -> Advice | None:
    token = f.token()
    if token is None or token.type != STRAY or token[0] not in _SMART_QUOTES:
        return None
    return Advice(f"'{token}' is a typographic quote", "Type a straight one: ' or \".")


def _typographic_arrow(f: SyntaxFailure) -> Advice | None:
    token = f.token()
    if token is None or token.type != STRAY or token[0] not in _ARROWS:
        return None
    return Advice(f"'{token}' is a typographic character", "Type '->' for 'is followed by', '-' for minus.")


def _stray_comma(f: SyntaxFailure) -> Advice | None:
    if f.word(-1) != "," or f.word() not in (";", ")", ","):
        return None
    if f.word() == ";" and f.start == "app" and f.expected <= {"ID", "KWNAME"}:
        return Advice("a ';' in the list of attributes", "Leave it out: attributes are separated by ',' only.")
    return None


def _doubled_comma(f: SyntaxFailure) -> Advice | None:
    if f.word(-1) != ",":
        return None
    if f.word() == ",":
        return Advice("two commas in a row", "Leave one out.")
    if f.word() in (")", "]"):
        return Advice(f"a ',' before '{f.word()}'", "Leave it out.", -1)
    return None


def _truncated_annotation(f: SyntaxFailure) -> Advice | None:
    ends = {"define", "from", "partition", ";", ""}
    before = f.token(-1)
    is_keyword_name = before is not None and before.type == "KWNAME" and f.word(-1) in ends
    if not f.inside_annotation() or not (f.word() in ends or is_keyword_name):
        return None
    return Advice("an annotation above is not closed", "Every '(' needs a ')': the text may have been cut off.")


def _empty_annotation(f: SyntaxFailure) -> Advice | None:
    if f.word() != ")" or f.word(-1) != "(" or not f.inside_annotation():
        return None
    return Advice("an annotation with empty parentheses", "Leave them out, or put a value in quotes between them.", -1)


def _comma_between_annotations(f: SyntaxFailure) -> Advice | None:
    following = f.token(1)
    if f.word() == "@" and "COMMA" in f.expected and "RPAR" in f.expected and f.inside_annotation():
        return Advice(f"',' is missing before '@{following or ''}'", "Put ',' between the parts of an annotation.")
    return None


def _missing_semicolon(f: SyntaxFailure) -> Advice | None:
    if "SEMICOLON" not in f.expected or f.word() not in _STATEMENTS or (f.word(), f.word(1)) == ("partition", "by"):
        return None
    return Advice(f"';' is missing before '{f.token()}'", "End each definition and query with ';'.")


def _semicolon_in_on_demand(f: SyntaxFailure) -> Advice | None:
    if f.start != "only_on_demand" or f.word(-1) != ";" or f.token() is None:
        return None
    return Advice(f"the ';' before '{f.token()}' ends the query too early", "Leave it out.", -1)


def _slashes(f: SyntaxFailure) -> Advice | None:
    if f.word() == "/" and "/" in (f.word(-1), f.word(1)):
        offset = -1 if f.word(-1) == "/" else 0
        return Advice(
            "'//' does not start a comment in SiddhiQL", "Write -- for the rest of a line, or /* ... */.", offset
        )
    return None


def _time_without_space(f: SyntaxFailure) -> Advice | None:
    before, token = f.token(-1), f.token()
    if before is None or token is None or before.end_pos != token.start_pos or before.type not in ("DOUBLE", "FLOAT"):
        return None
    unit = (before[-1] + token).lower()
    if unit not in UNIT_SPELLINGS:
        return None
    return Advice(f"'{before}' is read as a separate number here", f"Write '{before[:-1]} {unit}'.", -1)


_FOREIGN_WORDS = {
    "&": Advice("'&' is not SiddhiQL", "Write 'and'."),
    "|": Advice("'|' is not SiddhiQL", "Write 'or' between conditions. Texts are joined with str:concat(a, b)."),
    "where": Advice("'where' is not SiddhiQL", "Write the condition in brackets, S[...], or 'on ...' for a table."),
}


def _foreign_operator(f: SyntaxFailure) -> Advice | None:
    if f.word() == "=" and "EQ" in f.expected:
        return Advice("'=' does not compare", "Write '=='.")
    if f.word() == ">" and f.word(-1) == "<":
        return Advice("'<>' is not SiddhiQL", "Write '!='.", -1)
    if f.word() == "!" and "_NOT" in f.expected:
        return Advice("'!' does not negate", "Write 'not'.")
    if f.word() == "(" and f.word(-1) == "!":
        return Advice("'!' does not negate", "Write 'not'.", -1)
    return _FOREIGN_WORDS.get(f.word())


def _unary_minus(f: SyntaxFailure) -> Advice | None:
    before, token = f.token(-1), f.token()
    if before is None or token is None or before.type not in ("MINUS", "PLUS"):
        return None
    if "INT" not in f.expected or "ID" in f.expected:
        return None
    return Advice(f"a sign is allowed only before a number, not before '{token}'", f"Write '0 {before} {token}'.", -1)


def _unclosed_string(f: SyntaxFailure) -> Advice | None:
    token = f.token()
    if token is None or token.type != STRAY or token[0] not in "'\"":
        return None
    other = '"' if token == "'" else "'"
    return Advice(
        "this string is not closed on its line",
        f"Close it with {token}. There are no escapes: put {other}...{other} around {token}, "
        'and """...""" around both or around several lines.',
    )


def _open_body(f: SyntaxFailure) -> Advice | None:
    if f.word() != "{" or "SCRIPT" not in f.expected:
        return None
    return Advice("this body is not closed", "End it with '}', one for each '{'.")


def _blank(f: SyntaxFailure) -> Advice | None:
    token = f.token()
    if token is None or token.type != STRAY or token[0] not in "\u00a0\u2007\u202f\u200b\ufeff\f":
        return None
    return Advice(f"there is an invisible character (U+{ord(token[0]):04X}) here", "Type a plain space.")


def _keyword_after_comma(f: SyntaxFailure) -> Advice | None:
    before, comma = f.token(-1), f.token(-2)
    if before is None or comma is None or before.type != "KWNAME":
        return None
    if comma.type == "_AS":
        return Advice(f"'{before}' is read as the name after 'as'", "Put a name between the two.", -1)
    if comma.type != "COMMA":
        return None
    return Advice(f"'{before}' is read as a name here, because of the ',' before it", "Leave the ',' out.", -2)


_STATEMENT_OF = {
    "select": ("a query begins with the stream that it reads", "Write 'from STREAM select ... insert into OUTPUT;'."),
    "insert": ("a query begins with the stream that it reads", "Write 'from STREAM select ... insert into OUTPUT;'."),
    "create": ("'create' is not SiddhiQL", "Write 'define stream NAME (attribute type, ...);', or 'define table'."),
    "with": ("'with' is not SiddhiQL", "Let one query write a stream, and a second query read it."),
}
"""First words of SQL statements → the message and the hint."""
_PYTHON = frozenset({"import", "def", "class", "for", "print", "return", "if", "while", "try", "async", "lambda"})


def _at_a_statement(f: SyntaxFailure) -> bool:
    return f.start == "app" and "_DEFINE" in f.expected and "_FROM" in f.expected


def _file_name(f: SyntaxFailure) -> Advice | None:
    if not _at_a_statement(f) or f.at or [str(t) for t in f.tokens[-2:]] != [".", "siddhi"]:
        return None
    return Advice("this is the name of a file, not its text", "Read the text: pathlib.Path('app.siddhi').read_text().")


def _python(f: SyntaxFailure) -> Advice | None:
    if not _at_a_statement(f) or f.token() is None:
        return None
    if f.word() not in _PYTHON and f.word(1) not in ("=", ".", "("):
        return None
    return Advice("this is Python, not SiddhiQL", "Put it into a cell without %%siddhi, or into a Python file.")


def _sql_statement(f: SyntaxFailure) -> Advice | None:
    if not _at_a_statement(f) or f.word() not in _STATEMENT_OF:
        return None
    return Advice(*_STATEMENT_OF[f.word()])


def _sql_retrieval(f: SyntaxFailure) -> Advice | None:
    if f.start != "only_on_demand" or f.word() != "from" or f.tokens[0].lower() != "select":
        return None
    store = f.token(1)
    return Advice(
        "a query begins with the store that it reads",
        f"Write 'from {store or 'STORE'} select ...', and a condition between the two: 'on ...'.",
    )


_SQL_WORDS = {
    "like": "Write str:contains(text, 'part'), or regex:matches('pattern', text).",
    "ilike": "Write str:contains(str:lower(text), 'part').",
    "between": "Write '{x} >= a and {x} <= b'.",
    "in": "Write '{x} == a or {x} == b'; 'in' looks a row up in a table, and not in a list.",
    "union": "Let two queries insert into the same stream.",
    "over": "Put a window behind the stream, from S#window.length(10) select ..., and 'group by' for each key.",
}
"""Operators of SQL → SiddhiQL's equivalents; `{x}` is the expression before them."""


def _sql_operator(f: SyntaxFailure) -> Advice | None:
    before = f.word(-1)
    if f.word() == "not" and f.word(1) in ("like", "ilike", "in", "between"):
        message = f"'not {f.word(1)}' is not SiddhiQL"
        return Advice(message, f"{_SQL_WORDS[f.word(1)].format(x=f.token(-1))} Put not (...) around it.")
    if f.word() in _SQL_WORDS and f.word() != "in" and f.token(-1) is not None:
        return Advice(f"'{f.token()}' is not SiddhiQL", _SQL_WORDS[f.word()].format(x=f.token(-1)))
    if f.word() == "when" or before == "case":
        offset = -1 if before == "case" else 0
        return Advice("'case when' is not SiddhiQL", "Write ifThenElse(condition, value, other).", offset)
    if f.word() == "not" and before == "is":
        return Advice("'is not null' is not SiddhiQL", f"Write 'not {f.token(-2)} is null'.", -1)
    if f.word() == "(" and before == "in":
        return Advice("'in (...)' is not SiddhiQL", _SQL_WORDS["in"].format(x=f.token(-2)), -1)
    return None


def _sql_distinct(f: SyntaxFailure) -> Advice | None:
    if f.word(-1) != "distinct" or f.token() is None:
        return None
    if f.word(-2) == "(":
        return Advice("'distinct' is not SiddhiQL", f"Write distinctCount({f.token()}).", -1)
    if f.word(-2) != "select":
        return None
    return Advice("'distinct' is not SiddhiQL", f"Write 'select {f.token()} group by {f.token()}'.", -1)


def _partition_by(f: SyntaxFailure) -> Advice | None:
    if f.word() != "partition" or f.word(1) != "by":
        return None
    key = f.token(2) or "k"
    return Advice(
        "'partition by' is no part of a query",
        f"Write 'group by {key}', or for windows by key 'partition with ({key} of S) begin ... end;' around the query.",
    )


def _cast_as(f: SyntaxFailure) -> Advice | None:
    if f.word() != "as":
        return None
    depth = 0
    for i in range(f.at - 1, 0, -1):
        depth += {")": 1, "(": -1}.get(str(f.tokens[i]), 0)
        if depth < 0:
            if str(f.tokens[i - 1]).lower() not in ("cast", "convert", "try_cast"):
                return None
            type_ = FOREIGN_WORDS.get(f.word(1), f.word(1) or "string")
            return Advice(
                f"'{f.tokens[i - 1]}(x as type)' is not SiddhiQL",
                f"Write convert(x, '{type_}'), or cast(x, '{type_}') for an object that is one.",
            )
    return None


def _name_of_several_words(f: SyntaxFailure) -> Advice | None:
    """`(Station Name string)`: words between a name and the type that follows are part of the name."""
    if f.expected != {"TYPE"} or f.start != "app" or f.token() is None or f.token(-1) is None:
        return None
    before, token = f.tokens[f.at - 1], f.tokens[f.at]
    if token.type == STRAY and not token[0].isspace():  # the text is not read beyond it
        words = _join_tokens([before, token])
        return Advice("an attribute's name is one word", f"Put it in backticks, as in `{words}`.")
    depth = 0
    for i in range(f.at, min(f.at + _MOST_WORDS, len(f.tokens))):
        word = str(f.tokens[i])
        depth += {"(": 1, ")": -1}.get(word, 0)
        if depth < 0 or word in (",", ";"):
            return None
        if depth == 0 and i > f.at and word.lower() in TYPES:
            name = _join_tokens(f.tokens[f.at - 1 : i])
            plain = re.sub(r"\W+", "", str(f.token(-1))).lower() or "name"
            return Advice(
                "an attribute's name is one word",
                f'Put it in backticks: `{name}` {word}. Or name it {plain}, and feed it with --map {plain}="{name}".',
            )
    return None


_MOST_WORDS = 12
"""Words and signs of a name that is to be in backticks, at most."""


def _join_tokens(tokens: list[Token]) -> str:
    """Tokens joined as in the text."""
    out, end = "", tokens[0].start_pos
    for token in tokens:
        out += (" " if token.start_pos != end else "") + token
        end = token.end_pos
    return out


_SHORT_UNITS = {
    "s": "sec", "secs": "sec", "m": "min", "mins": "min", "h": "hour", "hr": "hour", "hrs": "hour", "d": "day",
    "ms": "millisec", "msec": "millisec",
}  # fmt: skip


def _short_unit(f: SyntaxFailure) -> Advice | None:
    before, unit = f.token(-1), _SHORT_UNITS.get(f.word())
    if before is None or before.type != "INT" or unit is None or "UNIT" not in f.expected:
        return None
    return Advice(f"'{f.token()}' is not a unit of time", f"Write '{before} {unit}'.")


_APP_PROPERTIES = frozenset({"name", "description", "statistics", "async", "playback"})


def _plan_of_siddhi_3(f: SyntaxFailure) -> Advice | None:
    if f.word() != ":" or f.word(-1) != "plan" or f.word(-2) != "@":
        return None
    option = str(f.token(1) or "name")
    instead = f"Write '@app:{option}(...)'." if option.lower() in _APP_PROPERTIES else "Leave it out."
    return Advice(f"'@Plan:{option}' is Siddhi 3, which names an app's properties so", instead, -1)


_EVENT_TYPES = ("current", "expired", "all")


def _output_of_former_versions(f: SyntaxFailure) -> Advice | None:
    """`insert expired-events into O`, `insert into O for all-events` and `insert into O select k`."""
    if f.word() == "-" and f.word(1) == "events" and f.word(-1) in _EVENT_TYPES:
        which = f.token(-1)
        return Advice(f"'{which}-events' is of former versions of Siddhi", f"Write 'insert {which} events into'.", -1)
    if "_INTO" in f.expected and f.word(-1) == "insert" and (name := f.token()) is not None and name.type == "ID":
        return Advice("'into' is missing behind 'insert'", f"Write 'insert into {name}'.")
    if f.word(-2) != "into":
        return None
    if f.word() == "for" and f.word(1) in _EVENT_TYPES:
        hint = f"Write 'insert {f.token(1)} events into {f.token(-1)}'."
        return Advice("'for ... events' behind 'insert into' is of former versions of Siddhi", hint)
    if f.word() == "select":
        return Advice("'select' stands before 'insert into'", f"Write 'select ... insert into {f.token(-1)};'.")
    return None


def _partition_of_siddhi_2(f: SyntaxFailure) -> Advice | None:
    if f.word() != "partition" or f.word(-1) != "define":
        return None
    hint = "Write 'partition with (k of S) begin ... end;' around the queries."
    return Advice("'define partition' is of former versions of Siddhi", hint)


def _magic(f: SyntaxFailure) -> Advice | None:
    if f.word() != "%" or not _at_a_statement(f):
        return None
    return Advice("this is a notebook's command, not SiddhiQL", "Put it into a cell of its own, without %%siddhi.")


def _interval(f: SyntaxFailure) -> Advice | None:
    at = 0 if f.word() == "interval" else -1
    count_token = f.token(at + 1)
    if f.word(at) != "interval" or count_token is None or count_token.type not in ("STRING", "INT"):
        return None
    count = str(count_token).strip("'\"")
    time = f"{count} {UNIT_SPELLINGS.get(f.word(at + 2), 'min')}" if count.isdigit() else "10 min"
    return Advice("'interval' is not SiddhiQL", f"Write '{time}'.", at)


_GROUPING_WINDOWS = {
    **dict.fromkeys(("tumble", "tumbling", "window", "time_bucket", "date_trunc", "bin"), "timeBatch(1 min)"),
    **dict.fromkeys(("hop", "hopping", "slide", "sliding", "cumulate"), "time(1 min)"),
    "session": "session(1 min)",
}
"""Windows that other systems have in `group by` → SiddhiQL's, which stand behind the stream."""


def _stream_of_query(f: SyntaxFailure) -> str:
    """The stream of the query in which the error is."""
    for i in range(f.at - 1, -1, -1):
        if str(f.tokens[i]).lower() == "from":
            return str(f.tokens[i + 1])
    return "S"


def _call_in_group_by(f: SyntaxFailure) -> Advice | None:
    """`group by tumble(...)`: `group by` takes attributes."""
    if f.word() not in ("(", ":"):
        return None
    offset = -1
    while f.word(offset) not in ("by", "select", "from", ";", ")", ""):
        offset -= 1
    if (f.word(offset - 1), f.word(offset)) != ("group", "by"):
        return None
    name = str(f.token(-1)) + (f":{f.token(1)}" if f.word() == ":" else "")
    stream = _stream_of_query(f)
    window = _GROUPING_WINDOWS.get(name.lower())
    if window is not None:
        hint = f"Write the window behind the stream: from {stream}#window.{window} select ... group by ..."
        return Advice(f"'{name}(...)' is no part of 'group by'", hint, -1)
    hint = f"Let a query before give it a name: from {stream} select *, {name}(...) as x insert into T;"
    return Advice("'group by' takes attributes only", hint, -1)


def _alias_without_join(f: SyntaxFailure) -> Advice | None:
    """`from S as s select` and `from S s select`."""
    if "_JOIN" not in f.expected or f.token(-1) is None:
        return None
    if f.word(-2) == "as" and f.word() in ("select", "insert", "output", "group"):
        return Advice("only a join has names for its streams", f"Leave 'as {f.token(-1)}' out.", -2)
    if f.word(-2) == "from" and f.word(1) in ("select", "insert", "where", "group"):
        return Advice("only a join has names for its streams", f"Leave '{f.token()}' out.")
    return None


_ESPER_VIEWS = {"win", "std", "ext", "window"}


def _view_of_esper(f: SyntaxFailure) -> Advice | None:
    """`from S.win:time(10 sec)`, and other calls behind a stream's dot."""
    if f.word() != "." or "HASH" not in f.expected or f.word(-2) != "from" or f.word(1) not in _ESPER_VIEWS:
        return None
    name = str(f.token(3)) if f.word(2) in (":", "(") and f.token(3) is not None else "time"
    return Advice("a window stands behind '#window.'", f"Write 'from {f.token(-1)}#window.{name}(...)'.")


TWO_EVENTS = "a logical state joins exactly two events, and this '{}' a third"
THIRD_EVENT = (
    "Join two in a query of their own (from every a=A and b=B select ... insert into AB), and its output with the "
    "third: from every ab=AB and c=C ..."
)


def _third_of_a_logical_state(f: SyntaxFailure) -> Advice | None:
    """`A and B and C`, also in parentheses: of a pattern Siddhi correlates two by `and` and `or`."""
    if f.word() not in ("and", "or"):
        return None
    depth, has_other = 0, False
    for i in range(f.at - 1, -1, -1):
        word = str(f.tokens[i]).lower()
        depth += {"]": 1, "[": -1}.get(word, 0)
        if word in ("->", ",") or depth < 0:
            return None
        has_other = has_other or (word in ("and", "or") and depth == 0)
        if word == "from":
            break
    if not has_other:
        return None
    return Advice(TWO_EVENTS.format(f.token()), THIRD_EVENT)


FIXITS: tuple[tuple[str, Callable[[SyntaxFailure], Advice | None]], ...] = (
    ("smart quotes", _smart_quotes),
    ("typographic arrow", _typographic_arrow),
    ("stray comma", _stray_comma),
    ("semicolon in an on-demand query", _semicolon_in_on_demand),
    ("truncated annotation", _truncated_annotation),
    ("doubled comma", _doubled_comma),
    ("empty annotation", _empty_annotation),
    ("comma between annotations", _comma_between_annotations),
    ("output of former versions", _output_of_former_versions),
    ("missing semicolon", _missing_semicolon),
    ("slashes", _slashes),
    ("SQL in an on-demand query", _sql_retrieval),
    ("distinct", _sql_distinct),
    ("partition by", _partition_by),
    ("cast as", _cast_as),
    ("name of several words", _name_of_several_words),
    ("operator of SQL", _sql_operator),
    ("foreign operator", _foreign_operator),
    ("time without a space", _time_without_space),
    ("unary minus", _unary_minus),
    ("unclosed text", _unclosed_string),
    ("open body", _open_body),
    ("invisible character", _blank),
    ("keyword after a comma", _keyword_after_comma),
    ("SQL", _sql_statement),
    ("the name of a file", _file_name),
    ("Python", _python),
    ("short unit", _short_unit),
    ("third of a logical state", _third_of_a_logical_state),
    ("Siddhi 3", _plan_of_siddhi_3),
    ("Siddhi 2", _partition_of_siddhi_2),
    ("command", _magic),
    ("interval", _interval),
    ("call in group by", _call_in_group_by),
    ("alias", _alias_without_join),
    ("view of Esper", _view_of_esper),
)
"""Name → function that recognizes the mistake; the first that returns advice wins."""


def advice(failure: SyntaxFailure) -> Advice | None:
    """The advice of the first entry of `FIXITS` that recognizes the mistake, or None."""
    for _, look in FIXITS:
        fixit = look(failure)
        if fixit is not None:
            return fixit
    return None


_DRIVER = re.compile(r"(?:\w+\.)+\w*Driver\w*")


def refuse_driver_without_key(annotations: tuple[Annotation, ...]) -> None:
    """Rejects `@store(..., "com.mysql.jdbc.Driver")`: a driver's class with no `jdbc.driver.name=` before it."""
    for annotation in annotations:
        for element in annotation.elements if annotation.name.lower() == "store" else ():
            if element.key is None and _DRIVER.fullmatch(element.value):
                raise SiddhiSyntaxError(
                    "this driver has no key", element.span, hint=f'Write jdbc.driver.name="{element.value}".'
                )


def refuse_per_without_quotes(per: Expression) -> None:
    """Rejects `per days`: the granularity must be a string."""
    if isinstance(per, Variable) and per.source is None and per.name.lower() in UNIT_SPELLINGS:
        raise SiddhiSyntaxError(f"the granularity '{per.name}' needs quotes", per.span, hint=f"Write per '{per.name}'.")
