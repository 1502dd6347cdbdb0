"""Why a retrieval over an aggregation found nothing: what its `within` asked for, and what there is."""

from __future__ import annotations

from dataclasses import dataclass

from ..engine.aggregation import bounds_of
from ..engine.columns import Strings
from ..engine.expressions import Context
from ..engine.services import Services
from ..plan.nodes import AggDuration, Plan, Retrieval
from ..stores.protocol import BucketRange, Store

_ALWAYS = (-(2**62), 2**62)


@dataclass(frozen=True)
class Missed:
    """A range `asked` (ms, end not in it) of an aggregation in which no bucket of duration `per` starts.

    `held`: the starts (ms) of the first and the last bucket that there are; None where there are none.
    """

    aggregation: str
    per: AggDuration
    asked: tuple[int, int]
    held: tuple[int, int] | None


def missed(plan: Plan, retrieval: Retrieval, store: Store, *, now: int) -> Missed | None:
    """What the `within` of a retrieval over an aggregation does not reach; None where there are buckets in it."""
    assert retrieval.source is not None
    definition = plan.aggregations[retrieval.source.id]
    per, start, end = bounds_of(retrieval, definition, Services(Strings(), Context()), now)

    def one(begin: int, until: int, *, latest: bool) -> list[int]:
        found: list[int] = store.buckets(definition.id, per, BucketRange(begin, until, 1, latest)).starts.tolist()
        return found

    if one(start, end, latest=True):
        return None
    first, last = one(*_ALWAYS, latest=False), one(*_ALWAYS, latest=True)
    return Missed(definition.id, per, (start, end), (first[0], last[0]) if first and last else None)
