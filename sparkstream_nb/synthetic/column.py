"""A generator of a column's values: what it needs to draw them, and the attributes that it fits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from .. import seeded
from ..errors import Misuse, shown
from ..types import Attribute, Type
from .drawn import Drawn
from .ieee_arithmetic import Array

NUMBERS = frozenset({Type.INT, Type.LONG, Type.FLOAT, Type.DOUBLE})
WHOLE = {Type.INT: (-(2**31), 2**31 - 1), Type.LONG: (-(2**63), 2**63 - 1)}
"""The smallest and the largest value of a type of whole numbers."""


@dataclass(frozen=True)
class Seed:
    """A seed for the events of a stream: streams with columns of the same names have other values, at other times."""

    number: int
    stream: str = ""

    def draw_words(self, name: str, n: int) -> Array:
        """Random words, uint64[n], by a name of their own within the stream."""
        return seeded.words(self.number, f"{self.stream}\0{name}", n)

    def draw_uniforms(self, name: str, n: int) -> Array:
        """Random numbers from 0 to below 1, float64[n], by a name of their own within the stream."""
        return seeded.uniforms(self.number, f"{self.stream}\0{name}", n)


@dataclass(frozen=True)
class Draw:
    """One column to be drawn: `n` values for the attribute, at the event times `times` (ms, int64[n]). `find_column`
    gives another column of the same events, which is drawn first; `key` names the stream's key column, if it has one.
    """

    seed: Seed
    attribute: Attribute
    times: Array
    find_column: Callable[[str], Drawn]
    key: str | None = None

    @property
    def n(self) -> int:
        return len(self.times)

    def draw_words(self, part: str = "", n: int | None = None) -> Array:
        """Random words, uint64[n]. Each part of each column has a sequence of its own."""
        return self.seed.draw_words(f"{self.attribute.name}\0{part}", self.n if n is None else n)

    def draw_uniforms(self, part: str = "", n: int | None = None) -> Array:
        """Random numbers from 0 to below 1, float64[n]."""
        return self.seed.draw_uniforms(f"{self.attribute.name}\0{part}", self.n if n is None else n)


class GeneratedColumn(ABC):
    """A generator of a column's values. The functions of `sparkstream_nb.columns` make them."""

    label: ClassVar[str]
    """The function that makes it."""
    types: ClassVar[frozenset[Type]]
    """The types of attributes that it fits."""

    @abstractmethod
    def draw(self, draw: Draw) -> Drawn:
        """The values of a column, for an attribute that it fits."""

    def check(self, attribute: Attribute) -> None:
        """Raises `Misuse` if it does not fit an attribute."""
        if attribute.type not in self.types:
            kinds = "numbers" if self.types <= NUMBERS else " or ".join(sorted(t.value for t in self.types))
            raise Misuse(
                f"columns['{attribute.name}']: {self.label} gives {kinds}, and {attribute.name} is "
                f"{describe_type(attribute.type)}. Use {suggest_columns(attribute.type)}"
            )

    def nulls(self, share: float) -> WithNulls:
        """The same values, of which a share from 0 to 1 is null."""
        return WithNulls(self, share)


@dataclass(frozen=True)
class WithNulls(GeneratedColumn):
    """Values of another generator, of which a share is null."""

    column: GeneratedColumn
    share: float

    label = "nulls"
    types = frozenset(Type)

    def __post_init__(self) -> None:
        if not is_number(self.share) or not 0 <= self.share <= 1:
            raise Misuse(f"nulls is a share from 0 to 1, not {shown(self.share)}")

    def check(self, attribute: Attribute) -> None:
        self.column.check(attribute)

    def draw(self, draw: Draw) -> Drawn:
        values = self.column.draw(draw)
        missing = draw.draw_uniforms("null") < self.share
        return replace(values, missing=missing if values.missing is None else missing | values.missing)


def describe_type(type: Type) -> str:
    """`an int`, `a string`."""
    return f"{'an' if type.value[0] in 'io' else 'a'} {type}"


def suggest_columns(type: Type) -> str:
    """The functions that fit an attribute's type, for messages."""
    if type is Type.STRING:
        return "choice, zipf, sequence, regex or names"
    if type is Type.BOOL:
        return "chance or choice"
    if type is Type.OBJECT:
        return "nothing: its values are null"
    return "uniform, normal, exponential, walk, zipf, sequence or choice"


def is_number(value: object) -> bool:
    """True for a finite number that is no boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def check_numbers(label: str, **values: object) -> None:
    """Raises `Misuse` for an argument that is not a finite number."""
    for name, value in values.items():
        if not is_number(value):
            raise Misuse(f"{label}: {name} is a number, not {shown(value)}")


def check_decimals(label: str, decimals: object) -> None:
    """Raises `Misuse` for decimal places that are none; None keeps all."""
    if decimals is None:
        return
    if not isinstance(decimals, int) or isinstance(decimals, bool) or not 0 <= decimals <= 15:
        raise Misuse(f"{label}: decimals is a whole number from 0 to 15, not {shown(decimals)}")


def check_bounds(label: str, low: float | None, high: float | None) -> None:
    """Raises `Misuse` for bounds that are not numbers, or in the wrong order."""
    check_numbers(label, **{n: v for n, v in (("low", low), ("high", high)) if v is not None})
    if low is not None and high is not None and low > high:
        raise Misuse(f"{label}: low is {shown(low)} and high is {shown(high)}: low is at most high")


def check_within_type(label: str, attribute: Attribute, *values: float | None) -> None:
    """Raises `Misuse` for a number that the attribute's type of whole numbers does not hold."""
    bounds = WHOLE.get(attribute.type)
    for value in values:
        if bounds is not None and value is not None and not bounds[0] <= value <= bounds[1]:
            raise Misuse(
                f"columns['{attribute.name}']: {label} gives {shown(value)}, and {describe_type(attribute.type)} is "
                f"from {bounds[0]:,} to {bounds[1]:,}"
            )


def fit_numbers(x: Array, type: Type) -> Array:
    """Real numbers as values of a type: whole ones are rounded, and kept within the type's range."""
    if type not in WHOLE:
        return x
    low, high = WHOLE[type]
    # The largest long is no float: the nearest one below it is 2**63 - 1024.
    return np.clip(np.rint(x), float(low), float(high) if type is Type.INT else 2.0**63 - 1024).astype(np.int64)
