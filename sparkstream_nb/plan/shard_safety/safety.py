"""Shard safety: whether a query's result stays correct when events are routed over several nodes, and why.

The reference is one node that sees every event. A query is

- `stateless` if each event's output depends on that event alone: correct under any routing;
- `keyed` if events with different values of an attribute do not affect one another: correct if events are routed by it;
- `merged` for incremental aggregations: correct once a retrieval has merged the shards;
- `node-dependent` otherwise: no routing makes it correct.

Rules (`safety_rules.py` has a function for each):

1. Filters, projections, and stream functions that look at one event: stateless.
2. All nodes share one clock. So windows in which an event's stay depends on the clock alone (`time`, `cron`, and
   `timeBatch` with a start time) are stateless without aggregates, and keyed by any group-by attribute with them.
   `timeBatch` without a start time begins with the first event that the node sees: node-dependent. So are the expired
   events of windows that collect, which leave when the node has new ones.
3. Windows in which other events decide which events stay (`length`, `sort`, `externalTime`, ...) count every event of
any group: node-dependent, also with `group by`, unless the query only passes on each event as it comes.
   `session` with a key is keyed by that, and so are `unique:ever`, `unique:first`, `unique:time` and
   `unique:deduplicate` with one attribute: what they keep of a key depends on its own events and the clock.
4. Aggregates without `group by` combine all events: node-dependent. `limit`, `offset`, `order by`, snapshots and rate
   limits by event count select among the events that a node has: node-dependent. `output first|last every <time>` needs
   `group by`. A group-by attribute of a side that may be missing is null for all keys: no key.
5. Joins: keyed if `on` equates an attribute of each side and both windows go by the clock, or by that key. Only equal
   values that are written alike are routed alike: no numbers with fractions (0.0 equals -0.0, and 1 equals 1.0).
6. Patterns: keyed if `every` applies to the first state alone (every event starts a match of its own) and equalities in
   the filters tie each later state to it. Without `every` a pattern matches only once, with a group under `every` it
   restarts only when it has finished, and a sequence is broken by any event: node-dependent.
7. Partitions: keyed by their keys if every stream they read has a plain attribute as key. Timers of the instances on a
   node fire in turns, as in Siddhi: output by a timer (batches by time, `session`, `delay`, absent states, `reorder`,
   output rates, the expired events of `time`) depends on the other keys there, as do the contents of `expression`
   windows, and results from neighbours that a query sends at once: node-dependent. So are named windows that
   are not by the clock, which are not partitioned.
8. Tables: stateless if no query writes the table (its rows do not change); keyed if all queries of the app reach it by
equality of one column, with a primary key one of its columns, with an attribute; the key applies to all these queries.
All else: node-dependent. That a table is in a database (`@store`) makes one difference: it takes the rows of all nodes,
   so a query that only adds rows is as its input is. Triggers fire on every node. `coordination:isLeader()` is true on
   one. Joins with aggregations read the rows stored by then: node-dependent.
9. A query inherits from the queries whose output it reads, that write a table which it reads, and, of a fault stream,
   from those that read the stream; attributes are traced back to the streams that are routed.

The claims are for events that are sent one by one and, where the clock decides, in order. A route by key cuts several
that are sent at once: the output of a batch, or the selection of `group by` and `limit` in it, is then computed for
each node's part.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush

from .. import nodes as n
from ..dataflow import Dataflow
from ..query_parts import inserts_into, tables_of_aggregation
from .own_safety import STATELESS, Keys, Own, attribute_of, merged_keys
from .safety_rules import SafetyRules, own_rule, partition_rule


def with_safety(plan: n.Plan) -> n.Plan:
    """`plan` with the safety of every query and partition filled in."""
    safeties = _Propagation(plan).run()
    elements: list[n.Query | n.Partition] = []
    for e in plan.elements:
        if isinstance(e, n.Partition):
            queries = tuple(replace(q, safety=safeties[q.name]) for q in e.queries)
            elements.append(replace(e, queries=queries, safety=_worst([q.safety for q in queries], e.id)))
        else:
            elements.append(replace(e, safety=safeties[e.name]))
    return replace(plan, elements=tuple(elements))


def dependent_queries(plan: n.Plan, routing: str) -> list[str]:
    """The names of the queries that several nodes under a routing do not answer as one would. If several keys suit a
    query, the routing's key counts.
    """
    if not routing.startswith("hash:"):
        return dependent_under(plan, {})
    return dependent_under(plan, dict.fromkeys(plan.streams, routing.removeprefix("hash:")))


def dependent_under(plan: n.Plan, keys: Mapping[str, str]) -> list[str]:
    """The names of the queries that several nodes do not answer as one would, if the events of each stream are divided
    by its attribute in `keys`."""
    safety_maps = [{q.name: q.safety for q in plan.queries}]
    safety_maps += [_Propagation(plan, attribute).run() for attribute in dict.fromkeys(keys.values())]

    def right(safety: n.Safety) -> bool:
        return all(keys.get(stream) == attribute for stream, attribute in safety.keys)

    return [
        q.name
        for q in plan.queries
        if q.safety.level == "node-dependent"
        or (q.safety.level == "keyed" and not any(_is_keyed(safety.get(q.name), right) for safety in safety_maps))
    ]


def _is_keyed(safety: n.Safety | None, right: Callable[[n.Safety], bool]) -> bool:
    return safety is not None and safety.level == "keyed" and right(safety)


def without(plan: n.Plan, names: Collection[str]) -> n.Plan:
    """The plan without queries of these names; their streams stay."""
    if not names:
        return plan
    elements: list[n.Query | n.Partition] = []
    for e in plan.elements:
        if isinstance(e, n.Partition):
            queries = tuple(q for q in e.queries if q.name not in names)
            elements += [replace(e, queries=queries)] if queries else []
        elif e.name not in names:
            elements.append(e)
    return replace(plan, elements=tuple(elements))


def aggregation_safety(plan: n.Plan, aggregation: n.AggregationDef) -> n.Safety:
    """Incremental aggregations are `merged`, unless their input is node-dependent, or a table that they look into."""
    safety = {q.name: q.safety for q in plan.queries}
    for column in aggregation.base:
        if column.arg is not None and any(isinstance(e, n.Agg) for e in n.walk(column.arg)):
            return n.Safety(
                "node-dependent", f"'{column.name}' holds an aggregate over all events that the node received"
            )
    writers = {q.output.target.id: q.name for q in plan.queries if q.output.target.kind == "table"}
    for table in tables_of_aggregation(aggregation):
        if table in writers:
            reason = f"it looks into table '{table}', to which query '{writers[table]}' writes meanwhile"
            return n.Safety("node-dependent", reason)
    read = aggregation.input.source.id
    for q in plan.queries:
        if inserts_into(q, read) and safety[q.name].level == "node-dependent":
            return n.Safety("node-dependent", f"it reads '{read}' of query '{q.name}': {safety[q.name].reason}")
    keyed_inputs = [q.safety for q in plan.queries if inserts_into(q, read) and q.safety.level == "keyed"]
    if keyed_inputs:
        return n.Safety("merged", f"shards are merged; its input is {keyed_inputs[0].reason}", keyed_inputs[0].keys)
    return n.Safety("merged", "partial results of the shards are merged when it is read")


# ------------------------------------------------------------------------------------------------------ propagation


class _Propagation:
    """Rule 9: from the inputs on, until nothing changes; levels only get worse, so this ends. Of several keys, those
    that are attribute `preferred` come first."""

    def __init__(self, plan: n.Plan, preferred_key: str | None = None) -> None:
        self.plan, self.preferred_key = plan, preferred_key
        self._flow = Dataflow(plan)
        self._before = [self._flow.before(k) for k in range(len(self._flow.queries))]

    def run(self) -> dict[str, n.Safety]:
        """The safety of each query, by name: round after round, each looking at the queries whose writers changed."""
        queries, rules = self._flow.queries, SafetyRules(self._flow)
        of = {q.name: e for e in self.plan.elements if isinstance(e, n.Partition) for q in e.queries}
        own_rules = [partition_rule(of[q.name], q, rules) if q.name in of else own_rule(q, rules) for q in queries]
        safeties = {q.name: n.Safety("stateless", STATELESS.reason) for q in queries}
        after: list[list[int]] = [[] for _ in queries]
        for k, writers in enumerate(self._before):
            for w in writers:
                after[w].append(k)
        due = [(0, k) for k in range(len(queries))]  # a heap
        queue_members = set(due)
        rounds = 2 * len(queries) + 2
        while due and due[0][0] < rounds:
            at, k = heappop(due)
            now = self._combine(k, own_rules[k], safeties)
            if now != safeties[queries[k].name]:
                safeties[queries[k].name] = now
                for turn in ((at if reader > k else at + 1, reader) for reader in after[k]):
                    if turn not in queue_members:
                        queue_members.add(turn)
                        heappush(due, turn)
        return safeties

    def _combine(self, k: int, own_result: Own, safeties: Mapping[str, n.Safety]) -> n.Safety:
        if own_result.level == "node-dependent":
            return n.Safety("node-dependent", own_result.reason)
        inherited_keys: dict[str, str] = {}
        merged_key_sets: set[tuple[tuple[str, str], ...]] = set()
        keyed_writers: list[tuple[n.Query, n.Safety]] = []
        for w in self._before[k]:
            writer = self._flow.queries[w]
            s = safeties[writer.name]
            if s.level == "node-dependent":
                return n.Safety("node-dependent", _inherited_reason(writer, s))
            if s.level == "keyed":
                if s.keys in merged_key_sets:
                    continue
                merged_key_sets.add(s.keys)
                both = merged_keys(inherited_keys, dict(s.keys))
                if both is None:
                    return n.Safety("node-dependent", _in_conflict(keyed_writers, writer, s))
                keyed_writers.append((writer, s))
                inherited_keys = both
        if own_result.level == "stateless":
            if inherited_keys:
                return n.Safety(
                    "keyed", _inherited_reason(*keyed_writers[-1]), tuple(sorted(inherited_keys.items()))
                )
            return n.Safety("stateless", own_result.reason)
        computed_keys = None
        other = lambda c: self.preferred_key is not None and any(a != self.preferred_key for a in c.values())  # noqa: E731
        for candidate in sorted(own_result.candidates, key=other):
            traced_keys = self._trace(candidate)
            if traced_keys is None:
                computed_keys = computed_keys or next(f"'{a}' of '{s}'" for s, a in candidate.items())
                continue
            keys = merged_keys(inherited_keys, traced_keys)
            if keys is not None:
                return n.Safety("keyed", own_result.reason, tuple(sorted(keys.items())))
        if computed_keys is not None:
            return n.Safety(
                "node-dependent", f"{own_result.reason}, and the key {computed_keys} is computed inside the node"
            )
        return n.Safety("node-dependent", f"{own_result.reason}, and its input is keyed by another attribute")

    def _trace(self, candidate: Keys) -> dict[str, str] | None:
        """The routed streams' attributes that a candidate's come from, None if one is computed."""
        keys: dict[str, str] = {}
        for source, attribute in candidate.items():
            origins = self._origins(source, attribute)
            if origins is None:
                return None
            for stream, name in origins:
                if keys.setdefault(stream, name) != name:
                    return None
        return keys

    def _origins(self, source: str, attribute: str) -> set[tuple[str, str]] | None:
        """The attributes of defined streams from which an attribute is copied; None if not all of it is."""
        out: set[tuple[str, str]] = set()
        places: set[tuple[str, str]] = set()
        todo = [(source, attribute)]
        while todo:
            source, attribute = place = todo.pop()
            if place in places:
                continue
            places.add(place)
            if source.startswith("!"):
                todo.append((source[1:], attribute))
                continue
            if source in self.plan.tables or source in self.plan.aggregations:
                return None  # stored rows were written by other events
            definition = self.plan.streams.get(source)
            if definition is not None and definition.kind == "defined":
                out.add(place)
            for w in self._flow.into(source):
                at = self.plan.schema(source).find(attribute)
                origin = attribute_of(w.select.items[at].expr if at is not None else None, w.input)
                if origin is None:
                    return None
                todo.append(origin)
        return out


_READS = "it reads what query "


def is_inherited(reason: str) -> bool:
    """True if a query inherits its safety from a query that it reads from, also by a table."""
    return reason.startswith(_READS)


def _inherited_reason(writer: n.Query, s: n.Safety) -> str:
    """Reason for the safety of a reader of `writer`: the reason of the first query on the way."""
    return s.reason if is_inherited(s.reason) else f"{_READS}'{writer.name}' sends: {s.reason}"


def _in_conflict(keyed_writers: Sequence[tuple[n.Query, n.Safety]], writer: n.Query, safety: n.Safety) -> str:
    """Reason that `writer` needs another routing than one of the writers before."""
    other = next(
        (k for k in keyed_writers if merged_keys(dict(k[1].keys), dict(safety.keys)) is None), keyed_writers[0]
    )
    one, two = (
        f"query '{q.name}' by {', '.join(dict.fromkeys(a for _, a in s.keys))}" for q, s in (other, (writer, safety))
    )
    return f"its inputs need routing by different attributes: {one} and {two}"


def _worst(all_: list[n.Safety], id_: str) -> n.Safety:
    for level in ("node-dependent", "keyed"):
        for s in all_:
            if s.level == level:
                return s
    return all_[0] if all_ else n.Safety("stateless", f"'{id_}' is empty")
