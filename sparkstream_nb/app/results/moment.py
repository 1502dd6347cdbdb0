"""A moment of an app: what each node held after one step of its input."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import pandas as pd

from ...charts.value_texts import format_count
from ...durations import describe_time
from ...engine.runtime.descriptions import (
    DescribedNode,
    DescribedPartial,
    DescribedQuery,
    DescribedRows,
    DescribedWindow,
)  # fmt: skip
from ...errors import Misuse, nearest
from ...plan import nodes
from ...plan.nodes import Plan
from ...plan.reports.show_input import show_window, state_names
from ...replay.input_history import InputHistory, StepRows
from ...stores.frame_queries import query_frames
from .frontend import Displayed

if TYPE_CHECKING:
    from ..explaining.branch import Branch
    from ..explaining.why_not import WhyNot

_RELATIONS = {
    "contents": "contents of ", "partial_matches": "partial matches of ", "groups": "groups of ",
    "pending_outputs": "outputs that wait in ", "buckets": "buckets of ",
}  # fmt: skip
"""By function of SQL, the beginning of the names of its relations."""


@dataclass(frozen=True)
class MomentEvent:
    """An event of the last step: its number from 1, its stream, its time (ms), its values, and its node."""

    number: int
    stream: str
    time: int
    values: Sequence[Any]
    node: str


@dataclass(frozen=True)
class MomentOutput:
    """An output of the last step: its stream, its query, its time (ms), its values, and its node."""

    stream: str
    query: str
    time: int
    values: Sequence[Any]
    node: str


@dataclass(frozen=True)
class BranchRequest:
    """The differences of a branch from an app's input, as `Moment.branch` has them."""

    drop: Sequence[int]
    change: Mapping[int, Mapping[str, Any]]
    insert: Sequence[tuple[Any, ...]]
    nodes: int | None
    routing: str | None
    text: str | None


@dataclass(frozen=True)
class Sought:
    """A condition on the query or table `name`, an output of a stream, or a
    change of a query's state."""

    name: str | None
    condition: str
    output: str | None
    change: str | None


class MomentSource(Protocol):
    """All moments of an input, and its branches."""

    def moment(self, position: int) -> Moment:
        """The moment after a number of steps."""
        ...

    def until(self, moment: Moment, sought: Sought) -> Moment:
        """The moment of `Moment.until`."""
        ...

    def since(self, moment: Moment, sought: Sought) -> Moment:
        """The moment of `Moment.since`."""
        ...

    def branch(self, moment: Moment, request: BranchRequest) -> Branch:
        """A branch of the input, at a moment."""
        ...

    def history(self) -> InputHistory:
        """The positions of all events and outputs."""
        ...

    def commits(self) -> StepRows:
        """The position of the last output of each micro-batch that the app committed."""
        ...

    def position_of(self, time: int | str | dt.datetime | None = None, event: int | None = None) -> int:
        """The position after the last step up to a time, or after an event. Raises `Misuse` for one that is none."""
        ...

    def why_not(self, output: str, values: Mapping[str, Any], at: str | None) -> WhyNot:
        """The answer of `App.why_not` for the nodes of these moments. Raises as that does."""
        ...


@dataclass(frozen=True, repr=False, eq=False)
class QueryMoment(Displayed):
    """The state of a query at a moment, by node: its windows, or its partial matches."""

    query: nodes.Query
    by_node: Mapping[str, DescribedQuery]

    @property
    def name(self) -> str:
        """The query's name."""
        return self.query.name

    @property
    def window(self) -> pd.DataFrame:
        """A row for each event in the window, in its order: node, timestamp (ms), key of the partition, whether it
        waits to be emitted (`waiting`), and its attributes. Of a join, the left window. Raises `Misuse` if the query
        has none."""
        return self.windows[0]

    @cached_property
    def windows(self) -> list[pd.DataFrame]:
        """`window`, for each window of the query. Raises `Misuse` if it has none."""
        count = max((len(q.windows) for q in self.by_node.values()), default=0)
        if not count:
            raise Misuse(f"query {self.name} has no window: {self._alternatives}")
        return [
            _with_nodes({node: _window_frame(q.windows[i]) for node, q in self.by_node.items()}) for i in range(count)
        ]

    @cached_property
    def partial_matches(self) -> pd.DataFrame:
        """A row for each partial match that has an event: node, key of the partition, the states that it `waits for`,
        the time of its first event (`began`, ms) and when `within` ends it (`ends`, ms); by state the number of its
        events, and the attributes of the last one, as in `e1.card`. Raises `Misuse` if the query has no pattern."""
        if not isinstance(self.query.input, nodes.StateInput):
            raise Misuse(f"query {self.name} has no pattern: {self._alternatives}")
        source = self.query.input
        return _with_nodes({node: _partials_frame(q, source) for node, q in self.by_node.items()})

    @property
    def groups(self) -> pd.DataFrame:
        """A row for each group of a select with aggregates: node, key of the partition, the values of `group by`, and
        the present values of the aggregates. Raises `Misuse` if it has none."""
        return self._rows_of("groups", {node: q.groups for node, q in self.by_node.items()})

    @property
    def pending_outputs(self) -> pd.DataFrame:
        """A row for each output that the rate limit holds back: node, key of the partition, timestamp (ms), and its
        values. Raises `Misuse` if the query has no rate limit that does."""
        return self._rows_of("outputs that wait", {node: q.pending_outputs for node, q in self.by_node.items()})

    def _rows_of(self, what: str, by_node: Mapping[str, DescribedRows | None]) -> pd.DataFrame:
        frames = {node: _rows_frame(rows) for node, rows in by_node.items() if rows is not None}
        if not frames:
            raise Misuse(f"query {self.name} has no {what}: {self._alternatives}")
        return _with_nodes(frames)

    @property
    def has_state(self) -> bool:
        """True if it keeps events, groups or outputs."""
        return any(
            q.windows or any(x is not None for x in (q.partial_matches, q.groups, q.pending_outputs))
            for q in self.by_node.values()
        )

    @property
    def _alternatives(self) -> str:
        states = list(self.by_node.values())
        names = {
            "partial_matches": isinstance(self.query.input, nodes.StateInput),
            "window": any(q.windows for q in states), "groups": any(q.groups is not None for q in states),
            "pending_outputs": any(q.pending_outputs is not None for q in states),
        }  # fmt: skip
        present = [name for name, is_there in names.items() if is_there]
        return f"read {' or '.join(present)}" if present else "it keeps no events"

    @property
    def input_text(self) -> str:
        """The windows of the query, or the kind of its input."""
        if isinstance(self.query.input, nodes.StateInput):
            return self.query.input.kind
        sides = (self.query.input,) if isinstance(self.query.input, nodes.StreamInput) else (
            self.query.input.left, self.query.input.right
        )  # fmt: skip
        return ", ".join(show_window(s) for side in sides for s in side.steps if isinstance(s, nodes.WindowStep))

    def summary(self) -> str:
        parts = [f"{node} {count_text(q, self.query)}" for node, q in self.by_node.items()]
        return f"<QueryMoment of {self.name}: {'; '.join(parts)}>"


@dataclass(frozen=True, repr=False, eq=False)
class NodeMoment:
    """The state of one node at a moment: `node["spree"]` is a query's."""

    name: str
    plan: Plan
    state: DescribedNode

    def __getitem__(self, query: str) -> QueryMoment:
        """The state of a query. Raises `Misuse` for an unknown one."""
        return QueryMoment(_query(self.plan, query), {self.name: self.state.queries[query]})

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The rows of each table."""
        return {id: _rows_frame(rows) for id, rows in self.state.tables.items()}

    @property
    def windows(self) -> dict[str, pd.DataFrame]:
        """The events in each named window."""
        return {id: _rows_frame(rows) for id, rows in self.state.windows.items()}

    def __repr__(self) -> str:
        return f"<NodeMoment of {self.name}: {', '.join(self.state.queries)}>"


@dataclass(frozen=True, repr=False, eq=False)
class Moment(Displayed):
    """An app after `position` of `steps` steps of its input (events, events sent at once, and ticks of the clock).

    `moment["spree"]` is the state of a query on all nodes, `moment["node-2"]` that of a node. `events` and `outputs`
    are the last step's; `clock` (ms) is None at the beginning. `source` has the other moments.
    """

    app: str
    plan: Plan
    position: int
    steps: int
    clock: int | None
    nodes: Mapping[str, DescribedNode]
    events: Sequence[MomentEvent]
    outputs: Sequence[MomentOutput]
    source: MomentSource = field(repr=False)

    def __getitem__(self, name: str) -> Any:
        """A node's `NodeMoment`, or a query's `QueryMoment`. Raises `Misuse` for another name."""
        if name in self.nodes:
            return NodeMoment(name, self.plan, self.nodes[name])
        query = _query(self.plan, name, self.nodes)
        return QueryMoment(query, {node: state.queries[name] for node, state in self.nodes.items()})

    def next(self, steps: int = 1) -> Moment:
        """The moment a number of steps later. Raises `Misuse` after the last one."""
        if self.position + steps > self.steps:
            raise Misuse(f"the input of {self.app} ends after step {self.steps:,}")
        return self.source.moment(self.position + steps)

    def back(self, steps: int = 1) -> Moment:
        """The moment a number of steps earlier. Raises `Misuse` before the beginning."""
        if self.position - steps < 0:
            raise Misuse(f"the input of {self.app} begins with step 1: this is step {self.position:,}")
        return self.source.moment(self.position - steps)

    def until(
        self, name: str | None = None, condition: str = "", *, output: str | None = None, change: str | None = None
    ) -> Moment:
        """The first moment after this one at which a condition holds on one of the nodes: `until("spree", "partial
        matches > 1000")`, `until("recent", "events >= 500")` of a window, `until("Last", "rows > 10")` of a table; at
        which a stream has an `output`; or at which the state of a query is another one (`change="spree"`: of the first
        1,000 steps each is looked at, then some at growing distances). Raises `Misuse` if there is none."""
        return self.source.until(self, Sought(name, condition, output, change))

    def since(self, name: str | None = None, condition: str = "", *, change: str | None = None) -> Moment:
        """The moment since which a condition of `until` has held, or (`change`) the state of a query has been as it is
        now: at least at moments that are looked at, at growing distances. Raises `Misuse` if a condition does not hold
        now."""
        return self.source.since(self, Sought(name, condition, None, change))

    def branch(
        self,
        *,
        drop: int | Sequence[int] = (),
        change: Mapping[int, Mapping[str, Any]] | None = None,
        insert: Sequence[tuple[Any, ...]] = (),
        nodes: int | None = None,
        routing: str | None = None,
        text: str | None = None,
    ) -> Branch:
        """The outputs over a branch of the app's input, compared with those over the input as it is.

        `drop`: the numbers of events that did not come; `change`: new values by attribute, by number; `insert`: events
        that came as well, each (stream, values) at this moment, or (stream, values, time). `nodes`, `routing`, `text`:
        the number of nodes, the routing and the text of the app. Raises `Misuse` for an event or attribute that does
        not exist, and SiddhiError, with a caret, for a text that does not compile.
        """
        request = BranchRequest(
            (drop,) if isinstance(drop, int) else tuple(drop), change or {}, tuple(insert), nodes, routing, text
        )
        return self.source.branch(self, request)

    def queries(self) -> Iterator[QueryMoment]:
        """The queries that have state."""
        for query in self.plan.queries:
            moment = self[query.name]
            if moment.has_state:
                yield moment

    @property
    def row_names(self) -> list[str]:
        """The tables and named windows that `rows` takes."""
        return list(dict.fromkeys(id for s in self.nodes.values() for id in (*s.tables, *s.windows)))

    def rows(self, name: str) -> pd.DataFrame:
        """The rows of a table or named window on all nodes: node, then its attributes. Raises `Misuse` for another
        name."""
        if name not in self.row_names:
            raise Misuse(nearest(f"{self.app} has no table or window '{name}' in memory", name, self.row_names))
        by_node = {n: {**state.tables, **state.windows} for n, state in self.nodes.items()}
        return _with_nodes({node: _rows_frame(rows[name]) for node, rows in by_node.items()})

    @property
    def aggregations(self) -> list[str]:
        """The aggregations that `buckets` takes."""
        return list(dict.fromkeys(a for state in self.nodes.values() for a in state.buckets))

    def buckets(self, name: str) -> pd.DataFrame:
        """The rows of an aggregation's newest bucket of each duration on all nodes: node, duration, AGG_TIMESTAMP (ms),
        and its values. Raises `Misuse` for another name."""
        if name not in self.aggregations:
            raise Misuse(nearest(f"{self.app} has no aggregation '{name}'", name, self.aggregations))
        frames = []
        for node, state in self.nodes.items():
            for duration, rows in state.buckets.get(name, {}).items():
                frames.append(_rows_frame(rows).assign(node=node, duration=duration))
        frame = pd.concat([f for f in frames if len(f)] or frames[:1], ignore_index=True)
        return frame[["node", "duration", *(c for c in frame.columns if c not in ("node", "duration"))]]

    def sql(self, text: str) -> pd.DataFrame:
        """The answer of DuckDB to a query over this moment: tables and named windows by their names,
        `contents('QUERY')`, `partial_matches('QUERY')`, `groups('QUERY')`, `pending_outputs('QUERY')` and
        `buckets('AGGREGATION')`; all have the column `node`. It reads no files. Raises `Misuse` for a query that DuckDB
        refuses."""
        return query_frames(text, self._relations(), _RELATIONS)

    def _relations(self) -> Iterator[tuple[str, pd.DataFrame]]:
        for name in self.row_names:
            yield name, self.rows(name)
        for query in self.queries():
            states = list(query.by_node.values())
            if isinstance(query.query.input, nodes.StateInput):
                yield f"{_RELATIONS['partial_matches']}{query.name}", query.partial_matches
            elif any(q.windows for q in states):
                yield f"{_RELATIONS['contents']}{query.name}", query.window
            if any(q.groups is not None for q in states):
                yield f"{_RELATIONS['groups']}{query.name}", query.groups
            if any(q.pending_outputs is not None for q in states):
                yield f"{_RELATIONS['pending_outputs']}{query.name}", query.pending_outputs
        for name in self.aggregations:
            yield f"{_RELATIONS['buckets']}{name}", self.buckets(name)

    def summary(self) -> str:
        at = "the beginning" if self.clock is None else describe_time(self.clock)
        return f"<Moment of {self.app}: {at}, step {self.position:,} of {self.steps:,}>"


def _query(plan: Plan, name: str, others: Sequence[str] | Mapping[str, Any] = ()) -> nodes.Query:
    for query in plan.queries:
        if query.name == name:
            return query
    names = [*others, *(q.name for q in plan.queries)]
    raise Misuse(nearest(f"there is no {'node or ' if others else ''}query '{name}'", name, names))


def _with_nodes(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Frames of nodes as one, with the column `node` first."""
    parts = [frame.assign(node=node)[["node", *frame.columns]] for node, frame in frames.items()]
    parts = [p for p in parts if len(p)] or parts[:1]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["node"])


def _rows_frame(rows: DescribedRows) -> pd.DataFrame:
    return pd.DataFrame(list(rows.rows), columns=list(rows.names))


def _window_frame(window: DescribedWindow) -> pd.DataFrame:
    rows = [[e.timestamp, e.key, e.is_waiting, *e.values.values()] for e in window.events]
    return pd.DataFrame(rows, columns=["timestamp", "key", "waiting", *window.names])


def _partials_frame(query: DescribedQuery, source: nodes.StateInput) -> pd.DataFrame:
    names = [state_names(source)[slot] for slot in query.slots]
    attributes = [source.slots[slot].source.schema.names for slot in query.slots]
    rows = []
    for partial in begun(query):
        times = [e.timestamp for events in partial.events for e in events]
        ends = min(times) + source.within if source.within is not None else None
        row = [partial.key, ", ".join(names[i] for i in partial.waits_for), min(times), ends]
        for events, state_attributes in zip(partial.events, attributes, strict=True):
            last = events[-1].values if events else {}
            row += [len(events), *(last.get(a) for a in state_attributes)]
        rows.append(row)
    columns = ["key", "waits for", "began", "ends"]
    for name, state_attributes in zip(names, attributes, strict=True):
        columns += [name, *(f"{name}.{a}" for a in state_attributes)]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.astype({"began": "Int64", "ends": "Int64"})


def begun(query: DescribedQuery) -> list[DescribedPartial]:
    """The partial matches that have an event."""
    return [p for p in query.partial_matches or () if any(p.events)]


def count_text(state: DescribedQuery, query: nodes.Query) -> str:
    """The number of events in a query's windows, or of its partial matches by the state that they wait for; of groups
    and of outputs that wait."""
    counts = _event_counts(state, query)
    if state.groups is not None:
        counts.append(format_count(len(state.groups.rows), "group"))
    if state.pending_outputs is not None:
        counts.append(f"{format_count(len(state.pending_outputs.rows), 'output')} waiting")
    return ", ".join(counts)


def _event_counts(state: DescribedQuery, query: nodes.Query) -> list[str]:
    if state.partial_matches is None:
        return [format_count(len(w.events), "event") for w in state.windows]
    assert isinstance(query.input, nodes.StateInput)
    names = state_names(query.input)
    waits = Counter(", ".join(names[state.slots[i]] for i in p.waits_for) for p in begun(state))
    by_state = ", ".join(f"{n:,} {'waits' if n == 1 else 'wait'} for {name}" for name, n in waits.items())
    total = format_count(waits.total(), "partial match", "partial matches")
    return [f"{total}: {by_state}" if by_state else total]

