"""Rows of nodes as the frames in which Spark brings and takes them."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
from pyspark import TaskContext

from ...journal import journal, result_rows
from ..node_spec import NodeState
from ..node_work import process_entries
from . import hosts
from .hosts import PackedWork


def work_off_frames(work: PackedWork, state: NodeState, key: int, frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """The results of a node's entries, as rows of `journal.SCHEMA`: from the engine host of Spark's partition, or where
    there is none, of this process."""
    input_frames = list(frames)
    columns = {c: [value for frame in input_frames for value in frame[c].tolist()] for c in journal.COLUMNS}
    task = TaskContext.get()
    result_columns = None if task is None else hosts.work_in_host(work, task.partitionId(), state, key, columns)
    if result_columns is None:
        result_columns = result_rows.to_columns(
            process_entries(work.unpack(), state, key, result_rows.from_columns(columns))
        )
    return pd.DataFrame(result_columns)
