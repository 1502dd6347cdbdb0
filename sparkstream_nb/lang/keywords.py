"""The words of SiddhiQL: the terminal of `grammar.lark` for each keyword, and common spellings from other languages.

Keywords are matched in any case, and every one of them may also be a name (`keyword` in Siddhi's `SiddhiQL.g4`).
"""

from __future__ import annotations

from typing import Final

_PLAIN: Final = (
    "app define stream table window trigger function aggregation from output at every return aggregate by partition "
    "with begin end of as inner left right full outer join on within per not for select group having order limit "
    "offset events snapshot insert into delete update expired current set in is null"
)
_KEPT: Final = "unidirectional all first last and or asc desc"

TYPES: Final[tuple[str, ...]] = ("string", "int", "long", "float", "double", "bool", "object")

UNIT_SPELLINGS: Final[dict[str, str]] = {
    **dict.fromkeys(("year", "years"), "year"),
    **dict.fromkeys(("month", "months"), "month"),
    **dict.fromkeys(("week", "weeks"), "week"),
    **dict.fromkeys(("day", "days"), "day"),
    **dict.fromkeys(("hour", "hours"), "hour"),
    **dict.fromkeys(("min", "minute", "minutes"), "min"),
    **dict.fromkeys(("sec", "second", "seconds"), "sec"),
    **dict.fromkeys(("millisec", "millisecond", "milliseconds"), "millisec"),
}
"""Every spelling of a time unit → the unit."""

UNIT_MILLIS: Final[dict[str, int]] = {
    "year": 365 * 86_400_000,
    "month": 30 * 86_400_000,
    "week": 7 * 86_400_000,
    "day": 86_400_000,
    "hour": 3_600_000,
    "min": 60_000,
    "sec": 1_000,
    "millisec": 1,
}
"""Milliseconds per unit, largest first, with a month of 30 and a year of 365 days (Siddhi's `Expression.Time`)."""

KEYWORDS: Final[dict[str, str]] = {
    **{w: "_" + w.upper() for w in _PLAIN.split()},
    **{w: w.upper() for w in _KEPT.split()},
    **dict.fromkeys(TYPES, "TYPE"),
    **dict.fromkeys(UNIT_SPELLINGS, "UNIT"),
    **dict.fromkeys(("true", "false"), "TRUTH"),
    "raw": "KWNAME",
}
"""Every keyword, in lower case → the terminal it is. `raw` is reserved in Siddhi and used nowhere."""

WORDS_OF: Final[dict[str, tuple[str, ...]]] = {
    t: tuple(w for w in KEYWORDS if KEYWORDS[w] == t) for t in KEYWORDS.values()
}
"""The terminal → its spellings."""

FOREIGN_WORDS: Final[dict[str, str]] = {
    "boolean": "bool",
    "integer": "int",
    "bigint": "long",
    "timestamp": "long",
    "number": "double",
    "decimal": "double",
    "varchar": "string",
    "text": "string",
    "str": "string",
    "any": "object",
    "ms": "milliseconds",
    "millis": "milliseconds",
}
"""Words of other languages → the SiddhiQL word for the same, offered where that word would fit."""
