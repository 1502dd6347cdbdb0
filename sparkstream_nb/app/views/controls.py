"""The nodes of a running app's groups: views and faults of them, in the app's own time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime

import pandas as pd

from ...errors import Misuse, shown
from ...nodes.distributed import Distributed
from ...simulation.faults import Cut, Fault, Kill, Pause, Restart, Slow
from ...simulation.node_groups import NodeGroups
from ..deployment.deployment import milliseconds
from ..results.frontend import Displayed
from .cluster_view import Action, ClusterReader, ClusterSnapshot

Time = int | str | datetime
LASTING = 30_000
"""The length (ms) of a pause or a cut that is done by a button."""


@dataclass(frozen=True)
class FaultStatus:
    """The outcome of a fault: its clock (ms) after the first step and now, None if no event was received yet, and the
    faults that were added to those that were planned."""

    first: int | None
    clock: int | None
    faults: Sequence[Fault]


@dataclass(frozen=True)
class FaultJournal:
    """An app's journal for faults: `status` returns the app's status so far, `add` adds a fault, `tick` moves the clock
    to a time (ms), and under the `lock` the clock does not move between them.
    """

    status: Callable[[], FaultStatus]
    add: Callable[[Fault], None]
    tick: Callable[[int], None]
    lock: AbstractContextManager[object]


class Cluster(Displayed):
    """The nodes of an app in mode ha, scalable or distributed, and the faults that they are given; `App.cluster`.

    A notebook shows the nodes, and buttons for the possible actions. A fault happens when the app's clock reaches
    its time, which is ms since 1970, a datetime or an ISO text; without a time it happens right after the latest input.
    It stays in the app's journal, so that it repeats.
    """

    def __init__(self, groups: NodeGroups | Distributed, journal: FaultJournal, reader: ClusterReader) -> None:
        self._groups, self._journal, self.reader = groups, journal, reader

    @property
    def nodes(self) -> tuple[str, ...]:
        """The ids of the nodes."""
        return self._groups.nodes

    @property
    def faults(self) -> pd.DataFrame:
        """The faults that were added, in the order of their times: at (ms), what."""
        rows = sorted([f.at, str(f)] for f in self._journal.status().faults)
        return pd.DataFrame(rows, columns=["at", "what"])

    def snapshot(self) -> ClusterSnapshot:
        """Nodes, links, counts and past faults, once all that was sent is committed."""
        return self.reader.read_settled()

    def still(self) -> ClusterSnapshot:
        return self.snapshot()

    def summary(self) -> str:
        return self.reader.read().summary()

    def kill(self, node: str, at: Time | None = None) -> None:
        """Ends a node's process. Raises `Misuse` for a node that is not there or down, and a time that is past."""
        with self._journal.lock:
            self._take(Kill(self._time(at), node))

    def restart(self, node: str, at: Time | None = None) -> None:
        """Starts a node that was killed. Raises `Misuse` for a node that is up."""
        with self._journal.lock:
            self._take(Restart(self._time(at), node))

    def pause(self, node: str, during: tuple[Time | None, Time]) -> None:
        """Halt a node, as a long garbage collection does, from a time (None: right now) to another."""
        first, end = _both(during)
        with self._journal.lock:
            self._take(Pause(self._time(first), node, milliseconds(end, "during")))

    def cut(self, a: str, b: str, during: tuple[Time | None, Time]) -> None:
        """Keeps two ends from reaching each other: a node and the other one, "database" or "clients"; or all nodes of a
        group and one of these two. To nodes behind a partitioning layer, that is their clients."""
        first, end = _both(during)
        with self._journal.lock:
            self._take(Cut(self._time(first), a, b, milliseconds(end, "during")))

    def act(self, action: Action) -> Fault:
        """Carries out a button's action, right after the latest input; a pause or a cut lasts `LASTING` ms. Returns the
        fault. Raises `Misuse` as the other methods.
        """
        with self._journal.lock:
            fault = _meant(action, self._time(None))
            self._take(fault)
        return fault

    def advance(self, by: int) -> None:
        """Moves the app's clock on by `by` ms, with no event, so that faults which wait for it happen. Raises `Misuse`
        if no event was received yet, and if the app's clock is the wall clock."""
        if not isinstance(by, int) or by <= 0:
            raise Misuse(f"by is a number of milliseconds above 0, not {shown(by)}")
        with self._journal.lock:
            self._journal.tick(self._time(None) - 1 + by)

    def slow(self, a: str, b: str, by: int, during: tuple[Time | None, Time]) -> None:
        """Makes the link of two ends slower by `by` ms: of a node and the other one or "database"; or of all nodes of a
        group and the database. See `Slow` for the effect. Raises `Misuse` for a link to the clients.
        """
        first, end = _both(during)
        self._take(Slow(self._time(first), a, b, by, milliseconds(end, "during")))

    def _time(self, at: Time | None) -> int:
        if at is not None:
            return milliseconds(at, "at")
        clock = self._journal.status().clock
        if clock is None:
            raise Misuse("no event was received yet, so there is no event time: give one with at=")
        return clock + 1

    def _take(self, fault: Fault) -> None:
        status = self._journal.status()
        if status.clock is not None and fault.at <= status.clock:
            raise Misuse(f"{fault} at {fault.at} ms: the app's clock is at {status.clock} ms already")
        if self._groups.random:
            raise Misuse("the faults of this app are random: deploy it with a schedule to add to it")
        if status.first is None and self._groups.has_planned_faults:
            raise Misuse("the app's faults begin with its first event: send one, then add others")
        self._groups.check(status.first or 0, fault.at, (*status.faults, fault))
        self._journal.add(fault)


def _both(during: tuple[Time | None, Time]) -> tuple[Time | None, Time]:
    if not isinstance(during, tuple | list) or len(during) != 2:
        raise Misuse("during is two times: when it begins, and when it ends")
    return during[0], during[1]


def _meant(action: Action, at: int) -> Fault:
    """The fault that an action is at `at` (ms). Raises `Misuse` for one that is none."""
    match action:
        case Action(kind="kill", node=node):
            return Kill(at, node)
        case Action(kind="restart", node=node):
            return Restart(at, node)
        case Action(kind="pause", node=node):
            return Pause(at, node, at + LASTING)
        case Action(kind="cut", node=node, other=str(other)):
            return Cut(at, node, other, at + LASTING)
    raise Misuse(f"'{action.kind}' is nothing that can be done to {action.node}")
