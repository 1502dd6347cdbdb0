"""Protocol between an app and its runner: Spark, or this process.

A `Session` is the place of the work of apps: one for each master. It gives an app its `Runner`, which carries its
micro-batches: it plans them over the inbox, works on them, keeps the nodes' state, and hands the results to the commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ..journal.batch_planning import ROWS_PER_TRIGGER, Offset
from ..journal.checkpoints import CheckpointProgress
from ..journal.mirror import Mirror
from ..journal.routing import keys_apart
from ..journal.tasks import Tasks
from ..outputs.commit import Commit
from ..recovery.batch_care import BatchCare
from ..retention import Retention
from ..types import Schema
from .node_spec import NodeSpec

OLD_PARTITIONS = 32
"""The partitions of an app that earlier versions began, where it began with as many nodes or more."""
STOP_SECONDS = 1.5
"""Longest wait of a user who stops something: under two seconds in all."""


@dataclass(frozen=True)
class NodeLayout:
    """Placement of nodes: the key of each, and the number of partitions they are spread over."""

    keys: tuple[int, ...]
    partitions: int

    @staticmethod
    def of(nodes: int, began: int, partitions: int | None) -> NodeLayout:
        """The layout of an app that began with `began` nodes over `partitions` (None: it is of an earlier version).
        Spark keeps the number of partitions for good, and a node its key.
        """
        if partitions is None:
            partitions = min(began, OLD_PARTITIONS)
        return NodeLayout(tuple(keys_apart(nodes, partitions)), partitions)

    @property
    def places(self) -> tuple[int, ...]:
        """For each node the key of the first one in its partition."""
        return tuple(self.keys[i % self.partitions] for i in range(len(self.keys)))


@dataclass(frozen=True, kw_only=True)
class NodesJob:
    """The work of an app's nodes: its name, the folder `home` of its run `run` (with `inbox`, `outputs` and
    `checkpoint`), its nodes, and the schemas of its streams. A micro-batch has `rows` events at most; `retention` says
    how much of the past the inbox keeps. The nodes are spread over `partitions` partitions (`NodeLayout.of`).
    """

    name: str
    home: Path
    run: str
    specs: Sequence[NodeSpec]
    schemas: Mapping[str, Schema]
    rows: int = ROWS_PER_TRIGGER
    retention: Retention = field(default_factory=Retention)
    partitions: int | None = None

    @property
    def layout(self) -> NodeLayout:
        """Placement of its nodes."""
        return NodeLayout.of(len(self.specs), self.specs[0].count, self.partitions)


@dataclass(frozen=True, kw_only=True)
class Job(NodesJob):
    """The work of an app: that of its nodes, and the commit of their results. A `mirror` puts the inbox at a shared
    address, if Spark's machines do not see `home`.
    """

    commit: Commit
    mirror: Mirror | None = None


class Checkpoint(Protocol):
    """Progress of a runner, as its folder says. All methods raise SparkStreamError if that cannot be read."""

    def read_progress(self) -> CheckpointProgress:
        """Read the runner's progress."""

    def planned_batch(self) -> tuple[int, tuple[int, int]]:
        """The number of the last micro-batch that is planned, and its entries: the first, and the first after it."""

    def done(self) -> tuple[int, int]:
        """(number of the last micro-batch that is done, its last entry); -1 for none."""

    def done_offset(self) -> Offset | None:
        """The place in the journal after the last done entry; None if none is done."""


class Runner(Protocol):
    """Carries the micro-batches of one app."""

    commits_here: bool
    """True if a micro-batch is committed by the time that the runner takes it for done. Where not, `settle` commits."""

    @property
    def checkpoint(self) -> Checkpoint:
        """Its checkpoint on disk."""

    @property
    def active(self) -> bool:
        """True if it runs."""

    def begin(self, instructions: BatchCare) -> None:
        """Begin where it left off. `instructions`: steps and queries set aside or suspected. Raises SparkStreamError if
        it cannot.
        """

    def notify_arrival(self) -> None:
        """Something has come in."""

    def failure(self) -> str | None:
        """The error that ended it; None if it did not end by an error."""

    def ended_for_good(self) -> bool:
        """True if it cannot be begun again in this process."""

    def attempts(self) -> int:
        """Number of starts of the micro-batch that is planned and not done, if its work may have ended this process; 0
        if it cannot have.
        """

    def settle(self) -> None:
        """Commit the results that a runner has handed over before it ended."""

    def cancel(self) -> None:
        """Ends it, and does not wait for that."""

    def stop(self, timeout: float) -> bool:
        """End it. Returns within `timeout` seconds: False if it is still busy."""

    def wait_for_end(self, timeout: float) -> bool:
        """Wait until a stopped one has released all that it held; False after `timeout` seconds."""

    def last_commit(self) -> tuple[int, int]:
        """(number of the last micro-batch known to the runner as committed, its last entry); -1 for none."""


class Session(Tasks, Protocol):
    """Place of the work of apps: micro-batches, and tasks of feeds and studies."""

    @property
    def places(self) -> int:
        """Over how many partitions the nodes of an app are spread at most. Each costs a task and a version of a state
        store in every micro-batch, so there are no more than can work at once."""

    @property
    def about(self) -> str | None:
        """Note for the users of apps that run there; None if there is none."""

    def runner(self, job: Job) -> Runner:
        """The runner of an app. Raises SparkStreamError if the session has ended."""

    def tag_tasks(self, tag: str) -> AbstractContextManager[None]:
        """Marks the tasks started inside, for `interrupt`. Raises SparkStreamError if the session has ended."""

    def interrupt(self, tag: str) -> None:
        """Cancels the tasks that have the tag."""
