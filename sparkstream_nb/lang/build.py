"""Converts Lark's parse tree to the syntax tree of `tree.py`: expressions, annotations, definitions (queries:
`build_queries`).

One method per rule of `grammar.lark`. It rejects the same texts as Siddhi's visitor `SiddhiQLBaseVisitorImpl`.
"""

from __future__ import annotations

import struct
from typing import Any, NoReturn, cast

from lark import Token, Tree

from ..errors import SiddhiSyntaxError, Span
from ..types import Type
from .keywords import TYPES, UNIT_MILLIS, UNIT_SPELLINGS
from .source_text import SourceText
from .tree import (
    And,
    Annotation,
    AnnotationElement,
    Arithmetic,
    AttributeDefinition,
    Comparison,
    Constant,
    EventIndex,
    Expression,
    FunctionCall,
    In,
    IsNull,
    Not,
    Or,
    SourceName,
    StreamReference,
    TimeConstant,
    Variable,
)

Branch = Tree[Token]


def name_of(token: Token) -> str:
    """The name that an ID or KWNAME token spells, without back quotes."""
    text = str(token)
    return text[1:-1] if text.startswith("`") else text


def string_of(token: Token) -> str:
    """The value of a STRING token."""
    text = str(token)
    width = 3 if text.startswith('"""') and len(text) >= 6 else 1
    return text[width:-width]


class Builder:
    """Builds nodes from Lark's trees; `active` holds the streams and event names in sight, as Siddhi's `activeStreams`.

    They decide whether `x is null` asks for an event (StreamReference) or an attribute.
    """

    def __init__(self, source: SourceText) -> None:
        self._source = source
        self.active: set[str] = set()

    def build(self, branch: Branch) -> Any:
        """The node of `branch`."""
        return getattr(self, str(branch.data))(branch)

    def optional(self, branch: Branch | None) -> Any:
        """The node of `branch`, or None."""
        return None if branch is None else self.build(branch)

    def span(self, part: Branch | Token) -> Span:
        """The span of `part` in the user's text."""
        if isinstance(part, Token):
            return self._source.span(part.start_pos or 0, part.end_pos or 0)
        if part.meta.empty:
            return self._source.span(0, 0)
        return self._source.span(part.meta.start_pos, part.meta.end_pos)

    def fail(self, part: Branch | Token, message: str, hint: str | None = None) -> NoReturn:
        """Raises the SiddhiSyntaxError for `part`."""
        raise SiddhiSyntaxError(message, self.span(part), hint=hint)

    # ----------------------------------------------------------------------------------------------- expressions

    def or_expression(self, b: Branch) -> Expression:
        return Or(self.build(sub(b, 0)), self.build(sub(b, 2)), span=self.span(b))

    def and_expression(self, b: Branch) -> Expression:
        left, right = self.build(sub(b, 0)), self.build(sub(b, 2))
        if isinstance(left, TimeConstant) and isinstance(right, TimeConstant):
            self.fail(
                b, "'and' joins conditions, not times", "Write a time's parts one after the other: 1 hour 25 minutes."
            )
        return And(left, right, span=self.span(b))

    def in_table(self, b: Branch) -> Expression:
        return In(self.build(sub(b, 0)), name_of(tok(b, 1)), span=self.span(b))

    def comparison(self, b: Branch) -> Expression:
        return Comparison(cast(Any, str(parts(b)[1])), self.build(sub(b, 0)), self.build(sub(b, 2)), span=self.span(b))

    def arithmetic(self, b: Branch) -> Expression:
        return Arithmetic(cast(Any, str(parts(b)[1])), self.build(sub(b, 0)), self.build(sub(b, 2)), span=self.span(b))

    def not_expression(self, b: Branch) -> Expression:
        return Not(self.build(sub(b, 0)), span=self.span(b))

    def null_check(self, b: Branch) -> Expression:
        operand = self.build(sub(b, 0))
        if isinstance(operand, Variable) and operand.source is None and operand.name in self.active:
            operand = StreamReference(SourceName(operand.name, span=operand.span), span=operand.span)
        elif isinstance(operand, _EventReference):
            operand = StreamReference(operand.source, operand.index, span=self.span(sub(b, 0)))
        return IsNull(operand, span=self.span(b))

    def truth(self, b: Branch) -> Expression:
        return Constant(str(parts(b)[0]).lower() == "true", Type.BOOL, span=self.span(b))

    def text(self, b: Branch) -> Expression:
        return Constant(string_of(tok(b, 0)), Type.STRING, span=self.span(b))

    def number(self, b: Branch) -> Expression:
        sign, literal = parts(b)[0], tok(b, 1)
        text = ("-" if sign == "-" else "") + literal.lower()
        match literal.type:
            case "INT":
                return Constant(self._whole(b, text, 31, "int", "Write a long as 123L."), Type.INT, span=self.span(b))
            case "LONG":
                return Constant(self._whole(b, text[:-1], 63, "long"), Type.LONG, span=self.span(b))
            case "FLOAT":
                return Constant(_single(float(text[:-1])), Type.FLOAT, span=self.span(b))
            case _:
                return Constant(float(text.rstrip("d")), Type.DOUBLE, span=self.span(b))

    def _whole(self, part: Branch | Token, digits: str, bits: int, type_name: str, hint: str | None = None) -> int:
        # Longer than any long: kept from int(), which refuses thousands of digits with an error of its own.
        value = int(digits) if len(digits.lstrip("-0")) < 20 else 1 << 64
        if not -(1 << bits) <= value < 1 << bits:
            self.fail(part, f"this number does not fit in {'an' if type_name == 'int' else 'a'} {type_name}", hint)
        return value

    def small(self, token: Token) -> int:
        """The value of an INT token that Siddhi reads with `Integer.parseInt`."""
        return self._whole(token, str(token), 31, "int")

    def time(self, b: Branch) -> TimeConstant:
        out: list[tuple[int, str]] = []
        order = list(UNIT_MILLIS)
        millis = 0
        last = -1
        for count, unit in zip(parts(b)[::2], parts(b)[1::2], strict=True):
            assert isinstance(count, Token)
            assert isinstance(unit, Token)
            kind = UNIT_SPELLINGS[unit.lower()]
            if order.index(kind) <= last:
                self.fail(
                    unit,
                    f"'{unit}' cannot follow '{out[-1][1]}'",
                    "Units go from years down to milliseconds, each once.",
                )
            last = order.index(kind)
            value = self._whole(count, str(count), 63, "long")
            out.append((value, str(unit)))
            millis += value * UNIT_MILLIS[kind]
        if millis >= 1 << 63:
            self.fail(b, "this time is longer than 292 million years")
        return TimeConstant(millis, tuple(out), span=self.span(b))

    def call(self, b: Branch) -> FunctionCall:
        namespace, name, *rest = parts(b)
        args = [a for a in rest if a is not None]
        star = len(args) == 1 and isinstance(args[0], Tree) and args[0].data == "star"
        return FunctionCall(
            None if namespace is None else name_of(namespace),
            name_of(name),
            () if star else tuple(self.build(a) for a in args),
            star,
            span=self.span(b),
        )

    def attribute_name(self, b: Branch) -> Variable:
        return Variable(name_of(tok(b, 0)), span=self.span(b))

    def qualified(self, b: Branch) -> Variable:
        event, inner, inner_index, name = parts(b)
        reference = self.build(event)
        return Variable(
            name_of(name),
            reference.source,
            reference.index,
            None if inner is None else name_of(inner),
            self.optional(inner_index),
            span=self.span(b),
        )

    def plain(self, b: Branch) -> _EventReference:
        return _EventReference(SourceName(name_of(tok(b, 0)), span=self.span(b)), None)

    def marked(self, b: Branch) -> _EventReference:
        return _EventReference(SourceName(name_of(tok(b, 0)), span=self.span(tok(b, 0))), self.build(sub(b, 1)))

    def inner_marked(self, b: Branch) -> _EventReference:
        source = SourceName(name_of(tok(b, 0)), inner=True, span=self.span(b))
        return _EventReference(source, self.optional(parts(b)[1]))

    def fault_marked(self, b: Branch) -> _EventReference:
        source = SourceName(name_of(tok(b, 0)), fault=True, span=self.span(b))
        return _EventReference(source, self.optional(parts(b)[1]))

    def index(self, b: Branch) -> EventIndex:
        return EventIndex(self.small(tok(b, 0)), span=self.span(b))

    def last_index(self, b: Branch) -> EventIndex:
        back = parts(b)[2]
        return EventIndex(0 if back is None else self.small(back), from_last=True, span=self.span(b))

    # ----------------------------------------------------------------------------------------------- annotations

    def annotations(self, b: Branch, *, app: bool = False) -> tuple[Annotation, ...]:
        """The annotations before a definition or query, where `@app:...` is allowed only if `app`."""
        out = tuple(self.build(sub(b, i)) for i in range(len(parts(b))))
        for child, annotation in zip(parts(b), out, strict=True):
            if annotation.app and not app:
                self.fail(child, f"'@app:{annotation.name}' must come at the start of the app")
        return out

    def app_annotation(self, b: Branch) -> Annotation:
        return Annotation(name_of(tok(b, 0)), self._elements(b), app=True, span=self.span(b))

    def annotation(self, b: Branch) -> Annotation:
        annotations = tuple(self.build(c) for c in parts(b)[1:] if isinstance(c, Tree) and c.data == "annotation")
        return Annotation(name_of(tok(b, 0)), self._elements(b), annotations, span=self.span(b))

    def _elements(self, b: Branch) -> tuple[AnnotationElement, ...]:
        return tuple(self.build(c) for c in parts(b)[1:] if isinstance(c, Tree) and c.data != "annotation")

    def keyed_element(self, b: Branch) -> AnnotationElement:
        key = parts(sub(b, 0))
        if key[0].type == "STRING":
            return AnnotationElement(string_of(key[0]), string_of(tok(b, 1)), quoted_key=True, span=self.span(b))
        text = "".join(name_of(k) for k in key)
        return AnnotationElement(text, string_of(tok(b, 1)), span=self.span(b))

    def element(self, b: Branch) -> AnnotationElement:
        return AnnotationElement(None, string_of(tok(b, 0)), span=self.span(b))

    # ----------------------------------------------------------------------------------------------------- pieces

    def source(self, b: Branch) -> SourceName:
        return SourceName(name_of(tok(b, 0)), span=self.span(b))

    def inner_source(self, b: Branch) -> SourceName:
        return SourceName(name_of(tok(b, 0)), inner=True, span=self.span(b))

    def fault_source(self, b: Branch) -> SourceName:
        return SourceName(name_of(tok(b, 0)), fault=True, span=self.span(b))

    def attributes(self, b: Branch) -> tuple[AttributeDefinition, ...]:
        return tuple(self.build(c) for c in parts(b))

    def attribute(self, b: Branch) -> AttributeDefinition:
        kind = tok(b, 1).lower()
        assert kind in TYPES
        return AttributeDefinition(name_of(tok(b, 0)), Type(kind), span=self.span(b))


class _EventReference:
    """An event as named in an expression, with its index: the part before the dot."""

    def __init__(self, source: SourceName, index: EventIndex | None) -> None:
        self.source = source
        self.index = index


def parts(b: Branch) -> list[Any]:
    """The children of `b`: a Branch for a rule, a Token for a terminal, None for an omitted optional part."""
    return b.children


def sub(b: Branch, i: int) -> Branch:
    return cast(Branch, parts(b)[i])


def tok(b: Branch, i: int) -> Token:
    return cast(Token, parts(b)[i])


def _single(value: float) -> float:
    """The nearest float of 32 bits."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
