"""Runs of steps in memory: read from the inbox, joined where small, routed to a node."""

from __future__ import annotations

import base64
import contextlib
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..checksums import check_sums
from ..engine.columnar.column_data import Array, nearly_distinct
from ..engine.state.node_batch import InputBatch, StreamRows, UnreadAttribute, take_rows
from ..ingest import ingest
from ..nodes.batches import concat_coded, concat_columns, rows_in_order
from ..nodes.partitioning import part, parts
from ..types import Schema, Type
from . import routing
from .entries import Entry, EventsEntry, FileRows, MergedEntry, RowsEntry, StepsEntry

T = TypeVar("T")
Needed = Mapping[str, Collection[int]]
"""The attributes of each stream that are read (`plan.needed`): others are left out."""


@dataclass
class StepsOfNode:
    """Consecutive steps of one node, from the entries `seq`..`last`, the first of them number `step` of the app's
    life, with the app's clock (ms) at `before` until then (None: there was no step before).
    """

    seq: int
    last: int
    step: int
    before: int | None
    batch: InputBatch


def pieces(
    folder: Path, run: Sequence[EventsEntry], schemas: Mapping[str, Schema], nodes: Sequence[int], began: int,
    needed_attributes: Needed | None = None,
) -> list[StepsOfNode]:  # fmt: skip
    """Read entries of events for each of the `nodes` (numbers from 0) of an app that began with `began` nodes, with the
    `needed_attributes` (None: all).

    A node that an entry was not routed over does not get the entry, not even its time.
    """
    batches_by_node: list[list[InputBatch]] = [[] for _ in nodes]
    for entry in run:
        over = entry.over or range(began)
        if not any(node in over for node in nodes):
            continue
        count = len(over)
        route = routing.Route.parse(entry.route, count) if count > 1 else None
        attributes = needed_attributes if route is None else _also(needed_attributes, route.attribute, schemas)
        batch = load(folder, entry, schemas, attributes)
        batch_by_place = {0: batch}
        if route is not None:
            places = routing.assign(batch, route, schemas, count, entry.request)
            if len(nodes) > 1:
                batch_by_place = dict(enumerate(parts(batch, places, count)))
            else:
                batch_by_place = {over.index(nodes[0]): part(batch, places, over.index(nodes[0]))}
        for node, node_batches in zip(nodes, batches_by_node, strict=True):
            if node in over:
                node_batches.append(batch_by_place[over.index(node)])
    first, last = run[0], run[-1].seq
    longest = max(batches_by_node, key=len)
    clock = np.concatenate([b.clock for b in longest]) if len(longest) > 1 else None
    pieces_by_node = []
    for batches in batches_by_node:
        batch = join(batches, clock if len(batches) == len(longest) else None)
        pieces_by_node.append(StepsOfNode(first.seq, last, first.step, first.before, batch))
    return pieces_by_node


def whole(folder: Path, run: Sequence[EventsEntry], schemas: Mapping[str, Schema]) -> StepsOfNode:
    """Read entries of events for a node that takes them all."""
    first = run[0]
    return StepsOfNode(first.seq, run[-1].seq, first.step, first.before, join([load(folder, e, schemas) for e in run]))


def ahead(items: Iterator[T]) -> Iterator[T]:
    """`items`, the next one made in another thread while one is worked on."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item


def requests_of(batch: InputBatch) -> int:
    """Number of the batch's steps that carry events."""
    if not batch.rows:
        return 0
    return len(np.unique(np.concatenate([r.step for r in batch.rows.values()])))


def events_of(batch: InputBatch) -> int:
    """Number of events in the batch."""
    return sum(len(rows.step) for rows in batch.rows.values())


def load(
    folder: Path, entry: EventsEntry, schemas: Mapping[str, Schema], needed_attributes: Needed | None = None
) -> InputBatch:  # fmt: skip
    """The batch of an entry of the journal; from a feed's rows the `needed_attributes` (None: all). Raises DamagedFile
    if a file of the inbox is not as it was written.
    """
    check_files(folder, entry)
    match entry:
        case RowsEntry():
            attributes = _wanted_attributes(entry.stream, schemas, needed_attributes)
            rows = read_rows(folder, entry.file_rows, schemas[entry.stream], attributes)
            ts = rows.ts
            if entry.start is not None:
                ts = rows.ts = entry.start + entry.apart * np.arange(entry.steps, dtype=np.int64)
            return InputBatch(ts, {entry.stream: rows})
        case MergedEntry():
            attributes_of = partial(_wanted_attributes, schemas=schemas, needed_attributes=needed_attributes)
            return merge(
                (p.stream, read_rows(folder, p, schemas[p.stream], attributes_of(p.stream))) for p in entry.parts
            )
        case StepsEntry(data=str(data)):
            return InputBatch.from_bytes(base64.b64decode(data))
        case StepsEntry(file=str(file)):
            return InputBatch.from_bytes((folder / file).read_bytes())
    raise TypeError(f"an entry of kind '{entry.kind}' has no events")


def check_files(folder: Path, entry: Entry) -> None:
    """Raise DamagedFile if a file of an entry is not as it was written, and FileNotFoundError if it does not exist."""
    for name, sums in (entry.sums or {}).items():
        check_sums(folder / name, sums)


def _also(needed_attributes: Needed | None, attribute: str | None, schemas: Mapping[str, Schema]) -> Needed | None:
    """Needed attributes, with the one by which events are routed."""
    if needed_attributes is None or attribute is None:
        return needed_attributes
    places = {s: schemas[s].find(attribute) for s in needed_attributes}
    return {s: attrs if (p := places[s]) is None else {*attrs, p} for s, attrs in needed_attributes.items()}


def _wanted_attributes(stream: str, schemas: Mapping[str, Schema], needed_attributes: Needed | None) -> Collection[int]:
    return range(len(schemas[stream])) if needed_attributes is None else needed_attributes[stream]


def read_rows(folder: Path, part: FileRows, schema: Schema, attributes: Collection[int]) -> StreamRows:
    """Rows of a feed's file in the inbox's `folder`, each a step, with these `attributes`. Times are 0 if the feed has
    none."""
    ts: Any
    columns: Sequence[Any]
    if part.groups:
        ts, columns = _part_of_parquet(folder / part.file, part, schema, attributes)
    else:
        with pa.memory_map(str(folder / part.file)) as source:
            table = pa.ipc.open_file(source).read_all()
        table = table.slice(part.first, part.rows)
        ts = ingest.one(table.column(0)).to_numpy(zero_copy_only=False)
        columns = [ingest.one(c) if i in attributes else None for i, c in enumerate(table.columns[1:])]
    ts = np.zeros(part.rows, np.int64) if ts is None else np.asarray(ts, np.int64)
    encoded_columns = [UnreadAttribute(len(ts)) if c is None else _dictionary_encode(c) for c in columns]
    return StreamRows(np.arange(len(ts), dtype=np.int64), ts, encoded_columns)


def merge(
    parts: Iterable[tuple[str, StreamRows]], ranks: Sequence[Array] = (), *, equal_ranks_together: bool = False
) -> InputBatch:
    """Rows of several parts, each in order of event time, as one run of steps in that order; with `ranks`, an array for
    each part, in the order of these. Of equal times, rows of an earlier part come first. `equal_ranks_together`: rows
    of equal ranks are one step.
    """
    stream_parts = [*parts]
    times = np.concatenate([np.empty(0, np.int64), *(rows.ts for _, rows in stream_parts)])
    # Linear for runs that are in order.
    order = np.argsort(np.concatenate([times[:0], *ranks]) if ranks else times, kind="stable")
    number = np.arange(len(order))
    if equal_ranks_together:
        rank = np.concatenate(ranks)[order]
        number = np.cumsum(np.concatenate([[True], rank[1:] != rank[:-1]])) - 1 if len(rank) else number
    if len({stream for stream, _ in stream_parts}) == 1 < len(stream_parts) and not equal_ranks_together:
        clock = times[order]
        columns = [concat_coded(cs) for cs in zip(*(rows.columns for _, rows in stream_parts), strict=True)]
        rows = StreamRows(number, clock, [take_rows(c, order) for c in columns])
        return InputBatch(clock, {stream_parts[0][0]: rows})
    steps = np.empty(len(order), np.int64)
    steps[order] = number
    by_stream: dict[str, list[StreamRows]] = {}
    at = 0
    for stream, rows in stream_parts:
        row_steps = steps[at : at + len(rows.ts)]
        at += len(row_steps)
        by_stream.setdefault(stream, []).append(StreamRows(row_steps, rows.ts, rows.columns))
    if equal_ranks_together and len(order):  # the clock of a chunk is that of its last event
        order = order[np.flatnonzero(np.concatenate([number[1:] != number[:-1], [True]]))]
    return InputBatch(times[order], {stream: rows_in_order(row_steps) for stream, row_steps in by_stream.items()})


def _dictionary_encode(column: pa.Array) -> pa.Array:
    """Texts with a dictionary, unless nearly all are different: then only those are looked up that pass filters."""
    return column.dictionary_encode() if column.type == pa.string() and not nearly_distinct(column) else column


_Decoded = tuple[int, Any, list[pa.Array | None]]
"""Row groups of a parquet file: the number of rows, their times, and the columns that are wanted."""
_group_cache: OrderedDict[tuple[Any, ...], _Decoded] = OrderedDict()
"""The row groups that were read last and have rows for entries to come."""


def _part_of_parquet(
    file: Path, part: FileRows, schema: Schema, attributes: Collection[int]
) -> tuple[Any, list[pa.Array | None]]:
    """Rows of row groups. Groups are decoded as a whole, and kept for the entries that have the rest of their rows."""
    stat = file.stat()
    key = (stat.st_ino, stat.st_size, stat.st_mtime_ns, part.groups, tuple(sorted(attributes)))
    group_rows = _group_cache.pop(key, None) or _parquet(file, part, schema, attributes)
    rows, ts, columns = group_rows
    end = part.first + part.rows
    if end < rows:
        _group_cache[key] = group_rows
        while len(_group_cache) > _GROUPS_KEPT:
            with contextlib.suppress(KeyError):  # another thread was faster
                _group_cache.popitem(last=False)
    if part.rows == rows:
        return ts, columns
    row_slice = slice(part.first, end)
    return None if ts is None else ts[row_slice], [None if c is None else c[row_slice] for c in columns]


_GROUPS_KEPT = 4


def _parquet(
    file: Path, part: FileRows, schema: Schema, attributes: Collection[int]
) -> _Decoded:  # fmt: skip
    """Row groups of a parquet file whose columns fit the schema as they are (`ingest.fits`)."""
    column_names = {i: name for i, name in enumerate(part.columns) if i in attributes}
    texts = {name for i, name in column_names.items() if schema[i].type is Type.STRING}
    with pa.memory_map(str(file)) as source:
        metadata = pq.read_metadata(source)
        sizes = column_sizes(metadata, part.groups)
        dictionary_columns = [name for name, size in sizes.items() if name in texts and size < _PLAIN]
        parquet = pq.ParquetFile(source, metadata=metadata, read_dictionary=dictionary_columns)
        read = list(dict.fromkeys([*column_names.values(), *([part.time] if part.time else [])]))
        table = parquet.read_row_groups(list(part.groups), columns=read)
    columns: list[pa.Array | None] = []
    for i, attribute in enumerate(schema):
        if i not in column_names:
            columns.append(None)
            continue
        column = table.column(column_names[i])
        if pa.types.is_dictionary(column.type) and column.num_chunks:
            array = pa.concat_arrays(column.unify_dictionaries().chunks)
            columns.append(array.cast(pa.dictionary(pa.int32(), pa.string())))
        else:
            columns.append(ingest.convert(ingest.one(column), attribute.type)[0])
    ts = ingest.times(ingest.one(table.column(part.time)))[0] if part.time else None
    return table.num_rows, ts, columns


_PLAIN = 4
"""Bytes that each text takes at least where a column chunk of parquet is not in the main written with a dictionary."""


def column_sizes(metadata: pq.FileMetaData, groups: Sequence[int]) -> dict[str, float]:
    """Bytes of a value, by column, in some row groups as they are written."""
    size: dict[str, int] = {}
    rows = 0
    for g in groups:
        group = metadata.row_group(g)
        rows += group.num_rows
        for i in range(group.num_columns):
            chunk = group.column(i)
            size[chunk.path_in_schema] = size.get(chunk.path_in_schema, 0) + chunk.total_uncompressed_size
    return {name: n / max(rows, 1) for name, n in size.items()}


def join(batches: Sequence[InputBatch], clock: Array | None = None) -> InputBatch:
    """Join consecutive batches into one: steps are renumbered, so chunks do not change. `clock`: the joined clock, if
    it is at hand.
    """
    if not batches:
        return InputBatch(np.empty(0, np.int64))
    if len(batches) == 1:
        return batches[0]
    parts: dict[str, list[tuple[int, StreamRows]]] = {}
    base = 0
    for b in batches:
        for stream, rows in b.rows.items():
            parts.setdefault(stream, []).append((base, rows))
        base += len(b.clock)
    out = InputBatch(np.concatenate([b.clock for b in batches]) if clock is None else clock)
    for stream, stream_rows in parts.items():
        out.rows[stream] = StreamRows(
            np.concatenate([r.step + at for at, r in stream_rows]),
            np.concatenate([r.ts for _, r in stream_rows]),
            [concat_columns(cs) for cs in zip(*(r.columns for _, r in stream_rows), strict=True)],
        )
    return out
