"""Rows of nodes as the frames in which Spark brings and takes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd
from pyspark import TaskContext

from ...journal import journal, result_rows
from ..node_spec import NodeWork
from ..node_work import process_entries
from . import hosts
from .hosts import Columns, HostPlace, PackedWork
from .processor import SparkNodeState

FRAME_BYTES = 8 << 20
"""Bytes of results after which a frame is handed on."""


def work_off_frames(
    work: PackedWork[NodeWork],
    state: SparkNodeState,
    keys: Mapping[int, int],
    frames: Iterable[pd.DataFrame],
    *,
    in_host: bool,
) -> Iterator[pd.DataFrame]:
    """The results of the entries of a partition's nodes, as rows of `journal.SCHEMA`. `keys`: by number of node. The
    work is done by the engine host of the partition if `in_host`; without a host, by this process."""
    task = TaskContext.get()
    host = None
    if in_host and task is not None and hosts.folder is not None:
        host = hosts.connect_host(HostPlace(hosts.folder, task.partitionId()), work)
    if host is None:
        here = work.unpack()
        yield from _frames_of(
            result_rows.to_columns(process_entries(here, state, key, result_rows.from_columns(columns)))
            for key, columns in _nodes(state, keys, frames)
        )
        return
    with host:
        yield from _frames_of(host.work(state, key, columns) for key, columns in _nodes(state, keys, frames))


def _nodes(
    state: SparkNodeState, keys: Mapping[int, int], frames: Iterable[pd.DataFrame]
) -> Iterator[tuple[int, Columns]]:
    """The key of each node, whose state is then at hand, and its rows."""
    input_frames = list(frames)
    columns = [[value for frame in input_frames for value in frame[c].tolist()] for c in journal.COLUMNS]
    rows_by_node: dict[int, list[tuple[Any, ...]]] = {}
    for row in zip(*columns, strict=True):
        rows_by_node.setdefault(row[0], []).append(row)
    for node, rows in sorted(rows_by_node.items()):
        state.move_to(keys[node])
        yield keys[node], dict(zip(journal.COLUMNS, map(list, zip(*rows, strict=True)), strict=True))


def _frames_of(results: Iterable[Columns]) -> Iterator[pd.DataFrame]:
    """Frames with the results of nodes, of several nodes while these are small."""
    columns: dict[str, list[Any]] = {c: [] for c in journal.COLUMNS}
    size = 0
    for result in results:
        for name, values in result.items():
            columns[name] += values
        size += sum(map(len, result["blob"]))
        if size >= FRAME_BYTES:
            yield pd.DataFrame(columns)
            columns, size = {c: [] for c in journal.COLUMNS}, 0
    if columns["node"]:
        yield pd.DataFrame(columns)
