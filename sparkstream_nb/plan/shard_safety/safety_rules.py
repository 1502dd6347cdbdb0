"""Shard safety of a query by itself: the rules that `plan.shard_safety.safety` lists, a function each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from .. import nodes as n
from ..dataflow import Dataflow
from ..query_parts import (
    IS_LEADER,
    conjuncts,
    expressions,
    inputs,
    inserts_into,
    only_adds,
    puts_out_expired,
    sources,
    stream_states,
    tables_of,
)
from ..signatures.streams import STATEFUL
from ..window_declarations import DECLARATIONS, argument
from .own_safety import STATELESS, Own, attribute_of, dependent, have_equal_texts, merged_keys
from .table_rules import rule_of_table


class SafetyRules:
    """A plan, with derived data shared by the rules for its queries."""

    def __init__(self, flow: Dataflow) -> None:
        self.flow, self.plan = flow, flow.plan
        self._tables: dict[str, Own] = {}

    def table(self, table: str) -> Own:
        """Rule 8 of a table."""
        if table not in self._tables:
            self._tables[table] = rule_of_table(self.flow, table)
        return self._tables[table]

    @cached_property
    def chunked_streams(self) -> frozenset[str]:
        """The streams to which a query sends several events at once, of which a partition makes one chunk of neighbours
        with the same key."""
        todo = [q for q in self.flow.queries if _sends_chunks(q, self.plan)]
        stream_ids: set[str] = set()
        while todo:
            target = todo.pop().output.target
            if target.kind in ("stream", "window") and target.id not in stream_ids:
                stream_ids.add(target.id)
                todo += (r for r in self.flow.readers(target.id) if inserts_into(r, r.output.target.id))
        return frozenset(stream_ids)


def own_rule(q: n.Query, rules: SafetyRules) -> Own:
    """Safety of a query outside of partitions, by itself."""
    plan = rules.plan
    shared = _own_shared(q, rules)
    if shared is not None and shared.level == "node-dependent":
        return shared
    match q.input:
        case n.StreamInput():
            rule = _own_stream(q, q.input, plan)
        case n.JoinInput():
            rule = _own_join(q, q.input, plan)
        case n.StateInput():
            rule = _own_pattern(q, q.input)
    if rule.level == "node-dependent":
        return rule
    for further in (_own_selection(q, rule, plan), _own_rate(q)):
        if further is None:
            continue
        if further.level == "node-dependent":
            return further
        rule = further if rule.level == "stateless" else _both(rule, further)
    return rule if shared is None else _both(rule, shared)


def _both(one: Own, two: Own) -> Own:
    """Both kinds of keys at once: candidates that agree."""
    if one.level == "stateless":
        return two
    if two.level == "stateless":
        return one
    common_candidates = tuple(m for a in one.candidates for b in two.candidates if (m := merged_keys(a, b)) is not None)
    if not common_candidates:
        return dependent(f"{one.reason}, but {two.reason}")
    return Own("keyed", two.reason, common_candidates)


def _own_shared(q: n.Query, rules: SafetyRules) -> Own | None:
    """Rule 8: triggers, tables, aggregations, and the function that tells nodes apart."""
    if any(isinstance(e, n.Call) and e.function == IS_LEADER for top in expressions(q) for e in n.walk(top)):
        return dependent(f"'{IS_LEADER}()' is true on one node only")
    for s in sources(q):
        if s.id in rules.plan.triggers:
            return dependent(f"trigger '{s.id}' fires on every node")
        if s.kind == "aggregation":
            return dependent(f"it reads what aggregation '{s.id}' has stored at that time")
    out: Own | None = None
    for table in tables_of(q):
        table_rule = _own_table(q, table, rules)
        if table_rule.level == "node-dependent":
            return table_rule
        out = table_rule if out is None else _both(out, table_rule)
    return out


def partition_rule(p: n.Partition, q: n.Query, rules: SafetyRules) -> Own:
    """Rule 7."""
    shared = _own_shared(q, rules)
    if shared is not None and shared.level == "node-dependent":
        return shared
    keys: dict[str, str] = {}
    for key in p.keys:
        if isinstance(key, n.RangeKey):
            return dependent(f"'{p.id}' is partitioned by ranges, not by an attribute's value")
        if not isinstance(key.expr, n.Ref):
            return dependent(f"the key of '{p.id}' for '{key.stream}' is computed inside the node")
        keys[key.stream] = key.expr.name
    timed_reason = _timed_in_partition(q, rules)
    if timed_reason is not None:
        return dependent(timed_reason)
    mine: dict[str, str] = {}
    for s in sources(q):
        if s.id in keys:
            mine[s.id] = keys[s.id]
        elif s.id not in {i.id for i in p.inner}:
            return dependent(f"'{s.id}' has no key in '{p.id}', so its events go to every instance, on every node")
    key_text = ", ".join(f"{s}.{a}" for s, a in mine.items())
    rule = Own("keyed", f"one partition instance per {key_text}", (mine,)) if mine else STATELESS
    return rule if shared is None else _both(rule, shared)


def _timed_in_partition(q: n.Query, rules: SafetyRules) -> str | None:
    """Why instances on one node do not go their own ways (rule 7); None if they do."""
    if q.rate is not None and q.rate.unit != "events":
        return "its output rate takes turns with those of other keys on the node"
    if q.select.aggregates and any(s.id in rules.chunked_streams for s in sources(q)):
        return "its chunks of events are cut at other keys"
    if isinstance(q.input, n.StateInput):
        if any(isinstance(s, n.AbsentState) for s in _below(q.input.state)):
            return "its waiting times end in turns with those of other keys on the node"
        if any(isinstance(s, n.CountState) and s.least == 0 for s in _below(q.input.state)):
            return "a state that needs no event ends in turns with those of other keys on the node"
    return next(filter(None, (_timed_input(q, i, rules.plan) for i in inputs(q.input))), None)


def _timed_input(q: n.Query, i: n.StreamInput, plan: n.Plan) -> str | None:
    """`_timed_in_partition` of an input of a query."""
    stateful = (s.function for s in i.steps if isinstance(s, n.FunctionStep) and s.function in STATEFUL)
    if any(f != _DEDUPLICATE for f in stateful):
        return "its timeouts end in turns with those of other keys on the node"
    window = _window_of(i, plan)
    if window is None:
        return None
    if i.source.kind == "window" and not by_clock(window):
        return f"named window '{i.source.id}' holds the events of all keys together"
    if _passes_through(q, window):
        return None
    if argument(window, "timeout") is not None:
        return f"the timeouts of window '{window.function}' end in turns with those of other keys on the node"
    how = DECLARATIONS[window.function].in_partition
    if how == "shared":
        return f"window '{window.function}' takes turns with those of other keys on the node"
    if how == "expired" and puts_out_expired(q):
        return f"events leave window '{window.function}' in turns with those of other keys on the node"
    return None


def _sends_chunks(q: n.Query, plan: n.Plan) -> bool:
    """True if a query itself sends several events at once."""
    if not isinstance(q.input, n.StreamInput) or q.rate is not None or puts_out_expired(q):
        return True
    window = _window_of(q.input, plan)
    return window is not None and not (_passes_through(q, window) or _slides(window))


def _slides(window: n.WindowStep) -> bool:
    return window.function != "delay" and DECLARATIONS[window.function].processing_mode == "slide"


def _below(s: n.State) -> Iterator[n.State]:
    """`s` and the states below it."""
    while isinstance(s, n.NextState):
        yield s
        yield from _below(s.first)
        s = s.then
    yield s
    match s:
        case n.LogicalState():
            yield from _below(s.left)
            yield from _below(s.right)
        case n.EveryState() | n.CountState() | n.AbsentState():
            yield from _below(s.state)


_DEDUPLICATE = "unique:deduplicate"
_HANDING_ON = (
    "length", "time", "externalTime", "timeLength", "sort", "expression", "unique:ever", "unique:length", "unique:time",
)  # fmt: skip
"""Windows that hand each event on as it comes."""


def _passes_through(q: n.Query, window: n.WindowStep) -> bool:
    """True if the query emits each event as it comes, independent of the window's other events."""
    return (
        isinstance(q.input, n.StreamInput)
        and window.function in _HANDING_ON
        and not puts_out_expired(q)
        and q.rate is None
        and not any(isinstance(e, n.Agg) for top in expressions(q) for e in n.walk(top))
    )


def _window_of(i: n.StreamInput, plan: n.Plan) -> n.WindowStep | None:
    """The window of an input, a named one's too."""
    if i.source.kind == "window":
        return plan.windows[i.source.id].window
    return next((s for s in i.steps if isinstance(s, n.WindowStep)), None)


def by_clock(w: n.WindowStep) -> bool:
    """Rule 2: whether an event's stay in the window depends on the clock alone."""
    by = DECLARATIONS[w.function].retained_by
    return by == "clock" or (by == "start" and argument(w, "start.time") is not None)


def _own_stream(q: n.Query, i: n.StreamInput, plan: n.Plan) -> Own:
    """Rules 1 to 3."""
    for step in i.steps:
        if isinstance(step, n.FunctionStep) and step.function in STATEFUL and step.function != _DEDUPLICATE:
            return dependent(f"'{step.function}' depends on the order of all events")
        if isinstance(step, n.FilterStep) and any(isinstance(e, n.Agg) for e in n.walk(step.condition)):
            return dependent("its filter aggregates all events")
    window = _window_of(i, plan)
    filter_step = next((s for s in i.steps if isinstance(s, n.FunctionStep) and s.function == _DEDUPLICATE), None)
    if filter_step is not None:
        if window is not None and not _passes_through(q, window):
            return dependent(f"'{_DEDUPLICATE}' and a window are not kept by one key")
        by_key = _keyed_by(filter_step.args[0], q)
        return by_key or dependent(f"the key of '{_DEDUPLICATE}' is computed inside the node")
    return STATELESS if window is None or _passes_through(q, window) else _own_window(q, window)


def _own_window(q: n.Query, window: n.WindowStep) -> Own:
    """Rules 1 to 3 of a query's window."""
    if by_clock(window):
        if DECLARATIONS[window.function].processing_mode == "batch" and puts_out_expired(q):
            return dependent(f"events leave window '{window.function}' when the node has new ones")
        return STATELESS
    by = DECLARATIONS[window.function].retained_by
    if by == "key" and not puts_out_expired(q):
        key = attribute_of(argument(window, "session.key"), q.input)
        if key is not None:
            return Own("keyed", f"a session per {key[1]}", ({key[0]: key[1]},))
    if by == "unique key" and len([a for a in window.args if not isinstance(a, n.Const)]) == 1:
        by_key = _keyed_by(argument(window, "unique.key"), q)
        if by_key is not None:
            return by_key
    if by == "start":
        return dependent(
            "its batches begin with the first event that the node receives; a start.time would align them"
        )
    return dependent(f"window '{window.function}' depends on all events that the node receives")


def _keyed_by(key: n.Expr | None, q: n.Query) -> Own | None:
    """Rule 3: one event of each key, if the key is an attribute; None if it is computed."""
    attribute = attribute_of(key, q.input)
    return None if attribute is None else Own("keyed", f"one event per {attribute[1]}", (dict([attribute]),))


def _own_selection(q: n.Query, rule: Own, plan: n.Plan) -> Own | None:
    """Rule 4: aggregates, and choices among events that arrive together."""
    select = q.select
    if select.limit is not None or select.offset is not None:
        return dependent("limit and offset count the events that arrive together on the node")
    if select.order_by:
        return dependent("order by sorts the events that arrive together on the node")
    having = select.having is not None and any(isinstance(e, n.Agg) for e in n.walk(select.having))
    if not select.aggregates and not having:
        window = _window_of(q.input, plan) if isinstance(q.input, n.StreamInput) else None
        if select.group_by and window is not None and DECLARATIONS[window.function].processing_mode != "slide":
            return _rule_for_groups(q, "of each batch it emits the last event per")
        return None
    if not select.group_by:
        if rule.level == "keyed":
            return dependent("its aggregates combine all keys")
        return dependent("its aggregates combine all events")
    return _rule_for_groups(q, "its aggregates are per")


def _rule_for_groups(q: n.Query, what: str) -> Own:
    missing = set(_may_be_missing(q.input))
    attributes = [g for g in q.select.group_by if attribute_of(g, q.input) is not None]
    keys = [
        k for g in attributes if (k := attribute_of(g, q.input)) is not None and getattr(g, "slot", 0) not in missing
    ]
    if attributes and not keys:
        return dependent("its group by is null for all keys where that side is missing")
    if not keys:
        return dependent("its group by is computed inside the node")
    names = ", ".join(dict.fromkeys(a for _, a in keys))
    candidates = [_found_by(_tie_keys(q, {source: attribute}), q) for source, attribute in keys]
    return Own("keyed", f"{what} {names}", tuple(candidates))


def _found_by(key: dict[str, str], q: n.Query) -> dict[str, str]:
    """A key without the keys of tables, if an event's attribute is tied to it: it finds their rows."""
    tables = {s.id for s in sources(q) if s.kind == "table"}
    return {s: a for s, a in key.items() if s not in tables} or key


def _may_be_missing(i: n.Input) -> Iterator[int]:
    """The slots that may be empty if the query puts something out."""
    match i:
        case n.JoinInput():
            if i.kind in ("right outer", "full outer"):
                yield 0
            if i.kind in ("left outer", "full outer"):
                yield 1
        case n.StateInput():
            yield from _optional(i.state)


def _optional(s: n.State) -> Iterator[int]:
    match s:
        case n.AbsentState():
            yield s.state.slot
        case n.CountState() if s.least == 0:
            yield from (x.slot for x in stream_states(s.state))
        case n.LogicalState():
            if s.op == "or":
                yield from (x.slot for x in stream_states(s))
            yield from _optional(s.left)
            yield from _optional(s.right)
        case n.NextState():
            yield from _optional(s.first)
            yield from _optional(s.then)
        case n.EveryState():
            yield from _optional(s.state)


def _tie_keys(q: n.Query, key: dict[str, str]) -> dict[str, str]:
    """A key of one side of a join or pattern, with the attributes that the query's equalities tie to it."""
    out = dict(key)
    pairs = list(_equalities(q.input))
    for _ in pairs:
        for one, two in pairs:
            for a, b in ((one, two), (two, one)):
                if out.get(a[0]) == a[1]:
                    out.setdefault(b[0], b[1])
    return out


def _own_rate(q: n.Query) -> Own | None:
    """Rule 4, rates."""
    if q.rate is None:
        return None
    if q.rate.unit == "events":
        return dependent("its output rate counts events of the node")
    if q.rate.kind == "snapshot":
        return dependent("a snapshot shows the last events of the node, when the node has some")
    if q.rate.kind == "all":
        return None
    if not q.select.group_by:
        return dependent(f"'output {q.rate.kind}' selects one event of all")
    return _rule_for_groups(q, f"'output {q.rate.kind}' selects one event per")


# ------------------------------------------------------------------------------------------------ joins and patterns


def _equalities(i: n.Input) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Pairs of attributes of sources that the query's conditions equate."""
    for condition in _conditions(i):
        for c in conjuncts(condition):
            if isinstance(c, n.Compare) and c.op == "==" and have_equal_texts(c.left, c.right):
                a, b = attribute_of(c.left, i), attribute_of(c.right, i)
                if a is not None and b is not None:
                    yield a, b


def _conditions(i: n.Input) -> Iterator[n.Expr]:
    match i:
        case n.JoinInput():
            if i.on is not None:
                yield i.on
        case n.StateInput():
            for s in inputs(i):
                yield from (step.condition for step in s.steps if isinstance(step, n.FilterStep))


def _own_join(q: n.Query, j: n.JoinInput, plan: n.Plan) -> Own:
    """Rule 5."""
    for side in (j.left, j.right):
        if side.source.kind == "table":
            other = j.right if side is j.left else j.left
            return _own_stream(q, other, plan)
    sides = [_own_stream(q, side, plan) for side in (j.left, j.right)]
    for side_rule in sides:
        if side_rule.level == "node-dependent":
            return side_rule
    pairs = [(a, b) for a, b in _equalities(j) if merged_keys(dict([a]), dict([b])) is not None]
    candidates = tuple({a[0]: a[1], b[0]: b[1]} for a, b in pairs)
    for side_rule in sides:  # what a window keeps by a key is joined on that key alone
        if side_rule.level == "keyed" and candidates:
            candidates = tuple(c for c in candidates if any(key.items() <= c.items() for key in side_rule.candidates))
            if not candidates:
                return dependent(f"it is not joined on the key of its window: {side_rule.reason}")
    if not candidates:
        return dependent("the join compares every event of one side with every event of the other")
    names = ", ".join(" = ".join(f"{s}.{a}" for s, a in c.items()) for c in candidates)
    return Own("keyed", f"its sides are joined on {names}", candidates)


def _own_pattern(q: n.Query, i: n.StateInput) -> Own:
    """Rule 6."""
    if i.kind == "sequence":
        return dependent("any event of its streams can break a sequence")
    states = list(stream_states(i.state))
    first = i.state.first if isinstance(i.state, n.NextState) else i.state
    if not isinstance(first, n.EveryState):
        return dependent("without 'every' the pattern matches only once, and each node would match once")
    if not isinstance(first.state, n.StreamState):
        return dependent("the group under 'every' restarts only after a complete match, whatever the key")
    if _every_below(i.state, first):
        return dependent("an 'every' later in the pattern depends on all events")
    if len(states) == 1:
        return STATELESS
    start = first.state.slot
    candidates = []
    for attribute in i.slots[start].schema.names:
        keys = _tied_states(i, start, attribute)
        if keys is not None:
            candidates.append(keys)
    if not candidates:
        untied_events = ", ".join(i.slots[s.slot].ref or i.slots[s.slot].source.id for s in states[1:])
        return dependent(f"no equality ties {untied_events} to the first event of the pattern")
    key_text = ", ".join(f"{s}.{a}" for s, a in candidates[0].items())
    return Own("keyed", f"all events of a match have the same {key_text}", tuple(candidates))


def _every_below(s: n.State, first: n.EveryState) -> bool:
    match s:
        case n.EveryState():
            return s is not first
        case n.NextState():
            return _every_below(s.first, first) or _every_below(s.then, first)
    return False


def _tied_states(i: n.StateInput, start: int, attribute: str) -> dict[str, str] | None:
    """The key of each stream if every state's event must equal the first one's `attribute`, else None."""
    attribute_by_slot: dict[int, str] = {start: attribute}
    pairs = []
    for slot, s in enumerate(inputs(i)):
        for step in s.steps:
            if isinstance(step, n.FilterStep):
                for c in conjuncts(step.condition):
                    if (
                        (
                            isinstance(c, n.Compare)
                            and c.op == "=="
                            and isinstance(c.left, n.Ref)
                            and isinstance(c.right, n.Ref)
                            and have_equal_texts(c.left, c.right)
                        )
                        and c.left.slot != c.right.slot
                        and slot in (c.left.slot, c.right.slot)
                    ):
                        pairs.append((c.left, c.right))
    for _ in pairs:
        for left, right in pairs:
            for a, b in ((left, right), (right, left)):
                if attribute_by_slot.get(a.slot) == a.name:
                    attribute_by_slot.setdefault(b.slot, b.name)
    keys: dict[str, str] = {}
    for slot in range(len(i.slots)):
        name = attribute_by_slot.get(slot)
        if name is None or i.slots[slot].source.schema.find(name) is None:
            return None
        if keys.setdefault(i.slots[slot].source.id, name) != name:
            return None
    return keys


def _own_table(q: n.Query, table: str, rules: SafetyRules) -> Own:
    """Rule 8. The output of a query that only adds to a table in a database does not depend on its rows."""
    if only_adds(q, table) and rules.plan.tables[table].is_stored:
        return STATELESS
    return rules.table(table)
