"""The comparison of outputs: rows and a sum of each peer against ours, and the differences that are declared."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .protocol import Query, Result

TOLERANCE = 1e-9
"""Relative difference of two sums of the same numbers in another order."""


@dataclass(frozen=True)
class Verdict:
    """The result of a comparison. `text` is for the table; `error`: the difference is not declared, or is larger."""

    text: str
    error: bool = False


def relative(ours: float, other: float) -> float:
    """The difference relative to ours; infinite for a NaN, or where ours is 0 and the other is not."""
    if ours == other:
        return 0.0
    found = abs(other - ours) / abs(ours) if ours else math.inf
    return math.inf if math.isnan(found) else found


def compare(query: Query, peer: str, ours: Result, other: Result) -> Verdict:
    """Compares the output of a peer with ours."""
    rows, summed = other.rows - ours.rows, relative(ours.sum, other.sum)
    if rows == 0 and summed <= TOLERANCE:
        return Verdict("equal")
    found = f"{rows:+,} rows of {ours.rows:,}, sum {summed:.0e} off" if rows else f"sum {summed:.0e} off"
    known = query.differences.get(peer)
    if known is None:
        return Verdict(f"**{found}**: not declared", True)
    if abs(rows) > known.rows or summed > max(known.sum, TOLERANCE):
        return Verdict(f"**{found}**: more than declared ({known.reason})", True)
    return Verdict(f"{found}: {known.reason}")
