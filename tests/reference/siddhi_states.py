"""The state of the windows, patterns and aggregates of Siddhi after a case, held against a node's description."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sparkstream_nb.engine.node import NodeEngine
from sparkstream_nb.engine.runtime.descriptions import DescribedNode, DescribedQuery, DescribedWindow, describe
from sparkstream_nb.engine.state.node_batch import InputBatch, OutputOptions
from sparkstream_nb.plan import nodes
from sparkstream_nb.plan.nodes import Plan
from sparkstream_nb.types import Type

Element = Mapping[str, Any]
"""A state of Siddhi's, as `States.java` writes it."""
HELD = dict.fromkeys(
    ("length", "time", "timeLength", "externalTime", "expression", "sort", "batch", "lengthBatch", "timeBatch"),
    ("ExpiredEventQueue", "SortedWindow"),
)
"""By window function, the parts of Siddhi's state that have the events in the window."""
WAITING = dict.fromkeys(("lengthBatch", "timeBatch", "expressionBatch"), ("CurrentEventQueue",))
"""The same for events that wait for the end of their batch."""
TOTALS = {"sum": "Sum", "count": "Count"}


def description(plan: Plan, batch: InputBatch, start: int) -> DescribedNode:
    """The state of a node after a batch."""
    engine = NodeEngine(plan, allow_scripts=True, start=start, outputs=OutputOptions(describes=True))
    engine.step(batch)
    return describe(engine)


def state_differences(plan: Plan, ours: DescribedNode, theirs: Sequence[Element]) -> Iterator[str]:
    """The parts of the state of queries with a name that differ."""
    by_query: dict[str, list[Element]] = defaultdict(list)
    for element in theirs:
        by_query[element["query"]].append(element)
    for query in plan.queries:
        elements = by_query.get(query.name)
        if elements is None:
            continue
        state = ours.queries[query.name]
        for what, one, other in (*_patterns(query, state, elements), *_windows(query, state, elements),
                                 *_totals(query, state, elements)):  # fmt: skip
            if one != other:
                yield f"{query.name}, {what}: {one} and not {other}"


def _patterns(
    query: nodes.Query, state: DescribedQuery, elements: Sequence[Element]
) -> Iterator[tuple[str, Any, Any]]:  # fmt: skip
    """The partial matches of both that have no event of the last state, each as its key and the times of its events:
    the others are matches, which both hold for a while. So is one with an event whose absence was awaited: it is over,
    and Siddhi drops it with a later event. Siddhi numbers the sides of `and` and `or` in another order."""
    if state.partial_matches is None:
        return
    assert isinstance(query.input, nodes.StateInput)
    over = {*_last_slots(query.input.state), *_absent_slots(query.input.state)}
    theirs = {
        (e["key"] or "", tuple(sorted(event[0] for slot in partial for event in slot if event[0] >= 0)))
        for e in elements if "PreStateProcessor" in e["element"]
        for name in ("PendingStateEventList", "NewAndEveryStateEventList") for partial in e["state"].get(name, ())
        if not any(slot for i, slot in enumerate(partial) if i in over)
    }  # fmt: skip
    ours = {
        (p.key, tuple(sorted(e.timestamp for of_state in p.events for e in of_state if e.values)))
        for p in state.partial_matches
        if not any(of_state for slot, of_state in zip(state.slots, p.events, strict=True) if slot in over)
    }
    yield "partial matches", sorted(x for x in ours if x[1]), sorted(x for x in theirs if x[1])


def _last_slots(state: nodes.State) -> Iterator[int]:
    match state:
        case nodes.NextState():
            yield from _last_slots(state.then)
        case nodes.EveryState() | nodes.CountState() | nodes.AbsentState():
            yield from _last_slots(state.state)
        case nodes.LogicalState():
            yield from _last_slots(state.left)
            yield from _last_slots(state.right)
        case nodes.StreamState():
            yield state.slot


def _absent_slots(state: nodes.State) -> Iterator[int]:
    """The slots of absent states that are no side of `and` or `or`."""
    match state:
        case nodes.NextState():
            yield from _absent_slots(state.first)
            yield from _absent_slots(state.then)
        case nodes.EveryState() | nodes.CountState():
            yield from _absent_slots(state.state)
        case nodes.AbsentState():
            yield state.state.slot


def _windows(
    query: nodes.Query, state: DescribedQuery, elements: Sequence[Element]
) -> Iterator[tuple[str, Any, Any]]:  # fmt: skip
    """The events of each window of both, as keys and times."""
    of_windows = [e for e in elements if "Window" in e["element"]]
    of_windows.sort(key=lambda e: int(e["element"].split("-")[0]))
    names = list(dict.fromkeys(e["element"] for e in of_windows))
    for window, name in zip(state.windows, names, strict=False):
        parts = [e for e in of_windows if e["element"] == name]
        is_batch_of_join = isinstance(query.input, nodes.JoinInput) and window.function in WAITING
        if not is_batch_of_join:  # Siddhi never empties what has expired there
            yield from _events(window, parts, HELD.get(window.function, ()), is_waiting=False)
        yield from _events(window, parts, WAITING.get(window.function, ()), is_waiting=True)


def _events(
    window: DescribedWindow, parts: Sequence[Element], names: Sequence[str], *, is_waiting: bool
) -> Iterator[tuple[str, Any, Any]]:  # fmt: skip
    lists = [(p["key"] or "", p["state"][name]) for p in parts for name in names if p["state"].get(name) is not None]
    if lists:
        theirs = Counter((key, event[0]) for key, events in lists for event in events)
        ours = Counter((e.key, e.timestamp) for e in window.events if e.is_waiting == is_waiting)
        place = "waiting" if is_waiting else "in the window"
        yield f"{window.function}, {place}", sorted(ours.items()), sorted(theirs.items())


def _totals(
    query: nodes.Query, state: DescribedQuery, elements: Sequence[Element]
) -> Iterator[tuple[str, Any, Any]]:  # fmt: skip
    """The sums and counts of the groups of both, of the first such aggregate, where they are not 0."""
    aggregates = [e for i in query.select.items for e in nodes.walk(i.expr) if isinstance(e, nodes.Agg)]
    # The expression of a window has aggregates of its own, and a list is another text in Java.
    has_own = any("expression" in w.function for w in state.windows)
    if state.groups is None or has_own or len(set(aggregates)) != 1 or aggregates[0].function not in TOTALS:
        return
    if any(key.type is Type.OBJECT for key in query.select.group_by):
        return
    function = aggregates[0].function
    class_name = f"{function.capitalize()}AttributeAggregatorExecutor"
    theirs = {
        (e["key"] or "", e["group"] or ""): e["state"][TOTALS[function]]
        for e in elements if e["element"].endswith(class_name)
    }  # fmt: skip
    ours = {}
    for key, *group, value in state.groups.rows:
        ours[key, "".join(f"{_text(v)}:-:" for v in group)] = value or 0
    yield function, _rounded(ours), _rounded(theirs)


def _text(value: Any) -> str:
    if isinstance(value, float) and value != value:
        return "NaN"
    return str(value).lower() if isinstance(value, bool) else "null" if value is None else str(value)


def _rounded(totals: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    return sorted((key, round(float(value), 6)) for key, value in totals.items() if value)
