"""Audits apps for scaling out: what several nodes do to each part, and, with feeds, how many outputs differ."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from csv import reader
from dataclasses import dataclass, field, replace
from io import TextIOWrapper
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from ..engine.batch import InputBatch, StreamRows
from ..errors import Misuse, SiddhiError, SparkStreamError, nearest
from ..options import read_text
from ..plan import compile_app
from ..plan.audit import Finding, findings
from ..plan.nodes import Plan
from ..plan.repair import repairs
from ..spark.inbox import Inbox
from ..spark.ingest import Typed, type_rows
from ..spark.replay import Nodes, Way
from ..spark.study import Input
from .app import check_feed
from .conf import NodeFile
from .divergence import VERDICTS, Truth

NODES = (2, 3, 4)
"""Numbers of nodes that a feed is replayed on."""


@dataclass(frozen=True)
class Measured:
    """How the outputs of `nodes` under a routing compare with one node's: outputs of each verdict by query (by
    trigger for its events). `repaired`: of the app with its repairs."""

    nodes: int
    routing: str
    repaired: bool
    queries: Mapping[str, Mapping[str, int]]
    aggregations: Mapping[str, int] = field(default_factory=dict)
    """Merged rows that differ, by aggregation."""

    @property
    def outputs(self) -> int:
        """How many outputs there are, in the truth or of the nodes."""
        return sum(sum(v.values()) for v in self.queries.values())

    @property
    def differing(self) -> int:
        """How many outputs and merged rows are not the same."""
        lost = sum(n for v in self.queries.values() for verdict, n in v.items() if verdict != "same")
        return lost + sum(self.aggregations.values())


@dataclass(frozen=True)
class Audited:
    """What was found of a file. `error` is the message where it is no right app, at `line` and `column` (from 1) if
    they are known; `unmeasured` why its feeds could not be replayed; `rejected` how many rows of them do not fit."""

    file: str
    findings: Sequence[Finding] = ()
    error: str | None = None
    line: int | None = None
    column: int | None = None
    measured: Sequence[Measured] = ()
    unmeasured: str | None = None
    rejected: int = 0

    @property
    def failing(self) -> list[Finding]:
        """What is node-dependent and not accepted."""
        return [f for f in self.findings if f.counts]


@dataclass(frozen=True)
class FeedFiles:
    """Files to replay, as (stream, path), with the column of event times; without one events are 1 ms apart."""

    files: Sequence[tuple[str, str]]
    time: str | None = None


def audit(
    files: Sequence[str], nodes: Sequence[NodeFile], feeds: FeedFiles, variables: Mapping[str, str]
) -> list[Audited]:
    """Audits each file, also where another one is wrong. Each feed goes to the apps that have its stream.

    Raises `Misuse` for a feed whose stream no app has, SparkStreamError for one that cannot be read.
    """
    plans: dict[str, Plan] = {}
    found: dict[str, Audited] = {}
    for file in files:
        try:
            plans[file] = _compiled(read_text(file), nodes, variables)
            found[file] = Audited(file, findings(plans[file], variables))
        except SiddhiError as e:
            found[file] = Audited(file, error=str(e), line=e.span.line, column=e.span.column + 1)
        except SparkStreamError as e:
            found[file] = Audited(file, error=str(e))
    for stream, path in feeds.files:
        fed = [p for p in plans.values() if stream in p.streams]
        if not fed and plans:
            streams = [s for p in plans.values() for s in p.streams]
            raise Misuse(nearest(f"no app has a stream '{stream}'", stream, streams))
        for plan in fed:
            check_feed(plan, stream, Path(path), time=feeds.time)
    for file, plan in plans.items():
        own = [(s, p) for s, p in feeds.files if s in plan.streams]
        if own:
            found[file] = _measured(found[file], plan, replace(feeds, files=own), variables)
    return [found[file] for file in files]


def _compiled(text: str, nodes: Sequence[NodeFile], variables: Mapping[str, str]) -> Plan:
    """The plan as the first node has it; an aggregation is by shard where it is on all nodes."""
    own = [{"shardId": node.shard_id, **node.properties} for node in nodes] or [{"shardId": "node-1"}]
    plans = [compile_app(text, properties, variables) for properties in own]
    by_shard = {
        id_: replace(a, partitioned=all(p.aggregations[id_].partitioned for p in plans))
        for id_, a in plans[0].aggregations.items()
    }
    return replace(plans[0], aggregations=by_shard)


# ------------------------------------------------------------------------------------------------------ measurements


def _measured(audited: Audited, plan: Plan, feeds: FeedFiles, variables: Mapping[str, str]) -> Audited:
    """With what a replay of the feeds gives; Spark is not started."""
    with tempfile.TemporaryDirectory(prefix="sparkstream-audit-") as folder:
        batch, rejected = _batch(plan, feeds)
        audited = replace(audited, rejected=rejected)
        if not len(batch.clock):
            return replace(audited, unmeasured="no row of its feeds fits its stream")
        inbox = Inbox(Path(folder) / "inbox")
        inbox.append([inbox.batch(batch, "round_robin")])
        inbox.close()
        try:
            measured = _replays(audited.file, plan, [Way(n, "round_robin") for n in NODES], folder, repaired=False)
            measured += _repaired(audited.file, plan, folder, variables)
        except SparkStreamError as e:
            return replace(audited, unmeasured=str(e))
    return replace(audited, measured=measured)


def _repaired(file: str, plan: Plan, folder: str, variables: Mapping[str, str]) -> list[Measured]:
    """The repaired app under the routing that most of its queries ask for, on the largest number of nodes."""
    text = repairs(plan, plan.text, variables).rewritten
    better = plan if text is None else compile_app(text, plan.properties, variables)
    keys = Counter(a for q in better.queries for a in {a for _, a in q.safety.keys})
    if not keys:
        return []
    key = keys.most_common(1)[0][0]
    return _replays(file, better, [Way(NODES[-1], f"hash:{key}")], folder, repaired=True)


def _replays(file: str, plan: Plan, ways: Sequence[Way], folder: str, *, repaired: bool) -> list[Measured]:
    schemas = {s: d.source.schema for s, d in plan.streams.items()}
    source = Input(str(Path(folder) / "inbox"), schemas, 1, 1)
    truth = Truth(plan.name or file, source, Nodes(plan), ["node-1"])
    found = []
    for way in ways:
        divergence = truth.against(way)
        queries: dict[str, Counter[str]] = {}
        for row in divergence.counts.to_dict("records"):
            counts = queries.setdefault(str(row["query"] or row["stream"]), Counter())
            counts.update({v: int(row[v]) for v in VERDICTS})
        differing = {a: len(check.differing) for a, check in divergence.merged.items()}
        by_query = {q: dict(c) for q, c in queries.items()}
        found.append(Measured(way.nodes, way.route or "", repaired, by_query, differing))
    return found


def _batch(plan: Plan, feeds: FeedFiles) -> tuple[InputBatch, int]:
    """The events of all feeds in order of time, a step each; and how many rows do not fit."""
    streams: list[str] = []
    typed: list[Typed] = []
    rejected = 0
    for stream, path in feeds.files:
        table, unread = _table(Path(path))
        found = type_rows(table, plan.schema(stream), time=feeds.time)
        rejected += unread + len(found.rejected)
        streams.append(stream)
        typed.append(found)
    clocks = [np.arange(len(t), dtype=np.int64) if t.ts is None else t.ts for t in typed]
    times = np.concatenate([np.empty(0, np.int64), *clocks])
    order = np.argsort(times, kind="stable")
    steps = np.empty(len(order), np.int64)
    steps[order] = np.arange(len(order))
    bounds = np.cumsum([0, *map(len, clocks)])
    rows: dict[str, StreamRows] = {}
    for stream in dict.fromkeys(streams):
        files = [i for i, s in enumerate(streams) if s == stream]
        step = np.concatenate([steps[bounds[i] : bounds[i + 1]] for i in files])
        columns = [pa.concat_arrays(parts) for parts in zip(*(typed[i].columns for i in files), strict=True)]
        by_step = np.argsort(step)
        ts = np.concatenate([clocks[i] for i in files])[by_step]
        rows[stream] = StreamRows(step[by_step], ts, [c.take(pa.array(by_step)) for c in columns])
    return InputBatch(times[order], rows), rejected


def _table(path: Path) -> tuple[pa.Table, int]:
    """A file's rows, of a .csv all values as texts and empty ones null; and how many lines have other columns."""
    if path.suffix == ".parquet":
        return pq.read_table(path), 0
    unread = 0

    def skip(_: object) -> str:
        nonlocal unread
        unread += 1
        return "skip"

    how = csv.ParseOptions(invalid_row_handler=skip)
    try:
        with path.open("rb") as file:
            names = next(reader(TextIOWrapper(file, encoding="utf-8-sig", newline="")))
        as_text = csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
        )
        return csv.read_csv(path, parse_options=how, convert_options=as_text), unread
    except pa.ArrowInvalid as e:
        raise SparkStreamError(f"{path} cannot be read: {e}") from None
