"""Feeds on the disk in the order of event time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..engine.columnar.column_data import Array
from . import feeds
from .feeds import Chunk, FeedOnDisk, new_stem, whole_feed, write_chunk


def in_order(feed: FeedOnDisk, inbox: Path) -> tuple[FeedOnDisk, Array]:
    """The feed with its chunks in order of event time (stable), and the highest time (ms) of each chunk. Raises
    SparkStreamError if chunks that are rewritten cannot be written.
    """
    if any(c.groups for c in feed.chunks):
        return feed, np.array([c.highest for c in feed.chunks])
    times_by_chunk = []
    for chunk in feed.chunks:
        with pa.memory_map(str(inbox / chunk.file)) as source:
            times_by_chunk.append(np.array(pa.ipc.open_file(source).read_all()["ts"].to_numpy()))
    if not times_by_chunk:
        return feed, np.empty(0, np.int64)
    all_times = np.concatenate(times_by_chunk)
    if (all_times[1:] >= all_times[:-1]).all():
        return feed, np.array([t.max() for t in times_by_chunk])
    order = np.argsort(all_times, kind="stable")
    ends = [*range(feeds.CHUNK_ROWS, len(order), feeds.CHUNK_ROWS), len(order)]
    return rewrite(feed, inbox, order), all_times[order[np.array(ends) - 1]]


def rewrite(feed: FeedOnDisk, inbox: Path, index: Array) -> FeedOnDisk:
    """The feed with these of its rows (numbers, in this order), in chunks of its own. Raises SparkStreamError if they
    cannot be written."""
    starts = np.cumsum([0, *(c.rows for c in feed.chunks)])
    maps = [pa.memory_map(str(inbox / c.file)) for c in feed.chunks]
    tables = [pa.ipc.open_file(m).read_all() for m in maps]
    out = replace(feed, chunks=[])
    stem = f"{new_stem()}-ordered"
    with whole_feed(inbox, stem):
        for at in range(0, len(index), feeds.CHUNK_ROWS):
            part = index[at : at + feeds.CHUNK_ROWS]
            name = f"{stem}-{len(out.chunks):05d}"
            write_chunk(inbox / name, _pick(tables, starts, part))
            out.chunks.append(Chunk(name, len(part)))
    for m, chunk in zip(maps, feed.chunks, strict=True):
        m.close()
        (inbox / chunk.file).unlink()
    return out


def rows_before(feed: FeedOnDisk, inbox: Path, highest: Array, time: int) -> int:
    """Number of rows of a feed in order that are before a time (ms); for a parquet file that enters unchanged, the rows
    of row groups that lie before it as a whole.
    """
    count = 0
    for chunk, last in zip(feed.chunks, highest.tolist(), strict=True):
        if last < time:
            count += chunk.rows
            continue
        if not chunk.groups:
            with pa.memory_map(str(inbox / chunk.file)) as source:
                times = pa.ipc.open_file(source).read_all()["ts"].to_numpy()
                count += int(np.searchsorted(times, time))
        break
    return count


def _pick(tables: Sequence[pa.Table], starts: Array, index: Array) -> pa.Table:
    """Rows `index` of the tables taken as one, in the order of `index`."""
    owner = np.searchsorted(starts, index, side="right") - 1
    parts, places = [], []
    for k in np.unique(owner).tolist():
        positions = np.flatnonzero(owner == k)
        parts.append(tables[k].take(pa.array(index[positions] - starts[k])))
        places.append(positions)
    rows = pa.concat_tables(parts, promote_options="permissive")
    back = np.empty(len(index), np.int64)
    back[np.concatenate(places)] = np.arange(len(index))
    return rows.take(pa.array(back))
