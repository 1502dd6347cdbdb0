"""Rules that a signature row cannot express: result types that depend on the arguments, and checks of values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...types import Type
from ..nodes import Const, Expr, Ref
from .signature import Check, Rule, RuleError

_CONVERTIBLE = {t.value: t for t in (Type.STRING, Type.INT, Type.LONG, Type.FLOAT, Type.DOUBLE, Type.BOOL)}


def _same(name: str) -> Rule:
    """All arguments of one type, which is the result's (`CoalesceFunctionExecutor`, `MaximumFunctionExecutor`)."""

    def rule(args: Sequence[Expr]) -> Type:
        for i, a in enumerate(args):
            if a.type is not args[0].type:
                raise RuleError(
                    f"'{name}' needs arguments of one type, found {args[0].type} and {a.type}",
                    i,
                    f"Write convert(..., '{args[0].type}').",
                )
        return args[0].type

    return rule


def _if_then_else(args: Sequence[Expr]) -> Type:
    """`IfThenElseFunctionExecutor`: both branches of one type."""
    if args[1].type is not args[2].type:
        raise RuleError(
            f"the branches of 'ifThenElse' must have one type, found {args[1].type} and {args[2].type}",
            2,
            f"Write convert(..., '{args[1].type}')." if args[1].type in _CONVERTIBLE.values() else None,
        )
    return args[1].type


def _default(args: Sequence[Expr]) -> Type:
    """`DefaultFunctionExecutor`: the default is a constant of the attribute's type."""
    if not isinstance(args[1], Const):
        raise RuleError(
            "the second argument of 'default' must be a constant", 1, "Use coalesce(a, b) for two attributes."
        )
    if args[0].type is not args[1].type:
        raise RuleError(f"'default' needs a default of type {args[0].type}, found {args[1].type}", 1)
    return args[0].type


def _target(name: str, args: Sequence[Expr]) -> Type:
    target = args[1]
    names = ", ".join(f"'{n}'" for n in _CONVERTIBLE)
    if not isinstance(target, Const):
        raise RuleError(f"the second argument of '{name}' must be a constant: one of {names}", 1)
    type_ = _CONVERTIBLE.get(str(target.value).lower())
    if type_ is None:
        raise RuleError(f"'{name}' cannot convert to '{target.value}'", 1, f"Expected one of {names}.")
    return type_


def _cast(args: Sequence[Expr]) -> Type:
    """`CastFunctionExecutor`."""
    return _target("cast", args)


def _convert(args: Sequence[Expr]) -> Type:
    """`ConvertFunctionExecutor`: an object becomes only a string."""
    target = _target("convert", args)
    if args[0].type is Type.OBJECT and target is not Type.STRING:
        raise RuleError("'convert' converts an object to a string only", 1, f"Use cast(..., '{target}').")
    return target


RESULTS: Mapping[str, Rule] = {
    "coalesce": _same("coalesce"),
    "str:coalesce": _same("str:coalesce"),
    "maximum": _same("maximum"),
    "minimum": _same("minimum"),
    "ifThenElse": _if_then_else,
    "default": _default,
    "cast": _cast,
    "convert": _convert,
}

# ---------------------------------------------------------------------------------------------------------- checks


def _pairs(args: Sequence[Expr]) -> None:
    if len(args) % 2:
        raise RuleError(f"'map:create' takes pairs of key and value, found {len(args)} arguments")


def one_of(position: int, *words: str, what: str) -> Check:
    """Checks that the constant at `position`, where given, is one of `words` in any case."""

    def check(args: Sequence[Expr]) -> None:
        if position < len(args):
            arg = args[position]
            if isinstance(arg, Const) and str(arg.value).lower() not in {w.lower() for w in words}:
                raise RuleError(f"'{arg.value}' is not {what}", position, "Expected one of " + ", ".join(words) + ".")

    return check


def not_negative(what: str, *positions: int) -> Check:
    """Checks that the constants at `positions`, where given, are at least 0."""

    def check(args: Sequence[Expr]) -> None:
        for i in positions:
            if i < len(args):
                arg = args[i]
                if isinstance(arg, Const) and not isinstance(arg.value, str) and arg.value < 0:
                    raise RuleError(f"{what} cannot be negative, found {arg.value}", i)

    return check


def at_least_one(window: str) -> Check:
    """Checks that the time of a window of batches, its second argument, is at least 1 ms: Siddhi sends batches of 0 ms
    without end.
    """

    def check(args: Sequence[Expr]) -> None:
        time = args[1]
        if isinstance(time, Const) and not isinstance(time.value, str) and time.value < 1:
            raise RuleError(f"the time of a '{window}' window must be at least 1 ms, found {time.value}", 1)

    return check


def percents(args: Sequence[Expr]) -> None:
    """`PercentileFunctionExtension`."""
    share = args[1]
    if isinstance(share, Const) and not 0 < float(share.value) <= 100:
        raise RuleError(f"the percentage of 'math:percentile' must be above 0 and at most 100, found {share.value}")


_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")


def _extract_unit(args: Sequence[Expr]) -> None:
    one_of(0 if args[0].type is Type.STRING else 1, *_UNITS, "day_of_week", "day_of_year", what="a unit of time")(args)


CHECKS: Mapping[str, Check] = {
    "map:create": _pairs,
    "list:sort": one_of(1, "ASC", "DESC", "REV", what="an order"),
    "time:dateAdd": one_of(2, *_UNITS, what="a unit of time"),
    "time:dateSub": one_of(2, *_UNITS, what="a unit of time"),
    "time:extract": _extract_unit,
}

# --------------------------------------------------------------------------------------------------------- windows


def sort_window(args: Sequence[Expr]) -> None:
    """`SortWindowProcessor`: attributes, each perhaps followed by 'asc' or 'desc'."""
    not_negative("the length of a 'sort' window", 0)(args)
    if len(args) > 2 and not isinstance(args[2], Const):
        raise RuleError("the first attribute of a 'sort' window that sorts by several must be followed by its order", 2)
    previous_is_attribute = False
    for i, arg in enumerate(args[1:], 1):
        if isinstance(arg, Ref):
            if arg.type in (Type.OBJECT, Type.BOOL):
                raise RuleError(f"a 'sort' window cannot order by {arg.type}", i)
            previous_is_attribute = True
        elif isinstance(arg, Const) and arg.type is Type.STRING and previous_is_attribute:
            one_of(i, "asc", "desc", what="an order")(args)
            previous_is_attribute = False
        else:
            raise RuleError("a 'sort' window takes attributes, each optionally followed by 'asc' or 'desc'", i)


def attribute_at(window: str, position: int) -> Check:
    """Checks that the argument at `position` is an attribute of the event."""

    def check(args: Sequence[Expr]) -> None:
        if position < len(args) and not isinstance(args[position], Ref):
            raise RuleError(f"window '{window}' needs an attribute here", position)

    return check


def attributes_from(window: str, position: int) -> Check:
    """Checks that all arguments from `position` on are attributes of the event."""

    def check(args: Sequence[Expr]) -> None:
        for i in range(position, len(args)):
            attribute_at(window, i)(args)

    return check


def all_of(*checks: Check) -> Check:
    """One check after the other."""

    def check(args: Sequence[Expr]) -> None:
        for c in checks:
            c(args)

    return check


def session_window(args: Sequence[Expr]) -> None:
    """`SessionWindowProcessor`: the gap is a long in fact, the latency no longer than the gap."""
    gap = args[0]
    if gap.type is not Type.LONG:
        raise RuleError(
            "the gap of a 'session' window must be a time or a long",
            0,
            "Write it as a time, such as 500 millisec, or 500L.",
        )
    not_negative("the gap of a 'session' window", 0)(args)
    attribute_at("session", 1)(args[:2] if len(args) > 1 and args[1].type is Type.STRING else args[:1])
    latency = args[-1]
    if len(args) > 1 and isinstance(latency, Const) and isinstance(gap, Const) and not isinstance(latency.value, str):
        assert isinstance(gap.value, int)
        if latency.value > gap.value:
            raise RuleError("the allowed latency of a 'session' window cannot exceed its gap", len(args) - 1)
        not_negative("the allowed latency of a 'session' window", len(args) - 1)(args)


_CRON_FIELDS = (
    ("seconds", 0, 59, ()),
    ("minutes", 0, 59, ()),
    ("hours", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")),
    ("day of week", 1, 7, ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")),
    ("year", 1970, 2099, ()),
)


def cron_problem(text: str) -> str | None:
    """The error in a cron expression in Quartz's form (six or seven fields), or None."""
    parts = text.split()
    if len(parts) not in (6, 7):
        return f"a cron expression has six or seven fields, '{text}' has {len(parts)}"
    if (parts[3] == "?") == (parts[5] == "?"):
        return "exactly one of day of month and day of week is '?' in a cron expression"
    for part, (name, low, high, words) in zip(parts, _CRON_FIELDS, strict=False):
        for item in part.upper().split(","):
            if not _cron_item(item, name, low, high, words):
                return f"'{item}' is not a valid {name} in a cron expression"
    return None


def _cron_item(item: str, name: str, low: int, high: int, words: tuple[str, ...]) -> bool:
    if item == "?" or re.fullmatch(r"L(-\d+)?|L?W", item):
        return name.startswith("day")
    if name == "day of month" and re.fullmatch(r"\d+W", item):
        item = item[:-1]
    if name == "day of week" and (match := re.fullmatch(r"(\w+?)(#[1-5]|L)", item)):
        item = match[1]
    body, _, step = item.partition("/")
    if (step and not step.isdigit()) or item.endswith("/"):
        return False
    if body in ("*", ""):
        return body == "*" or bool(step)
    for end in body.split("-", 1):
        value = words.index(end) + 1 if end in words else int(end) if end.isdigit() else None
        if value is None or not low <= value <= high:
            return False
    return True


def cron_window(args: Sequence[Expr]) -> None:
    """The text of a `cron` window."""
    text = args[0]
    if isinstance(text, Const) and (problem := cron_problem(str(text.value))):
        raise RuleError(
            problem, 0, "Six fields: second minute hour day-of-month month day-of-week, such as '*/5 * * * * ?'."
        )


def timestamp_windows(window: str, *lengths: int) -> Check:
    """The windows over a time attribute: that attribute first, then lengths that are not negative."""
    return all_of(attribute_at(window, 0), not_negative(f"a time of window '{window}'", *lengths))


def external_time_batch(args: Sequence[Expr]) -> None:
    """`ExternalTimeBatchWindowProcessor`: the start time is a constant, or any expression of type long."""
    timestamp_windows("externalTimeBatch", 1, 3)(args)
    if len(args) > 2 and not isinstance(args[2], Const) and args[2].type is not Type.LONG:
        raise RuleError(
            f"the start time of an 'externalTimeBatch' window is a constant or of type long, found {args[2].type}",
            2,
            "Write convert(..., 'long').",
        )


def lossy_frequent(args: Sequence[Expr]) -> None:
    """`LossyFrequentWindowProcessor` fails on a missing error bound; support and error lie in 0..1."""
    if len(args) < 2:
        raise RuleError("window 'lossyFrequent' needs an error bound", None, "Write lossyFrequent(support, error).")
    for i in (0, 1):
        arg = args[i]
        if isinstance(arg, Const) and isinstance(arg.value, float) and not 0 <= arg.value <= 1:
            raise RuleError("support and error of window 'lossyFrequent' must be between 0 and 1", i)
    attributes_from("lossyFrequent", 2)(args)
