"""Stored aggregations made again: coarse durations of a finer one, or all of them of a log of the events."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...engine.aggregation.bucket_calendar import PLURAL
from ...engine.columnar.column_data import Array
from ...engine.rebuild_buckets import coarser, from_events, keys_of
from ...errors import Misuse
from ...ingest.feed_files import tables_of
from ...ingest.row_typing import RowReading, type_rows
from ...plan.nodes import AggDuration, AggregationDef, Expr, FilterStep, InTable, Plan, walk
from ...sources.feed_check import check_source
from ...sources.feeds import Shape
from ...stores import DuckDBStore, Store
from ...stores.store_protocol import BatchKey

ALWAYS = (-(2**63), 2**63 - 1)


@dataclass(frozen=True)
class EventFile:
    """A `.csv` or `.parquet` file of an aggregation's events; `time` names the column of their event times."""

    path: Path
    time: str | None = None


def finer_of(text: str | None, definition: AggregationDef) -> AggDuration:
    """The duration that `text` names, by default the smallest. Raises `Misuse` for one that is no source."""
    finer = definition.durations[:-1]
    if text is None and finer:
        return finer[0]
    for duration in finer:
        if text in (duration, PLURAL[duration]):
            return duration
    duration_names = ", ".join(PLURAL[d] for d in finer) or "none"
    raise Misuse(
        f"aggregation '{definition.id}' cannot be rebuilt from '{text or 'a finer duration'}'. Name one of its finer "
        f"durations ({duration_names}), or a .csv or .parquet file of its events"
    )


def from_finer(
    store: Store, definition: AggregationDef, finer: AggDuration, zone: str, *, dry_run: bool = False
) -> list[str]:
    """Compute the durations above `finer` from its rows, shard by shard, in one transaction; returns the actions, in
    words.

    A coarse bucket is made only where `@purge` has deleted none of its rows. A row to which no finer row belongs stays
    as it is.
    """
    rows = _by_shard(store, definition, finer)
    partials: dict[str, list[pa.Table]] = {s: [] for s in rows}
    lines = []
    for duration in definition.durations[definition.durations.index(finer) + 1 :]:
        begins = max(_begins(store, definition, finer, rows), store.purged_before(definition.id, duration) or ALWAYS[0])
        existing_keys = {s: set(keys_of(definition, t)) for s, t in _by_shard(store, definition, duration).items()}
        bucket_count = 0
        for shard, table in rows.items():
            coarse_rows = coarser(definition, table, duration, zone)
            coarse_rows = coarse_rows.filter(
                pa.array(np.asarray(coarse_rows.column("AGG_TIMESTAMP").to_numpy()) >= begins)
            )
            partials[shard].append(coarse_rows)
            bucket_count += coarse_rows.num_rows
            existing_keys.get(shard, set()).difference_update(keys_of(definition, coarse_rows))
        row_count = sum(map(len, existing_keys.values()))
        lines.append(
            f"{definition.id}: {bucket_count:,} rows of {PLURAL[duration]} are made of the {PLURAL[finer]}; "
            f"{row_count:,} stay as they are, as their {PLURAL[finer]} are not all stored"
        )
    if not dry_run:
        store.replace(definition.id, partials)
    return lines


def _by_shard(store: Store, definition: AggregationDef, duration: AggDuration) -> dict[str, pa.Table]:
    """The stored rows of a duration, by shard; of no shard where the aggregation is not partitioned."""
    if not definition.partitioned:
        return {"": store.read(definition.id, duration, *ALWAYS)}
    rows = store.read_by_shard(definition.id, duration, *ALWAYS)
    shards = rows.column("SHARD_ID")
    return {s: rows.filter(pc.equal(shards, s)) for s in sorted(set(shards.to_pylist()))}


def _begins(store: Store, definition: AggregationDef, finer: AggDuration, rows: dict[str, pa.Table]) -> int:
    """The time (ms) from which on the rows of `finer` are complete."""
    purged_before = store.purged_before(definition.id, finer)
    if purged_before is not None:
        return purged_before
    if definition.retention is None or finer not in definition.retention.kept:
        return ALWAYS[0]
    # Purged, if at all, before purges were recorded.
    return min((key[0] for t in rows.values() for key in keys_of(definition, t)), default=ALWAYS[0])


def from_log(
    store: Store, plan: Plan, definition: AggregationDef, log: EventFile, shard: str | None, *, dry_run: bool = False
) -> list[str]:
    """Compute all rows of an aggregation from its events, as rows of `shard`, in one transaction; returns the actions,
    in words.

    The events belong to the aggregation's stream. Partials are gathered in a temporary database, so the log may be
    larger than memory. Raises `Misuse` for a log that lacks events of stored rows, for one without times if there is no
    `aggregate by`, for a missing `shard` if it must be named, and for a filter that looks into a table, whose former
    rows are not known.
    """
    name = definition.id
    if any(isinstance(e, InTable) for top in _conditions(definition) for e in walk(top)):
        raise Misuse(f"aggregation '{name}' filters by a table, whose rows at the time of the events are not known")
    shard = _shard_of(store, definition, shard)
    if definition.by is None and log.time is None:
        raise Misuse(f"aggregation '{name}' has no 'aggregate by': name the column of event times with --time")
    failures: Counter[str] = Counter()
    temporary_store = DuckDBStore(":memory:")
    try:
        temporary_store.prepare([definition])
        for i, part in enumerate(from_events(plan, name, _events(plan, definition, log, failures))):
            failures.update(part.failed)
            if part.partials is not None:
                temporary_store.commit(BatchKey(name, "rebuild", i), {(name, shard): part.partials})
        partials, lines = [], []
        for duration in definition.durations:
            rows = temporary_store.read(name, duration, *ALWAYS)
            existing_keys = set(keys_of(definition, store.read(name, duration, *ALWAYS)))
            missing = existing_keys.difference(keys_of(definition, rows))
            if missing:
                first = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=min(k[0] for k in missing))
                raise Misuse(
                    f"{log.path.name} has no events for {len(missing):,} stored rows of {PLURAL[duration]} of "
                    f"'{name}', the first at {first:%Y-%m-%d %H:%M:%S} UTC. Give a file of all events, or drop the "
                    "tables first: sparkstream store drop"
                )
            partials.append(rows.append_column("duration", pa.array([duration] * rows.num_rows, pa.string())))
            lines.append(f"{name}: {rows.num_rows:,} rows of {PLURAL[duration]} are made of {log.path.name}")
    finally:
        temporary_store.close()
    if failures:
        lines.append(f"{name}: {failures.total():,} events do not count: {failures.most_common(1)[0][0]}")
    if not dry_run:
        store.replace(name, {shard: partials}, alone=True)
    return lines


def _conditions(definition: AggregationDef) -> Iterator[Expr]:
    for step in definition.input.steps:
        if isinstance(step, FilterStep):
            yield step.condition


def _shard_of(store: Store, definition: AggregationDef, shard: str | None) -> str:
    if not definition.partitioned:
        return ""
    shards = [s.shard for s in store.shards(definition.id)]
    if shard is None and len(shards) > 1:
        raise Misuse(
            f"aggregation '{definition.id}' has rows of the shards {', '.join(shards)}: name the shard that the "
            "rebuilt rows are to belong to, after the app"
        )
    return shard or (shards[0] if shards else "node-1")


def _events(
    plan: Plan, definition: AggregationDef, log: EventFile, failures: Counter[str]
) -> Iterator[tuple[Array, list[pa.Array]]]:
    """(times in ms, columns) of the log's batches; `failures` counts the reasons of rows that do not fit the stream."""
    stream = definition.input.source.id
    schema = plan.schema(stream)
    shape = check_source(log.path, Shape(stream, schema, log.time, {}))
    last, count = ALWAYS[0], 0
    for table in tables_of(log.path, shape.names):
        stream_rows = type_rows(table, schema, RowReading(shape.time, columns=shape.columns))
        failures.update(reason for _, _, reason in stream_rows.rejected)
        # Without times events are 1 ms apart, as in a feed.
        ts = np.arange(count, count + len(stream_rows), dtype=np.int64) if stream_rows.ts is None else stream_rows.ts
        if len(ts):
            if definition.by is None and (ts[0] < last or (np.diff(ts) < 0).any()):
                raise Misuse(f"{log.path.name} is not in the order of '{log.time}': sort it by that column")
            last, count = int(ts[-1]), count + len(ts)
            yield ts, stream_rows.columns
