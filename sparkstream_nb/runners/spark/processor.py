"""The node engine as Spark's stateful processor: one key per node.

Spark starts a process for every query that only asks the processor for its state variables: this module loads quickly,
and `nodes`, which loads the engine, is loaded where entries are worked on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from ..node_spec import NodeWork
from .hosts import PackedWork

if TYPE_CHECKING:
    import pandas as pd


def node_key(key: Any) -> int:
    """The node's key in what Spark groups by; Spark 4.0 gives a numpy integer."""
    return int(key[0])


class SparkNodeState:
    """The state of the node whose key Spark works on, in variables of its state store. A `NodeState`."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._version = handle.getValueState("version", "version string, pieces string")
        self._pieces = handle.getMapState("pieces", "digest string", "bytes binary")

    def version(self) -> tuple[str, str] | None:
        value = self._version.get()
        return None if value is None else (value[0], value[1])

    def set_version(self, version: str, digests: str) -> None:
        self._version.update((version, digests))

    def piece(self, digest: str) -> bytes | None:
        value = self._pieces.getValue((digest,))
        return None if value is None else bytes(value[0])

    def put_piece(self, digest: str, piece: bytes) -> None:
        self._pieces.updateValue((digest,), (piece,))

    def remove_piece(self, digest: str) -> None:
        self._pieces.removeKey((digest,))


class NodeProcessor(StatefulProcessor):
    """Runs the nodes of `work` over the entries that Spark brings them."""

    def __init__(self, work: NodeWork) -> None:
        self.work, self.keep = PackedWork.of(work.run, work), work.keep

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state = SparkNodeState(handle)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        from .frames import work_off_frames

        yield work_off_frames(self.work, self.state, node_key(key), rows, in_host=self.keep)

    def close(self) -> None:
        """Nothing is held open."""
