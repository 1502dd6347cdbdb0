"""Groups the reasons of rejected rows: one group for each column and type, with an example and the expected format."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..spark.time_formats import BY_DEFAULT

_UNFIT = re.compile(r"(?P<where>[^:]+): (?P<value>.+) (?P<what>is not an? .+)\Z", re.DOTALL)
"""The reason that `spark.ingest` gives for a value of the wrong type."""
_NUMBERS = "is not an int", "is not a long", "is not a float", "is not a double"
_COMMA = re.compile(r"'\s*[+-]?(\d{1,3}(\.\d{3})+|\d*),\d+\s*'")
"""A number with a decimal comma, as messages show it."""
_MEANS_NONE = frozenset({"n/a", "na", "n.a.", "nan", "null", "none", "nil", "-", "--", "?", "k.a.", "#n/a", "missing"})
"""Texts in place of a number that mean, in small letters, that there is none."""


@dataclass(frozen=True)
class ReasonGroup:
    """Similar reasons: the number of rejected rows, and a line that describes them."""

    count: int
    words: str


@dataclass(frozen=True)
class _Value:
    """A value that did not fit, as messages show it, and in how many rows."""

    count: int
    shown: str

    @property
    def kind(self) -> str:
        """What it looks like."""
        if _COMMA.fullmatch(self.shown):
            return "comma"
        return "none" if self.shown.strip("'\" ").casefold() in _MEANS_NONE else "other"


def group_reasons(reasons: Mapping[str, int], time: str | None = None) -> list[ReasonGroup]:
    """Group `reasons` (row counts by reason), the most frequent group first. Values of the wrong type in one column
    form a group, which shows the most frequent value of those that are most alike. `time` says what a time looks
    like."""
    groups: dict[tuple[str, str], list[_Value]] = {}
    alone: list[ReasonGroup] = []
    for reason, count in reasons.items():
        found = _UNFIT.match(reason)
        if found is None:
            alone.append(ReasonGroup(count, reason))
        else:
            groups.setdefault((found["where"], found["what"]), []).append(_Value(count, found["value"]))
    for (where, what), values in groups.items():
        total, example = sum(v.count for v in values), _example(values)
        if len(values) == 1:
            words = f"{where}: {example} {what}"
        else:
            words = f"{where} {what}: {len(values):,} values, such as {example}"
        missing = len(values) == 1 and example == "null"
        alone.append(ReasonGroup(total, words if missing else f"{words}{_fitting(what, values, time)}"))
    return sorted(alone, key=lambda group: (-group.count, group.words))


def _example(values: Sequence[_Value]) -> str:
    """The most frequent value of the kind that most rows have: 8,38 where most have a decimal comma, each its own, and
    not the n/a that is the most frequent of all."""
    rows: Counter[str] = Counter()
    for value in values:
        rows[value.kind] += value.count
    kind = rows.most_common(1)[0][0]
    return max((v for v in values if v.kind == kind), key=lambda v: v.count).shown


def _as_argument(text: str) -> tuple[bool, str]:
    """Orders texts such that one behind an option does not begin with a hyphen, if another can be first."""
    return text.startswith("-"), text


def _fitting(what: str, values: Sequence[_Value], time: str | None) -> str:
    """The expected format of a value, and the options that let others fit, to be appended to a reason."""
    if what == "is not a time":
        return f"; {time or BY_DEFAULT.expected()} (--time-format and --time-zone say otherwise)"
    if what not in _NUMBERS:
        return ""
    words = ["a number is written as 1234.5"]
    if any(v.kind == "comma" for v in values):
        words = ["with a decimal comma: --decimal ,"]
    none = {v.shown.strip("'\" ") for v in values if v.kind == "none"}
    if none:
        are = "it stands" if len(none) == 1 else "they stand"
        words.append(f'if {are} for a missing value: --missing "{",".join(sorted(none, key=_as_argument))}"')
    return f"; {'; '.join(words)}"
