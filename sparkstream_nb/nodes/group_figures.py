"""Figures of a group of nodes after each micro-batch, as plain data: counts since its start, queue, revision.

The counts are part of a node's snapshot, so they continue after it was restored; the report of `pair` restarts there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from ..simulation.faults import Fault, fault_of, members_of
from ..simulation.timeline import Role

KEPT = 200
"""Takeovers, and spans of time in which events were lost, that a snapshot keeps: the latest ones."""


@dataclass(frozen=True)
class TakeoverCounts:
    """A node became the active one at `at` (ms) from the `revision` of that time (ms; None: there was none), and how
    many events were `lost` since the last active one was gone, were `replayed`, are `missing` from its state, and are
    in it twice (`doubled`)."""

    node: str
    at: int
    revision: int | None
    lost: int
    replayed: int
    missing: int
    doubled: int


@dataclass
class GroupCounts:
    """Counts of a group since its start: events `taken` by a node, and `lost` by reason; `revisions` made; takeovers,
    with the first start; from when to when (ms, both included) events were lost.
    """

    taken: int = 0
    lost: dict[str, int] = field(default_factory=dict)
    revisions: int = 0
    takeovers: list[TakeoverCounts] = field(default_factory=list)
    lost_between: list[tuple[int, int]] = field(default_factory=list)
    before_gap: int = 0
    """Number of events lost before the last active node was gone."""
    losing: bool = False
    """True if the next lost event extends the last span of `lost_between`."""

    @property
    def lost_in_gap(self) -> int:
        """Number of events lost since the last active node was gone."""
        return sum(self.lost.values()) - self.before_gap

    def begin_gap(self) -> None:
        """An active node is gone."""
        self.before_gap = sum(self.lost.values())

    def lose(self, reason: str, events: int, between: tuple[int, int]) -> None:
        """Count `events` events that no node takes, which came between two times (ms, both included)."""
        self.lost[reason] = self.lost.get(reason, 0) + events
        first, last = between
        if self.losing:
            before = self.lost_between.pop()
            first, last = min(first, before[0]), max(last, before[1])
        self.lost_between = [*self.lost_between, (first, last)][-KEPT:]
        self.losing = True

    def close_loss(self) -> None:
        """Who takes events changes: those that are lost from now on are lost for another cause."""
        self.losing = False

    def takes_over(self, takeover: TakeoverCounts) -> None:
        """A node becomes the active one."""
        self.takeovers = [*self.takeovers, takeover][-KEPT:]

    def as_dict(self) -> dict[str, Any]:
        """The counts as plain data."""
        return {**asdict(self), "lost_between": [list(span) for span in self.lost_between]}

    @classmethod
    def of(cls, members: Mapping[str, Any]) -> Self:
        """The inverse of `as_dict`."""
        takeovers = [TakeoverCounts(**t) for t in members["takeovers"]]
        between = [(int(first), int(last)) for first, last in members["lost_between"]]
        return cls(**{**members, "lost": dict(members["lost"]), "takeovers": takeovers, "lost_between": between})


@dataclass(frozen=True)
class MemberFigures:
    """Figures of one node of a group: its `role` and the number of its `queued` events; of the group, when (ms) it
    began (None: nothing came in yet), its `clock` (ms), when (ms) the last `revision` was made (None: there is none),
    its `counts`, and the faults that were `added` to it.
    """

    role: Role
    queued: int
    start: int | None
    clock: int
    revision: int | None
    counts: GroupCounts
    added: Sequence[Fault]

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        members = {"queued": self.queued, "start": self.start, "clock": self.clock, "revision": self.revision}
        faults = [members_of(f) for f in self.added]
        return {**members, "role": self.role.value, "counts": self.counts.as_dict(), "added": faults}

    @classmethod
    def of(cls, members: Mapping[str, Any]) -> Self:
        """The inverse of `as_dict`."""
        faults = tuple(fault_of(f) for f in members["added"])
        counts = GroupCounts.of(members["counts"])
        return cls(**{**members, "role": Role(members["role"]), "counts": counts, "added": faults})
