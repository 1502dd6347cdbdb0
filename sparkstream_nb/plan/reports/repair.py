"""Repairs that make the queries of an app right on several nodes: a routing key, a partition, aligned batches, an
aggregation, or one node for them. Where the app's text can be rewritten, the rewritten text is compiled, and its shard
safety decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ...errors import SparkStreamError
from ...types import Type
from .. import compile_app
from .. import nodes as n
from ..query_parts import conjuncts, inputs
from ..shard_safety.safety import is_inherited
from .show import show

Kind = Literal["nothing", "route", "align", "partition", "aggregation", "one node"]
_RANK = {"stateless": 0, "merged": 0, "keyed": 1, "node-dependent": 2}
_KEYS = (Type.STRING, Type.INT, Type.LONG, Type.BOOL)
_ADDED = ("sum", "count", "avg", "min", "max", "distinctCount", "stdDev", "and", "or")


@dataclass(frozen=True)
class Repair:
    """A repair of a query. `text`: the query, rewritten, or the aggregation that takes its place; `after`: its safety
    then.
    """

    query: str
    line: int
    before: n.Safety
    kind: Kind
    advice: str
    text: str | None = None
    after: n.Safety | None = None


@dataclass(frozen=True)
class Repairs:
    """The repairs of an app, one for each query, and the text with all rewritten queries; None if none is rewritten."""

    repairs: Sequence[Repair]
    rewritten: str | None


def repairs(plan: n.Plan, text: str, variables: Mapping[str, str] | None = None) -> Repairs:
    """Repairs that make each query of `text`, from which `plan` was compiled with `variables`, right on several nodes.
    """
    app = _RewrittenApp(plan, text, variables)
    repair_list = [_Repairing(app, q).run() for q in plan.queries]
    new_text = text
    for q, r in sorted(zip(plan.queries, repair_list, strict=True), key=lambda pair: -pair[0].span.start):
        if r.kind in ("align", "partition") and r.text is not None:
            start, end = _bounds(text, q)
            new_text = new_text[:start] + r.text + new_text[end:]
    if new_text == text or app.compile_text(new_text) is None:
        return Repairs(repair_list, None)
    return Repairs(repair_list, new_text)


def _bounds(text: str, q: n.Query) -> tuple[int, int]:
    """The query with its semicolon, where one follows."""
    end = q.span.end
    more = re.match(r"\s*;", text[end:])
    return q.span.start, end + (more.end() if more else 0)


@dataclass(frozen=True)
class _RewrittenApp:
    plan: n.Plan
    text: str
    variables: Mapping[str, str] | None

    def compile_text(self, text: str) -> n.Plan | None:
        """The plan of another text; None if that is wrong."""
        properties = {"shardId": "node-1", **self.plan.properties}
        try:
            return compile_app(text, properties=properties, variables=self.variables)
        except SparkStreamError:
            return None


@dataclass(frozen=True)
class _Repairing:
    app: _RewrittenApp
    query: n.Query

    def run(self) -> Repair:
        q = self.query
        if q.safety.level in ("stateless", "merged"):
            return self._repair("nothing", "right under any routing")
        if q.safety.level == "keyed":
            return self._repair("route", f"route {routes(q.safety.keys)}")
        is_inherited_reason = is_inherited(q.safety.reason)
        attempts = [self._repair_by_alignment, self._repair_by_partition, self._repair_by_aggregation]
        if q.select.aggregates and not q.select.group_by:
            attempts.reverse()  # one value for all is rather meant than one for each key
        for attempt in () if is_inherited_reason else attempts:
            repair = attempt()
            if repair is not None:
                return repair
        if is_inherited_reason:
            return self._repair("one node", "repair the query that it reads from, or run both on one node")
        return self._repair("one node", "no routing makes it right: run it on one node that gets every event")

    def _repair(self, kind: Kind, advice: str, text: str | None = None, after: n.Safety | None = None) -> Repair:
        return Repair(self.query.name, self.query.span.line, self.query.safety, kind, advice, text, after)

    def _after(self, text: str) -> n.Safety | None:
        """The query's safety with another text; None if that is not better, or not valid."""
        start, end = _bounds(self.app.text, self.query)
        plan = self.app.compile_text(self.app.text[:start] + text + self.app.text[end:])
        repaired_query = None if plan is None else next((q for q in plan.queries if q.name == self.query.name), None)
        if repaired_query is None or _RANK[repaired_query.safety.level] >= _RANK[self.query.safety.level]:
            return None
        return repaired_query.safety

    def _own_text(self) -> str:
        start, end = _bounds(self.app.text, self.query)
        return self.app.text[start:end].rstrip().removesuffix(";").rstrip()

    def _repair_by_alignment(self) -> Repair | None:
        """Batches that begin with the node's first event begin at full multiples of their length instead."""
        if "start.time would align" not in self.query.safety.reason:
            return None
        text = re.sub(r"(timeBatch\s*\([^(),]*)\)", r"\1, 0)", self._own_text()) + ";"
        after = self._after(text)
        if after is None:
            return None
        more = f", and route {routes(after.keys)}" if after.level == "keyed" else ""
        return self._repair("align", f"let its batches begin at full multiples of their length{more}", text, after)

    def _repair_by_partition(self) -> Repair | None:
        """The query run separately for each value of an attribute."""
        sides = inputs(self.query.input)
        if any(s.source.kind != "stream" or "#" in s.source.id or s.source.id in self.app.plan.triggers for s in sides):
            return None
        inside = "\n".join(f"  {line}" for line in self._own_text().splitlines())
        streams = dict.fromkeys(s.source.id for s in sides)
        for key in self._keys(sides):
            head = ", ".join(f"{key} of {s}" for s in streams)
            text = f"partition with ({head})\nbegin\n{inside};\nend;"
            after = self._after(text)
            if after is not None:
                how = f"put it into a partition, and route {routes(after.keys)}"
                advice = f"if it is meant for each {key} by itself: {how}"
                return self._repair("partition", advice, text, after)
        return None

    def _keys(self, sides: Sequence[n.StreamInput]) -> list[str]:
        """Attributes that all sides have: first those in `group by` and in equalities, then texts."""
        common = [
            a.name
            for a in sides[0].source.schema
            if a.type in _KEYS
            and all(
                (at := s.source.schema.find(a.name)) is not None and s.source.schema[at].type is a.type for s in sides
            )
        ]
        key_names = [g.name for g in self.query.select.group_by if isinstance(g, n.Ref)]
        key_names += list(_find_equated(self.query.input))
        texts = [a.name for a in sides[0].source.schema if a.type is Type.STRING]
        return [k for k in dict.fromkeys([*key_names, *texts]) if k in common]

    def _repair_by_aggregation(self) -> Repair | None:
        """An aggregation in the query's place, whose merged answer is read."""
        q = self.query
        aggs = [e for i in q.select.items for e in n.walk(i.expr) if isinstance(e, n.Agg)]
        if not isinstance(q.input, n.StreamInput) or q.input.source.kind != "stream" or "#" in q.input.source.id:
            return None
        if not aggs or any(a.function not in _ADDED for a in aggs):
            return None
        filters = "".join(f"[{show(s.condition)}]" for s in q.input.steps if isinstance(s, n.FilterStep))
        items = ", ".join(f"{show(i.expr)} as {i.name}" for i in q.select.items if self._is_kept(i.expr))
        by = ", ".join(show(g) for g in q.select.group_by)
        text = (
            f"@PartitionById(enable='true')\ndefine aggregation {_title(q.name)}\nfrom {q.input.source.id}{filters}\n"
            f"select {items}\n" + (f"group by {by}\n" if by else "") + "aggregate every sec ... day;"
        )
        first = min((x.span.start for x in self.app.plan.queries), default=0)
        new_plan = self.app.compile_text(self.app.text[:first] + text + "\n" + self.app.text[first:])
        if new_plan is None:
            return None
        having = ", with the condition of `having` in the query that reads it" if q.select.having is not None else ""
        advice = (
            f"if a sum by calendar will do: an aggregation, read by `from {_title(q.name)} within ... per 'seconds'`"
            f"{having}; the shards are merged when it is read"
        )
        return self._repair("aggregation", advice, text, n.Safety("merged", "the shards are merged when it is read"))

    def _is_kept(self, e: n.Expr) -> bool:
        return e in self.query.select.group_by or any(isinstance(x, n.Agg) for x in n.walk(e))


def routes(keys: Iterable[tuple[str, str]]) -> str:
    """`by card`, or `Orders by id and Payments by order` where streams have keys of different names."""
    names = dict.fromkeys(a for _, a in keys)
    if len(names) == 1:
        return f"by {next(iter(names))} (hash:{next(iter(names))})"
    return " and ".join(f"{s} by {a}" for s, a in keys)


def _find_equated(i: n.Input) -> Iterator[str]:
    """Names of attributes that conditions of the query equate."""
    conditions: list[n.Expr | None] = [i.on] if isinstance(i, n.JoinInput) else []
    conditions += [s.condition for side in inputs(i) for s in side.steps if isinstance(s, n.FilterStep)]
    for condition in conditions:
        for c in conjuncts(condition):
            if isinstance(c, n.Compare) and c.op == "==" and isinstance(c.left, n.Ref) and isinstance(c.right, n.Ref):
                yield from (c.left.name, c.right.name)


def _title(name: str) -> str:
    """A name for the aggregation that takes a query's place: `laterAndLater` as `LaterAndLater`."""
    return "".join(w[:1].upper() + w[1:] for w in re.split(r"\W+", name) if w) + "Sums"
