"""Structs in compiled loops: a loop that takes structs is the loop over their arrays, and runs as plain Python too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from sparkstream_nb.engine.columnar.arrays import Array
from sparkstream_nb.engine.notation.inlining import inlined
from sparkstream_nb.engine.notation.kernels import Loop, compiled, compiled_by, kernel
from sparkstream_nb.engine.notation.structs import struct

SECOND = 1


@struct
class Out:
    def __init__(self, room: int) -> None:
        self.values = np.zeros(room, np.int64)
        self.count = 0

    @inlined
    def emit(self, value: int) -> None:
        self.values[self.count] = value
        self.count += 1


@struct
class Chains:
    """Lists of arrays, indexed by constants."""

    heads: list[Array]

    def __init__(self) -> None:
        self.heads = [np.array([1, 2], np.int64), np.array([10, 20], np.int64)]

    @inlined
    def head(self, chain: int, place: int) -> int:
        return self.heads[chain][place]


@struct
@dataclass
class Event:
    value: int
    place: int


@struct
class Doubling:
    chains: Chains
    factor: int
    wants_all: bool

    def __init__(self, factor: int, wants_all: bool = True) -> None:
        self.chains, self.factor, self.wants_all = Chains(), factor, wants_all

    @inlined
    def on_event(self, event: Event, out: Out) -> None:
        head = self.chains.head(SECOND, event.place)
        if self.wants_all or event.value > 1:
            out.emit(event.value * self.factor + head)

    @compiled
    def twice(self, value: int, out: Out) -> int:
        """A call that puts out two values; returns how many there are then."""
        out.emit(value)
        out.emit(value)
        return out.count

    @compiled_by("wants_all")
    def run(self, values: Array, out: Out) -> int:
        for i in range(len(values)):
            event = Event(values[i], i)
            self.on_event(event, out)
        chains = self.chains  # another name of the struct
        out.count = self.twice(chains.heads[0][0], out)
        return out.count


@pytest.mark.parametrize(("wants_all", "expected"), [(True, [13, 26, 1, 1]), (False, [26, 1, 1])])
@pytest.mark.parametrize("plain", [False, True])
def test_a_loop_over_structs(plain: bool, wants_all: bool, expected: list[int]) -> None:
    doubling, out = Doubling(3, wants_all), Out(9)
    run: Callable[..., int] = Doubling.run.function if plain else type(doubling).run.loop(wants_all)
    n = run(doubling, np.array([1, 2]), out)
    assert out.values[:n].tolist() == expected


def test_a_loop_takes_the_fields_that_it_uses_and_no_others() -> None:
    loop = Doubling.run.loop(True)
    assert isinstance(loop, Loop)
    names = loop.py_func.__code__.co_varnames[: loop.py_func.__code__.co_argcount]
    assert names == ("self_chains_heads_1", "self_factor", "self_chains_heads_0", "values", "out_values", "out_count")


def test_a_loop_is_bound_to_a_class() -> None:
    def loop(events: Any, values: Array, out: Out) -> int:
        for i in range(len(values)):
            event = Event(values[i], 0)
            events.on_event(event, out)
        return out.count

    out = Out(3)
    assert kernel(loop, {"events": Doubling})(Doubling(2), np.array([1, 2]), out) == 2
    assert out.values[:2].tolist() == [12, 14]


def lost(doubling: Doubling, out: Out) -> int:
    doubling.twice(1, out)
    return out.count


def handed_on(doubling: Doubling, out: Out) -> int:
    return len(doubling)  # type: ignore[arg-type]


def unknown(doubling: Doubling, out: Out) -> int:
    doubling.three_times(1)  # type: ignore[attr-defined]
    return 0


def from_a_variable(doubling: Doubling, out: Out) -> int:
    total = 0
    for k in range(2):
        total += doubling.chains.heads[k][0]
    return total


@pytest.mark.parametrize(
    ("loop", "why"),
    [
        (lost, r"the loop assigns out\.count: it must return that, and the call be assigned to out\.count"),
        (handed_on, "doubling is a struct, which only compiled loops take"),
        (unknown, "Doubling has no attribute three_times"),
        (from_a_variable, "a list of a struct is indexed by constants"),
    ],
)
def test_what_a_loop_cannot_do_is_refused(loop: Callable[..., int], why: str) -> None:
    with pytest.raises((TypeError, AttributeError), match=why):
        kernel(loop)


def reads_what_it_changed(out: Out) -> int:
    _before_and_after(out.count, out)
    return out.count


@inlined
def _before_and_after(before: int, out: Out) -> None:
    out.emit(7)
    out.values[5] = before


def test_an_argument_is_what_it_was_when_the_helper_was_called() -> None:
    for run in (kernel(reads_what_it_changed), reads_what_it_changed):
        out = Out(9)
        assert run(out) == 1
        assert out.values[[0, 5]].tolist() == [7, 0]
