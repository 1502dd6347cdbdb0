"""`regex:*` (siddhi-execution-regex) over Java's regular expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ....errors import SiddhiBindError
from ....plan.nodes import Call, Const
from ..asciitexts import ANYWHERE, BEGINNING, ENTIRE, match_pattern, on_text
from ..java_values import RowFailure
from ..javaregex import compile_java, match_in_time
from ..rowwise import Builder, Plain, Whole, rowwise_typed


def check_constant(call: Call, position: int) -> None:
    """Rejects a constant pattern that does not compile, as Siddhi does when it creates the app."""
    arg = call.args[position]
    if isinstance(arg, Const):
        try:
            compile_java(str(arg.value))
        except RowFailure as e:
            raise SiddhiBindError(str(e), arg.span) from None


def rowwise_pattern(
    position: int, function: Plain, column_form: Callable[[Call], Whole | None] | None = None
) -> Builder:
    """A builder for `function`, whose argument number `position` is a pattern."""

    def make(call: Call) -> Plain:
        check_constant(call, position)
        return function

    return rowwise_typed(make, column_form)


def require_values(key: str, *values: Any) -> None:
    """Fails the row if one of `values` is null."""
    for i, value in enumerate(values):
        if value is None:
            raise RowFailure(f"argument {i + 1} of {key}() is null")


def without_nulls(key: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which fails the row on any null argument."""

    def call_checked(*args: Any) -> Any:
        require_values(key, *args)
        return function(*args)

    return call_checked


def _find(pattern: str | None, text: str | None, *start: int | None) -> bool:
    require_values("regex:find", pattern)
    assert pattern is not None
    if text is None or (start and start[0] is None):
        return False
    matcher = compile_java(pattern)
    at = start[0] if start else 0
    if at is None or not 0 <= at <= len(text):
        raise RowFailure(f"regex:find() cannot start at {at} in a string of length {len(text)}")
    return match_in_time(matcher.search, text, at) is not None


def _whole(method: str, key: str) -> Callable[[str | None, str | None], bool]:
    def match(pattern: str | None, text: str | None) -> bool:
        require_values(key, pattern)
        assert pattern is not None
        matcher = compile_java(pattern)
        return text is not None and match_in_time(getattr(matcher, method), text) is not None

    return match


def _group(pattern: str | None, text: str | None, number: int | None) -> str | None:
    require_values("regex:group", pattern, text, number)
    assert pattern is not None
    assert text is not None
    assert number is not None
    matcher = compile_java(pattern)
    first_match: Any = match_in_time(matcher.search, text)
    if first_match is None or number > matcher.groups:
        return None
    if number < 0:
        raise RowFailure(f"no group {number}")
    value: str | None = first_match.group(number)
    return value


TABLE: Mapping[str, Builder] = {
    "regex:find": rowwise_pattern(0, _find, on_text(1, match_pattern(ANYWHERE))),
    "regex:group": rowwise_pattern(0, _group),
    "regex:lookingAt": rowwise_pattern(0, _whole("match", "regex:lookingAt"), on_text(1, match_pattern(BEGINNING))),
    "regex:matches": rowwise_pattern(0, _whole("fullmatch", "regex:matches"), on_text(1, match_pattern(ENTIRE))),
}
