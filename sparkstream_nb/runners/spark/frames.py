"""Rows of nodes as the frames in which Spark brings and takes them."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from ...journal import journal, rows
from ..node_spec import NodeState, NodeWork
from ..node_work import work_off


def worked_off(work: NodeWork, state: NodeState, key: int, frames: Iterator[pd.DataFrame]) -> pd.DataFrame:
    """The results of a node's entries, as rows of `journal.SCHEMA`."""
    given = (row for frame in frames for row in rows.from_columns(frame))
    raw = [rows.encode(row) for row in work_off(work, state, key, given)]
    return pd.DataFrame({c: [r[i] for r in raw] for i, c in enumerate(journal.COLUMNS)})
