"""Messages of an operator as the frames in which Spark brings and takes them."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pandas as pd

from ..node_spec import NodeState
from ..operator.operator_spec import OperatorSpec
from ..operator.operator_tasks import work_micro_batch
from ..operator.packing import PackedRows


@lru_cache(maxsize=16)
def _unpickle(spec: bytes) -> OperatorSpec:
    """An operator, unpickled once in each process."""
    operator: OperatorSpec = pickle.loads(spec)
    return operator


def work_on_messages(
    spec: bytes, state: NodeState, key: int, messages: Sequence[tuple[Any, ...]], watermark: int
) -> tuple[pd.DataFrame, int | None, int | None]:
    """The messages of a node's outputs, and its timer (ms) as it was and as it has to be."""
    result = work_micro_batch(_unpickle(spec), state, key, [PackedRows(*row) for row in messages], watermark)
    # Texts as objects: pyspark cannot take the strings that pandas 3 makes of them.
    frame = pd.DataFrame(result.messages, columns=["output", "events", "rows"], dtype=object)
    return frame, result.former_timer, result.timer
