"""Values that a database cannot hold, found in the Arrow columns of partials before they are written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..types import Type
from .layout import StoredColumn


@dataclass(frozen=True)
class Values:
    """Values that a kind of database holds. `sums`: the largest sum of doubles that it can add to, None for any.
    `key_bytes`: maximum length in bytes of the texts of a key together.
    """

    nul: bool = True
    nan: bool = True
    infinity: bool = True
    sums: float | None = None
    key_bytes: int | None = None

    def unfit(self, value: Any) -> str | None:
        """Why no column holds a value, as words behind its name; None if one does."""
        if isinstance(value, str) and not self.nul and "\0" in value:
            return "contains the character NUL"
        if isinstance(value, float) and not self.nan and math.isnan(value):
            return "is not a number"
        if isinstance(value, float) and not self.infinity and math.isinf(value):
            return "is infinite"
        return None


@dataclass(frozen=True)
class TextColumn:
    """Texts that a column holds and distinguishes.

    `longest`: characters. `foreign`: a regular expression of the characters that its character set lacks. `pads`:
    spaces at a text's end are ignored when texts are compared.
    """

    longest: int | None = None
    foreign: str | None = None
    pads: bool = False


@dataclass(frozen=True)
class ColumnLimits:
    """Limits of the tables of one aggregation, in a database of the kind `kind`."""

    kind: str
    values: Values = Values()
    texts: Mapping[str, TextColumn] = field(default_factory=dict)


def unfit(limits: ColumnLimits, columns: Sequence[StoredColumn], rows: pa.Table) -> dict[int, str]:
    """Why rows cannot be stored, by row number; rows that are not named can be.

    `rows` has a column for each of `columns` that events or partials give; others are not looked at.
    """
    checks = _Checks(limits, rows.num_rows)
    for c in columns:
        if c.name not in rows.column_names or c.role == "set":
            continue
        if c.type is Type.STRING:
            checks.texts(c, rows.column(c.name))
        elif c.type in (Type.FLOAT, Type.DOUBLE):
            checks.numbers(c, rows.column(c.name))
    keys = [rows.column(c.name) for c in columns if c.role == "group" and c.type is Type.STRING]
    checks.key(keys)
    return checks.reasons


class _Checks:
    def __init__(self, limits: ColumnLimits, n: int) -> None:
        self.limits, self.n = limits, n
        self.reasons: dict[int, str] = {}

    def _note(self, mask: Any, reason: str) -> None:
        """`mask`: Arrow bools of the rows; null for those that pass."""
        if pc.any(mask).as_py():
            for i in np.flatnonzero(np.asarray(pc.fill_null(mask, False))).tolist():
                self.reasons.setdefault(i, reason)

    def texts(self, c: StoredColumn, values: pa.ChunkedArray) -> None:
        kind, column = self.limits.kind, self.limits.texts.get(c.name, TextColumn())
        if not self.limits.values.nul:
            self._note(pc.match_substring(values, "\0"), f"{c.name} contains NUL, which {kind} does not hold")
        if column.longest is not None and (pc.max(pc.binary_length(values)).as_py() or 0) > column.longest:
            long = pc.greater(pc.utf8_length(values), column.longest)
            self._note(long, f"{c.name} is longer than the {column.longest:,} characters of its column in {kind}")
        if column.foreign is not None:
            foreign = pc.match_substring_regex(values, column.foreign)
            self._note(foreign, f"{c.name} has characters that the character set of its column in {kind} lacks")
        if column.pads and c.in_key:
            reason = f"{c.name} ends in a space, and its column in {kind} does not tell it from the text without"
            self._note(pc.ends_with(values, " "), reason)

    def numbers(self, c: StoredColumn, values: pa.ChunkedArray) -> None:
        value_limits, kind = self.limits.values, self.limits.kind
        if not value_limits.nan:
            self._note(pc.is_nan(values), f"{c.name} is NaN, which {kind} does not hold")
        if not value_limits.infinity:
            self._note(pc.is_inf(values), f"{c.name} is infinite, which {kind} does not hold")
        if value_limits.sums is not None and c.role == "sum":
            reason = f"{c.name} is above {value_limits.sums:g}, which is too large to be added up in {kind}"
            self._note(pc.greater(pc.abs(values), value_limits.sums), reason)

    def key(self, texts: Sequence[pa.ChunkedArray]) -> None:
        most = self.limits.values.key_bytes
        if most is None or not texts:
            return
        size = np.zeros(self.n, np.int64)
        for t in texts:
            size += pc.fill_null(pc.binary_length(t), 0).to_numpy()
        reason = f"the group's texts are longer than the {most:,} bytes of a key in {self.limits.kind}"
        self._note(pa.array(size > most), reason)
