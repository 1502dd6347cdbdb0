"""Parts of an app's text that are right and do less than they seem to: each is a note of `check`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from ..errors import Span
from ..lang.tree import Annotation
from . import nodes as n
from .connectors.incoming import SERVICES, refused_place
from .cycles import serial_tables
from .open_names import OpenName
from .query_parts import connector_options, connector_type, inputs
from .spelling import list_ignored_options


@dataclass(frozen=True)
class Remark:
    """A part of a text: `subject`, and `says`, which follows it and its line."""

    subject: str
    says: str
    span: Span

    def note(self, lines_before: int = 0) -> str:
        """The remark with its line, which counts the `lines_before` the text."""
        return f"{self.subject} (line {self.span.line + lines_before}) {self.says}"


def notes(plan: n.Plan, open_names: Sequence[OpenName], lines_before: int = 0) -> tuple[str, ...]:
    """The notes on an app, in the order of its text: names that are left open, and remarks."""
    all_: list[OpenName | Remark] = [*open_names, *remarks(plan)]
    sorted_remarks = sorted(all_, key=lambda x: x.span.start)
    return tuple(x.note(lines_before) for x in sorted_remarks)


def remarks(plan: n.Plan) -> Iterator[Remark]:
    """The remarks on an app."""
    for q in plan.queries:
        if isinstance(q.input, n.JoinInput):
            for side in (q.input.left, q.input.right):
                if side.ignored is not None:
                    what = f"'#window.{side.ignored.function}' of table '{side.source.id}'"
                    yield Remark(what, "has no effect: a join reads all rows of a table", side.ignored.span)
        for i in inputs(q.input):
            for step in i.steps:
                if isinstance(step, n.FunctionStep) and step.function == "throughput:throughput":
                    yield Remark(f"'#{step.function}' of query '{q.name}'", _MEASURES, step.span)
    for e in plan.elements:
        if isinstance(e, n.Partition):
            for q in e.queries:
                yield from _shared_windows(q)
    spans = {q.name: q.span for q in plan.queries}
    for table, way in serial_tables(plan):
        queries = " → ".join(f"'{name}'" for name in way)
        yield Remark(f"table '{table}'", f"{_SERIAL} ({queries}): {_SERIAL_COSTS}", spans[way[0]])
    for t in plan.tables.values():
        for a in t.annotations:
            if a.name.lower() == "from":
                yield Remark(f"@{a.name} of table '{t.source.id}'", _FROM, a.span)
    for id_, s in plan.streams.items():
        for a in s.annotations:
            if a.name.lower() in ("import", "export"):
                end = "source" if a.name.lower() == "import" else "sink"
                says = f"is of Siddhi 3 and has no effect: streams have @{end}(type='...', @map(type='...')) now"
                yield Remark(f"@{a.name} of stream '{id_}'", says, a.span)
            elif a.name.lower() in ("source", "sink"):
                yield from _connector(id_, a, plan)


_SERIAL = "feeds itself through a query that keeps state"
_SERIAL_COSTS = (
    "its events are processed one after the other, some hundreds a second. Without the way back they are processed "
    "many at a time"
)

_MEASURES = "passes events on, and writes no file: throughput and times of micro-batches are among the app's figures"

_ONE_END = (
    "ends its batches at times that all keys of the partition share, as in Siddhi, so events of some keys may never "
    "come out: outside of a partition, 'group by' gives a batch of each key"
)
_COUNTS_ALL = "has aggregates over the events of all keys of the partition, as in Siddhi"


def _shared_windows(q: n.Query) -> Iterator[Remark]:
    """Windows of a partition's query whose instances are not apart from each other.

    `TimeBatchWindowProcessor` keeps `nextEmitTime`, and `ExpressionWindowProcessor` the aggregators of its expression,
    once for all instances. `tests/cases/siddhi/partitions.jsonl` has what Siddhi puts out.
    """
    for i in inputs(q.input):
        for step in i.steps:
            if isinstance(step, n.WindowStep):
                what = f"'#window.{step.function}' of query '{q.name}'"
                if step.function == "timeBatch":
                    yield Remark(what, _ONE_END, step.span)
                elif step.condition is not None and any(isinstance(e, n.Agg) for e in n.walk(step.condition)):
                    yield Remark(what, _COUNTS_ALL, step.span)


_FROM = (
    "is of Siddhi 3 and has no effect, the table is in memory: "
    "a table in a database has @store(type='rdbms', ...) now"
)


def _connector(stream: str, a: Annotation, plan: n.Plan) -> Iterator[Remark]:
    type_ = connector_type(a, plan.properties)
    options = {k.lower(): v for k, v in connector_options(a, plan.properties).items()}
    end = a.name.lower()
    what = f"{type_} {end} of stream '{stream}'"
    if end == "source" and type_.lower() in ("http", *SERVICES) and "receiver.url" in options:
        elsewhere = _listens_elsewhere(options["receiver.url"])
        if elsewhere is not None:
            yield Remark(what, f"is refused when it is deployed: {elsewhere}", a.span)
    for part, key, near in list_ignored_options(a, plan.properties):
        of = f"@{part.name.lower()}(type='{type_ if part is a else part.get('type') or type_}')"
        advice = f"did you mean '{near}'?" if near else "leave it out"
        says = f"has no effect, as WSO2 ignores it: {advice}"
        yield Remark(f"option '{key}' of {of} of stream '{stream}'", says, part.span)
    if type_ == "nats" and "cluster.id" in options:
        says = "uses core NATS, which keeps no messages: 'cluster.id' is of NATS Streaming, which is retired"
        yield Remark(what, says, a.span)
    if end == "sink" and options.get("follow.redirect", "").lower() == "true":
        says = "does not follow redirects: an event that a server redirects is an error of the sink"
        yield Remark(what, says, a.span)


def _listens_elsewhere(url: str) -> str | None:
    """Why an http source cannot listen at a `receiver.url`; None if it can, and for a text that is not an address."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        return None
    if not parts.scheme or not parts.hostname:
        return None
    return refused_place(parts.scheme, parts.hostname.rstrip("."), port or 80)
