"""Figures of a fully distributed app after each micro-batch, as plain data: counts of its partial apps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from ..simulation.faults import Fault, fault_of, members_of

KEPT = 200
"""Maximum number of starts of a partial app that are reported: the latest ones."""


@dataclass(frozen=True)
class BegunCounts:
    """A partial app began on `node` at `at` (ms): how many events it processed `again`, found `waiting`, and its state
    is `missing`."""

    node: str
    at: int
    again: int
    waiting: int
    missing: int


@dataclass(frozen=True)
class PartialAppFigures:
    """A partial app: how many events were `taken`, taken by `several` nodes at once, and `lost`; how many `waiting`
    there are by stream; when (ms) the last `revision` was made (None: there is none), how many `revisions` were; and
    when it began."""

    taken: int
    several: int
    lost: int
    waiting: Mapping[str, int]
    revision: int | None
    revisions: int
    begun: Sequence[BegunCounts]


@dataclass(frozen=True)
class DistributedFigures:
    """When (ms) the app began (None: nothing came in yet), its `clock` (ms), the faults that were `added`, and its
    partial apps by name."""

    start: int | None
    clock: int
    added: Sequence[Fault]
    apps: Mapping[str, PartialAppFigures]

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        added_faults = [members_of(f) for f in self.added]
        apps = {name: asdict(a) for name, a in self.apps.items()}
        return {"start": self.start, "clock": self.clock, "added": added_faults, "apps": apps}

    @classmethod
    def of(cls, members: Mapping[str, Any]) -> Self:
        """The inverse of `as_dict`."""
        apps = {
            name: PartialAppFigures(**{**a, "begun": [BegunCounts(**b) for b in a["begun"]]})
            for name, a in members["apps"].items()
        }
        return cls(members["start"], members["clock"], tuple(fault_of(f) for f in members["added"]), apps)
