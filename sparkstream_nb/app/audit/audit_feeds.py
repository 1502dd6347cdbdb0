"""Feeds of an audit: how many outputs of several nodes differ from one node's. The nodes are replayed; Spark is not
started."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from ...engine.state.node_batch import InputBatch, StreamRows
from ...errors import Misuse, SparkStreamError
from ...ingest.feed_files import tables_of
from ...ingest.row_typing import type_rows
from ...journal.inbox import Inbox
from ...journal.segments import merge
from ...journal.temporary import temporary_folder
from ...plan import compile_app
from ...plan.connectors.without_connections import disconnect_streams, move_stores_to_memory
from ...plan.nodes import Plan
from ...plan.reports.query_routing import routed_parts
from ...plan.reports.repair import repairs
from ...replay.replay import Nodes, Way
from ...replay.study_tasks import Input
from ...sources.feeds import Shape
from ...sources.recordings import RecordingFile
from ..results.divergence import VERDICTS, Truth
from ..running.app import check_feed
from ..running.first_rows import describe_reasons
from ..running.source_reading import AS_IT_IS
from .audit_answers import FeedFiles, Measured, Measurement

NODES = (2, 3, 4)
"""Numbers of nodes that a feed is replayed on."""


def measure(name: str, plan: Plan, feeds: FeedFiles, variables: Mapping[str, str]) -> Measurement:
    """Replays the feeds whose streams the app has, on `NODES` under round robin, and the repaired app under the routing
    that its queries need; where they need several, each query under its own. Raises SparkStreamError for a feed that
    cannot be read."""
    readings = feeds.by_stream(plan)
    recordings = [RecordingFile.open(Path(path)) for stream, path in feeds.files if not stream]
    if recordings and len(feeds.files) > 1:
        raise Misuse("--feed: a recording is replayed alone")
    shapes = [
        check_feed(plan, stream, Path(path), readings.get(stream, AS_IT_IS)) for stream, path in feeds.files if stream
    ]
    batch, rejected_rows, notes = (
        (InputBatch(np.empty(0, np.int64)), 0, []) if recordings else _read_files(plan, feeds, shapes)
    )
    with temporary_folder("audit") as home:
        folder = str(home)
        inbox = Inbox(home / "inbox")
        for recording in recordings:
            recording.fill_inbox(inbox, {s: d.source.schema for s, d in plan.streams.items()})
        if len(batch.clock):
            inbox.append([inbox.batch(batch, "round_robin")])
        inbox.close()
        if not inbox.position.step:
            return Measurement(failure="no row of the feeds fits its stream", rejected=rejected_rows, notes=notes)
        try:
            ways = _replays(name, plan, [Way(n, "round_robin") for n in NODES], folder, is_repair=False)
            ways += _measure_repair(name, plan, folder, variables)
        except SparkStreamError as e:
            return Measurement(failure=str(e), rejected=rejected_rows, notes=notes)
    return Measurement(ways, rejected=rejected_rows, notes=notes)


def _measure_repair(name: str, plan: Plan, folder: str, variables: Mapping[str, str]) -> list[Measured]:
    """The repaired app on the largest number of nodes, under each routing that its queries need. Where these are
    several, each counts its own queries."""
    text = repairs(plan, plan.text, variables).rewritten
    better = plan if text is None else compile_app(text, plan.properties, variables)
    parts = [p for p in routed_parts(better) if p.is_hash]
    if not parts:
        return []
    ways = [Way(NODES[-1], p.routing) for p in parts]
    measurements = _replays(name, better, ways, folder, is_repair=True)
    if len(parts) == 1:
        return measurements
    return [_only(m, p.queries) for m, p in zip(measurements, parts, strict=True)]


def _only(measurement: Measured, queries: Sequence[str]) -> Measured:
    """The measurement of a part of an app: its queries alone. Queries that write no stream have no outputs."""
    queries_of_part = {q: c for q, c in measurement.queries.items() if q in queries}
    return replace(measurement, queries=queries_of_part, aggregations={}, part=list(queries))


def _replays(name: str, plan: Plan, ways: Sequence[Way], folder: str, *, is_repair: bool) -> list[Measured]:
    schemas = {s: d.source.schema for s, d in plan.streams.items()}
    source = Input(str(Path(folder) / "inbox"), schemas, 1, sys.maxsize)
    # A table in a database takes no batches: in memory, the engine runs whole ones.
    truth = Truth(name, source, Nodes(move_stores_to_memory(disconnect_streams(plan))), ["node-1"])
    measurements = []
    for way, divergence in zip(ways, truth.against_each(ways), strict=True):
        queries: dict[str, Counter[str]] = {}
        for row in divergence.counts.to_dict("records"):
            counts = queries.setdefault(str(row["query"] or row["stream"]), Counter())
            counts.update({v: int(row[v]) for v in VERDICTS})
        differing = {a: len(check.differing) for a, check in divergence.merged.items()}
        by_query = {q: dict(c) for q, c in queries.items()}
        measurements.append(Measured(way.nodes, way.route or "", is_repair, by_query, differing))
    return measurements


def _read_files(plan: Plan, feeds: FeedFiles, shapes: Sequence[Shape]) -> tuple[InputBatch, int, list[str]]:
    """The events of all feeds in order of time, a step each; the number of rows that do not fit; and notes: why they do
    not, and which columns were guessed. `shapes`: how each file is read."""
    batches: list[tuple[str, StreamRows]] = []
    rejected_rows, notes = 0, []
    for (stream, path), shape in zip(feeds.files, shapes, strict=True):
        schema = plan.schema(stream)
        tables = list(tables_of(Path(path), shape.names))
        table = pa.concat_tables(tables) if tables else pa.table({n: [] for n in shape.names})
        stream_rows = type_rows(table, schema, shape.row_reading)
        rejected_rows += len(stream_rows.rejected)
        notes += shape.describe_guesses()
        if stream_rows.rejected:
            notes.append(f"{stream}: {describe_reasons(stream_rows.rejected, shape)}")
        times = np.arange(len(stream_rows), dtype=np.int64) if stream_rows.ts is None else stream_rows.ts
        rows = StreamRows(np.arange(len(stream_rows)), times, stream_rows.columns)
        batches.append((stream, rows.take(np.argsort(times, kind="stable"))))
    return merge(batches), rejected_rows, notes
