"""Hosting of a node: its engine is made or restored, takes steps, sets aside the events that fail, and is saved.

An engine saves its state in pieces; a piece that is there already is not written again, and mostly not even read
(`engine/columnar/blocks.py`). Nodes that a process keeps in memory between micro-batches are only a cache: one is used
if its version is the one in the runner's state (`NodeState`), else the engine is restored from that.

Nodes of apps (`app_node.py`), on Spark and in this process, and nodes of `siddhi()` (`operator/operator_node.py`) are
`HostedNode`s. A class says how an engine is made, and which data beside it the note of a version has.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, ClassVar, Generic, Self, TypeVar

from ..engine.node import NodeEngine
from ..engine.state.node_batch import EventError, Outputs
from ..journal.segments import StepsOfNode
from ..nodes.distributed_member import DistributedMember
from ..nodes.member import PairMember
from ..recovery.quarantine import bisected_steps
from .node_spec import NodeState, PieceStore
from .node_state import ITS_CHECKPOINT, read_piece, save_pieces

Engine = NodeEngine | PairMember | DistributedMember
S = TypeVar("S")
E = TypeVar("E", bound=Engine)

ENGINES_KEPT = 64
"""Nodes that a process keeps in memory; of more, those that worked last."""


class HostedNode(ABC, Generic[S, E]):
    """A node as its `spec` defines it, in the memory of a process. `key`: the run of an app or the operator, and the
    node's number. `pieces`: the digests of the pieces of its state, of `state_bytes` in all; `version`: of the state
    that the runner has. `was_restored`: its engine was restored from there for this micro-batch."""

    _in_memory: ClassVar[OrderedDict[tuple[str, int], HostedNode[Any, Any]]] = OrderedDict()

    def __init__(self, key: tuple[str, int], spec: S) -> None:
        self.key, self.spec = key, spec
        self.engine = self.make_engine()
        self.version = ""
        self.pieces: list[str] = []
        self.state_bytes = 0
        self.was_restored = False

    @abstractmethod
    def make_engine(self) -> E:
        """An engine at its start."""

    @abstractmethod
    def write_note(self, store: PieceStore) -> str:
        """The note of the version that is being saved, with the digests in `pieces`."""

    @abstractmethod
    def read_note(self, note: str, state: NodeState) -> PieceStore:
        """Takes `pieces` and all other data from a note; returns the store of the pieces.

        Raises SparkStreamError if it is damaged, or of another node."""

    def is_of(self, spec: S) -> bool:
        """True if the node may continue with this spec."""
        return self.spec == spec

    def open_store(self, state: NodeState) -> PieceStore:
        """The store to which the pieces of a new version are written."""
        return state

    @property
    def place(self) -> str:
        """The place of its state, in words, for messages."""
        return ITS_CHECKPOINT

    @classmethod
    def release(cls, run: str) -> None:
        """Drops the nodes of a run of an app from memory."""
        for key in [k for k in list(cls._in_memory) if k[0] == run]:
            cls._in_memory.pop(key, None)

    @classmethod
    def from_memory(cls, key: tuple[str, int], spec: S, version: tuple[str, str] | None) -> Self | None:
        """The node in memory that has the stored version; None if there is none. It is taken out while it works: one
        that fails half-way must not be found again."""
        node = cls._in_memory.pop(key, None)
        if node is None or version is None or node.version != version[0] or not node.is_of(spec):
            return None
        assert isinstance(node, cls)
        return node

    def restore(self, state: NodeState) -> None:
        """Restores a new node from the version in a runner's state, if there is one."""
        version = state.version()
        if version is None:
            return
        self.version, note = version
        store = self.read_note(note, state)
        self.engine.restore(b"".join(read_piece(store, digest, self.place) for digest in self.pieces))
        self.was_restored = True

    def step(self, piece: StepsOfNode) -> Outputs:
        """Lets the engine take steps. One that failed half-way cannot be used again."""
        return self.engine.step(piece.batch)

    def step_carefully(self, piece: StepsOfNode) -> Iterator[tuple[StepsOfNode, Outputs]]:
        """Lets the engine take steps; those that fail by themselves become errors. It costs a snapshot before each."""
        return bisected_steps(piece, self._step_or_restore, self.drop_state)

    def _step_or_restore(self, piece: StepsOfNode) -> Outputs:
        before = self.engine.snapshot()
        try:
            return self.step(piece)
        except Exception:
            self.engine = self.make_engine()
            self.engine.restore(before)
            raise

    def drop_state(self, piece: StepsOfNode, why: str) -> EventError | None:
        """Drops state because of which a step fails also without its events, if there is such state; returns an error
        for it. `why`: how it failed."""
        return None

    def save(self, state: NodeState, *, in_memory: bool) -> int:
        """Writes the state as a new version, and keeps the node in memory if that is asked for; returns the size of the
        state in bytes."""
        store = self.open_store(state)
        self.pieces, self.state_bytes = save_pieces(store, self.engine.saved_parts(), self.pieces)
        note = self.write_note(store)
        self.version = os.urandom(12).hex()
        state.set_version(self.version, note)
        if in_memory and not (isinstance(self.engine, NodeEngine) and self.engine.stale):
            self._in_memory[self.key] = self
            while len(self._in_memory) > ENGINES_KEPT:
                self._in_memory.popitem(last=False)
        return self.state_bytes
