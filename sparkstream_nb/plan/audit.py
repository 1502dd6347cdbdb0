"""What scaling out does to each part of an app: queries, tables, windows, triggers, aggregations and sinks.

Queries have their shard safety (`plan.safety`) and its repair (`plan.repair`). The other parts have no safety of their
own: a table or a sink holds what the queries that write to it put out, a trigger or a named window matters to those
that read it, so each has the worst safety of these queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ..errors import NOWHERE, Span
from ..lang import tree
from ..lang.parser import parse
from . import nodes as n
from .query_parts import connector_type, expressions, sources
from .repair import Repair, repairs
from .safety import aggregation_safety

Kind = Literal["query", "table", "window", "trigger", "aggregation", "sink"]
Level = Literal["safe", "routed", "node-dependent"]
LEVELS: tuple[Level, ...] = ("safe", "routed", "node-dependent")
"""From best to worst. `routed`: right where events are routed by a key."""

_LEVEL: Mapping[str, Level] = {
    "stateless": "safe", "merged": "safe", "keyed": "routed", "node-dependent": "node-dependent",
}  # fmt: skip
_ACCEPTED = "accepted:"


@dataclass(frozen=True)
class Finding:
    """What scaling out does to a part of an app. `line` counts from 1, `column` from 1. `repair` is empty where nothing
    is to be done; `accepted` is the reason of `@info(scale.out='accepted: reason')`."""

    kind: Kind
    name: str
    line: int
    column: int
    level: Level
    effect: str
    repair: str = ""
    accepted: str | None = None

    @property
    def counts(self) -> bool:
        """Whether it is node-dependent and nobody has accepted that."""
        return self.level == "node-dependent" and self.accepted is None


def findings(plan: n.Plan, variables: Mapping[str, str] | None = None) -> list[Finding]:
    """What scaling out does to every part of `plan`, which was compiled with `variables`, in the order of the text."""
    found = list(_Audit(plan, variables).run())
    return sorted(found, key=lambda f: (f.line, f.column))


def acceptance(annotations: tuple[tree.Annotation, ...]) -> str | None:
    """The reason that `@info(scale.out='accepted: reason')` gives; None without one, or where it gives none."""
    info = tree.find_annotation(annotations, "info")
    text = (info.get("scale.out") or "").strip() if info is not None else ""
    if not text.lower().startswith(_ACCEPTED):
        return None
    return text[len(_ACCEPTED) :].strip() or None


class _Audit:
    def __init__(self, plan: n.Plan, variables: Mapping[str, str] | None) -> None:
        self.plan = plan
        self.repairs = repairs(plan, plan.text, variables).repairs
        self.places = {str(d.id): d.span for d in parse(plan.text, variables).definitions if hasattr(d, "id")}

    def run(self) -> Iterator[Finding]:
        for q, repair in zip(self.plan.queries, self.repairs, strict=True):
            yield self._query(q, repair)
        for table in self.plan.tables.values():
            yield self._table(table)
        for window in self.plan.windows:
            readers = [q for q in self.plan.queries if window in _read(q)]
            effect = "each node has its own, with the events that the node gets"
            advice = "repair the queries that read it"
            yield self._part("window", window, readers or self._writers(window), effect, advice)
        for trigger in self.plan.triggers:
            readers = [q for q in self.plan.queries if trigger in _read(q)]
            effect = "it fires on each node: what it causes happens once for each node"
            advice = "run the queries that it starts on one node, or let the other nodes leave its events out"
            yield self._part("trigger", trigger, readers, effect, advice)
        for a in self.plan.aggregations.values():
            yield self._aggregation(a)
        for stream in self.plan.streams.values():
            yield from self._sinks(stream)

    def _query(self, q: n.Query, repair: Repair) -> Finding:
        level = _LEVEL[q.safety.level]
        advice = "" if repair.kind == "nothing" else repair.advice
        line, column = _place(q.span)
        return Finding("query", q.name, line, column, level, q.safety.reason, advice, acceptance(q.annotations))

    def _table(self, table: n.TableDef) -> Finding:
        id_, writers = table.source.id, self._writers(table.source.id)
        if table.stored:
            effect = "it is in a database, which all nodes share"
            return self._part("table", id_, writers, effect, "repair the queries that write to it")
        users = [q for q in self.plan.queries if id_ in _read(q)]
        effect = "it is in memory: each node has its own rows, those that its own events wrote"
        repair = "put it into a database that the nodes share (@store), or repair the queries that write to it"
        return self._part("table", id_, [*writers, *users] if writers else [], effect, repair)

    def _aggregation(self, a: n.AggregationDef) -> Finding:
        safety = aggregation_safety(self.plan, a)
        level, effect, missing = _LEVEL[safety.level], safety.reason, []
        if tree.find_annotation(a.annotations, "store") is None:
            effect = "it has no @store: a server keeps it in memory, and answers with what its own events made"
            missing.append("@store with a database that the nodes share")
        if not a.partitioned:
            effect = "its rows carry no shard id: nodes that share its database overwrite each other's rows"
            missing.insert(0, "@PartitionById(enable='true')")
        if missing:
            level, repair = "node-dependent", f"write {' and '.join(missing)} before it"
        else:
            repair = "repair the query that it reads from" if level == "node-dependent" else ""
        line, column = _place(a.span)
        return Finding("aggregation", a.id, line, column, level, effect, repair, acceptance(a.annotations))

    def _sinks(self, stream: n.StreamDef) -> Iterator[Finding]:
        for annotation in stream.annotations:
            if annotation.name.lower() != "sink":
                continue
            name = f"{connector_type(annotation, self.plan.properties) or 'sink'} of {stream.source.id}"
            effect = "each node publishes what it puts out itself"
            repair = "repair the queries that write to it"
            yield self._part("sink", name, self._writers(stream.source.id), effect, repair, annotation.span)

    def _writers(self, target: str) -> list[n.Query]:
        return [q for q in self.plan.queries if q.output.target.id == target]

    def _part(
        self, kind: Kind, name: str, queries: list[n.Query], effect: str, repair: str, span: Span | None = None
    ) -> Finding:
        """A part that is as safe as the worst of `queries`, and accepted where all of the worst are."""
        level = _worst(queries)
        line, column = _place(span or self.places.get(name, NOWHERE))
        worst = [q for q in queries if _LEVEL[q.safety.level] == level]
        reasons = [acceptance(q.annotations) for q in worst]
        accepted = "; ".join(dict.fromkeys(r for r in reasons if r)) if worst and all(reasons) else None
        if level == "safe":
            return Finding(kind, name, line, column, level, effect)
        names = ", ".join(dict.fromkeys(f"'{q.name}'" for q in worst))
        return Finding(kind, name, line, column, level, f"{effect} (see {names})", repair, accepted)


def _worst(queries: Iterable[n.Query]) -> Level:
    return max((_LEVEL[q.safety.level] for q in queries), key=LEVELS.index, default="safe")


def _place(span: Span) -> tuple[int, int]:
    return span.line, span.column + 1


def _read(q: n.Query) -> set[str]:
    """The streams, windows, triggers and tables that a query reads."""
    named = {s.id for s in sources(q)}
    return named | {e.table for top in expressions(q) for e in n.walk(top) if isinstance(e, n.InTable)}
