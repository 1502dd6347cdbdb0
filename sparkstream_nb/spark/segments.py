"""Runs of steps in memory: read from the inbox, joined where small."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..engine.batch import InputBatch, StreamRows


def requests_of(batch: InputBatch) -> int:
    """How many of the batch's steps carry events."""
    if not batch.rows:
        return 0
    return len(np.unique(np.concatenate([r.step for r in batch.rows.values()])))


def load(folder: Path, entry: Mapping[str, Any]) -> InputBatch:
    """The batch that a journal entry of kind `steps` or `rows` stands for."""
    if entry["kind"] == "rows":
        return _slice(folder / entry["file"], entry)
    if "data" in entry:
        return InputBatch.from_bytes(base64.b64decode(entry["data"]))
    return InputBatch.from_bytes((folder / entry["file"]).read_bytes())


def _slice(file: Path, entry: Mapping[str, Any]) -> InputBatch:
    """Rows `from` ≤ i < `from` + `steps` of a feed's chunk, each a step; with `start`, 1 ms apart from there."""
    with pa.memory_map(str(file)) as source:
        table = pa.ipc.open_file(source).read_all().slice(entry["from"], entry["steps"])
        columns = [c.combine_chunks() for c in table.columns]
    arrays = [c.chunk(0) if isinstance(c, pa.ChunkedArray) else c for c in columns]
    ts = np.asarray(arrays[0].to_numpy(zero_copy_only=False), np.int64)
    if "start" in entry:
        ts = np.arange(entry["start"], entry["start"] + len(ts), dtype=np.int64)
    return InputBatch(ts, {entry["stream"]: StreamRows(np.arange(len(ts), dtype=np.int64), ts, arrays[1:])})


def join(batches: Sequence[InputBatch]) -> InputBatch:
    """Batches one after the other as one: steps are renumbered, so chunks stay what they were."""
    if len(batches) == 1:
        return batches[0]
    parts: dict[str, list[tuple[int, StreamRows]]] = {}
    base = 0
    for b in batches:
        for stream, rows in b.rows.items():
            parts.setdefault(stream, []).append((base, rows))
        base += len(b.clock)
    out = InputBatch(np.concatenate([b.clock for b in batches]))
    for stream, found in parts.items():
        out.rows[stream] = StreamRows(
            np.concatenate([r.step + at for at, r in found]),
            np.concatenate([r.ts for _, r in found]),
            [_concat(cs) for cs in zip(*(r.columns for _, r in found), strict=True)],
        )
    return out


def _concat(columns: Sequence[Any]) -> Any:
    """Arrow arrays one after the other; lists of objects, and arrays of different types, as a list."""
    if all(isinstance(c, pa.Array) for c in columns):
        plain = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in columns]
        if len({c.type for c in plain}) == 1:
            return pa.concat_arrays(plain)
        columns = plain
    return [v for c in columns for v in (c if isinstance(c, list) else c.to_pylist())]
