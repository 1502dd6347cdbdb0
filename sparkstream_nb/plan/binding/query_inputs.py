"""The input of a query: one source with its handlers, or a join.

Rules of Siddhi's `SingleInputStreamParser` and `JoinInputStreamParser`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ...errors import SiddhiBindError, Span
from ...lang import tree
from ...types import Schema, Type
from ..functions import STREAM_FUNCTIONS, WINDOWS, resolve, unknown
from ..nodes import (
    DURATIONS,
    RANGE,
    AggDuration,
    Const,
    Expr,
    FilterStep,
    FunctionStep,
    JoinInput,
    Source,
    Step,
    StreamInput,
    WindowStep,
)
from ..signatures.streams import IN_PATTERNS
from ..window_declarations import DECLARATIONS
from .expression_windows import window_condition
from .expressions import bind_arguments, bind_condition, bind_expression
from .scope import Scope, VisibleEvent
from .symbols import Symbols

Reader = Literal["query", "join", "pattern", "aggregation"]


@dataclass(frozen=True)
class PartitionPlace:
    """The partition of a query, if any."""

    symbols: Symbols
    partition: str | None = None


def bind_stream(stream: tree.StandardStream, place: PartitionPlace, reader: Reader = "query") -> StreamInput:
    """One stream, trigger or named window with its handlers, as the only input."""
    source = place.symbols.source(stream.source, place.partition, stream.source.span)
    if source.kind in ("table", "aggregation"):
        raise SiddhiBindError(
            f"'{source.id}' is a {source.kind}: it does not send events",
            stream.source.span,
            hint="Join it with a stream, or read it with an on-demand query.",
        )
    scope = Scope(
        place.symbols, (VisibleEvent(0, str(stream.source), source.schema, what=source.kind),), "a filter", bare="first"
    )
    return bind_handlers(source, stream.handlers, scope, 0, reader)


def bind_handlers(
    source: Source, handlers: tuple[tree.Handler, ...], scope: Scope, slot: int, reader: Reader
) -> StreamInput:
    """The handlers of a source whose event has `slot` in `scope`. Stream functions add attributes for later
    handlers."""
    schema = source.schema
    steps: list[Step] = []
    has_window = False
    for h in handlers:
        match h:
            case tree.Filter():
                seeing = replace(scope, aggregators=reader in ("query", "join"))
                condition = bind_condition(h.condition, seeing, "a filter")
                steps.append(FilterStep(condition, span=h.span))
            case tree.Window():
                if source.kind == "window":
                    raise SiddhiBindError(
                        f"'{source.id}' is already a window and cannot have another one",
                        h.span,
                        hint="Read it without a window.",
                    )
                if has_window:
                    raise SiddhiBindError("a stream can have one window only", h.span)
                if reader == "pattern":
                    raise SiddhiBindError("a pattern's streams cannot have windows", h.span)
                has_window = True
                steps.append(bind_window(h.call, h.span, scope))
            case tree.StreamFunction():
                if reader == "join" and has_window:
                    raise SiddhiBindError("in a join nothing may follow the window", h.span)
                step = bind_stream_function(h, scope, schema)
                if reader == "pattern" and step.function not in IN_PATTERNS:
                    raise SiddhiBindError(
                        f"a pattern's streams cannot have '#{step.function}'",
                        h.span,
                        hint="Apply it in a query before, and let the pattern read that query's output.",
                        kind="ExtensionNotFoundException",
                    )
                steps.append(step)
                schema = Schema(schema.attributes + step.appends.attributes)
                entries = tuple(_widen_event(e, schema) if e.slot == slot else e for e in scope.entries)
                scope = replace(scope, entries=entries)
    return StreamInput(source, tuple(steps), schema)


def _widen_event(e: VisibleEvent, schema: Schema) -> VisibleEvent:
    return replace(e, schema=schema)


def bind_stream_function(h: tree.StreamFunction, scope: Scope, schema: Schema) -> FunctionStep:
    """`#ns:name(args)`."""
    key = str(h.call)
    function = STREAM_FUNCTIONS.get(key)
    if function is None:
        raise unknown("stream function", key, h.span)
    args = _own_arguments(h.call, scope)
    resolve(function.signature, args, h.span, "stream function")
    appends = function.appends(args)
    for a in appends:
        if schema.find(a.name) is not None:
            raise SiddhiBindError(
                f"'{key}' adds an attribute '{a.name}' that the stream already has",
                h.span,
                hint="Rename the stream's attribute in an earlier query.",
            )
    return FunctionStep(key, args, appends, span=h.span)


def bind_window(call: tree.FunctionCall, span: Span, scope: Scope) -> WindowStep:
    """`#window.name(args)`, or the window of `define window`."""
    key = str(call)
    signature = WINDOWS.get(key)
    if signature is None:
        raise unknown("window", key, span)
    args = _own_arguments(call, scope)
    resolve(signature, args, span, "window")
    scope.symbols.note_use(WINDOWS.use_of(key))
    condition = None
    if DECLARATIONS[key].reads == "expression":
        condition = window_condition(args, scope.entries[0].schema, scope.entries[0].name)
    return WindowStep(key, args, condition, span=span)


def _own_arguments(call: tree.FunctionCall, scope: Scope) -> tuple[Expr, ...]:
    """Arguments see the event they are about; `*` is its attributes."""
    return bind_arguments(call, replace(scope, place=f"'{call}'"))


# ----------------------------------------------------------------------------------------------------------- joins


def bind_join(join: tree.JoinStream, place: PartitionPlace) -> tuple[JoinInput, tuple[VisibleEvent, ...]]:
    """A join and the two events that its select may name."""
    sources = [place.symbols.source(s.source, place.partition, s.source.span) for s in (join.left, join.right)]
    left, right = sources
    static = [s.kind in ("table", "aggregation") for s in sources]
    if all(static):
        raise SiddhiBindError(
            f"both '{left.id}' and '{right.id}' are static: nothing would trigger the join",
            join.left.source.span.to(join.right.source.span),
            hint="One side of a join must be a stream or a named window.",
        )
    sides = []
    entries = []
    for slot, (side, source) in enumerate(((join.left, left), (join.right, right))):
        name = side.alias or str(side.source)
        entry = VisibleEvent(slot, name, source.schema, what=source.kind)
        if static[slot]:
            for h in side.handlers:
                if source.kind == "table" and isinstance(h, tree.Window):
                    continue
                raise SiddhiBindError(
                    f"a {source.kind} in a join takes no handlers",
                    h.span,
                    hint="Put the condition after 'on'."
                    if isinstance(h, tree.Filter)
                    else f"Leave it out: a join reads the {source.kind} as it is.",
                )
        scope = Scope(
            place.symbols,
            (VisibleEvent(slot, str(side.source), source.schema, what=source.kind),),
            "a filter",
            bare="first",
        )
        bound = bind_handlers(source, side.handlers, scope, slot, "join")
        if static[slot] and bound.steps:
            ignored_window = next(s for s in bound.steps if isinstance(s, WindowStep))
            bound = replace(bound, steps=(), ignored=ignored_window)
        sides.append(bound)
        entries.append(_widen_event(entry, bound.schema))
    triggers = _triggers(join, static)
    within, per = _granularity(join, left, right, Scope(place.symbols, tuple(entries), "'within'"))
    for slot, other in enumerate((right, left)):
        if other.kind == "aggregation":
            sides[slot] = _with_range(sides[slot], (join.left, join.right)[slot].span, other.id)
            entries[slot] = _widen_event(entries[slot], sides[slot].schema)
    on = bind_condition(join.on, Scope(place.symbols, tuple(entries), "'on'"), "'on'") if join.on is not None else None
    return JoinInput(sides[0], sides[1], join.kind, on, triggers, within, per), tuple(entries)


def _with_range(side: StreamInput, span: Span, aggregation: str) -> StreamInput:
    """A side that is joined with an aggregation."""
    for a in RANGE:
        if side.schema.find(a.name) is not None:
            raise SiddhiBindError(
                f"'{side.source.id}' has an attribute '{a.name}', which the join with aggregation '{aggregation}' adds",
                span,
                hint="Rename the stream's attribute in an earlier query.",
                kind="DuplicateAttributeException",
            )
    return replace(side, schema=Schema(side.schema.attributes + RANGE.attributes))


def _triggers(join: tree.JoinStream, static: list[bool]) -> tuple[bool, bool]:
    side = join.unidirectional
    left = not static[0] and side != "right"
    right = not static[1] and side != "left"
    if not left and not right:
        which = join.left if side == "left" else join.right
        raise SiddhiBindError(
            f"'{which.source}' cannot trigger a join",
            which.span,
            hint="Put 'unidirectional' on the side of the stream.",
        )
    return left, right


def _granularity(
    join: tree.JoinStream, left: Source, right: Source, scope: Scope
) -> tuple[tuple[Expr, ...], Expr | None]:
    aggregation = next((s for s in (left, right) if s.kind == "aggregation"), None)
    if aggregation is None:
        if join.within or join.per is not None:
            culprit = join.per.span if join.per is not None else join.within[0].span
            raise SiddhiBindError("'within ... per' belongs to joins with an aggregation", culprit)
        return (), None
    if join.per is None or not join.within:
        raise SiddhiBindError(
            f"a join with aggregation '{aggregation.id}' needs 'within ... per ...'",
            join.span,
            hint="Write within '2024-**-** **:**:**' per 'days'.",
        )
    return bind_range(join.within, join.per, aggregation, scope)


_PER: dict[str, AggDuration] = {
    name: duration
    for duration, names in zip(
        DURATIONS,
        (("sec", "second", "seconds"), ("min", "minute", "minutes"), ("hour", "hours", "h"), ("day", "days"),
         ("month", "months"), ("year", "years")),
        strict=True,
    )
    for name in names
}  # fmt: skip


def bind_range(
    within: tuple[tree.Expression, ...], per: tree.Expression, aggregation: Source, scope: Scope
) -> tuple[tuple[Expr, ...], Expr]:
    """`within a, b per d` over `aggregation`: bounds are texts or longs; a constant `d` must name a duration it has."""
    bounds = tuple(bind_expression(w, scope) for w in within)
    for b in bounds:
        if b.type not in (Type.STRING, Type.LONG) or (len(bounds) == 1 and b.type is not Type.STRING):
            raise SiddhiBindError(
                f"a bound of 'within' must be a string or a long, found {b.type}",
                b.span,
                hint="A single bound is a string such as '2024-**-** **:**:**'.",
            )
    bound = bind_expression(per, scope)
    if bound.type is not Type.STRING:
        raise SiddhiBindError(f"'per' needs a string such as 'days', found {bound.type}", bound.span)
    if isinstance(bound, Const):
        duration = _PER.get(str(bound.value).strip().lower())
        names = "'seconds', 'minutes', 'hours', 'days', 'months' or 'years'"
        if duration is None:
            raise SiddhiBindError(
                f"'{bound.value}' is not a valid duration",
                bound.span,
                hint=f"Expected {names}.",
                kind="SiddhiAppValidationException",
            )
        durations = scope.symbols.aggregations[aggregation.id].durations
        if duration not in durations:
            raise SiddhiBindError(
                f"aggregation '{aggregation.id}' is not kept per {duration}",
                bound.span,
                hint=f"It is kept per {', '.join(durations)}.",
            )
    return bounds, bound


def per_duration(text: str) -> AggDuration | None:
    """The duration that a text after `per` names, or None."""
    return _PER.get(text.strip().lower())
