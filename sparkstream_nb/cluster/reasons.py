"""Why rows were not taken, in a few lines: by kind, with an example and what would fit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_UNFIT = re.compile(r"(?P<where>[^:]+): (?P<value>.+) (?P<what>is not an? .+)\Z", re.DOTALL)
"""What `spark.ingest` says of a value that does not fit."""
_NUMBERS = "is not an int", "is not a long", "is not a float", "is not a double"
_TIMES = "a time is ms since 1970, or as 2024-06-01 10:00:00 (UTC) or 2024-06-01T10:00:00+02:00"


@dataclass(frozen=True)
class Kind:
    """Reasons of one kind: how many rows they are of, and what is said of them."""

    count: int
    words: str


def kinds(reasons: Mapping[str, int]) -> list[Kind]:
    """The kinds of `reasons` (rows by reason), the most frequent first. Values that do not fit a column are one kind,
    of which the most frequent value is shown."""
    groups: dict[tuple[str, str], list[tuple[int, str]]] = {}
    alone: list[Kind] = []
    for reason, count in reasons.items():
        found = _UNFIT.match(reason)
        if found is None:
            alone.append(Kind(count, reason))
        else:
            groups.setdefault((found["where"], found["what"]), []).append((count, found["value"]))
    for (where, what), values in groups.items():
        total, (_, example) = sum(n for n, _ in values), max(values, key=lambda v: v[0])
        if len(values) == 1:
            words = f"{where}: {example} {what}"
        else:
            words = f"{where} {what}: {len(values):,} values, such as {example}"
        missing = len(values) == 1 and example == "null"
        alone.append(Kind(total, words if missing else f"{words}{_fitting(what)}"))
    return sorted(alone, key=lambda kind: (-kind.count, kind.words))


def _fitting(what: str) -> str:
    """What would fit."""
    if what == "is not a time":
        return f"; {_TIMES}"
    return "; a number is written as 1234.5" if what in _NUMBERS else ""
