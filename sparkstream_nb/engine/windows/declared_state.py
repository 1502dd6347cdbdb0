"""The state of a window whose events are in chains, declared: from the declarations come room for more instances, the
snapshot and its inverse, and what is dropped for a partition instance that is gone.

    chains = ("current", "expired")                  # the names of the log's chains in a snapshot
    newest = per_instance(fill=UNSEEN)               # a number for each instance
    count = lengths()                                # the length of the chain of each instance
    reset = first_events()                           # the position of an event by instance (-1: none)
    emit = numbers(-1)                               # numbers of the whole window
    timers = scheduled_times()

A declaration is an attribute of the class; instances have the array, or `Timers`, under its name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...types import Type
from ..columnar.arrays import fill_at, grown
from ..columnar.column_data import Array
from ..columnar.timers import Timers
from ..notation.kernels import struct
from .chain import ChainedLog


class _PerInstance:
    """An array whose last axis has a place for each instance."""

    saved = True

    def __init__(self, fill: int, rows: int | None = None) -> None:
        self.fill, self.rows = fill, rows

    def create(self) -> Array:
        return np.zeros(0 if self.rows is None else (self.rows, 0), np.int64)

    def widen(self, value: Array, instances: int) -> Array:
        return grown(value, instances, self.fill)

    def forget(self, value: Array, instances: Array) -> None:
        fill_at(value, instances, self.fill)

    def state(self, value: Array, log: ChainedLog) -> Any:
        return value[..., : log.instances]

    def load(self, value: Array, state: Any) -> Array:
        return np.array(state)


class _Lengths(_PerInstance):
    """The length of the first chain of each instance; the snapshot of the chain has it."""

    saved = False


class _FirstEvents(_PerInstance):
    """Positions in the log, which hold their events there though they are in no chain."""

    def state(self, value: Array, log: ChainedLog) -> Any:
        instances = np.flatnonzero(value >= 0)
        return {"events": log.state(value[instances]), "parts": instances, "size": len(value)}

    def load(self, value: Array, state: Any) -> Array:
        """The events come first in the log that is loaded (`ChainedLog.load_chains`)."""
        out = np.full(state["size"], -1, np.int64)
        out[state["parts"]] = np.arange(len(state["parts"]))
        return out


class _Numbers:
    """Numbers of the whole window."""

    saved = True

    def __init__(self, *values: int) -> None:
        self.values = values

    def create(self) -> Array:
        return np.array(self.values, np.int64)

    def widen(self, value: Array, instances: int) -> Array:
        return value

    def forget(self, value: Array, instances: Array) -> None:
        """There is no number of an instance."""

    def state(self, value: Array, log: ChainedLog) -> Any:
        return value

    def load(self, value: Array, state: Any) -> Array:
        return np.array(state)


class _Timers:
    saved = True

    def create(self) -> Timers:
        return Timers()

    def widen(self, value: Timers, instances: int) -> Timers:
        return value  # `Timers.room` needs the number of events too

    def forget(self, value: Timers, instances: Array) -> None:
        value.forget(instances)

    def state(self, value: Timers, log: ChainedLog) -> Any:
        return value.state()

    def load(self, value: Timers, state: Any) -> Timers:
        value.load(state)
        return value


_Declaration = _PerInstance | _Numbers | _Timers


def per_instance(fill: int = 0, rows: int | None = None) -> Any:
    """An array with a number for each instance, or with this number of `rows` of them; new ones are `fill`."""
    return _PerInstance(fill, rows)


def lengths() -> Any:
    """The length of the first chain of each instance; the window counts its events."""
    return _Lengths(0)


def first_events() -> Any:
    """By instance, the position of an event that a RESET row will carry (-1: none)."""
    return _FirstEvents(-1)


def numbers(*values: int) -> Any:
    """Numbers of the whole window, with these values at first."""
    return _Numbers(*values)


def scheduled_times() -> Any:
    """The timers of the instances."""
    return _Timers()


@struct
class ChainedWindow:
    """A window with its events in chains, and with declared state."""

    chains: tuple[str, ...] = ("events",)
    log: ChainedLog
    _declared: dict[str, _Declaration]

    def _declare(self, types: tuple[Type, ...], *, in_line: bool = False, timed: bool = True) -> None:
        """Begins with no events, of these types; see `ChainedLog`."""
        self.log = ChainedLog(types, len(self.chains), in_line, timed)
        for name, declaration in self._declared.items():
            setattr(self, name, declaration.create())

    def __init_subclass__(cls) -> None:
        values = {name: value for c in reversed(cls.__mro__) for name, value in vars(c).items()}
        cls._declared = {name: value for name, value in values.items() if isinstance(value, _Declaration)}

    def _widen(self, instances: int) -> None:
        """Makes room for this number of instances."""
        for name, declaration in self._declared.items():
            setattr(self, name, declaration.widen(getattr(self, name), instances))

    def _tidy(self) -> None:
        """Compacts the log, as `ChainedLog.tidy`; first events stay in it."""
        firsts = [getattr(self, n) for n, d in self._declared.items() if isinstance(d, _FirstEvents)]
        for positions in firsts:
            self.log.alive[positions[positions >= 0]] = True
        self.log.tidy(*firsts)

    def forget(self, instances: Array) -> None:
        """Drops all that is held for these partition instances."""
        self.log.forget(instances)
        for name, declaration in self._declared.items():
            declaration.forget(getattr(self, name), instances)

    def state(self) -> dict[str, Any]:
        """A snapshot as plain data."""
        return self._state(self.log.chain_state)

    def save_state(self) -> dict[str, Any]:
        """`state`, with chains as `save_chain` gives them."""
        return self._state(self.save_chain)

    def save_chain(self, chain: int) -> dict[str, Any]:
        """A chain as it is saved; windows whose chains may be large override it."""
        return self.log.chain_state(chain)

    def _state(self, save: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
        chains = {name: save(i) for i, name in enumerate(self.chains)}
        rest = {n: d.state(getattr(self, n), self.log) for n, d in self._declared.items() if d.saved}
        return {**chains, **rest}

    def load(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""
        declared = self._declared
        firsts = [name for name, d in declared.items() if isinstance(d, _FirstEvents)]
        self.log.load_chains([state[c] for c in self.chains], *(state[name]["events"] for name in firsts))
        for name, declaration in declared.items():
            saved = state[name] if declaration.saved else state[self.chains[0]]["lengths"]
            setattr(self, name, declaration.load(getattr(self, name), saved))

    @property
    def bytes(self) -> int:
        """Bytes held."""
        return self.log.bytes
