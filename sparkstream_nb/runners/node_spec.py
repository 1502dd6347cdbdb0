"""Definition of a node, and of its work as a runner passes it on. Loads neither the engine nor Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..limits import Limits

if TYPE_CHECKING:
    from ..journal.shared import Shared
    from ..nodes.distributed import Distributed
    from ..plan.distributed.leader import Duty
    from ..recovery.batch_care import BatchCare
    from ..simulation.node_groups import NodeGroups


@dataclass(frozen=True)
class NodeSpec:
    """A node as the workers need it: number `index` of its app, which began with `count` nodes.

    `plan` is pickled, so that it is unpickled only where an engine is made. The node's clock starts at `start` (ms;
    None: with the first event or tick). `tables` is `database_tables.pack_tables`, empty if no table is in a database.
    A node with a `duty` is the leader, and one of `groups` has another node to take over: these take all events. Of the
    nodes of a distributed app the first one computes all. `limits`: bounds on what one event may use. `tokens` name the
    parts of its state (`plan.state_units.state_tokens`), if the app may be changed and continue; else the plan is
    always the same.
    """

    node: int
    shard: str
    plan: bytes
    trace: bool = False
    scripts: bool = False
    index: int = 0
    count: int = 1
    start: int | None = None
    tables: bytes = field(default=b"", repr=False)
    duty: Duty | None = None
    groups: NodeGroups | Distributed | None = None
    limits: Limits = field(default_factory=Limits)
    tokens: Mapping[str, str] | None = None

    @property
    def takes_all(self) -> bool:
        """True if it takes all events, and does all of its plan itself."""
        return self.duty is not None or self.groups is not None


class PieceStore(Protocol):
    """A store of the pieces of a node's state, by their digests."""

    def piece(self, digest: str) -> bytes | None:
        """The piece of a digest; None if it is missing."""

    def put_piece(self, digest: str, piece: bytes) -> None:
        """Adds a piece."""

    def remove_piece(self, digest: str) -> None:
        """Removes a piece."""


class NodeState(PieceStore, Protocol):
    """The state of one node, as its runner keeps it: a version, its note, and pieces."""

    def version(self) -> tuple[str, str] | None:
        """The version, and its note: the digests of the pieces in order, as JSON; None before the first micro-batch."""

    def set_version(self, version: str, digests: str) -> None:
        """Sets both. It counts when the micro-batch is done."""


@dataclass(frozen=True)
class NodeWork:
    """The work of nodes on their entries, for any runner.

    The nodes are `specs`, by key, and their entries come from the inbox in `folder`. Large outputs go to the folder
    `outputs`, if any. `run` distinguishes the runs of an app. An engine stays in memory between micro-batches if `keep`
    is set. An error of the engine ends the micro-batch; with `isolate` it is a row of kind `failure`, and the other
    nodes continue. `instructions`: steps and queries set aside or suspected (None: none). With a `shared` address the
    workers do not see the folders, and use the address in their place. `check` is called between two pieces of work,
    and raises the error that ends the micro-batch.
    """

    run: str
    specs: Mapping[int, NodeSpec]
    folder: Path
    outputs: Path | None = None
    keep: bool = True
    isolate: bool = False
    instructions: BatchCare | None = None
    shared: Shared | None = None
    check: Callable[[], None] | None = None

    def within(self, folder: Path) -> NodeWork:
        """The same with its folders in another one."""
        return replace(self, folder=folder / "inbox", outputs=folder / "outputs")
