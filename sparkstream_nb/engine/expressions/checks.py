"""Checks of what functions answer, and of what they fail with."""

from __future__ import annotations

from typing import Any

from ..limits import MOST_CHARACTERS, MOST_NESTED, MOST_SHOWN
from .values import Failure


def checked_text(length: int) -> None:
    """Raises Failure for a text of so many characters that would be too long."""
    if length > MOST_CHARACTERS:
        raise Failure(f"a text of {length:,} characters is too long: {MOST_CHARACTERS:,} are the most")


def checked(value: Any) -> Any:
    """What a function answered; raises Failure for a text that is too long, or an object that is nested too deep."""
    if isinstance(value, str):
        checked_text(len(value))
    elif isinstance(value, dict | list | tuple):
        _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MOST_NESTED):
        level = [
            part
            for whole in level
            for part in (whole.values() if isinstance(whole, dict) else whole)
            if isinstance(part, dict | list | tuple)
        ]
        if not level:
            return
    raise Failure(f"an object is nested deeper than {MOST_NESTED} levels")


def reason_of(error: Exception) -> str:
    """What an event's error says, as far as a person would read it."""
    text = str(error).splitlines()[0] if str(error) else ""
    if isinstance(error, RecursionError):
        text = "nested too deep"
    elif not isinstance(error, Failure):
        text = f"{type(error).__name__}: {text}".rstrip(": ")
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + "…"
