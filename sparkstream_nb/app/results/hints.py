"""Hints about an answer that is empty, or leaves something out."""

from __future__ import annotations

import numpy as np

from ...engine.aggregation import within_range
from ...engine.aggregation.bucket_calendar import PLURAL
from ...errors import SiddhiRuntimeError
from ...outputs.reach import CutBucket, Missed, cut_by, cuts, find_missed
from ...plan.binding.query_inputs import per_duration
from ...plan.nodes import Const, JoinInput, Plan, Retrieval
from ...stores import BucketRange, Store


def hint_of(plan: Plan, retrieval: Retrieval, store: Store, *, now: int, empty: bool) -> str | None:
    """A hint about the answer to a retrieval query over an aggregation in `store`: which buckets its range cuts, or why
    it is `empty`."""
    assert retrieval.source is not None
    id_ = retrieval.source.id
    cut_buckets = cuts(plan, retrieval, lambda per, a, b: store.count(id_, per, BucketRange(a, b, 1)) > 0, now=now)
    if cut_buckets:
        return "; ".join(map(what_is_cut, cut_buckets))
    missed_range = find_missed(plan, retrieval, store, now=now) if empty else None
    return None if missed_range is None else why_empty(missed_range)


def why_empty(missed_range: Missed) -> str:
    """Why a retrieval found nothing: `nothing within 2014-01-01 ... 2015-01-01; T holds 2013-01-01 ... 2013-12-31`."""
    if missed_range.existing_bounds is None:
        return f"{missed_range.aggregation} holds nothing yet"
    asked_times, held_times = _times(*missed_range.bounds), _times(*missed_range.existing_bounds)
    return f"nothing within {asked_times}; {missed_range.aggregation} holds {held_times} (UTC)"


def what_is_cut(cut: CutBucket) -> str:
    """The buckets that a range cuts at its ends: `the hour of 2020-09-13 12:00:00 (UTC) is left out,
    as the range begins inside it; ask from its start, or per 'minutes'`."""
    name = f"the {PLURAL[cut.per].removesuffix('s')} of {_times(cut.bucket, cut.bucket)} (UTC)"
    finer = "" if cut.finer is None else f", or per '{PLURAL[cut.finer]}'"
    if cut.ends:
        return f"{name} is counted as a whole, as the range ends inside it; ask until its start or its end{finer}"
    return f"{name} is left out, as the range begins inside it; ask from its start{finer}"


def cut_by_joins(plan: Plan) -> list[str]:
    """Buckets that joins with aggregations leave out by a range that begins or ends inside a bucket, if the app's text
    gives the range.
    """
    sentences = []
    for q in plan.queries:
        if not isinstance(q.input, JoinInput) or not isinstance(q.input.per, Const):
            continue
        bounds = [e.value for e in q.input.within if isinstance(e, Const)]
        side = next(s.source for s in (q.input.left, q.input.right) if s.source.kind == "aggregation")
        definition, per = plan.aggregations[side.id], per_duration(str(q.input.per.value))
        if len(bounds) != len(q.input.within) or per not in definition.durations:
            continue
        try:
            start, end = within_range(tuple(bounds))  # type: ignore[arg-type]
        except SiddhiRuntimeError:
            continue  # an error of each event
        cut_buckets = cut_by(definition, plan.aggregation_zone, (per, start, end), lambda *_: True)
        sentences += [f"{q.name} joins {side.id}: {what_is_cut(c)}." for c in cut_buckets]
    return sentences


def _times(first: int, last: int) -> str:
    """`2013-01-01 ... 2013-12-31`, one time for two that are the same, with the time of day if there is one."""
    texts = [str(np.datetime64(ms, "ms")).replace("T", " ").removesuffix(".000") for ms in (first, last)]
    if all(text.endswith(" 00:00:00") for text in texts):
        texts = [text.removesuffix(" 00:00:00") for text in texts]
    return " ... ".join(dict.fromkeys(texts))
