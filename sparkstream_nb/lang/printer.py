"""Prints syntax trees as text: `parse(to_text(tree)) == tree` for every tree that the parser makes."""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Iterable

from ..types import Type
from . import tree as t
from .keywords import KEYWORDS

_PLAIN_NAME = re.compile(r"[a-zA-Z_][a-zA-Z_0-9]*")
_PLAIN_KEY = re.compile(r"[a-zA-Z_][a-zA-Z_0-9]*(?:[.:-][a-zA-Z_][a-zA-Z_0-9]*)*")
_CONTROL = re.compile(r"[\x00-\x1f]")


def to_text(node: t.Node) -> str:
    """The text of `node`, which parses to an equal tree.

    Raises ValueError for values that SiddhiQL cannot write: a name with a back quote, a text that ends in a double
    quote and holds another quote or line, NaN, `is null` over an operator.
    """
    return _text(node)


def name_text(name: str) -> str:
    """A name, in back quotes if it is a keyword or not a plain identifier."""
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in KEYWORDS:
        return name
    if "`" in name:
        raise ValueError(f"SiddhiQL cannot write the name {name!r}: it holds a back quote")
    return f"`{name}`"


def string_text(value: str) -> str:
    """A text in the plainest quotes that can hold it; SiddhiQL has no escapes."""
    if not _CONTROL.search(value):
        for quote in "'\"":
            if ("'" not in value and '"' not in value) or (quote == '"' and '"' not in value):
                return f"{quote}{value}{quote}"
    if '"""' in value or value.endswith('"'):
        raise ValueError(f"SiddhiQL cannot write the text {value!r}")
    return f'"""{value}"""'


@functools.singledispatch
def _text(node: object) -> str:
    raise TypeError(f"no text for {type(node).__name__}")


def _list(nodes: Iterable[t.Node]) -> str:
    return ", ".join(map(_text, nodes))


def _lines(*pieces: str) -> str:
    return "\n".join(p for p in pieces if p)


def _clause(word: str, node: t.Node | None) -> str:
    return "" if node is None else f"{word} {_text(node)}"


# ---------------------------------------------------------------------------------------------------- expressions

_LEVELS: dict[type, int] = {t.Or: 1, t.And: 2, t.In: 3, t.Not: 8}
_OPERATOR_LEVELS = {"==": 4, "!=": 4, "<": 5, "<=": 5, ">": 5, ">=": 5, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7}
_TIGHTEST = 9


def _level(node: t.Expression) -> int:
    if isinstance(node, t.Arithmetic | t.Comparison):
        return _OPERATOR_LEVELS[node.op]
    return _LEVELS.get(type(node), _TIGHTEST)


def _operand(node: t.Expression, least: int) -> str:
    return _text(node) if _level(node) >= least else f"({_text(node)})"


def _binary(left: t.Expression, op: str, right: t.Expression, level: int) -> str:
    return f"{_operand(left, level)} {op} {_operand(right, level + 1)}"


@_text.register
def _(node: t.Or) -> str:
    return _binary(node.left, "or", node.right, 1)


@_text.register
def _(node: t.And) -> str:
    return _binary(node.left, "and", node.right, 2)


@_text.register
def _(node: t.In) -> str:
    return f"{_operand(node.operand, 3)} in {name_text(node.table)}"


@_text.register(t.Arithmetic)
@_text.register(t.Comparison)
def _(node: t.Arithmetic | t.Comparison) -> str:
    return _binary(node.left, node.op, node.right, _OPERATOR_LEVELS[node.op])


@_text.register
def _(node: t.Not) -> str:
    return f"not {_operand(node.operand, 8)}"


@_text.register
def _(node: t.IsNull) -> str:
    if not isinstance(node.operand, t.Variable | t.StreamReference | t.FunctionCall):
        raise ValueError("SiddhiQL asks 'is null' of attributes, events and function calls only")
    return f"{_text(node.operand)} is null"


@_text.register
def _(node: t.Constant) -> str:
    value = node.value
    match node.type:
        case Type.STRING:
            return string_text(str(value))
        case Type.BOOL:
            return "true" if value else "false"
        case Type.INT:
            return str(value)
        case Type.LONG:
            return f"{value}L"
    number = float(value)
    if number != number:
        raise ValueError("SiddhiQL cannot write NaN")
    digits = repr(number).replace("inf", "1e999") if node.type is Type.DOUBLE else _single_digits(number)
    return digits if node.type is Type.DOUBLE else f"{digits}f"


def _single_digits(value: float) -> str:
    """The fewest digits that give this float of 32 bits."""
    if value in (float("inf"), float("-inf")):
        return repr(value).replace("inf", "1e999")
    for precision in range(1, 10):
        digits = f"{value:.{precision}g}"
        try:
            if struct.pack("f", float(digits)) == struct.pack("f", value):
                return digits
        except OverflowError:  # rounded up beyond the largest float
            continue
    return repr(value)


@_text.register
def _(node: t.TimeConstant) -> str:
    return " ".join(f"{count} {unit}" for count, unit in node.parts)


@_text.register
def _(node: t.Variable) -> str:
    out = ""
    if node.source is not None:
        out = _text(node.source) + _index(node.index)
    if node.inner_name is not None:
        out += f"#{name_text(node.inner_name)}{_index(node.inner_index)}"
    return f"{out}.{name_text(node.name)}" if out else name_text(node.name)


@_text.register
def _(node: t.StreamReference) -> str:
    return _text(node.source) + _index(node.index)


def _index(index: t.EventIndex | None) -> str:
    if index is None:
        return ""
    if not index.from_last:
        return f"[{index.offset}]"
    return f"[last - {index.offset}]" if index.offset else "[last]"


@_text.register
def _(node: t.FunctionCall) -> str:
    namespace = "" if node.namespace is None else f"{name_text(node.namespace)}:"
    return f"{namespace}{name_text(node.name)}({'*' if node.star else _list(node.args)})"


@_text.register
def _(node: t.SourceName) -> str:
    return ("#" if node.inner else "!" if node.fault else "") + name_text(node.id)


# ---------------------------------------------------------------------------------------- annotations, definitions


@_text.register
def _(node: t.Annotation) -> str:
    inside = _list((*node.elements, *node.nested))
    return f"@{'app:' if node.app else ''}{name_text(node.name)}{f'({inside})' if inside else ''}"


@_text.register
def _(node: t.AnnotationElement) -> str:
    if node.key is None:
        return string_text(node.value)
    plain = not node.quoted_key and _PLAIN_KEY.fullmatch(node.key)
    return f"{node.key if plain else string_text(node.key)}={string_text(node.value)}"


def _prefix_annotations(annotations: tuple[t.Annotation, ...], text: str) -> str:
    return _lines(*map(_text, annotations), text)


@_text.register
def _(node: t.AttributeDefinition) -> str:
    return f"{name_text(node.name)} {node.type}"


@_text.register
def _(node: t.StreamDefinition) -> str:
    return _prefix_annotations(node.annotations, f"define stream {_text(node.id)} ({_list(node.attributes)})")


@_text.register
def _(node: t.TableDefinition) -> str:
    return _prefix_annotations(node.annotations, f"define table {_text(node.id)} ({_list(node.attributes)})")


@_text.register
def _(node: t.WindowDefinition) -> str:
    output = f" output {_events(node.output)}" if node.output else ""
    text = f"define window {_text(node.id)} ({_list(node.attributes)}) {_text(node.window)}{output}"
    return _prefix_annotations(node.annotations, text)


@_text.register
def _(node: t.TriggerDefinition) -> str:
    at = f"every {_text(node.every)}" if node.every else string_text(node.at or "")
    return _prefix_annotations(node.annotations, f"define trigger {name_text(node.id)} at {at}")


@_text.register
def _(node: t.FunctionDefinition) -> str:
    head = f"define function {name_text(node.id)}[{name_text(node.language)}] return {node.returns}"
    return _prefix_annotations(node.annotations, f"{head} {{{node.body}}}")


@_text.register
def _(node: t.AggregationDefinition) -> str:
    by = f"by {_text(node.by)} " if node.by else ""
    every = (" ... " if node.is_range else ", ").join(node.durations)
    return _prefix_annotations(
        node.annotations,
        _lines(
            f"define aggregation {name_text(node.id)}",
            f"from {_text(node.input)}",
            _text(node.select),
            f"aggregate {by}every {every}",
        ),
    )


# -------------------------------------------------------------------------------------------------------- inputs


@_text.register
def _(node: t.Filter) -> str:
    return f"[{_text(node.condition)}]"


@_text.register
def _(node: t.StreamFunction) -> str:
    return f"#{_text(node.call)}"


@_text.register
def _(node: t.Window) -> str:
    return f"#window.{_text(node.call)}"


@_text.register
def _(node: t.StandardStream) -> str:
    return _text(node.source) + "".join(map(_text, node.handlers))


@_text.register
def _(node: t.JoinSide) -> str:
    alias = f" as {name_text(node.alias)}" if node.alias is not None else ""
    return _text(node.source) + "".join(map(_text, node.handlers)) + alias


@_text.register
def _(node: t.JoinStream) -> str:
    kind = "join" if node.kind == "inner" else f"{node.kind} join"
    left = f"{_text(node.left)}{' unidirectional' if node.unidirectional == 'left' else ''}"
    right = f"{_text(node.right)}{' unidirectional' if node.unidirectional == 'right' else ''}"
    return _lines(f"{left} {kind} {right}", _clause("on", node.on), _within(node.within, node.per))


def _within(within: tuple[t.Expression, ...], per: t.Expression | None) -> str:
    return f"within {_list(within)} per {_text(per)}" if within and per is not None else ""


@_text.register
def _(node: t.AnonymousStream) -> str:
    return f"({_text(node.query)})"


# --------------------------------------------------------------------------------------- patterns and sequences


@_text.register
def _(node: t.StateStream) -> str:
    states = _chain(node.state)
    if node.kind == "sequence":
        text = _sequence(states)
    else:
        text = " -> ".join(_state(s, sequence=False) for s in states)
        # A lone stream is a plain input unless something marks it as a pattern.
        if isinstance(node.state, t.StreamState) and node.state.ref is None and node.within is None:
            text = f"({text})"
    return f"{text} within {_text(node.within)}" if node.within else text


def _chain(state: t.StateElement) -> list[t.StateElement]:
    return [*_chain(state.first), *_chain(state.then)] if isinstance(state, t.NextState) else [state]


def _sequence(states: list[t.StateElement]) -> str:
    """Groups keep a leading `every` to its extent: without them it may reach as far as an absent event does."""
    first, rest = states[0], states[1:]
    then = ", ".join(_state(s, sequence=True) for s in rest)
    if not isinstance(first, t.EveryState):
        return f"{_state(first, sequence=True)}, {then}"
    chain = ", ".join(_state(s, sequence=True) for s in _chain(first.state))
    several = isinstance(first.state, t.NextState)
    if len(rest) > 1 and (several or any(isinstance(s, t.AbsentState) for s in rest)):
        then = f"({then})"
    return f"every {f'({chain})' if several else chain}, {then}"


def _state(state: t.StateElement, *, sequence: bool) -> str:
    match state:
        case t.StreamState():
            ref = f"{name_text(state.ref)}=" if state.ref is not None else ""
            return ref + _text(state.source) + "".join(map(_text, state.handlers))
        case t.CountState():
            return _state(state.state, sequence=sequence) + _count(state, sequence=sequence)
        case t.AbsentState():
            wait = f" for {_text(state.wait)}" if state.wait else ""
            return f"not {_state(state.state, sequence=sequence)}{wait}"
        case t.LogicalState():
            return f"{_state(state.left, sequence=sequence)} {state.op} {_state(state.right, sequence=sequence)}"
        case t.EveryState():
            inner = " -> ".join(_state(s, sequence=sequence) for s in _chain(state.state))
            return f"every ({inner})" if isinstance(state.state, t.NextState | t.EveryState) else f"every {inner}"
    raise TypeError(f"no text for {type(state).__name__}")


def _count(state: t.CountState, *, sequence: bool) -> str:
    least, most = state.least, state.most
    sign = {(0, t.UNBOUNDED): "*", (1, t.UNBOUNDED): "+", (0, 1): "?"}.get((least, most))
    if sequence and sign:
        return sign
    if least == most:
        return f"<{least}>"
    return f"<{least}:{'' if most == t.UNBOUNDED else most}>"


# -------------------------------------------------------------------------------------------- selection, output


@_text.register
def _(node: t.Selection) -> str:
    if node == t.Selection():
        return ""
    return _lines(
        "select " + (_list(node.attributes) or "*"),
        "group by " + _list(node.group_by) if node.group_by else "",
        _clause("having", node.having),
        "order by " + _list(node.order_by) if node.order_by else "",
        _clause("limit", node.limit),
        _clause("offset", node.offset),
    )


@_text.register
def _(node: t.OutputAttribute) -> str:
    return _text(node.expression) + (f" as {name_text(node.name)}" if node.name is not None else "")


@_text.register
def _(node: t.OrderBy) -> str:
    return _text(node.attribute) + (" desc" if node.descending else "")


@_text.register
def _(node: t.OutputRate) -> str:
    kind = "" if node.kind == "all" else f"{node.kind} "
    return f"output {kind}every {_text(node.time) if node.time else f'{node.events} events'}"


def _events(event_type: t.EventType | None, before: str = "") -> str:
    return "" if event_type is None else f"{before}{event_type} events"


def _set(assignments: tuple[t.SetAssignment, ...] | None) -> str:
    return f" set {_list(assignments)}" if assignments else ""


@_text.register
def _(node: t.SetAssignment) -> str:
    return f"{_text(node.target)} = {_text(node.value)}"


@_text.register
def _(node: t.InsertInto) -> str:
    return f"insert{_events(node.event_type, ' ')} into {_text(node.target)}"


@_text.register
def _(node: t.DeleteFrom) -> str:
    on = f" on {_text(node.on)}" if node.on else ""
    return f"delete {_text(node.target)}{_events(node.event_type, ' for ')}{on}"


@_text.register
def _(node: t.UpdateTable) -> str:
    changes = f"{_events(node.event_type, ' for ')}{_set(node.set)}"
    return f"update {_text(node.target)}{changes} on {_text(node.on)}"


@_text.register
def _(node: t.UpdateOrInsert) -> str:
    changes = f"{_events(node.event_type, ' for ')}{_set(node.set)}"
    return f"update or insert into {_text(node.target)}{changes} on {_text(node.on)}"


@_text.register
def _(node: t.Return) -> str:
    return f"return{_events(node.event_type, ' ')}"


# ------------------------------------------------------------------------------------- queries, partitions, apps


@_text.register
def _(node: t.Query) -> str:
    rate = _text(node.rate) if node.rate else ""
    return _prefix_annotations(
        node.annotations, _lines(f"from {_text(node.input)}", _text(node.select), rate, _text(node.output))
    )


@_text.register
def _(node: t.ValuePartition) -> str:
    return f"{_text(node.expression)} of {name_text(node.stream)}"


@_text.register
def _(node: t.RangePartition) -> str:
    cases = " or ".join(f"{_text(condition)} as {string_text(key)}" for condition, key in node.ranges)
    return f"{cases} of {name_text(node.stream)}"


@_text.register
def _(node: t.Partition) -> str:
    queries = ";\n".join(map(_text, node.queries))
    return _prefix_annotations(node.annotations, f"partition with ({_list(node.keys)})\nbegin\n{queries};\nend")


@_text.register
def _(node: t.App) -> str:
    return _lines(*map(_text, node.annotations), *(f"{_text(n)};" for n in (*node.definitions, *node.elements))) + "\n"


@_text.register
def _(node: t.StoreInput) -> str:
    alias = f" as {name_text(node.alias)}" if node.alias is not None else ""
    return _lines(f"from {name_text(node.id)}{alias}", _clause("on", node.on), _within(node.within, node.per))


@_text.register
def _(node: t.OnDemandQuery) -> str:
    pieces = (node.input, node.select, node.output)
    return _lines(*(_text(piece) for piece in pieces if piece is not None))
