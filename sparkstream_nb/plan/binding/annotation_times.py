"""Time values in annotations, such as `idle.time='100 millisecond'`, and the time zones of a node."""

from __future__ import annotations

import re
from collections.abc import Mapping
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ...errors import NOWHERE, SiddhiBindError, Span

_UNITS: tuple[tuple[str, int], ...] = (
    (r"years?", 31_536_000_000),
    (r"months?", 2_592_000_000),
    (r"weeks?", 604_800_000),
    (r"days?", 86_400_000),
    (r"hours?", 3_600_000),
    (r"min(?:ute)?s?", 60_000),
    (r"sec(?:ond)?s?", 1_000),
    (r"millisec(?:ond)?s?", 1),
)
_TIME = re.compile(r"\s*" + "".join(rf"(?:(\d+)\s*{unit}\b\s*)?" for unit, _ in _UNITS), re.IGNORECASE)


def parse_time(text: str, span: Span, what: str) -> int:
    """Milliseconds of a time written as in a query, `1 min 5 sec`. Raises SiddhiBindError for any other text."""
    match = _TIME.fullmatch(text)
    if match is None or not any(match.groups()):
        raise SiddhiBindError(
            f"'{text}' is not a valid time for '{what}'",
            span,
            hint="Write it as '1 min 30 sec'.",
            kind="SiddhiParserException",
        )
    return sum(int(n) * ms for n, (_, ms) in zip(match.groups(), _UNITS, strict=True) if n)


def check_zone(properties: Mapping[str, str], name: str, span: Span = NOWHERE) -> None:
    """Raises SiddhiBindError if the node's property `name` is not the name of a time zone."""
    zone = properties.get(name, "GMT")
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise SiddhiBindError(
            f"'{zone}' is not a valid time zone", span, hint=f"'{name}' is a name such as 'GMT' or 'Asia/Kolkata'."
        ) from None
