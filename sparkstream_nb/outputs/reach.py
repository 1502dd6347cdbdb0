"""Reach of the `within` of a retrieval over an aggregation: why it found nothing, and which buckets it cuts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..engine.aggregation import Calendar, bounds_of
from ..engine.columnar.column_data import StringPool
from ..engine.expressions import Context
from ..engine.state.services import Services
from ..plan.nodes import AggDuration, AggregationDef, Plan, Retrieval
from ..stores.store_protocol import BucketRange, Store

_ALWAYS = (-(2**62), 2**62)


@dataclass(frozen=True)
class Missed:
    """The `bounds` (ms, without the end) of a range of an aggregation in which no bucket of duration `per` starts.

    `existing_bounds`: the starts (ms) of the first and the last bucket that exist; None if none exists.
    """

    aggregation: str
    per: AggDuration
    bounds: tuple[int, int]
    existing_bounds: tuple[int, int] | None


def find_missed(plan: Plan, retrieval: Retrieval, store: Store, *, now: int) -> Missed | None:
    """The range of the `within` of a retrieval over an aggregation if it contains no bucket; else None."""
    assert retrieval.source is not None
    definition = plan.aggregations[retrieval.source.id]
    per, start, end = bounds_of(retrieval, definition, Services(StringPool(), Context()), now)

    def one(begin: int, until: int, *, latest: bool) -> list[int]:
        starts: list[int] = store.buckets(definition.id, per, BucketRange(begin, until, 1, latest)).starts.tolist()
        return starts

    if one(start, end, latest=True):
        return None
    first, last = one(*_ALWAYS, latest=False), one(*_ALWAYS, latest=True)
    return Missed(definition.id, per, (start, end), (first[0], last[0]) if first and last else None)


_HOUR = 3_600_000
_AT_MOST: dict[AggDuration, int] = {
    "sec": 1000, "min": 60_000, "hour": _HOUR, "day": 26 * _HOUR, "month": 32 * 24 * _HOUR, "year": 367 * 24 * _HOUR,
}  # fmt: skip
"""Longest bucket (ms) of each duration: after that time from its start, the next one has begun."""

Holds = Callable[[AggDuration, int, int], bool]
"""True if there are rows of a duration in buckets that begin from one time on and before another (ms)."""


@dataclass(frozen=True)
class CutBucket:
    """A bucket of duration `per`, from `bucket` to `until` (ms, not in it), inside which a range begins or `ends`.

    A bucket belongs to a range that it begins in: one in which a range begins is left out, one in which it ends is in
    the answer as a whole. `finer`: the longest duration of the aggregation that has a bucket begin at the bound of the
    range, so that the range cuts none of its buckets there.
    """

    aggregation: str
    per: AggDuration
    bucket: int
    until: int
    ends: bool
    finer: AggDuration | None


def cuts(plan: Plan, retrieval: Retrieval, holds: Holds, *, now: int) -> list[CutBucket]:
    """The buckets that a retrieval over an aggregation cuts, if they have rows on the other side."""
    assert retrieval.source is not None
    definition = plan.aggregations[retrieval.source.id]
    per, start, end = bounds_of(retrieval, definition, Services(StringPool(), Context()), now)
    return cut_by(definition, plan.aggregation_zone, (per, start, end), holds)


def cut_by(
    definition: AggregationDef, zone: str, per_and_bounds: tuple[AggDuration, int, int], holds: Holds
) -> list[CutBucket]:
    """The buckets that a range, (per, start, end), cuts: that in which it begins, if it holds something that was asked
    for, and that in which it ends, if it holds something that was not."""
    per, start, end = per_and_bounds
    calendar, smallest = Calendar(zone), definition.durations[0]

    def begin(duration: AggDuration, at: int) -> int:
        return int(calendar.floor(duration, np.array([at], np.int64))[0])

    def cut(at: int, ends: bool) -> CutBucket:
        bucket = begin(per, at)
        finer = definition.durations[: definition.durations.index(per)]
        fits = next((d for d in reversed(finer) if begin(d, at) == at), None)
        return CutBucket(definition.id, per, bucket, begin(per, bucket + _AT_MOST[per]), ends, fits)

    cut_buckets = []
    if (first := cut(start, False)).bucket < start and holds(per, first.bucket, start):
        rest = smallest, start, min(end, first.until)
        if smallest == per or holds(*rest) or not holds(smallest, first.bucket, first.until):
            cut_buckets.append(first)
    last = cut(end, True)
    if start <= last.bucket < end and smallest != per and holds(smallest, end, last.until):
        cut_buckets.append(last)
    return cut_buckets
