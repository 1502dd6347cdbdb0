"""Times and durations as test files have them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

from ..durations import parse_duration

DURATIONS = "500 ms, 5 sec, 1 min 30 sec, 2 hours or 1 day"
"""Examples of durations, for messages."""
TIMES = "ms since 1970, a time such as 2024-06-03T10:00:00, 5 sec (since the start) or +500 (after the last event)"
"""Examples of times, for messages."""


class Origin(Enum):
    """The moment from which a time counts: 1970, the start of the test (1970 unless it says another), or the last event
    or wait."""

    EPOCH = "1970"
    START = "start"
    LAST = "last"


@dataclass(frozen=True)
class Time:
    """A time `ms` after `origin`."""

    ms: int
    origin: Origin = Origin.EPOCH


def parse_time(text: str) -> Time | None:
    """A time; None for a text that is none."""
    text = text.strip()
    if text.startswith("+"):
        after = text[1:].strip()
        ms = int(after) if re.fullmatch(r"\d{1,18}", after) else parse_duration(after)
        return None if ms is None else Time(ms, Origin.LAST)
    if re.fullmatch(r"-?\d{1,20}", text):
        ms = int(text)
        return Time(ms) if -(2**63) <= ms < 2**63 else None
    ms_since = parse_duration(text)
    if ms_since is not None:
        return Time(ms_since, Origin.START)
    try:
        moment = datetime.fromisoformat(text)
        return Time(round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))
    except (ValueError, OverflowError):
        return None
