"""Durations as users write them, such as `500 ms`, `1.5 min` or `1 min 30 sec`; and times for messages."""

from __future__ import annotations

import datetime as dt
import re

_UNITS = {
    "ms": 1, "millisec": 1, "millisecond": 1,
    "s": 1_000, "sec": 1_000, "second": 1_000,
    "min": 60_000, "minute": 60_000,
    "h": 3_600_000, "hour": 3_600_000,
    "day": 86_400_000, "week": 604_800_000,
}  # fmt: skip
_NUMBER_AND_UNIT = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*([a-z]+)\s*", re.IGNORECASE)


def parse_duration(text: str) -> int | None:
    """A duration in ms: numbers, each with a unit; None for another text, and for more
    than the 2^63 ms of a time."""
    total, rest = 0, text.strip()
    if not rest:
        return None
    while rest:
        match = _NUMBER_AND_UNIT.match(rest)
        unit = None if match is None else _unit_of(match[2].lower())
        if match is None or unit is None:
            return None
        total += round(float(match[1]) * unit) if "." in match[1] else int(match[1]) * unit
        rest = rest[match.end() :]
    return total if total < 2**63 else None


def _unit_of(word: str) -> int | None:
    """The ms of a unit; long names may be plural."""
    return _UNITS.get(word) or (_UNITS.get(word[:-1]) if len(word) > 3 and word.endswith("s") else None)


def describe_time(ms: int) -> str:
    """A time (ms since 1970) for messages, such as `2024-06-03 10:00:00 UTC`; the number if no calendar has it."""
    try:
        return f"{dt.datetime.fromtimestamp(ms // 1000, dt.UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, OSError, ValueError):
        return str(ms)


def describe_duration(ms: int) -> str:
    """A duration (ms) as the language has it, such as `1 min 5 sec`."""
    if ms < 0:
        return f"-{describe_duration(-ms)}"
    parts, rest = [], ms
    for unit, size in (("day", _UNITS["day"]), ("hour", _UNITS["h"]), ("min", _UNITS["min"]), ("sec", _UNITS["s"])):
        count, rest = divmod(rest, size)
        parts += [f"{count} {unit}"] if count else []
    return " ".join([*parts, *([f"{rest} millisec"] if rest or not parts else [])])
