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
    brought = list(frames)
    given = {c: [value for frame in brought for value in frame[c].tolist()] for c in journal.COLUMNS}
    task = TaskContext.get()
    found = None if task is None else hosts.work_in_host(work, task.partitionId(), state, key, given)
    if found is None:
        found = result_rows.to_columns(process_entries(work.unpack(), state, key, result_rows.from_columns(given)))
    return pd.DataFrame(found)
