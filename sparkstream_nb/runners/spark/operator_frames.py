"""Messages of an operator as the frames in which Spark brings and takes them."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import pandas as pd
from pyspark import TaskContext

from ..node_spec import NodeState
from ..operator.operator_spec import OperatorSpec
from ..operator.packing import PackedRows
from . import hosts
from .daemon_server import daemon_server, remove_if_gone
from .hosts import SMALL_STATE, HostPlace, PackedWork

_SIZE = re.compile(r'\{"bytes": (\d+),')
"""The size of a node's state, at the beginning of its note."""


@lru_cache(maxsize=16)
def _unpack(work: PackedWork[OperatorSpec]) -> OperatorSpec:
    """An operator, unpickled once in each process."""
    return work.unpack()


def work_on_messages(
    work: PackedWork[OperatorSpec], state: NodeState, key: int, messages: Sequence[tuple[Any, ...]], watermark: int
) -> tuple[pd.DataFrame, int | None, int | None]:
    """The messages of a node's outputs, and its timer (ms) as it was and as it has to be. A node whose state takes a
    while to restore is in the engine host of its partition, where there can be one; else in this process."""
    message = [PackedRows(*row) for row in messages], watermark
    task, result = TaskContext.get(), None
    if task is not None and _is_large(state):
        folder = hosts.folder or daemon_server()
        if folder is not None:
            result = hosts.work_in_host(HostPlace(folder, task.partitionId()), work, state, key, message)
            _release(work.run)
            if result is None and folder != hosts.folder:
                remove_if_gone(folder)
    if result is None:
        tasks = import_module("..operator.operator_tasks", __package__)  # loads the engine
        result = tasks.work_micro_batch(_unpack(work), state, key, *message)
    # Texts as objects: pyspark cannot take the strings that pandas 3 makes of them.
    frame = pd.DataFrame(result.messages, columns=["output", "events", "rows"], dtype=object)
    return frame, result.former_timer, result.timer


def _release(operator: str) -> None:
    """Drops an operator's nodes from the memory of this process, in which the one that a host has now was before."""
    node_host = sys.modules.get(f"{__package__.rpartition('.')[0]}.node_host")
    if node_host is not None:
        node_host.HostedNode.release(operator)


def _is_large(state: NodeState) -> bool:
    version = state.version()
    size = None if version is None else _SIZE.match(version[1])
    return size is not None and int(size[1]) > SMALL_STATE
