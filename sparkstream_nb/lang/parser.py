"""Parses SiddhiQL text into syntax trees. `partial` reads unfinished text."""

from __future__ import annotations

import functools
import hashlib
import io
import sys
from collections.abc import Mapping
from importlib import resources
from typing import Any, cast

from lark import Lark, Token, Tree
from lark import __version__ as lark_version

from ..caches import keep, read_cached
from ..errors import SiddhiError, SiddhiSyntaxError
from .build_queries import QueryBuilder
from .fixits import SyntaxFailure
from .source_text import SourceText, tokens
from .syntax_messages import syntax_error
from .token_reader import END, ParseStop, TokenReader
from .tree import App, Expression, OnDemandQuery

_STARTS = ("app", "only_on_demand", "only_expression")


def parse(text: str, variables: Mapping[str, str] | None = None, *, may_begin_with_query: bool = False) -> App:
    """The tree of a whole app. `variables` gives the values of `${NAME}`; environment variables are not used.
    `may_begin_with_query`: streams are defined elsewhere, so the text may begin with a query.

    Raises SiddhiSyntaxError, with the text for its caret, if Siddhi's compiler raises SiddhiParserException.
    """
    return cast(App, _parse(text, "app", variables, may_begin_with_query=may_begin_with_query))


def parse_on_demand(text: str) -> OnDemandQuery:
    """The tree of an on-demand query (`store_query`). Raises SiddhiSyntaxError."""
    return cast(OnDemandQuery, _parse(text, "only_on_demand"))


def parse_expression(text: str) -> Expression:
    """The tree of one expression, in which `x is null` asks for an attribute. Raises SiddhiSyntaxError."""
    return cast(Expression, _parse(text, "only_expression"))


@functools.cache
def machinery() -> tuple[Lark, TokenReader]:
    """The grammar's lexer and parser, and the reader that decides between keywords and names."""
    grammar = resources.files(__package__).joinpath("grammar.lark").read_text("utf-8")
    # Making the tables takes a process some 0.3 s, and gives the same each time.
    made_of = repr((grammar, _STARTS, lark_version, sys.version))
    name = f"grammar-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}"
    parser = _load_tables(name)
    if parser is None:
        starts = list(_STARTS)
        parser = Lark(
            grammar, parser="lalr", lexer="basic", start=starts, propagate_positions=True, maybe_placeholders=True
        )
        tables = io.BytesIO()
        parser.save(tables)
        keep(name, tables.getvalue())
    return parser, TokenReader(parser)


def _load_tables(name: str) -> Lark | None:
    """The parser built from cached tables; None if there are none, or they cannot be read."""
    tables = read_cached(name)
    if tables is None:
        return None
    try:
        return Lark.load(io.BytesIO(tables))
    except Exception:  # the file is not whole: it is made again
        return None


def _parse(
    text: str, start: str, variables: Mapping[str, str] | None = None, *, may_begin_with_query: bool = False
) -> object:
    parser, reader = machinery()
    source = SourceText(text, variables, substitute=start == "app")
    try:
        read = reader.read(tokens(source, parser), start)
        if isinstance(read, ParseStop):
            raise syntax_error(source, SyntaxFailure(read.tokens, read.at, read.expected, start))
        return QueryBuilder(source, may_begin_with_query=may_begin_with_query).build(_tree(parser, start, read))
    except SiddhiError as e:
        raise e.with_source(text) from None
    except RecursionError:
        raise SiddhiSyntaxError("this text is nested too deeply").with_source(text) from None


def _tree(parser: Lark, start: str, read: list[Token]) -> Tree[Token]:
    state = parser.parse_interactive("", start=start).parser_state
    for token in read:
        state.feed_token(token)
    return cast("Tree[Token]", cast(Any, state).feed_token(Token(END, ""), True))
