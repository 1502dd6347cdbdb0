"""Limits on what one event may use in a node, where more is an error of that event and the stream continues, and on its
time."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from decimal import Decimal

from .errors import Misuse, shown
from .retention import named_values

MOST_NESTED = 200
"""The deepest nesting of objects that can be stored at all."""
FURTHEST = 9_000_000_000_000_000
"""The furthest event times (ms) before and after 1970 that recordings may have: sums of a time and a duration stay
longs."""
FIRST_TIME, LAST_TIME = -62_135_510_400_000, 253_402_214_399_999
"""The first and the last event time (ms) of rows of Spark's frames: of the years 1 to 9999, as its timestamps, without
the first and the last day, so that Python can show them in any time zone."""
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}
_HIGHEST = {"characters": 500_000_000, "nesting": MOST_NESTED, "firings": 1_000_000_000}
"""An Arrow array has less than 2 GB, of which a character may take four bytes."""


@dataclass(frozen=True)
class Limits:
    """Limits on what one event may use in a node.

    `characters`: length of a text that a function makes. `nesting`: depth of the lists and maps of an object.
    `firings`: firings of a trigger in one step; of more, the earlier ones are left out, and an error says so.
    """

    characters: int = 16_000_000
    nesting: int = MOST_NESTED
    firings: int = 1_000_000

    def __str__(self) -> str:
        """The text of which `of` makes it again."""
        return ",".join(f"{f.name}={getattr(self, f.name)}" for f in fields(self))

    @staticmethod
    def of(wanted: Limits | str | None) -> Limits:
        """A `Limits`, the default for None, or that of a text such as `characters=1MB,nesting=100,firings=1e6`.

        Raises `Misuse` for anything else, and for limits that are not whole, not above 0 or too high."""
        if wanted is None:
            return Limits()
        if isinstance(wanted, str):
            names = [f.name for f in fields(Limits)]
            wanted = Limits(**{k: _number(k, v) for k, v in named_values("limits", wanted, names).items()})
        if not isinstance(wanted, Limits):
            raise Misuse(f"limits is a Limits, or a text such as 'characters=1MB,nesting=100', not {shown(wanted)}")
        for name, highest in _HIGHEST.items():
            value = getattr(wanted, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= highest:
                raise Misuse(f"limits: {name} is a whole number from 1 to {highest:,}, not {shown(value)}")
        return wanted


def _number(name: str, value: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?(?:e\d{1,2})?)\s*([kmg]?)b?", value.lower())
    number = None if match is None else Decimal(match[1]) * _UNITS[match[2]]
    if number is None or number % 1:
        raise Misuse(f"limits: {name} cannot be {shown(value)}. Write a whole number, such as 1000, 1e6 or 1MB")
    return int(number)
