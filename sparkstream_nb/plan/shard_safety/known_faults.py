"""Faults of Siddhi 5.1.30 that an app's text shows: where WSO2's servers answer otherwise than this engine.

Each entry of `FAULTS` is a difference of `docs/differences.md` with one plainly right answer, which this engine gives.
Differences that only data, restarts or the clock show are listed there alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...errors import Span
from ...lang import tree
from ...lang.tree import UNBOUNDED
from .. import nodes as n
from ..query_parts import conjuncts, expressions, inputs, puts_out_expired
from ..window_declarations import DECLARATIONS


@dataclass(frozen=True)
class FaultPlace:
    """An element of an app in which a fault shows."""

    kind: str
    name: str
    span: Span


@dataclass(frozen=True)
class KnownFault:
    """`difference`: the title in `docs/differences.md`. `servers`: the behaviour of WSO2's servers, with them as the
    subject. `report`: a public one. `shows` finds the elements in which it shows.
    """

    difference: str
    servers: str
    shows: Callable[[n.Plan], Iterator[FaultPlace]]
    report: str | None = None


@dataclass(frozen=True)
class Note:
    """A known fault in an element of an app."""

    place: FaultPlace
    fault: KnownFault

    @property
    def text(self) -> str:
        """One sentence, without a full stop."""
        report = "" if self.fault.report is None else f" ({self.fault.report})"
        return f"WSO2's servers {self.fault.servers}{report}"


def known_faults(plan: n.Plan) -> list[Note]:
    """The notes about an app, entry after entry of `FAULTS`."""
    return [Note(place, fault) for fault in FAULTS for place in fault.shows(plan)]


# ------------------------------------------------------------------------------------------------------- plan elements


@dataclass(frozen=True)
class _QueryPlace:
    """A query of an app, and the partition that contains it."""

    plan: n.Plan
    query: n.Query
    partition: n.Partition | None


def _queries(plan: n.Plan) -> Iterator[_QueryPlace]:
    for e in plan.elements:
        if isinstance(e, n.Partition):
            yield from (_QueryPlace(plan, q, e) for q in e.queries)
        else:
            yield _QueryPlace(plan, e, None)


def _where(holds: Callable[[_QueryPlace], bool]) -> Callable[[n.Plan], Iterator[FaultPlace]]:
    """The queries of which something holds."""
    return lambda plan: (FaultPlace("query", x.query.name, x.query.span) for x in _queries(plan) if holds(x))


def _aggregates(q: n.Query, *functions: str) -> bool:
    """True if a query has an aggregate; with `functions`, one of these."""
    aggregators = {e.function for top in expressions(q) for e in n.walk(top) if isinstance(e, n.Agg)}
    return bool(aggregators.intersection(functions) if functions else aggregators)


def _windows(x: _QueryPlace) -> Iterator[n.WindowStep]:
    """The windows that a query reads through, named ones too."""
    for i in inputs(x.query.input):
        if i.source.kind == "window":
            yield x.plan.windows[i.source.id].window
        yield from (s for s in i.steps if isinstance(s, n.WindowStep))


def _end(s: n.State) -> n.State:
    """The last state of a pattern or sequence."""
    while isinstance(s, n.NextState | n.EveryState):
        s = s.then if isinstance(s, n.NextState) else s.state
    return s


def _counts(s: n.State) -> Iterator[n.CountState]:
    match s:
        case n.CountState():
            yield s
        case n.NextState():
            yield from _counts(s.first)
            yield from _counts(s.then)
        case n.EveryState():
            yield from _counts(s.state)


# ------------------------------------------------------------------------------------------------------------- patterns


def _logical(q: n.Query) -> n.LogicalState | None:
    """The logical state that is the whole pattern."""
    if not isinstance(q.input, n.StateInput):
        return None
    state = q.input.state.state if isinstance(q.input.state, n.EveryState) else q.input.state
    return state if isinstance(state, n.LogicalState) else None


def _and_alone(x: _QueryPlace) -> bool:
    state = _logical(x.query)
    if state is None or state.op != "and":
        return False
    return not any(isinstance(side, n.AbsentState) for side in (state.left, state.right))


def _events(s: n.State) -> int:
    """Least number of events in a match, counting both sides of an `and`."""
    match s:
        case n.CountState():
            return s.least
        case n.NextState():
            return _events(s.first) + _events(s.then)
        case n.EveryState():
            return _events(s.state)
        case n.LogicalState():
            sides = _events(s.left), _events(s.right)
            return min(sides) if s.op == "or" else sum(sides)
        case n.AbsentState():
            return 0
        case _:
            return 1


def _interleaves(x: _QueryPlace) -> bool:
    """True if partial matches may reach the last state in another order than that of their first events."""
    i = x.query.input
    if not isinstance(i, n.StateInput) or i.kind != "pattern" or i.within is None:
        return False
    first = i.state.first if isinstance(i.state, n.NextState) else None
    return isinstance(first, n.EveryState) and isinstance(first.state, n.StreamState) and _events(i.state) >= 3


def _states(s: n.State) -> Iterator[n.State]:
    """The states of a chain, in order, with what is under `every` as one."""
    if isinstance(s, n.NextState):
        yield from _states(s.first)
        yield from _states(s.then)
    else:
        yield s


def _can_come_to_an_end(s: n.State) -> bool:
    """True if an event that must not come ends a group under `every`: an absent state behind its first, of a group that
    restarts only as a whole."""
    if isinstance(s, n.NextState):
        return _can_come_to_an_end(s.first) or _can_come_to_an_end(s.then)
    if not isinstance(s, n.EveryState):
        return False
    first, *others = _states(s.state)
    if any(isinstance(x, n.EveryState) for x in (first, *others[:-1])):
        return False
    return any(isinstance(x, n.AbsentState) or _is_and_with_absence(x) for x in others)


def _is_and_with_absence(s: n.State) -> bool:
    sides = (s.left, s.right) if isinstance(s, n.LogicalState) and s.op == "and" else ()
    return any(isinstance(x, n.AbsentState) for x in sides)


def _group_ends(x: _QueryPlace) -> bool:
    i = x.query.input
    return isinstance(i, n.StateInput) and i.kind == "pattern" and _can_come_to_an_end(i.state)


def _ends_in_plus(x: _QueryPlace) -> bool:
    i = x.query.input
    if not isinstance(i, n.StateInput) or i.kind != "sequence":
        return False
    last = _end(i.state)
    return isinstance(last, n.CountState) and (last.least, last.most) == (1, UNBOUNDED)


def _held_while_open(x: _QueryPlace) -> bool:
    i, rate = x.query.input, x.query.rate
    if not isinstance(i, n.StateInput) or rate is None or rate.kind != "all":
        return False
    last = _end(i.state)
    return isinstance(last, n.CountState) and last.least == 0


def _counts_two(x: _QueryPlace) -> bool:
    i = x.query.input
    return isinstance(i, n.StateInput) and i.kind == "sequence" and any(c.least >= 2 for c in _counts(i.state))


def _and_of_widths(x: _QueryPlace) -> bool:
    i = x.query.input
    if x.partition is None or not isinstance(i, n.StateInput) or _logical(x.query) is None:
        return False
    return len({len(s.schema) for s in i.slots}) > 1


# ---------------------------------------------------------------------------------------------------------- aggregators


def _deviation_slides(x: _QueryPlace) -> bool:
    slides = any(DECLARATIONS[w.function].processing_mode == "slide" for w in _windows(x))
    return _aggregates(x.query, "stdDev") and (slides or puts_out_expired(x.query))


def _aggregates_in_branch(x: _QueryPlace) -> bool:
    """True if Siddhi does not compute an aggregate for every event: in a branch of `ifThenElse`, or on the right of
    `and` and `or`."""
    for top in expressions(x.query):
        for e in n.walk(top):
            branches = e.args[1:] if isinstance(e, n.Call) and e.function == "ifThenElse" else ()
            branches = (e.right,) if isinstance(e, n.Logic) else branches
            if any(isinstance(inner, n.Agg) for branch in branches for inner in n.walk(branch)):
                return True
    return False


def _groups_mixed(x: _QueryPlace) -> bool:
    apart = bool(x.query.select.group_by) or x.partition is not None
    return apart and _aggregates(x.query, "str:groupConcat", "math:percentile")


def _batch_runs_on(x: _QueryPlace) -> bool:
    batch = any(w.function == "batch" for w in _windows(x))
    return x.partition is not None and batch and _aggregates(x.query) and not puts_out_expired(x.query)


# --------------------------------------------------------------------------------------------- aggregations and windows


def _filtered_aggregations(plan: n.Plan) -> Iterator[FaultPlace]:
    return (FaultPlace("aggregation", a.id, a.span) for a in plan.aggregations.values() if a.input.steps)


def _averages(plan: n.Plan) -> Iterator[FaultPlace]:
    for a in plan.aggregations.values():
        if any(isinstance(e, n.Agg) and e.function == "avg" for i in a.select.items for e in n.walk(i.expr)):
            yield FaultPlace("aggregation", a.id, a.span)


def _composed_by_clock(plan: n.Plan) -> Iterator[FaultPlace]:
    """Aggregations of a deployment whose nodes have clocks of their own."""
    if tree.find_annotation(plan.annotations, "playback") is None:
        return
    for a in plan.aggregations.values():
        if a.partitioned and len(a.durations) > 1:
            yield FaultPlace("aggregation", a.id, a.span)


def _aggregation_first(x: _QueryPlace) -> bool:
    i = x.query.input
    if not isinstance(i, n.JoinInput):
        return False
    kept_by = [
        x.plan.aggregations[s.source.id].by is not None for s in (i.left, i.right) if s.source.kind == "aggregation"
    ]
    return i.left.source.kind == "aggregation" or (x.partition is not None and any(kept_by))


def _session_windows(plan: n.Plan) -> Iterator[FaultPlace]:
    for id_, w in plan.windows.items():
        if w.window.function == "session":
            yield FaultPlace("window", id_, w.window.span)


# --------------------------------------------------------------------------------------------------------------- tables


def _times_a_table(x: _QueryPlace) -> bool:
    """A window of a table in a join that has timers: its scheduler has no state there. `cron` has one of its own."""
    i = x.query.input
    windows = [s.ignored for s in (i.left, i.right)] if isinstance(i, n.JoinInput) else []
    window_names = {w.function for w in windows if w is not None} - {"cron"}
    return any(DECLARATIONS[w].timers_emit != "nothing" for w in window_names)


def _key_attributes(x: _QueryPlace, table: str) -> set[int]:
    """The attributes of a table in memory that are keys or have an index."""
    definition = x.plan.tables[table]
    return set() if definition.is_stored else {*definition.primary_key, *definition.indexes}


def _attributes_of(e: n.Expr) -> set[int]:
    """The table's attributes that an expression names."""
    return {x.attr for x in n.walk(e) if isinstance(x, n.Ref) and x.slot == n.TABLE}


def _sets_by_key(x: _QueryPlace) -> bool:
    o = x.query.output
    if not isinstance(o, n.Update | n.Upsert) or o.set is None or o.target.kind != "table":
        return False
    table = x.plan.tables[o.target.id]
    upserts = isinstance(o, n.Upsert) and bool(table.primary_key) and not table.is_stored
    return upserts or (bool(_key_attributes(x, o.target.id)) and any(_attributes_of(s.value) for s in o.set))


def _deletes_all(x: _QueryPlace) -> bool:
    o = x.query.output
    return isinstance(o, n.Delete) and o.on is None and o.target.kind == "table"


def _deletes_by_more(x: _QueryPlace) -> bool:
    o = x.query.output
    if not isinstance(o, n.Delete) or o.on is None or o.target.kind != "table":
        return False
    parts, key_attributes = [_attributes_of(c) for c in conjuncts(o.on)], _key_attributes(x, o.target.id)
    return any(p & key_attributes for p in parts) and any(p and not p & key_attributes for p in parts)


def _in_by_range(x: _QueryPlace) -> bool:
    for top in expressions(x.query):
        for e in n.walk(top):
            if isinstance(e, n.InTable):
                comparisons = (c for c in n.walk(e.condition) if isinstance(c, n.Compare) and c.op != "==")
                if any(_attributes_of(c) & _key_attributes(x, e.table) for c in comparisons):
                    return True
    return False


FAULTS: tuple[KnownFault, ...] = (
    KnownFault(
        "`and` has no order", "lose a match of this `and` whose left side comes last", _where(_and_alone),
        "siddhi-io/siddhi#1793",
    ),
    KnownFault(
        "`within` holds for each match",
        "put out matches of this pattern that take longer than `within`, where others are open meanwhile",
        _where(_interleaves), "siddhi-io/siddhi#1008",
    ),
    KnownFault(
        "A group under `every` restarts when what must not come has come",
        "never match this group again once the event came that must not come",
        _where(_group_ends),
    ),
    KnownFault(
        "A sequence may end with one or more", "never match a sequence whose last state is `+`", _where(_ends_in_plus)
    ),
    KnownFault(
        "A match that a rate limit holds keeps its time",
        "give a match that the rate limit holds the time of a later event, as its last state may be absent",
        _where(_held_while_open),
    ),
    KnownFault(
        "A count of at least two in a sequence", "never match a sequence with a count of two or more",
        _where(_counts_two), "siddhi-io/siddhi#1478",
    ),
    KnownFault(
        "`and` of streams of different width in a partition",
        "fail on this pattern, as its streams have different numbers of attributes, and lose the event",
        _where(_and_of_widths),
    ),
    KnownFault(
        "A standard deviation forgets the values that left",
        "put out a `stdDev` with what rounding left of earlier values, such as 8.6e-9 or NaN instead of 0",
        _where(_deviation_slides), "siddhi-io/siddhi#1647",
    ),
    KnownFault(
        "An aggregate in a branch that is not taken counts all events",
        "compute an aggregate in a branch, or after what decides an `and` or `or`, only for the events that come to it",
        _where(_aggregates_in_branch),
    ),
    KnownFault(
        "Groups of str:groupConcat and math:percentile are apart",
        "mix the groups of `str:groupConcat` and `math:percentile`", _where(_groups_mixed), "wso2/api-manager#932",
    ),
    KnownFault(
        "A batch window in a partition starts over with each batch",
        "let the aggregates of this batch window run on over all batches", _where(_batch_runs_on),
    ),
    KnownFault(
        "Filters and stream functions before an aggregation",
        "record nothing in an aggregation of a stream with a filter or function", _filtered_aggregations,
    ),
    KnownFault(
        "Nodes that share an aggregation count each event once",
        "count events of this aggregation twice, or miss some, in a bucket that is open by the asked server's clock",
        _composed_by_clock,
    ),
    KnownFault("avg skips nulls", "count nulls in the divisor of an aggregation's `avg`", _averages),
    KnownFault(
        "A join with an aggregation finds its buckets from either side, and in a partition",
        "put out nothing from this join with an aggregation", _where(_aggregation_first),
    ),
    KnownFault(
        "A session window of its own definition works", "put out nothing from a `session` window of its own definition",
        _session_windows,
    ),
    KnownFault(
        "A window of a table in a join has no effect",
        "fail with a NullPointerException as soon as the timer of the window of this join's table is due",
        _where(_times_a_table),
    ),
    KnownFault(
        "`set` may use the table's own attributes",
        "ignore the `set` of an upsert on a primary key, and read the table's own attributes in `set` as null",
        _where(_sets_by_key),
    ),
    KnownFault(
        "A delete may ask for more than the key", "delete nothing where `on` asks for a key and more",
        _where(_deletes_by_more),
    ),
    KnownFault(
        "A delete without `on` deletes all rows", "refuse the app, with a NullPointerException", _where(_deletes_all)
    ),
    KnownFault(
        "`in` compares as everything else does", "turn this comparison of a key or indexed attribute around in `in`",
        _where(_in_by_range),
    ),
)  # fmt: skip
