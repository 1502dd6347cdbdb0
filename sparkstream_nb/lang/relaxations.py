"""Texts of an app in which one clause is relaxed: a condition that is always true, no time limit, no order. The clause
prevents an output that comes with the relaxed clause and not without."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any

from ..types import Type
from . import tree as t
from .clause_changes import Path, clause_text, part_at, title_of, with_part

WIDE_LENGTH, WIDE_FACTOR = 1_000_000, 1000
"""The length of a length window, and the factor for the duration of a time window, that prevent nothing."""
_ALWAYS = t.Comparison("==", *(t.Constant(1, Type.INT),) * 2)
_NEVER = replace(_ALWAYS, op="!=")


class Limit(Enum):
    """Kinds of limits that a clause sets for the events of an output."""

    CONDITION = "condition"
    WITHIN = "within"
    WINDOW = "window"
    NEXT = "next event"
    """A sequence: that no other event comes between."""
    ABSENCE = "absence"
    FIRST = "first match"
    """A pattern without `every`: that nothing matched before."""
    RATE = "rate"


@dataclass(frozen=True)
class Relaxation:
    """A clause that can be relaxed: the number and the title of its query, the kind of its limit, the clause, and the
    change of the tree."""

    query: int
    title: str
    limit: Limit
    clause: t.Node
    path: Path
    change: Callable[[Any], Any]
    """A function from the part at the path to this part in the relaxed text."""

    @property
    def text(self) -> str:
        """The clause as it stands in the text."""
        return clause_text(self.clause)

    @property
    def condition(self) -> t.Expression | None:
        """The condition, if the clause is one."""
        return self.clause if isinstance(self.clause, t.Expression) and self.limit is Limit.CONDITION else None


def relax(app: t.App, relaxations: Collection[Relaxation]) -> t.App:
    """The app with several clauses relaxed."""
    for relaxation in sorted(relaxations, key=lambda r: r.limit is Limit.FIRST):  # its change moves the parts below it
        app = with_part(app, relaxation.path, relaxation.change(part_at(app, relaxation.path)))
    return app


def queries_of(app: t.App) -> Iterator[tuple[Path, t.Query]]:
    """Each query with its path, in the order of the text."""
    for i, element in enumerate(app.elements):
        if isinstance(element, t.Query):
            yield (("elements", i),), element
        else:
            for j, query in enumerate(element.queries):
                yield (("elements", i), ("queries", j)), query


def relaxations(app: t.App) -> Iterator[Relaxation]:
    """Each clause of the app's queries that can be relaxed."""
    for number, (path, query) in enumerate(queries_of(app)):
        for limit, clause, way, change in _parts(query):
            yield Relaxation(number, title_of(query), limit, clause, (*path, *way), change)


_Part = tuple[Limit, t.Node, Path, Callable[[Any], Any]]


def _parts(query: t.Query) -> Iterator[_Part]:
    """The limits of the clauses of a query, with the clauses, the paths to their parts and the changes of these."""
    yield from _input_parts(query.input)
    if query.select.having is not None:
        yield from _conditions(query.select.having, (("select", None), ("having", None)))
    if query.rate is not None:
        yield Limit.RATE, query.rate, (("rate", None),), _left_out
    if query.select.limit is not None:
        yield Limit.RATE, query.select.limit, (("select", None), ("limit", None)), _left_out


def _input_parts(source: t.QueryInput) -> Iterator[_Part]:
    top: Path = (("input", None),)
    if isinstance(source, t.StandardStream):
        yield from _handlers(source.handlers, top)
    elif isinstance(source, t.JoinStream):
        for side in ("left", "right"):
            yield from _handlers(getattr(source, side).handlers, (*top, (side, None)))
        if source.on is not None:
            yield from _conditions(source.on, (*top, ("on", None)))
    elif isinstance(source, t.StateStream):
        if source.within is not None:
            yield Limit.WITHIN, source.within, (*top, ("within", None)), _left_out
        if source.kind == "sequence":
            yield Limit.NEXT, source, (*top, ("kind", None)), lambda _: "pattern"
        first = source.state.first if isinstance(source.state, t.NextState) else source.state
        if not isinstance(first, t.EveryState):
            way: Path = (("first", None),) if isinstance(source.state, t.NextState) else ()
            yield Limit.FIRST, first, (*top, ("state", None), *way), t.EveryState
        yield from _state_parts(source.state, (*top, ("state", None)))


def _state_parts(state: Any, path: Path) -> Iterator[_Part]:
    if isinstance(state, t.AbsentState):
        yield Limit.ABSENCE, state, (*path, ("state", None), ("handlers", None)), lambda h: (*h, t.Filter(_NEVER))
    elif isinstance(state, t.StreamState):
        yield from _handlers(state.handlers, path)
    else:
        for f in fields(state):
            if isinstance(getattr(state, f.name), t.StateElement):
                yield from _state_parts(getattr(state, f.name), (*path, (f.name, None)))


def _handlers(handlers: tuple[t.Handler, ...], path: Path) -> Iterator[_Part]:
    for i, handler in enumerate(handlers):
        way: Path = (*path, ("handlers", i))
        if isinstance(handler, t.Filter):
            yield from _conditions(handler.condition, (*way, ("condition", None)))
        elif isinstance(handler, t.Window):
            for j, argument in enumerate(handler.call.args):
                if (change := _wider(handler.call.name, argument)) is not None:
                    yield Limit.WINDOW, handler, (*way, ("call", None), ("args", j)), change
                    break


def _wider(window: str, argument: t.Expression) -> Callable[[Any], Any] | None:
    """The change of a window's argument with which it holds more; None if the argument has no effect on its size."""
    if isinstance(argument, t.TimeConstant):
        millis = argument.millis * WIDE_FACTOR
        return lambda _: t.TimeConstant(millis, ((millis, "millisec"),))
    if window == "length" and isinstance(argument, t.Constant):
        return lambda _: t.Constant(WIDE_LENGTH, Type.INT)
    return None


def _conditions(condition: t.Expression, path: Path) -> Iterator[_Part]:
    """The parts of a conjunction."""
    if isinstance(condition, t.And):
        for side in ("left", "right"):
            yield from _conditions(getattr(condition, side), (*path, (side, None)))
    else:
        yield Limit.CONDITION, condition, path, lambda _: _ALWAYS


def _left_out(_: Any) -> None:
    return None
