"""Event times: how events are spread over time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ..errors import Misuse, nearest, shown
from .column import Seed, is_number
from .ieee_arithmetic import Array, unit_exponentials

_NAME = "\0arrivals"
"""The name of the random words of event times: no attribute has it."""


class ArrivalProcess(ABC):
    """A way in which events arrive, at a rate on average."""

    @abstractmethod
    def draw_offsets(self, seed: Seed, n: int, rate: float) -> Array:
        """Times since the first event in ms, float64[n], in order. `rate`: events a second."""


@dataclass(frozen=True)
class Steady(ArrivalProcess):
    """Events that are all equally far apart."""

    def draw_offsets(self, seed: Seed, n: int, rate: float) -> Array:
        return np.arange(n) * 1000.0 / rate


@dataclass(frozen=True)
class Poisson(ArrivalProcess):
    """Events that are independent of each other: exponentially distributed gaps."""

    def draw_offsets(self, seed: Seed, n: int, rate: float) -> Array:
        return _add_gaps(seed, n, np.full(n, 1000.0 / rate))


@dataclass(frozen=True)
class Bursts(ArrivalProcess):
    """Bursts of `size` events on average, at `factor` times the rate, and pauses between them."""

    size: float = 20.0
    factor: float = 10.0

    def __post_init__(self) -> None:
        for name, value in (("size", self.size), ("factor", self.factor)):
            if not is_number(value) or value < 1:
                raise Misuse(f"bursts: {name} is a number from 1, not {shown(value)}")

    def draw_offsets(self, seed: Seed, n: int, rate: float) -> Array:
        mean = 1000.0 / rate
        within = mean / self.factor
        pause = self.size * mean - (self.size - 1.0) * within
        begins = seed.draw_uniforms(f"{_NAME}/bursts", n) < 1.0 / self.size
        return _add_gaps(seed, n, np.where(begins, pause, within))


def _add_gaps(seed: Seed, n: int, means: Array) -> Array:
    gaps = unit_exponentials(seed.draw_uniforms(_NAME, n)) * means
    gaps[:1] = 0.0
    return np.cumsum(gaps)


ARRIVALS: dict[str, ArrivalProcess] = {"steady": Steady(), "poisson": Poisson(), "bursts": Bursts()}
"""Ways of arriving by name."""


def arrivals_of(arrivals: str | ArrivalProcess) -> ArrivalProcess:
    """A way of arriving by its name. Raises `Misuse` for an unknown one."""
    if isinstance(arrivals, ArrivalProcess):
        return arrivals
    if arrivals not in ARRIVALS:
        raise Misuse(nearest(f"arrivals cannot be {shown(arrivals)}", str(arrivals), ARRIVALS))
    return ARRIVALS[arrivals]
