"""Effects of scaling out on an app: a finding for each query, table, window, trigger, aggregation and sink; and the
differences of WSO2's servers by faults of Siddhi's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ...errors import Span, SparkStreamError
from ...lang.parser import parse
from ...lang.tree import Annotation, find_annotation
from .. import compile_app
from .. import nodes as n
from ..dataflow import Dataflow
from ..query_parts import sources, tables_of
from ..shard_safety.known_faults import Note, known_faults
from ..shard_safety.safety import aggregation_safety
from ..shard_safety.safety_rules import SafetyRules, by_clock
from .repair import Repairs, repairs, routes

Level = Literal["safe", "keyed", "node-dependent", "known-fault"]
_ACCEPTED = re.compile(r"accepted\s*:\s*(\S.*)", re.DOTALL)


@dataclass(frozen=True)
class Finding:
    """The effect of several nodes on one element of an app: `effect` and its `cause`, and the `repair`.

    `accepted`: the reason that `@info(scale.out='accepted: REASON')` of the query or the aggregation gives; None: not
    acknowledged. One of level "known-fault" is a note: the behaviour of WSO2's servers for the element, on one node
    too, and the public `report` of it. `keys`: for a keyed element, the attribute by which each stream is to be routed.
    """

    kind: str
    name: str
    line: int
    level: Level
    effect: str
    cause: str
    repair: str
    accepted: str | None = None
    report: str | None = None
    keys: tuple[tuple[str, str], ...] = ()

    @property
    def fails(self) -> bool:
        """True if it depends on the node and that is not accepted."""
        return self.level == "node-dependent" and self.accepted is None


def audit(plan: n.Plan, text: str, variables: Mapping[str, str] | None = None) -> list[Finding]:
    """The findings of an app, in the order of its text; `plan` was compiled from `text` with `variables`."""
    places = {str(d.id): d.span for d in parse(text, variables).definitions if hasattr(d, "id")}
    findings = _Audit(
        plan, text, repairs(plan, text, variables), places, SafetyRules(Dataflow(plan)), variables
    ).findings()
    return sorted([*findings, *map(_note_finding, known_faults(plan))], key=lambda f: f.line)


def _note_finding(note: Note) -> Finding:
    place, fault = note.place, note.fault
    cause = f"a fault of Siddhi 5.1.30: docs/differences.md, '{fault.difference}'"
    finding = Finding(place.kind, place.name, place.span.line, "known-fault", note.text, cause, "none is needed here")
    return replace(finding, report=fault.report)


@dataclass(frozen=True)
class _Audit:
    plan: n.Plan
    text: str
    repairs: Repairs
    places: Mapping[str, Span]
    """Position of each definition in the text, by its name."""
    rules: SafetyRules
    variables: Mapping[str, str] | None

    def findings(self) -> Iterator[Finding]:
        plan = self.plan
        for id_, trigger in plan.triggers.items():
            once = "run the app that has it on one node, or let its readers bear repetition"
            subject = ("trigger", trigger.id)
            finding = self._of(subject, "node-dependent", "fires on every node", f"trigger '{id_}'", once)
            yield replace(finding, accepted=_accepted_by(q for q in plan.queries if id_ in _read(q)))
        yield from map(self._table, plan.tables.values())
        yield from map(self._window, plan.windows.values())
        yield from map(self._aggregation, plan.aggregations.values())
        for q, repair in zip(plan.queries, self.repairs.repairs, strict=True):
            yield self._query(q, repair.advice)
        for id_, stream in plan.streams.items():
            for a in stream.annotations:
                if a.name.lower() == "sink":
                    yield self._sink(id_, a)

    def _of(self, subject: tuple[str, str], level: Level, effect: str, cause: str, repair: str) -> Finding:
        """A finding about a subject: its kind, and its name."""
        kind, name = subject
        return Finding(kind, name, self.places[name].line, level, effect, cause, repair)

    def _query(self, q: n.Query, advice: str) -> Finding:
        level: Level = "safe" if q.safety.level in ("stateless", "merged") else q.safety.level  # type: ignore[assignment]
        effect = {
            "safe": "gives the outputs of one node",
            "keyed": "gives the outputs of one node, if it is routed by its key",
            "node-dependent": "its outputs depend on the node that sees an event",
        }[level]
        reason = _acceptance_reason(q.annotations)
        return Finding(
            "query", q.name, q.span.line, level, effect, q.safety.reason, advice, reason, keys=q.safety.keys
        )  # fmt: skip

    def _table(self, table: n.TableDef) -> Finding:
        id_, rule = table.source.id, self.rules.table(table.source.id)
        users = self.rules.flow.users(id_)
        wrong = [q for q in self.rules.flow.writers(id_) if q.safety.level == "node-dependent"]
        if rule.level == "node-dependent":
            effect = "rows depend on which node came first" if table.is_stored else "each node has rows of its own"
            finding = self._of(("table", id_), "node-dependent", effect, rule.reason, self._repair_of(table))
        elif wrong:
            finding = self._of(("table", id_), "node-dependent", "its rows depend on the node", _depends(wrong),
                             "repair the query")  # fmt: skip
        elif keys := _keys(users if rule.level == "keyed" else self.rules.flow.writers(id_)):
            effect = "one for all nodes" if table.is_stored else "each node has the rows of its keys"
            finding = self._of(("table", id_), "keyed", effect, rule.reason, f"route {routes(keys)}")
            finding = replace(finding, keys=keys)
        else:
            effect = "one for all nodes" if table.is_stored else "the same on all nodes"
            finding = self._of(("table", id_), "safe", effect, rule.reason, "none is needed")
        return replace(finding, accepted=_accepted_by(users))

    def _repair_of(self, table: n.TableDef) -> str:
        """Repair of a table: a database, if fewer of its queries then depend on the node."""
        one = "run all that reach it on one node"
        if table.is_stored:
            return f"let all queries reach it by the same key, or {one}"
        at = self.places[table.source.id].start
        properties = {"shardId": "node-1", **self.plan.properties}
        try:
            stored_plan = compile_app(f"{self.text[:at]}{_STORED} {self.text[at:]}", properties, self.variables)
        except SparkStreamError:
            return f"let all queries reach it by the same key, or {one}"
        node_dependent = [q.name for q in stored_plan.queries if q.safety.level == "node-dependent"]
        if len(node_dependent) < sum(q.safety.level == "node-dependent" for q in self.plan.queries):
            more = [
                q
                for q in node_dependent
                if table.source.id in tables_of(next(x for x in stored_plan.queries if x.name == q))
            ]
            then = f", and repair query {', '.join(more)}" if more else ""
            return f"put it into a database: @store(type='rdbms', ...){then}"
        return f"let all queries reach it by the same key, or {one}"

    def _window(self, window: n.WindowDef) -> Finding:
        function = window.window.function
        if by_clock(window.window):
            cause = f"'{function}' lets events go by the clock, which all nodes share"
            subject = ("window", window.source.id)
            return self._of(subject, "safe", "each node holds its share", cause, "none is needed")
        cause = f"'{function}' counts the events of its node"
        repair = "run it, and its readers, on one node"
        subject = ("window", window.source.id)
        finding = self._of(subject, "node-dependent", "each node holds other events", cause, repair)
        return replace(finding, accepted=_accepted_by(q for q in self.plan.queries if window.source.id in _read(q)))

    def _aggregation(self, a: n.AggregationDef) -> Finding:
        return replace(self._merged_finding(a), accepted=_acceptance_reason(a.annotations))

    def _merged_finding(self, a: n.AggregationDef) -> Finding:
        safety = aggregation_safety(self.plan, a)
        if safety.level == "node-dependent":
            return self._of(("aggregation", a.id), "node-dependent", "each node adds up something else", safety.reason,
                            "repair its inputs")  # fmt: skip
        if a.partitioned:
            level: Level = "keyed" if safety.keys else "safe"
            repair = f"route {routes(safety.keys)}" if safety.keys else "none is needed"
            finding = self._of(("aggregation", a.id), level, "merged when it is read", safety.reason, repair)
            return replace(finding, keys=safety.keys)
        return self._of(
            ("aggregation", a.id), "node-dependent",
            "on WSO2's servers a database refuses the buckets that another node has written, or each node has its own "
            "sums (here shards are merged)",
            "its rows carry no shard id there",
            "@PartitionById(enable='true'), or partitionById in the deployment file",
        )  # fmt: skip

    def _sink(self, stream: str, sink: Annotation) -> Finding:
        writers = [q for q in self.plan.queries if q.output.target.id == stream]
        wrong = [q for q in writers if q.safety.level == "node-dependent"]
        line = sink.span.line
        name = f"{sink.get('type') or 'sink'} of {stream}"
        if wrong:
            repair = "repair the query, or publish from one node"
            return Finding("sink", name, line, "node-dependent", "publishes the outputs of its node", _depends(wrong),
                           repair, _accepted_by(wrong))  # fmt: skip
        if keys := _keys(writers):
            query_names = ", ".join(f"'{q.name}'" for q in writers if q.safety.keys)
            effect = "each node publishes its share, if it is routed by its key"
            cause = f"query {query_names} is right where its key goes to one node"
            return Finding("sink", name, line, "keyed", effect, cause, f"route {routes(keys)}", keys=keys)
        cause = "its queries are right on several nodes" if writers else "each event comes to one node"
        return Finding("sink", name, line, "safe", "each node publishes its share", cause, "none is needed")


_STORED = "@store(type='rdbms', datasource='tables')"


def _keys(queries: Iterable[n.Query]) -> tuple[tuple[str, str], ...]:
    """The keys of all of them. Where they contradict one another, a stream has several."""
    return tuple(sorted({key for q in queries for key in q.safety.keys}))


def _depends(wrong: Sequence[n.Query]) -> str:
    names = ", ".join(q.name for q in wrong)
    return f"query {names} depends on the node" if len(wrong) == 1 else f"queries {names} depend on the node"


def _read(q: n.Query) -> set[str]:
    return {s.id for s in sources(q)}


def _accepted_by(queries: Iterable[n.Query]) -> str | None:
    """The reasons of the queries that depend on the node, where all of these are accepted."""
    reasons = [_acceptance_reason(q.annotations) for q in queries if q.safety.level == "node-dependent"]
    given_reasons = [r for r in reasons if r is not None]
    return "; ".join(dict.fromkeys(given_reasons)) if given_reasons and len(given_reasons) == len(reasons) else None


def _acceptance_reason(annotations: tuple[Annotation, ...]) -> str | None:
    info = find_annotation(annotations, "info")
    annotation_text = None if info is None else info.get("scale.out")
    match = None if annotation_text is None else _ACCEPTED.fullmatch(annotation_text.strip())
    return None if match is None else match.group(1)
