"""Binds the expression of an `expression` or `expressionBatch` window, which is given as a string."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import SiddhiBindError, SiddhiSyntaxError
from ...lang.parser import parse_expression
from ...types import Schema
from ..nodes import Const, Expr
from .expressions import bind_condition
from .scope import Scope, VisibleEvent
from .symbols import Symbols

# Slots of a window's condition.
CANDIDATE, FIRST, LAST = 0, 1, 2


def bind_window_condition(text: str, schema: Schema, source: str = "the window") -> Expr:
    """The condition that `text` states over a window's events of `schema`.

    Slot 0 is the event that is looked at, slot 1 (`first`) the oldest and slot 2 (`last`) the newest; aggregators run
    over the window's content. Raises SiddhiBindError or SiddhiSyntaxError with places within `text` (Siddhi's
    `ExpressionWindowProcessor.constructExpression`).
    """
    entries = (
        VisibleEvent(CANDIDATE, source, schema),
        VisibleEvent(FIRST, "first", schema),
        VisibleEvent(LAST, "last", schema),
    )
    scope = Scope(Symbols(), entries, "a window's expression", own_slot=CANDIDATE, aggregators=True)
    return bind_condition(parse_expression(text), scope, "a window's expression")


def window_condition(args: Sequence[Expr], schema: Schema, source: str | None) -> Expr | None:
    """The condition of a window whose expression is a constant; None if an attribute gives it, event by event.

    Errors get the string's place in the app.
    """
    text = args[0]
    if not isinstance(text, Const) or not isinstance(text.value, str):
        return None
    try:
        return bind_window_condition(text.value, schema, source or "the window")
    except (SiddhiBindError, SiddhiSyntaxError) as e:
        raise SiddhiBindError(f"in the window's expression: {e.message}", text.span, hint=e.hint) from None
