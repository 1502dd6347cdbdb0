"""Generators of columns: choices, numbers by distribution, random walks, sequences and keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import Misuse, has_surrogate, shown
from ..types import Attribute, Type
from .column import (
    NUMBERS,
    Draw,
    GeneratedColumn,
    check_bounds,
    check_decimals,
    check_numbers,
    check_within_type,
    describe_type,
    fit_numbers,
    is_number,
)
from .drawn import Drawn
from .ieee_arithmetic import (
    Array,
    cumulate_weights,
    pick_weighted,
    power,
    round_decimals,
    scale_words,
    unit_exponentials,
    unit_normals,
)

Value = str | bool | int | float | None
MOST_KEYS = 10_000_000


def check_weights(label: str, weights: Sequence[float] | None, count: int) -> None:
    """Raises `Misuse` for weights that are not one number from 0 for each value, with one above 0."""
    if weights is None:
        return
    if len(weights) != count:
        raise Misuse(f"{label}: {count:,} values have {len(weights):,} weights: give one for each")
    for weight in weights:
        if not is_number(weight) or weight < 0:
            raise Misuse(f"{label}: a weight is a number from 0, not {shown(weight)}")
    if not any(weights):
        raise Misuse(f"{label}: all weights are 0: one is above 0")


@dataclass(frozen=True)
class Choice(GeneratedColumn):
    """One of several values, each as often as its weight says; None is null."""

    values: tuple[Value, ...]
    weights: tuple[float, ...] | None = None

    label = "choice"
    types = frozenset(Type) - {Type.OBJECT}

    def __post_init__(self) -> None:
        if not self.values:
            raise Misuse("choice: there are no values to choose from")

    def check(self, attribute: Attribute) -> None:
        super().check(attribute)
        for value in self.values:
            if value is not None and not _fits(value, attribute.type):
                raise Misuse(
                    f"columns['{attribute.name}']: {shown(value)} is a value of choice, and {attribute.name} is "
                    f"{describe_type(attribute.type)}"
                )
            if is_number(value):
                check_within_type("choice", attribute, value)  # type: ignore[arg-type]

    def draw(self, draw: Draw) -> Drawn:
        words = draw.draw_words()
        if self.weights is None:
            positions = scale_words(words, len(self.values)).astype(np.int64)
        else:
            positions = pick_weighted(words, cumulate_weights(np.array(self.weights, np.float64)))
        nulls = np.array([v is None for v in self.values])
        filler = next((v for v in self.values if v is not None), "" if draw.attribute.type is Type.STRING else 0)
        pool = np.array([filler if v is None else v for v in self.values], _pool_type(draw.attribute.type))
        return Drawn(positions, pool, nulls[positions] if nulls.any() else None)


def _fits(value: Value, type: Type) -> bool:
    if type is Type.STRING:
        return isinstance(value, str) and not has_surrogate(value)
    if type is Type.BOOL:
        return isinstance(value, bool)
    return is_number(value) and (type not in (Type.INT, Type.LONG) or float(value).is_integer())  # type: ignore[arg-type]


def _pool_type(type: Type) -> str:
    return {Type.STRING: "object", Type.BOOL: "bool", Type.INT: "int64", Type.LONG: "int64"}.get(type, "float64")


@dataclass(frozen=True)
class Chance(GeneratedColumn):
    """True with a probability, else false."""

    probability: float

    label = "chance"
    types = frozenset({Type.BOOL})

    def __post_init__(self) -> None:
        check_numbers("chance", probability=self.probability)
        if not 0 <= self.probability <= 1:
            raise Misuse(f"chance: probability is from 0 to 1, not {shown(self.probability)}")

    def draw(self, draw: Draw) -> Drawn:
        return Drawn(draw.draw_uniforms() < self.probability)


@dataclass(frozen=True)
class Uniform(GeneratedColumn):
    """Numbers from `low` to `high`, all equally likely; whole ones include `high`."""

    low: float
    high: float
    decimals: int | None = None

    label = "uniform"
    types = NUMBERS

    def __post_init__(self) -> None:
        check_numbers("uniform", low=self.low, high=self.high)
        check_bounds("uniform", self.low, self.high)
        check_decimals("uniform", self.decimals)

    def check(self, attribute: Attribute) -> None:
        super().check(attribute)
        check_within_type("uniform", attribute, self.low, self.high)
        if attribute.type in (Type.INT, Type.LONG) and int(-(-self.low // 1)) > int(self.high // 1):
            raise Misuse(f"columns['{attribute.name}']: no whole number is from {self.low} to {self.high}")

    def draw(self, draw: Draw) -> Drawn:
        if draw.attribute.type in (Type.INT, Type.LONG):
            first, last = int(-(-self.low // 1)), int(self.high // 1)
            return Drawn((scale_words(draw.draw_words(), last - first + 1) + np.uint64(first % 2**64)).view(np.int64))
        return Drawn(_round(self.low + (self.high - self.low) * draw.draw_uniforms(), self.decimals))


@dataclass(frozen=True)
class Integers(GeneratedColumn):
    """Whole numbers from `low` to `high`, all equally likely."""

    low: int
    high: int

    label = "integers"
    types = NUMBERS

    def __post_init__(self) -> None:
        check_numbers("integers", low=self.low, high=self.high)
        if any(value != value // 1 for value in (self.low, self.high)):
            raise Misuse(f"integers: low and high are whole numbers, not {shown(self.low)} and {shown(self.high)}")
        _check_long("integers", low=self.low, high=self.high)
        check_bounds("integers", self.low, self.high)

    def check(self, attribute: Attribute) -> None:
        super().check(attribute)
        check_within_type("integers", attribute, self.low, self.high)

    def draw(self, draw: Draw) -> Drawn:
        first, last = int(self.low), int(self.high)
        words = scale_words(draw.draw_words(), last - first + 1) + np.uint64(first % 2**64)
        integers = words.view(np.int64)
        return Drawn(integers if draw.attribute.type in (Type.INT, Type.LONG) else integers.astype(np.float64))


def _round(x: Array, decimals: int | None) -> Array:
    return x if decimals is None else round_decimals(x, decimals)


@dataclass(frozen=True)
class Normal(GeneratedColumn):
    """Normally distributed numbers; those beyond a bound are mirrored at it."""

    mean: float
    deviation: float
    low: float | None = None
    high: float | None = None
    decimals: int | None = None

    label = "normal"
    types = NUMBERS

    def __post_init__(self) -> None:
        check_numbers("normal", mean=self.mean, deviation=self.deviation)
        if self.deviation < 0:
            raise Misuse(f"normal: deviation is a number from 0, not {shown(self.deviation)}")
        check_bounds("normal", self.low, self.high)
        check_decimals("normal", self.decimals)

    def check(self, attribute: Attribute) -> None:
        super().check(attribute)
        check_within_type("normal", attribute, self.mean, self.low, self.high)

    def draw(self, draw: Draw) -> Drawn:
        x = self.mean + self.deviation * unit_normals(draw.draw_uniforms())
        if self.low is not None:
            x = self.low + np.abs(x - self.low)
        if self.high is not None:
            x = self.high - np.abs(x - self.high)
            x = x if self.low is None else np.maximum(x, self.low)
        return Drawn(fit_numbers(_round(x, self.decimals), draw.attribute.type))


@dataclass(frozen=True)
class Exponential(GeneratedColumn):
    """Exponentially distributed numbers above `low`: many small ones and a few large ones."""

    mean: float
    low: float = 0.0
    decimals: int | None = None

    label = "exponential"
    types = NUMBERS

    def __post_init__(self) -> None:
        check_numbers("exponential", mean=self.mean, low=self.low)
        if self.mean <= self.low:
            raise Misuse(f"exponential: mean is above low ({shown(self.low)}), not {shown(self.mean)}")
        check_decimals("exponential", self.decimals)

    def check(self, attribute: Attribute) -> None:
        super().check(attribute)
        check_within_type("exponential", attribute, self.mean, self.low)

    def draw(self, draw: Draw) -> Drawn:
        x = self.low + (self.mean - self.low) * unit_exponentials(draw.draw_uniforms())
        return Drawn(fit_numbers(_round(x, self.decimals), draw.attribute.type))


_WALK_UNITS = 65_536
"""Units of a walk in one step."""


@dataclass(frozen=True)
class Walk(GeneratedColumn):
    """A random walk: each value differs from the one before by a normally distributed step of deviation `step`.

    With `key`, another column, each of its values has a walk of its own, which begins within a share `spread` of
    `start`. Walks turn back at `low` and `high`.
    """

    start: float
    step: float
    low: float | None = None
    high: float | None = None
    key: str | None = None
    spread: float = 0.0
    decimals: int | None = None

    label = "walk"
    types = NUMBERS

    def __post_init__(self) -> None:
        check_numbers("walk", start=self.start, step=self.step, spread=self.spread)
        if self.key is not None and not isinstance(self.key, str):
            raise Misuse(f"walk: key is the name of another column, not {shown(self.key)}")
        if self.step <= 0:
            raise Misuse(f"walk: step is a number above 0, not {shown(self.step)}")
        if not 0 <= self.spread <= 1:
            raise Misuse(f"walk: spread is a share from 0 to 1, not {shown(self.spread)}")
        check_bounds("walk", self.low, self.high)
        if self.low is not None and self.low == self.high:
            raise Misuse(f"walk: low and high are both {shown(self.low)}: there is no room to walk")
        if max(abs(v) for v in (self.start, self.low or 0, self.high or 0)) / self.step > 2**36:
            raise Misuse(f"walk: a step of {shown(self.step)} is too small beside its numbers")
        check_decimals("walk", self.decimals)

    def check(self, attribute: Attribute) -> None:
        super().check(attribute)
        check_within_type("walk", attribute, self.start, self.low, self.high)

    def draw(self, draw: Draw) -> Drawn:
        # Whole units, whose sums are exact: a walk is the same whatever walks of other keys are added up beside it.
        unit = self.step / _WALK_UNITS
        steps = np.rint(unit_normals(draw.draw_uniforms()) * _WALK_UNITS).astype(np.int64)
        if self.key is None:
            at = np.cumsum(steps) + round(self.start / unit)
        else:
            groups = draw.find_column(self.key).group_by_value()
            count = int(groups.max(initial=0)) + 1
            begins = self.start * (1.0 + self.spread * (2.0 * draw.draw_uniforms("start", count) - 1.0))
            at = _cumulate_by_group(steps, groups) + np.rint(begins / unit).astype(np.int64)[groups]
        low, high = (None if v is None else round(v / unit) for v in (self.low, self.high))
        x = _turn_back(at, low, high) * unit
        return Drawn(fit_numbers(_round(x, self.decimals), draw.attribute.type))


def _cumulate_by_group(steps: Array, groups: Array) -> Array:
    """The sum of the steps so far of each row's group."""
    narrow = groups.astype(np.uint16) if groups.max(initial=0) < 2**16 else groups  # sorted in linear time
    order = np.argsort(narrow, kind="stable")
    sums = np.cumsum(steps[order])
    first = np.flatnonzero(np.diff(groups[order], prepend=-1))
    before = np.concatenate([[0], sums])[first]
    out = np.empty_like(steps)
    out[order] = sums - np.repeat(before, np.diff(first, append=len(steps)))
    return out


def _turn_back(at: Array, low: int | None, high: int | None) -> Array:
    """Places mirrored at bounds."""
    if low is not None and high is not None:
        width = high - low
        at = low + width - np.abs((at - low) % (2 * width) - width)
    elif low is not None:
        at = low + np.abs(at - low)
    elif high is not None:
        at = high - np.abs(at - high)
    return at


@dataclass(frozen=True)
class Numbering(GeneratedColumn):
    """Numbers in order, or texts of a prefix and such a number."""

    start: int = 1
    step: int = 1
    prefix: str = ""

    label = "sequence"
    types = NUMBERS | {Type.STRING}

    def __post_init__(self) -> None:
        for name, value in (("start", self.start), ("step", self.step)):
            if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 2**53:
                raise Misuse(f"sequence: {name} is a whole number, not {shown(value)}")
        check_prefix("sequence", self.prefix)

    def check(self, attribute: Attribute) -> None:
        super().check(attribute)
        refuse_prefix(self.label, self.prefix, attribute)

    def draw(self, draw: Draw) -> Drawn:
        last = self.start + self.step * max(0, draw.n - 1)
        check_within_type("sequence", draw.attribute, self.start, last)
        numbers = self.start + self.step * np.arange(draw.n, dtype=np.int64)
        if draw.attribute.type is Type.STRING:
            return Drawn(join_prefix(self.prefix, numbers))
        return Drawn(numbers)


def _check_long(label: str, **numbers: float) -> None:
    """Raises `Misuse` for a number that no long can be."""
    for name, value in numbers.items():
        if not -(2**63) <= value < 2**63:
            raise Misuse(f"{label}: {name} is not within a long, from -2**63 to 2**63 - 1: {shown(value)}")


def check_prefix(label: str, prefix: object) -> None:
    """Raises `Misuse` for a prefix that is no text."""
    if not isinstance(prefix, str) or has_surrogate(prefix):
        raise Misuse(f"{label}: prefix is a text, not {shown(prefix)}")


def refuse_prefix(label: str, prefix: str, attribute: Attribute) -> None:
    """Raises `Misuse` for a prefix of numbers."""
    if prefix and attribute.type is not Type.STRING:
        raise Misuse(
            f"columns['{attribute.name}']: {label} with the prefix {shown(prefix)} gives texts, and {attribute.name} "
            f"is {describe_type(attribute.type)}: leave prefix out"
        )


def join_prefix(prefix: str, numbers: Array) -> Array:
    """Texts such as `card-17`, object[n]."""
    array = pc.binary_join_element_wise(prefix, pc.cast(pa.array(numbers), pa.string()), "")
    texts: Array = array.to_numpy(zero_copy_only=False)
    return texts


@dataclass(frozen=True)
class CountedKeys(GeneratedColumn):
    """Keys that are numbered from `first`, as texts with a prefix or as numbers: `counts` are the weights of the first
    ones, and all others of the `distinct` ones together have the weight `rest`."""

    distinct: int
    counts: tuple[float, ...]
    rest: float = 0.0
    prefix: str = ""
    first: int = 1

    label = "like"
    types = NUMBERS | {Type.STRING}

    def check(self, attribute: Attribute) -> None:
        super().check(attribute)
        refuse_prefix(self.label, self.prefix, attribute)
        check_within_type(self.label, attribute, self.first, self.first + self.distinct - 1)

    def draw(self, draw: Draw) -> Drawn:
        positions = pick_weighted(draw.draw_words(), self._thresholds)
        numbers = np.arange(self.first, self.first + self.distinct, dtype=np.int64)
        return Drawn(positions, join_prefix(self.prefix, numbers) if draw.attribute.type is Type.STRING else numbers)

    @cached_property
    def _thresholds(self) -> Array:
        others = self.distinct - len(self.counts)
        weights = np.array(self.counts, np.float64)
        return cumulate_weights(np.concatenate([weights, np.full(others, self.rest / max(others, 1))]))


@dataclass(frozen=True)
class Zipf(GeneratedColumn):
    """Keys of which the k-th is drawn in proportion to 1 / k**exponent: few are frequent and most are rare."""

    distinct: int
    exponent: float = 1.0
    prefix: str = ""
    first: int = 1

    label = "zipf"
    types = NUMBERS | {Type.STRING}

    def __post_init__(self) -> None:
        if not isinstance(self.distinct, int) or isinstance(self.distinct, bool) or not 1 <= self.distinct <= MOST_KEYS:
            raise Misuse(f"zipf: the number of keys is from 1 to {MOST_KEYS:,}, not {shown(self.distinct)}")
        if not isinstance(self.first, int) or isinstance(self.first, bool):
            raise Misuse(f"zipf: first is a whole number, not {shown(self.first)}")
        _check_long("zipf", first=self.first, last=self.first + self.distinct - 1)
        check_numbers("zipf", exponent=self.exponent)
        if not 0 <= self.exponent <= 10:
            raise Misuse(f"zipf: exponent is from 0 (all keys alike) to 10, not {shown(self.exponent)}")
        check_prefix("zipf", self.prefix)

    def check(self, attribute: Attribute) -> None:
        super().check(attribute)
        refuse_prefix(self.label, self.prefix, attribute)
        check_within_type(self.label, attribute, self.first, self.first + self.distinct - 1)

    def draw(self, draw: Draw) -> Drawn:
        weights = power(np.arange(1.0, self.distinct + 1.0), -self.exponent)
        return CountedKeys(self.distinct, tuple(weights.tolist()), prefix=self.prefix, first=self.first).draw(draw)


@dataclass(frozen=True)
class PerKey(GeneratedColumn):
    """One value for each value of another column: the country of a card, the room of a sensor."""

    key: str
    column: GeneratedColumn

    label = "per_key"
    types = frozenset(Type)

    def check(self, attribute: Attribute) -> None:
        self.column.check(attribute)

    def draw(self, draw: Draw) -> Drawn:
        groups = draw.find_column(self.key).group_by_value()
        each = self.column.draw(replace(draw, times=np.zeros(int(groups.max(initial=0)) + 1, np.int64)))
        missing = None if each.missing is None else each.missing[groups]
        return Drawn(each.values[groups], each.pool, missing)


@dataclass(frozen=True)
class Quantiles(GeneratedColumn):
    """Numbers between quantiles that are equally far apart, the smallest and the largest included."""

    quantiles: tuple[float, ...]
    decimals: int | None = None

    label = "like"
    types = NUMBERS

    def check(self, attribute: Attribute) -> None:
        super().check(attribute)
        check_within_type("like", attribute, self.quantiles[0], self.quantiles[-1])

    def draw(self, draw: Draw) -> Drawn:
        place = draw.draw_uniforms() * float(len(self.quantiles) - 1)
        below = place.astype(np.int64)
        points = np.array([*self.quantiles, self.quantiles[-1]], np.float64)
        x = points[below] + (place - below) * (points[below + 1] - points[below])
        return Drawn(fit_numbers(_round(x, self.decimals), draw.attribute.type))


@dataclass(frozen=True)
class EventTimes(GeneratedColumn):
    """The event time: ms since 1970, or as a text in ISO 8601, in UTC."""

    label = "event_time"
    types = frozenset({Type.LONG, Type.STRING})

    def draw(self, draw: Draw) -> Drawn:
        if draw.attribute.type is Type.LONG:
            return Drawn(draw.times)
        moments = draw.times.view("datetime64[ms]")
        return Drawn(np.char.add(np.datetime_as_string(moments, unit="ms"), "Z").astype(object))


@dataclass(frozen=True)
class AlwaysNull(GeneratedColumn):
    """Nulls alone."""

    label = "null"
    types = frozenset(Type)

    def draw(self, draw: Draw) -> Drawn:
        return Drawn(np.zeros(draw.n, np.int64), np.array(["" if draw.attribute.type is Type.STRING else 0]),
                     np.ones(draw.n, np.bool_))  # fmt: skip
