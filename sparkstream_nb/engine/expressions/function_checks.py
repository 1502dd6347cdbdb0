"""Checks of the results and the errors of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...limits import Limits
from .java_values import RowFailure

MOST_SHOWN = 300
"""Characters of an error's message."""


def check_text(length: int, limits: Limits) -> None:
    """Raise RowFailure if a text of `length` characters would be too long."""
    if length > limits.characters:
        raise RowFailure(f"a text of {length:,} characters is too long: {limits.characters:,} are the most")


def within(limits: Limits, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, which raises Failure where it answers a text that is too long, or an object that is nested too
    deep."""

    def call_checked(*args: Any) -> Any:
        value = function(*args)
        if isinstance(value, str):
            check_text(len(value), limits)
        elif isinstance(value, dict | list | tuple):
            _check_depth(value, limits.nesting)
        return value

    return call_checked


def _check_depth(value: Any, most: int) -> None:
    level = [value]
    for _ in range(most):
        level = [
            part
            for container in level
            for part in (container.values() if isinstance(container, dict) else container)
            if isinstance(part, dict | list | tuple)
        ]
        if not level:
            return
    raise RowFailure(f"an object is nested deeper than {most} levels")


def reason_of(error: Exception) -> str:
    """Reason for an event's error, cut to a readable length."""
    text = str(error).splitlines()[0] if str(error) else ""
    if isinstance(error, RecursionError):
        text = "nested too deep"
    elif not isinstance(error, RowFailure):
        text = f"{type(error).__name__}: {text}".rstrip(": ")
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + "…"
