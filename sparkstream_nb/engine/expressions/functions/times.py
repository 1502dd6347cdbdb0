"""`time:*` (siddhi-execution-time). Dates without a zone are UTC; "now" is the wall clock, in playback too."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ....errors import SiddhiBindError
from ....plan.nodes import Call, Const
from ....types import Type
from ...columnar.column_data import Column, Mask, StringPool
from ..dateformat import DEFAULT, format_instant, parse_instant, parse_local, parts_of
from ..env import Context, Env, Evaluator
from ..instants import days_between, extract_field, format_dates, shift_dates
from ..java_calendar import DAY, add, field, instant_at, weeks_of, zone
from ..java_values import RowFailure, wrap_int
from ..rowwise import Builder, Plain, Whole, apply, rowwise, rowwise_typed
from .regexes import require_values, without_nulls

DATE, TIME, TIMESTAMP = "yyyy-MM-dd", "HH:mm:ss", "yyyy-MM-dd HH:mm:ss"


def _by_first(
    key: str, texts: Callable[..., Any], instants: Callable[..., Any], column_form: Callable[[Call], Whole | None],
    step: Callable[[Call], int] = lambda call: 1,
) -> Builder:  # fmt: skip
    """One function for a date as text and one for milliseconds, by the type of the first argument; `column_form` is the
    latter over columns, `step`: see `_rowwise_by_step`."""

    def make(call: Call) -> Plain:
        return without_nulls(key, instants if call.args[0].type is Type.LONG else texts)

    return _rowwise_by_step(make, step, lambda call: column_form(call) if call.args[0].type is Type.LONG else None)


def _rowwise_by_step(
    make: Callable[[Call], Plain], step: Callable[[Call], int],
    column_form: Callable[[Call], Whole | None] = lambda call: None,
) -> Builder:  # fmt: skip
    """`rowwise_typed` for a function of milliseconds whose result is constant within each `step` of its first argument:
    it is called once per step.
    """

    def build(call: Call, args: Sequence[Evaluator], context: Context) -> Evaluator:
        size = step(call) if call.args[0].type is Type.LONG else 1
        if size == 1:
            return rowwise_typed(make, column_form)(call, args, context)
        function, over = make(call), column_form(call)

        def steps(env: Env) -> Column:
            instants = args[0](env)
            return Column(Type.LONG, instants.values // size, instants.null)

        def of_step(first: int | None, *rest: Any) -> Any:
            return function(None if first is None else first * size, *rest)

        def over_steps(columns: Sequence[Column], strings: StringPool) -> tuple[Column, Mask | None] | None:
            assert over is not None
            first = columns[0]
            return over([Column(Type.LONG, first.values * size, first.null), *columns[1:]], strings)

        again = None if over is None else over_steps
        return rowwise_typed(lambda call: of_step, lambda call: again)(call, [steps, *args[1:]], context)

    return build


_STEPS = {"SECOND": 1000, "MINUTE": 60_000, "HOUR": 3_600_000}
_LETTER_STEPS = {"S": 1, "s": 1000, "m": 60_000, **dict.fromkeys("HkKha", 3_600_000)}


def _format_step(call: Call) -> int:
    """Number of milliseconds for which a formatted UTC time stays the same, by the letters of the pattern (second
    argument).
    """
    pattern = call.args[1]
    if not isinstance(pattern, Const):
        return 1
    try:
        letters = [p.text for p in parts_of(str(pattern.value)) if p.kind == "field"]
    except RowFailure:
        return 1  # each row is to fail
    return min((_LETTER_STEPS.get(letter, DAY) for letter in letters), default=DAY)


def _field_step(call: Call) -> int:
    """`_format_step` by the unit (second argument)."""
    unit = call.args[1]
    return _STEPS.get(str(unit.value).upper(), DAY) if isinstance(unit, Const) else 1


def _now(pattern: str) -> Builder:
    def build(call: Call, args: Sequence[Evaluator], context: Context) -> Evaluator:
        def run(env: Env) -> Column:
            instant = context.wall()
            if args:
                return apply(
                    lambda name: format_instant(instant, pattern, zone(name)), [args[0](env)], Type.STRING, env
                )
            code = env.strings.code(format_instant(instant, pattern))
            return Column(Type.STRING, np.broadcast_to(np.int32(code), env.n))

        return run

    return build


def _in_millis(call: Call, args: Sequence[Evaluator], context: Context) -> Evaluator:
    """Without a date, or with a single null one, the wall clock (`TimestampInMillisecondsFunctionExtension`)."""
    if not args:
        return lambda env: Column(Type.LONG, np.full(env.n, context.wall(), np.int64))

    def parse(text: str | None, *pattern: str | None) -> int:
        if pattern:
            require_values("time:timestampInMilliseconds", text, *pattern)
        elif text is None:
            return context.wall()
        assert text is not None
        return parse_instant(text, (pattern[0] if pattern else None) or DEFAULT)

    return lambda env: apply(parse, [a(env) for a in args], Type.LONG, env)


def _shift(sign: int) -> Builder:
    """`dateAdd`, `dateSub`. Over milliseconds they give a text, and `dateAdd` knows units in capitals only."""

    def shift_text(date: str, amount: int, unit: str, pattern: str = DEFAULT) -> str:
        result = add(parse_instant(date, pattern), unit.upper(), wrap_int(sign * amount))
        return format_instant(result, pattern)

    def shift_instant(instant: int, amount: int, unit: str) -> str:
        return str(add(instant, unit if sign > 0 else unit.upper(), wrap_int(sign * amount)))

    key = "time:dateAdd" if sign > 0 else "time:dateSub"
    return _by_first(key, shift_text, shift_instant, partial(shift_dates, sign))


def _whole_days(a: int, b: int) -> int:
    distance = a - b
    return distance // DAY if distance >= 0 else -(-distance // DAY)


def _diff_text(a: str, b: str, format_a: str = DEFAULT, format_b: str = DEFAULT) -> int:
    return _whole_days(parse_instant(a, format_a), parse_instant(b, format_b))


def _format_text(date: str, target: str, source: str = DEFAULT) -> str:
    return format_instant(parse_instant(date, source), target)


def _day_of_week(date: str, *pattern: str) -> str:
    """Without a format only the part before the first blank counts, as `yyyy-MM-dd`."""
    instant = parse_instant(date, pattern[0]) if pattern else parse_instant(date.split(" ")[0], DATE)
    return format_instant(instant, "EEEE")


def _extract(call: Call) -> Plain:
    """`extract(unit, date[, format[, locale]])` or `extract(ms, unit[, locale])`; by the locale's weeks."""
    of_instant = call.args[0].type is Type.LONG
    place = call.args[2 if of_instant else 3] if len(call.args) > (2 if of_instant else 3) else None
    try:
        weeks = weeks_of(str(place.value) if isinstance(place, Const) else None)
    except RowFailure as e:
        assert place is not None
        raise SiddhiBindError(str(e), place.span) from None

    def extract(*args: Any) -> int:
        require_values("time:extract", *args)
        if of_instant:
            return field(args[0], args[1].upper(), weeks)
        return field(parse_instant(args[1], args[2] if len(args) > 2 else DEFAULT), args[0].upper(), weeks)

    return extract


def _convert_zone(date: str | None, pattern: str | None, target: str | None, *source: str | None) -> str | None:
    if date is None or pattern is None or target is None or (source and source[0] is None):
        return None
    here: datetime.tzinfo = zone(source[0]) if source and source[0] is not None else datetime.UTC
    return format_instant(instant_at(parse_local(date, pattern), here), pattern, zone(target))


TABLE: Mapping[str, Builder] = {
    "time:currentDate": _now(DATE),
    "time:currentTime": _now(TIME),
    "time:currentTimestamp": _now(TIMESTAMP),
    "time:date": rowwise(
        without_nulls("time:date", lambda d, f=DEFAULT: format_instant(parse_instant(d, f), DATE))
    ),
    "time:dateAdd": _shift(1),
    "time:dateDiff": _by_first("time:dateDiff", _diff_text, _whole_days, days_between),
    "time:dateFormat": _by_first("time:dateFormat", _format_text, format_instant, format_dates, _format_step),
    "time:dateSub": _shift(-1),
    "time:dayOfWeek": rowwise(without_nulls("time:dayOfWeek", _day_of_week)),
    "time:extract": _rowwise_by_step(_extract, _field_step, extract_field),
    "time:timestampInMilliseconds": _in_millis,
    "time:timezoneConvert": rowwise(_convert_zone),
    "time:utcTimestamp": _now(TIMESTAMP),
}
