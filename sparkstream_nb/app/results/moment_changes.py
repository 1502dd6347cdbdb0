"""Changes of a query's state by the last step before a moment: of the events in its windows, of its partial matches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...engine.runtime.descriptions import DescribedEvent, DescribedPartial, DescribedQuery, DescribedWindow
from ...plan import nodes
from .moment import Moment, begun
from .traces import PartialEnd

_FIRST_LEAVES = frozenset(["time", "length", "timelength", "externaltime", "delay"])
"""Windows whose first event leaves first."""


@dataclass(frozen=True)
class WindowChanges:
    """A window on a node after a step: its `events`, the numbers of the ones among them that the step brought, and the
    events that it took out."""

    node: str
    window: DescribedWindow
    added_numbers: frozenset[int]
    removed_events: Sequence[DescribedEvent]

    @property
    def next_numbers(self) -> frozenset[int]:
        """The numbers of the events that leave next: the first one, in a partition of each key. Empty for windows
        whose first event does not leave first, as batches."""
        if self.window.function.lower() not in _FIRST_LEAVES:
            return frozenset()
        first_by_key: dict[str, int] = {}
        for i, event in enumerate(self.window.events):
            first_by_key.setdefault(event.key, i)
        return frozenset(first_by_key.values())


@dataclass(frozen=True)
class PartialChange:
    """A partial match on a node after a step. `is_new`: the step began or advanced it. `end`: how the step ended it;
    None if it is there."""

    node: str
    partial: DescribedPartial
    is_new: bool = False
    end: PartialEnd | None = None

    @property
    def is_changed(self) -> bool:
        """True if the step began, advanced or ended it."""
        return self.is_new or self.end is not None

    @property
    def times(self) -> list[int]:
        """The times of its events (ms)."""
        return [e.timestamp for events in self.partial.events for e in events]


def window_changes(now: Moment, before: Moment | None, query: str) -> list[WindowChanges]:
    """By window and node, a window's events at a moment, and what changed since the moment `before` (None: nothing is
    known of it)."""
    changes = []
    by_node = now[query].by_node
    for number in range(max((len(q.windows) for q in by_node.values()), default=0)):
        for node, state in by_node.items():
            window = state.windows[number]
            past = _state_of(before, node, query)
            past_events = window.events if past is None else past.windows[number].events
            removed_events = [past_events[i] for i in _surplus(past_events, window.events)]
            changes.append(WindowChanges(node, window, frozenset(_surplus(window.events, past_events)), removed_events))
    return changes


def partial_changes(now: Moment, before: Moment | None, query: str) -> list[PartialChange]:
    """By node, the partial matches that have an event, and the ones that the last step ended."""
    changes = []
    source = now[query].query.input
    assert isinstance(source, nodes.StateInput)
    output_nodes = {o.node for o in now.outputs if o.query == query}
    for node, state in now[query].by_node.items():
        past = _state_of(before, node, query)
        present, past_partials = begun(state), begun(state if past is None else past)
        keys, past_keys = set(map(_partial_key, present)), set(map(_partial_key, past_partials))
        rows = [PartialChange(node, p, _partial_key(p) not in past_keys) for p in present]
        changes += sorted(rows, key=lambda row: min(row.times))
        new_partials = [row.partial for row in rows if row.is_new]
        for partial in past_partials:
            if _partial_key(partial) not in keys and not any(_extends(p, partial) for p in new_partials):
                row = PartialChange(node, partial)
                is_expired = source.within is not None and (now.clock or 0) - min(row.times) > source.within
                end: PartialEnd = "expired" if is_expired else "match" if node in output_nodes else "dropped"
                changes.append(replace(row, end=end))
    return changes


def _surplus(events: Sequence[DescribedEvent], others: Sequence[DescribedEvent]) -> list[int]:
    """The numbers of the events that are not among the others; of equal ones the last."""
    by_time = {e.timestamp: e for e in others}
    times, other_times = (Counter(e.timestamp for e in some) for some in (events, others))
    several = {t for some in (times, other_times) for t, count in some.items() if count > 1}
    counts = Counter(_key(e) for e in others if e.timestamp in several)
    numbers = []
    for i, event in enumerate(events):
        if event.timestamp in several:
            key = _key(event)
            is_there = counts[key] > 0
            counts[key] -= 1
        else:
            other = by_time.get(event.timestamp)
            is_there = other is not None and (event == other or _key(event) == _key(other))  # NaN is equal by its text
        if not is_there:
            numbers.append(i)
    return numbers


def _state_of(moment: Moment | None, node: str, query: str) -> DescribedQuery | None:
    return None if moment is None or node not in moment.nodes else moment.nodes[node].queries.get(query)


def _key(event: DescribedEvent) -> tuple[object, ...]:
    return event.timestamp, event.key, str(event.values)


def _partial_key(partial: DescribedPartial) -> tuple[object, ...]:
    return partial.key, tuple(tuple(map(_key, events)) for events in partial.events)


def _extends(later: DescribedPartial, partial: DescribedPartial) -> bool:
    """True if a partial match has all events of another one, and more."""
    return later.key == partial.key and all(
        list(events[: len(past)]) == list(past) for events, past in zip(later.events, partial.events, strict=True)
    )
