"""What a person does to the nodes of a running app's groups, in the app's own time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import pandas as pd

from ..errors import Misuse
from ..simulation.faults import Cut, Fault, Kill, Pause, Restart, Slow
from ..simulation.groups import Groups
from .deployment import milliseconds

Time = int | str | datetime


@dataclass(frozen=True)
class Told:
    """What an app was told: its clock (ms) after the first step and now, None where no event came in yet, and the
    faults that were added to those that were planned."""

    first: int | None
    clock: int | None
    faults: Sequence[Fault]


class Cluster:
    """The nodes of an app in mode ha or scalable, and the faults that they are given; `App.cluster`.

    A fault comes to pass when the app's clock reaches its time, which is ms since 1970, a datetime or an ISO text;
    without one it comes right after what came in. It stays in the app's journal, so that it repeats.
    """

    def __init__(self, groups: Groups, told: Callable[[], Told], add: Callable[[Fault], None]) -> None:
        """`told`: what the app was told so far; `add` puts a fault into its journal."""
        self._groups, self._told, self._add = groups, told, add

    @property
    def nodes(self) -> tuple[str, ...]:
        """The ids of the nodes."""
        return self._groups.nodes

    @property
    def faults(self) -> pd.DataFrame:
        """The faults that were added, in the order of their times: at (ms), what."""
        rows = sorted([f.at, str(f)] for f in self._told().faults)
        return pd.DataFrame(rows, columns=["at", "what"])

    def kill(self, node: str, at: Time | None = None) -> None:
        """Ends a node's process. Raises `Misuse` for a node that is not there or down, and a time that is past."""
        self._take(Kill(self._time(at), node))

    def restart(self, node: str, at: Time | None = None) -> None:
        """Starts a node that was killed. Raises `Misuse` for a node that is up."""
        self._take(Restart(self._time(at), node))

    def pause(self, node: str, during: tuple[Time | None, Time]) -> None:
        """Lets a node stand still, as in a long collection of garbage, from a time (None: right now) to another."""
        first, end = _both(during)
        self._take(Pause(self._time(first), node, milliseconds(end, "during")))

    def cut(self, a: str, b: str, during: tuple[Time | None, Time]) -> None:
        """Keeps two ends from reaching each other: a node and the other one, "database" or "clients"; or all nodes of a
        group and one of these two. To nodes behind a partitioning layer, that is their clients."""
        first, end = _both(during)
        self._take(Cut(self._time(first), a, b, milliseconds(end, "during")))

    def slow(self, a: str, b: str, by: int, during: tuple[Time | None, Time]) -> None:
        """Makes the link of two ends slower by `by` ms: of a node and the other one or "database"; or of all nodes of a
        group and the database. `Slow` says what that does. Raises `Misuse` for a link to the clients."""
        first, end = _both(during)
        self._take(Slow(self._time(first), a, b, by, milliseconds(end, "during")))

    def _time(self, at: Time | None) -> int:
        if at is not None:
            return milliseconds(at, "at")
        clock = self._told().clock
        if clock is None:
            raise Misuse("no event came in yet, so there is no time to go by: give one with at=")
        return clock + 1

    def _take(self, fault: Fault) -> None:
        told = self._told()
        if told.clock is not None and fault.at <= told.clock:
            raise Misuse(f"{fault} at {fault.at} ms: the app's clock is at {told.clock} ms already")
        if self._groups.random:
            raise Misuse("the faults of this app are random: deploy it with a schedule to add to it")
        if told.first is None and any(s.faults for s in self._groups.scenarios):
            raise Misuse("the app's faults begin with its first event: send one, then add others")
        self._groups.check(told.first or 0, fault.at, (*told.faults, fault))
        self._add(fault)


def _both(during: tuple[Time | None, Time]) -> tuple[Time | None, Time]:
    if not isinstance(during, tuple | list) or len(during) != 2:
        raise Misuse("during is two times: when it begins, and when it ends")
    return during[0], during[1]
