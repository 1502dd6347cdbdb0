"""Elements of an app for which the time at which an event arrives matters, apart from its attributes."""

from __future__ import annotations

from dataclasses import dataclass

from . import nodes as n
from .query_parts import inputs
from .window_declarations import DECLARATIONS


@dataclass(frozen=True)
class ByArrival:
    """Aggregations without `aggregate by`, and queries with a window, pattern or sequence that goes by time, by their
    names in the order of the text."""

    aggregations: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()

    @staticmethod
    def of(plan: n.Plan) -> ByArrival:
        queries = (q for e in plan.elements for q in (e.queries if isinstance(e, n.Partition) else [e]))
        return ByArrival(
            tuple(a.id for a in plan.aggregations.values() if a.by is None),
            tuple(q.name for q in queries if _reads_time(plan, q)),
        )

    def __bool__(self) -> bool:
        return bool(self.aggregations or self.queries)

    @property
    def all(self) -> tuple[str, ...]:
        return self.aggregations + self.queries


NOTHING = ByArrival()


def _reads_time(plan: n.Plan, q: n.Query) -> bool:
    if isinstance(q.input, n.StateInput) and q.input.within is not None:
        return True
    for i in inputs(q.input):
        windows = [s for s in i.steps if isinstance(s, n.WindowStep)]
        if i.source.kind == "window":
            windows.append(plan.windows[i.source.id].window)
        if any(DECLARATIONS[w.function].retained_by in ("clock", "start") for w in windows):
            return True
    return False
