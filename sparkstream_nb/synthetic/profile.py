"""A profile of a frame: how its columns are distributed, from which events like them can be generated."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import Misuse, SparkStreamError, has_surrogate, nearest, shown
from .attribute_names import KEY_WORDS, is_time_name, split_name
from .column import GeneratedColumn
from .distributions import Choice, CountedKeys, Quantiles
from .ieee_arithmetic import Array

POINTS = 100
"""Parts between the quantiles of a column of numbers."""
MOST_VALUES = 20
"""Different numbers of a column, at most, that are chosen among by their frequency."""
RANKED_KEYS = 1_000
"""The most frequent keys, of which a profile has each one's count."""
RAREST = 5
"""Rows that have a text, at least, if the profile is to have it."""
MOST_DECIMALS = 15
MOST_DISTINCT = 100_000_000
"""Different keys of a column."""
_FORMAT = 1


@dataclass(frozen=True)
class NumberProfile:
    """A column of numbers: `quantiles` that are equally far apart, from the smallest to the largest number, and the
    decimal places (None: all). `nulls` is the share of nulls."""

    name: str
    quantiles: tuple[float, ...]
    decimals: int | None
    nulls: float

    def column(self) -> GeneratedColumn:
        """The generator of such a column."""
        return _with_nulls(Quantiles(self.quantiles, self.decimals), self.nulls)


@dataclass(frozen=True)
class ValueProfile:
    """A column of values that occur again, with the number of rows that have each."""

    name: str
    values: tuple[str | bool | int | float, ...]
    counts: tuple[int, ...]
    nulls: float

    def column(self) -> GeneratedColumn:
        """The generator of such a column."""
        return _with_nulls(Choice(self.values, self.counts), self.nulls)


@dataclass(frozen=True)
class KeyProfile:
    """A column of keys without the keys: the number of different ones, of rows by key (`RANKED_KEYS` at most, the
    largest first), and of rows that have another key. `texts`: keys are texts, not numbers."""

    name: str
    distinct: int
    counts: tuple[int, ...]
    rest: int
    texts: bool
    nulls: float

    def column(self) -> GeneratedColumn:
        """The generator of such a column: keys are numbered, the most frequent one first."""
        prefix = f"{self.name}-" if self.texts else ""
        return _with_nulls(CountedKeys(self.distinct, self.counts, self.rest, prefix), self.nulls)


ColumnProfile = NumberProfile | ValueProfile | KeyProfile
_KINDS: dict[str, type[ColumnProfile]] = {"numbers": NumberProfile, "values": ValueProfile, "keys": KeyProfile}


def _with_nulls(column: GeneratedColumn, share: float) -> GeneratedColumn:
    return column.nulls(share) if share else column


@dataclass(frozen=True)
class Profile:
    """The distributions of a frame's columns, each by itself, and its events a second (`rate`; None: unknown).

    It has no value of a key column, and no text of which there are fewer than 5 rows.
    """

    columns: tuple[ColumnProfile, ...]
    rate: float | None = None

    @staticmethod
    def of(frame: pd.DataFrame, *, keys: Sequence[str] = (), time: str | None = None) -> Profile:
        """The profile of a data frame.

        Columns are taken as keys if they are among `keys`, if their name says so (`id`, `card`, `user`, `email`, ...),
        or if they have texts most of which differ, or each of which fewer than 5 rows have. `time` names the column of
        event times (ms or datetimes), by default the first column whose name says so; it gives the rate. Raises
        `Misuse` for an unknown column, and for values that are neither numbers, texts nor booleans.
        """
        if not isinstance(frame, pd.DataFrame):
            raise Misuse(f"a profile is that of a pandas data frame, not of {shown(type(frame).__name__)}")
        names = [str(c) for c in frame.columns]
        for name in [*keys, *([] if time is None else [time])]:
            if name not in names:
                raise Misuse(nearest(f"the frame has no column '{name}'", name, names))
        by_name = {name: frame.iloc[:, i] for i, name in enumerate(names)}
        time = time or next((n for n in names if is_time_name(n) and _milliseconds(by_name[n]) is not None), None)
        column_profiles = [profile_column(c, n, n in keys or is_key_name(n)) for n, c in by_name.items() if n != time]
        return Profile(
            tuple(p for p in column_profiles if p is not None), None if time is None else _rate(by_name[time])
        )

    def column_of(self, name: str) -> GeneratedColumn | None:
        """The generator of values that imitate a column; None for one that the frame did not have."""
        return next((c.column() for c in self.columns if c.name == name), None)

    def save(self, path: str | Path) -> None:
        """Writes the profile as JSON. Raises SparkStreamError if the file cannot be written."""
        kinds = {kind: name for name, kind in _KINDS.items()}
        columns = [{"kind": kinds[type(c)], **asdict(c)} for c in self.columns]
        text = json.dumps({"format": _FORMAT, "rate": self.rate, "columns": columns}, indent=1, ensure_ascii=False)
        try:
            Path(path).write_text(text + "\n", encoding="utf-8")
        except OSError as e:
            raise SparkStreamError(f"{path} cannot be written: {e.strerror or e}") from None

    @staticmethod
    def load(path: str | Path) -> Profile:
        """The profile in a file that `save` wrote. Raises SparkStreamError for a file that is none."""
        try:
            if not Path(path).is_file() and Path(path).exists():
                raise SparkStreamError(f"{path} is not a file")
            document = json.loads(Path(path).read_text(encoding="utf-8"))
            if document["format"] != _FORMAT and _is_count(document["format"]):
                raise SparkStreamError(f"{path} is a profile of a later version of sparkstream-nb")
            rate = None if document["rate"] is None else float(document["rate"])
            if rate is not None and not 0 < rate < float("inf"):
                raise ValueError("the rate is a number of events a second")
            return Profile(tuple(_read_column(c) for c in document["columns"]), rate)
        except OSError as e:
            raise SparkStreamError(f"{path} cannot be read: {e.strerror or e}") from None
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, Misuse):
            raise SparkStreamError(f"{path} is no profile that Profile.save wrote") from None


def _read_column(members: Mapping[str, Any]) -> ColumnProfile:
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in members.items() if k != "kind"}
    read = _KINDS[members["kind"]](**values)
    has_name = isinstance(read.name, str) and not has_surrogate(read.name)
    if not has_name or not _is_finite(read.nulls) or not 0 <= read.nulls < 1:
        raise ValueError("a column has a name and a share of nulls")
    if not _CHECKS[type(read)](read):
        raise ValueError("a column has other values")
    return read


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _is_number_profile(p: NumberProfile) -> bool:
    numbers = isinstance(p.quantiles, tuple) and len(p.quantiles) > 1 and all(map(_is_finite, p.quantiles))
    return (
        numbers
        and list(p.quantiles) == sorted(p.quantiles)
        and math.isfinite(p.quantiles[-1] - p.quantiles[0])
        and (p.decimals is None or (_is_count(p.decimals) and p.decimals <= MOST_DECIMALS))
    )


def _is_value_profile(p: ValueProfile) -> bool:
    if not isinstance(p.values, tuple) or not isinstance(p.counts, tuple) or len(p.values) != len(p.counts):
        return False
    return (
        len(p.values) > 0
        and all(isinstance(v, str | bool) or _is_finite(v) for v in p.values)
        and not any(isinstance(v, str) and has_surrogate(v) for v in p.values)
        and all(map(_is_count, p.counts))
        and any(p.counts)
    )


def _is_key_profile(p: KeyProfile) -> bool:
    if not isinstance(p.counts, tuple) or not isinstance(p.texts, bool) or not _is_count(p.distinct):
        return False
    return (
        0 < len(p.counts) <= p.distinct <= MOST_DISTINCT
        and all(map(_is_count, (p.rest, *p.counts)))
        and sum((p.rest, *p.counts)) > 0
    )


_CHECKS: dict[type[ColumnProfile], Callable[[Any], bool]] = {
    NumberProfile: _is_number_profile,
    ValueProfile: _is_value_profile,
    KeyProfile: _is_key_profile,
}


def is_key_name(name: str) -> bool:
    """True if a name says that the values are keys."""
    return bool(KEY_WORDS & set(split_name(name)))


def profile_column(column: pd.Series, name: str, is_key: bool) -> ColumnProfile | None:
    """The profile of a column; None for one of nulls alone. Raises `Misuse` for values of other kinds."""
    present = column.dropna()
    if not len(present):
        return None
    nulls = 1.0 - len(present) / len(column)
    if pd.api.types.is_bool_dtype(present.dtype) or present.map(lambda v: isinstance(v, bool)).all():
        return _count_values(name, present.astype(bool), nulls)
    if pd.api.types.is_numeric_dtype(present.dtype):
        return _count_keys(name, present, False, nulls) if is_key else _profile_numbers(name, present, nulls)
    if not present.map(lambda v: isinstance(v, str)).all():
        raise Misuse(f"column '{name}' has values that are neither numbers, texts nor booleans: leave it out")
    counts = present.value_counts()
    if is_key or 2 * len(counts) > len(present) or counts.iloc[0] < RAREST:
        return _count_keys(name, present, True, nulls)
    return _count_values(name, present, nulls, RAREST)


def example_column(values: Any) -> GeneratedColumn:
    """The generator of values that imitate an example: numbers by their quantiles, others by their frequency."""
    column = values if isinstance(values, pd.Series) else pd.Series(list(values))
    profile = profile_column(column, "like", False)
    if profile is None:
        raise Misuse("like: the example has no values")
    if isinstance(profile, KeyProfile) or (isinstance(profile, ValueProfile) and isinstance(profile.values[0], str)):
        profile = _count_values("like", column.dropna(), profile.nulls)  # here the texts are at hand, and may be used
    return profile.column()


def _count_values(name: str, present: pd.Series, nulls: float, least: int = 1) -> ValueProfile:
    counts = present.value_counts()
    # Equal counts in the order of the values: the order of `value_counts` differs between versions of pandas.
    pairs = sorted(((v, int(c)) for v, c in counts.items() if c >= least), key=lambda p: (-p[1], str(p[0])))
    values = tuple(v.item() if hasattr(v, "item") else v for v, _ in pairs)
    return ValueProfile(name, values, tuple(c for _, c in pairs), nulls)


def _count_keys(name: str, present: pd.Series, texts: bool, nulls: float) -> KeyProfile:
    counts = sorted(present.value_counts().tolist(), reverse=True)
    head = tuple(counts[:RANKED_KEYS])
    return KeyProfile(name, len(counts), head, sum(counts[RANKED_KEYS:]), texts, nulls)


def _profile_numbers(name: str, present: pd.Series, nulls: float) -> ColumnProfile:
    values = np.sort(present.to_numpy(np.float64))
    values = values[np.isfinite(values)]
    if present.nunique() <= MOST_VALUES:
        return _count_values(name, present, nulls)
    quantiles = values[np.rint(np.linspace(0, len(values) - 1, POINTS + 1)).astype(np.int64)]
    return NumberProfile(name, tuple(quantiles.tolist()), _decimals(values), nulls)


def _decimals(values: Array) -> int | None:
    """The decimal places that all numbers have at most; None above 6."""
    return next((d for d in range(7) if np.array_equal(np.round(values, d), values)), None)


def _milliseconds(column: pd.Series) -> Array | None:
    """Times in ms; None for a column that has none."""
    present = column.dropna()
    ms: Array
    if pd.api.types.is_datetime64_any_dtype(present.dtype):
        moments = present.dt.tz_convert(None) if present.dt.tz is not None else present
        ms = moments.to_numpy("datetime64[ms]").astype(np.int64)
        return ms
    if not pd.api.types.is_integer_dtype(present.dtype):
        return None
    ms = present.to_numpy(np.int64)
    return ms


def _rate(column: pd.Series) -> float | None:
    """Events a second."""
    times = _milliseconds(column)
    if times is None:
        raise Misuse(f"time: column '{column.name}' has neither datetimes nor whole numbers of ms")
    span = int(times.max() - times.min()) if len(times) else 0
    return (len(times) - 1) * 1000.0 / span if span > 0 else None
