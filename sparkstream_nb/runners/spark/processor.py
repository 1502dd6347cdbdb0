"""The node engine as Spark's stateful processor: the rows of all nodes of a partition under one key, and the state of
each node under a key of its own.

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
    """The state of the node of `key`, in variables of Spark's state store. A `NodeState`. Spark works on one key, and
    other nodes of its partition have keys of their own."""

    key: int | None = None

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._client = handle._statefulProcessorApiClient  # no public way leads to the state of another key
        self._version = handle.getValueState("version", "version string, pieces string")
        self._pieces = handle.getMapState("pieces", "digest string", "bytes binary")

    def move_to(self, key: int) -> None:
        """From now on it is the state of another node in the same partition."""
        if key != self.key:
            self._client.set_implicit_key((key,))
            self.key = key

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
        self.keys = {spec.node: key for key, spec in work.specs.items()}

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state = SparkNodeState(handle)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        from .frames import work_off_frames

        self.state.key = node_key(key)
        yield from work_off_frames(self.work, self.state, self.keys, rows, in_host=self.keep)

    def close(self) -> None:
        """Nothing is held open."""
