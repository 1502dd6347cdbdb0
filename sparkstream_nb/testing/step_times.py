"""Times and durations as test files have them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from ..durations import parse_duration

DURATIONS = "500 ms, 5 sec, 1 min 30 sec, 2 hours or 1 day"
"""Examples of durations, for messages."""
TIMES = "ms since 1970, a time such as 2024-06-03T10:00:00, 5 sec (since the start) or +500 (after the last event)"
"""Examples of times, for messages."""


@dataclass(frozen=True)
class At:
    """A time in ms since 1970."""

    ms: int


@dataclass(frozen=True)
class SinceStart:
    """A time `ms` after the start of the test, which is 1970 unless the test says another."""

    ms: int


@dataclass(frozen=True)
class AfterLast:
    """A time `ms` after the last event or wait."""

    ms: int


Time = At | SinceStart | AfterLast


def parse_time(text: str) -> Time | None:
    """A time; None for a text that is none."""
    text = text.strip()
    if text.startswith("+"):
        after = text[1:].strip()
        ms = int(after) if re.fullmatch(r"\d{1,18}", after) else parse_duration(after)
        return None if ms is None else AfterLast(ms)
    if re.fullmatch(r"-?\d{1,20}", text):
        ms = int(text)
        return At(ms) if -(2**63) <= ms < 2**63 else None
    ms_since = parse_duration(text)
    if ms_since is not None:
        return SinceStart(ms_since)
    try:
        moment = datetime.fromisoformat(text)
        return At(round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))
    except (ValueError, OverflowError):
        return None
