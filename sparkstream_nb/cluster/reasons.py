"""Groups the reasons of rejected rows: one group for each column and type, with an example and the expected format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..spark.time_formats import BY_DEFAULT

_UNFIT = re.compile(r"(?P<where>[^:]+): (?P<value>.+) (?P<what>is not an? .+)\Z", re.DOTALL)
"""The reason that `spark.ingest` gives for a value of the wrong type."""
_NUMBERS = "is not an int", "is not a long", "is not a float", "is not a double"


@dataclass(frozen=True)
class ReasonGroup:
    """Similar reasons: the number of rejected rows, and a line that describes them."""

    count: int
    words: str


def group_reasons(reasons: Mapping[str, int], time: str | None = None) -> list[ReasonGroup]:
    """Group `reasons` (row counts by reason), the most frequent group first. Values of the wrong type in one column
    form a group, which shows the most frequent value. `time` says what a time looks like."""
    groups: dict[tuple[str, str], list[tuple[int, str]]] = {}
    alone: list[ReasonGroup] = []
    for reason, count in reasons.items():
        found = _UNFIT.match(reason)
        if found is None:
            alone.append(ReasonGroup(count, reason))
        else:
            groups.setdefault((found["where"], found["what"]), []).append((count, found["value"]))
    for (where, what), values in groups.items():
        total, (_, example) = sum(n for n, _ in values), max(values, key=lambda v: v[0])
        if len(values) == 1:
            words = f"{where}: {example} {what}"
        else:
            words = f"{where} {what}: {len(values):,} values, such as {example}"
        missing = len(values) == 1 and example == "null"
        alone.append(ReasonGroup(total, words if missing else f"{words}{_fitting(what, time)}"))
    return sorted(alone, key=lambda group: (-group.count, group.words))


def _fitting(what: str, time: str | None) -> str:
    """The expected format of a value, to be appended to a reason."""
    if what == "is not a time":
        return f"; {time or BY_DEFAULT.expected()} (--time-format and --time-zone say otherwise)"
    return "; a number is written as 1234.5" if what in _NUMBERS else ""
