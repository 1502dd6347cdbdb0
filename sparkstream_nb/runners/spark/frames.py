"""Rows of nodes as the frames in which Spark brings and takes them."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
from pyspark import TaskContext

from ...journal import journal, result_rows
from ..node_spec import NodeState, NodeWork
from ..node_work import process_entries
from . import hosts
from .hosts import HostPlace, PackedWork


def work_off_frames(
    work: PackedWork[NodeWork], state: NodeState, key: int, frames: Iterable[pd.DataFrame], *, in_host: bool
) -> pd.DataFrame:
    """The results of a node's entries, as rows of `journal.SCHEMA`: with `in_host` of the engine host of Spark's
    partition; where there is none, of this process."""
    input_frames = list(frames)
    columns = {c: [value for frame in input_frames for value in frame[c].tolist()] for c in journal.COLUMNS}
    task, result_columns = TaskContext.get(), None
    if in_host and task is not None and hosts.folder is not None:
        place = HostPlace(hosts.folder, task.partitionId())
        result_columns = hosts.work_in_host(place, work, state, key, columns)
    if result_columns is None:
        result_columns = result_rows.to_columns(
            process_entries(work.unpack(), state, key, result_rows.from_columns(columns))
        )
    return pd.DataFrame(result_columns)
