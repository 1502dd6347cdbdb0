"""The state of windows, declared (`state/declared.py`): windows with events in chains, and windows of one instance with
events in a row.

    chains = ("current", "expired")                  # the names of the log's chains in a snapshot
    newest = per_instance(fill=BEFORE_ALL)           # a number for each instance
    count = lengths()                                # the length of the chain of each instance
    reset = first_events()                           # the position of an event by instance (-1: none)
    emit = numbers(-1)                               # numbers of the whole window
    timers = scheduled_times()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...types import Type
from ..columnar.column_data import Array
from ..columnar.eventlog import EventLog
from ..columnar.timers import Timers
from ..notation.kernels import struct
from ..state.declared import DeclaredState, Numbers, PerInstance, numbers, part, per_instance, plain_value
from ..state.saving import Form, plain
from .chain import ChainedLog
from .window_protocol import OutsidePartitions

__all__ = ["ChainedWindow", "first_events", "lengths", "numbers", "per_instance", "plain_value", "scheduled_times"]


class _Lengths(PerInstance):
    """The length of the first chain of each instance; the snapshot of the chain has it."""


class _FirstEvents(PerInstance):
    """Positions in the log, which hold their events there though they are in no chain."""

    def state(self, value: Array, form: Form, owner: ChainedWindow) -> Any:
        instances = np.flatnonzero(value >= 0)
        return {"events": owner.log.state(value[instances]), "parts": instances, "size": len(value)}

    def load(self, value: Array, state: Any, owner: ChainedWindow) -> Array:
        """The events come first in the log that is loaded (`ChainedLog.load_chains`)."""
        out = np.full(state["size"], -1, np.int64)
        out[state["parts"]] = np.arange(len(state["parts"]))
        return out


class _Positions(Numbers):
    """Positions in the log; a snapshot counts them from the first event that it has."""

    def state(self, value: Array, form: Form, owner: Any) -> Any:
        return value - value.min()


def lengths() -> Any:
    """The length of the first chain of each instance; the window counts its events."""
    return _Lengths(is_saved=False)


def first_events() -> Any:
    """By instance, the position of an event that a RESET row will carry (-1: none)."""
    return _FirstEvents(-1)


def scheduled_times() -> Any:
    """The timers of the instances."""
    return part(Timers)


@struct
class ChainedWindow(DeclaredState):
    """A window with its events in chains, and with declared state."""

    chains: tuple[str, ...] = ("events",)
    log: ChainedLog

    def _declare(self, types: tuple[Type, ...], *, in_line: bool = False, has_times: bool = True) -> None:
        """Begins with no events, of these types; see `ChainedLog`."""
        self.log = ChainedLog(types, len(self.chains), in_line, has_times)
        self._create()

    @property
    def instances(self) -> int:
        """Number of partition instances."""
        return self.log.instances

    def _tidy(self) -> None:
        """Compacts the log, as `ChainedLog.tidy`; first events stay in it."""
        firsts = [getattr(self, n) for n, d in self._declarations.items() if isinstance(d, _FirstEvents)]
        for positions in firsts:
            self.log.alive[positions[positions >= 0]] = True
        self.log.tidy(*firsts)

    def forget(self, instances: Array) -> None:
        """Drops all that is held for these partition instances."""
        self.log.forget(instances)
        self._drop(instances)

    def save_chain(self, chain: int) -> dict[str, Any]:
        """A chain as it is saved; windows whose chains may be large override it."""
        return self.log.chain_state(chain)

    def _state(self, form: Form) -> dict[str, Any]:
        save: Callable[[int], dict[str, Any]] = self.log.chain_state if form is plain else self.save_chain
        return {**{name: save(i) for i, name in enumerate(self.chains)}, **super()._state(form)}

    def load(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""
        firsts = [d.name for d in self._declarations.values() if isinstance(d, _FirstEvents)]
        self.log.load_chains([state[c] for c in self.chains], *(state[name]["events"] for name in firsts))
        for name, d in self._declarations.items():
            if isinstance(d, _Lengths):
                setattr(self, name, np.array(state[self.chains[0]]["lengths"]))
        super().load(state)

    @property
    def bytes(self) -> int:
        """Bytes held."""
        return self.log.bytes


@struct
class WindowInLine(OutsidePartitions, DeclaredState):
    """A window of one instance whose events lie in a row, with declared state. `places` are two positions in the log;
    events before both are gone."""

    log: EventLog
    places: Any = _Positions(0, 0)

    def _declare(self, types: tuple[Type, ...]) -> None:
        """Begins with no events, of these types."""
        self.log = EventLog(types, is_partitioned=False)
        self._create()

    def _state(self, form: Form) -> dict[str, Any]:
        log, low = self.log, int(self.places.min())
        events = log.state(np.arange(low, log.end)) if form is plain else log.save_state(low, log.end)
        return {"events": events, **super()._state(form)}

    def load(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""
        self.log.load(state["events"])
        super().load(state)

    @property
    def bytes(self) -> int:
        """Bytes held."""
        return self.log.bytes_from(int(self.places.min()))
