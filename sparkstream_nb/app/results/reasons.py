"""Groups the reasons of rejected rows: one group for each column and type, with an example and the expected format."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...ingest.ingest import BETWEEN_FAULTS, MAX_AHEAD, SPOILT
from ...ingest.time_formats import guess_format
from ...wording import choose_words

_UNFIT = re.compile(r"(?P<where>[^:]+): (?P<value>.+) (?P<what>is not an? .+)\Z", re.DOTALL)
"""The reason that `ingest.ingest` gives for a value of the wrong type."""
_FORMER_MAX_AHEAD = "(--max-ahead)"
"""The end of reasons in folders that 0.2.0 wrote."""
_FAULT_ENDS = re.compile(
    r"(is not an? (?:int|long|float|double|bool|string|object|time(?: (?:like|in) [^;]+)?)"
    rf"|{re.escape(SPOILT)}|{re.escape(MAX_AHEAD)}|{re.escape(_FORMER_MAX_AHEAD)}){re.escape(BETWEEN_FAULTS)}"
)
"""The beginning of the next fault in a row's reason, outside of quoted values."""
_NUMBERS = "is not an int", "is not a long", "is not a float", "is not a double"
_LONG = "is not a long"
_WHOLE = "is not an int", _LONG
_NO_TIME = "is not a time"
_BY_DEFAULT = "a time is ms since 1970, or as 2024-06-01 10:00:00 or 2024-06-01T10:00:00+02:00"
"""The form of a time without a zone."""
_COMMA = re.compile(r"'\s*[+-]?(\d{1,3}(\.\d{3})+|\d*),\d+\s*'")
"""A number with a decimal comma, as messages show it."""
_LOOKED_AT = 100
"""Values from which a format is guessed."""
_MEANS_NONE = frozenset({"n/a", "na", "n.a.", "nan", "null", "none", "nil", "-", "--", "?", "k.a.", "#n/a", "missing"})
"""Texts in place of a number, in small letters, that mean a missing value."""


@dataclass(frozen=True)
class ReasonGroup:
    """Similar reasons: the number of rejected rows, and a line that describes them."""

    count: int
    words: str


@dataclass(frozen=True)
class _Value:
    """A value that did not fit, as messages show it, and in how many rows."""

    count: int
    text: str

    @property
    def kind(self) -> str:
        """The form of the value."""
        if _COMMA.fullmatch(self.text):
            return "comma"
        return "none" if self.text.strip("'\" ").casefold() in _MEANS_NONE else "other"


def group_reasons(
    reasons: Mapping[str, int], time: str | None = None, columns: Mapping[str, str] | None = None
) -> list[ReasonGroup]:
    """Group `reasons` (row counts by reason): the event times first, as all rows depend on their format, then the most
    frequent group. A row counts in each group that it has a fault of. Values of the wrong type in one column form a
    group, which shows the most frequent one of the most similar values. `time` is an example of a time in the default
    format, `columns` names the source columns of attributes that have other names.
    """
    groups: dict[tuple[str, str], list[_Value]] = {}
    alone: list[ReasonGroup] = []
    time_groups: list[ReasonGroup] = []
    for fault, count in _faults(reasons).items():
        match = _UNFIT.match(fault)
        if match is None:
            alone.append(ReasonGroup(count, fault))
        else:
            groups.setdefault((match["where"], match["what"]), []).append(_Value(count, match["value"]))
    for (where, what), values in groups.items():
        total, example = sum(v.count for v in values), _example(values)
        if len(values) == 1:
            words = f"{where}: {example} {what}"
        else:
            words = f"{where} {what}: {len(values):,} values, such as {example}"
        missing = len(values) == 1 and example == "null"
        column = (columns or {}).get(where, where)
        group = ReasonGroup(total, words if missing else f"{words}{_suggest_format(column, what, values, time)}")
        (time_groups if what.startswith(_NO_TIME) else alone).append(group)
    return [
        g for groups_ in (time_groups, alone) for g in sorted(groups_, key=lambda group: (-group.count, group.words))
    ]


def _faults(reasons: Mapping[str, int]) -> Counter[str]:
    """Rows by fault: the reason of a row with several has all of them."""
    counts: Counter[str] = Counter()
    for reason, count in reasons.items():
        for fault in _FAULT_ENDS.sub(lambda end: f"{end[1]}\n", reason).split("\n"):
            counts[_name_option(fault)] += count
    return counts


def _name_option(fault: str) -> str:
    """The fault with the option that the reader knows."""
    for end in (MAX_AHEAD, _FORMER_MAX_AHEAD):
        if fault.endswith(end):
            return fault.removesuffix(end) + choose_words(_FORMER_MAX_AHEAD, MAX_AHEAD)
    return fault


def _example(values: Sequence[_Value]) -> str:
    """The most frequent value of the kind that most rows have: 8,38 where most have a decimal comma, each its own, and
    not the n/a that is the most frequent of all."""
    rows: Counter[str] = Counter()
    for value in values:
        rows[value.kind] += value.count
    kind = rows.most_common(1)[0][0]
    return max((v for v in values if v.kind == kind), key=lambda v: v.count).text


def _as_argument(text: str) -> tuple[bool, str]:
    """Orders texts such that one behind an option does not begin with a hyphen, if another can be first."""
    return text.startswith("-"), text


def _suggest_time(column: str, values: Sequence[_Value]) -> str | None:
    """The options that read a time for a long, to be appended to a reason; None where the values are no times."""
    format = _guess_format(values)
    if format is None:
        return None
    option = f"--time {shlex.quote(column)}"
    options = f"{option} --time-format '{format}'" if format else option
    python = f"time={column!r}, time_format={format!r}" if format else f"time={column!r}"
    return f", and looks like a time: {choose_words(options, python)}"


def _guess_format(values: Sequence[_Value]) -> str | None:
    """The format of times of most of the values: a day above 12 tells 31/01/2024 from 01/31/2024."""
    example = _example(values)
    others = (v.text for v in values[:_LOOKED_AT] if v.text != example)
    return guess_format(*(text.strip("'\" ") for text in (example, *others)))


def _suggest_time_format(values: Sequence[_Value], has_format: bool, time: str | None) -> str:
    """The format of values that are no times, to be appended to a reason. `has_format`: in a format that was named."""
    format = _guess_format(values)
    if format:
        likely = choose_words(f"--time-format '{format}'", f"time_format={format!r}")
        return f"; they look like {likely}"
    if has_format:
        option = choose_words("--time-format", "time_format")
        return f"; without {option} they are read" if format == "" else f"; {option} names another format"
    options = choose_words("--time-format and --time-zone", "time_format and time_zone")
    return f"; {time or _BY_DEFAULT} ({options} name others)"


def _suggest_format(column: str, what: str, values: Sequence[_Value], time: str | None) -> str:
    """The expected format of a value, and the options that let others fit, to be appended to a reason."""
    if what.startswith(_NO_TIME):
        return _suggest_time_format(values, what != _NO_TIME, time)
    if what not in _NUMBERS:
        return ""
    if what == _LONG and (times := _suggest_time(column, values)):
        return times
    words = ["a whole number is written as 1234" if what in _WHOLE else "a number is written as 1234.5"]
    if any(v.kind == "comma" for v in values):
        words = ["with a decimal comma: --decimal ,"]
    none = {v.text.strip("'\" ") for v in values if v.kind == "none"}
    if none:
        are = "it stands" if len(none) == 1 else "they stand"
        words.append(f'if {are} for a missing value: --missing "{",".join(sorted(none, key=_as_argument))}"')
    return f"; {'; '.join(words)}"
