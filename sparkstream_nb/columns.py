"""Generators of the columns of events that `sparkstream_nb.generate` makes.

    from sparkstream_nb import columns, generate

    frame = generate(
        "define stream Payments (card string, amount double, country string)",
        n=1000,
        seed=7,
        columns={"card": columns.zipf(100, prefix="card-"), "country": columns.choice(["DE", "FR"], weights=[3, 1])},
    )

Each has a method `nulls(share)`: the same values, of which a share is null.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .argument_types import explain_arguments
from .errors import Misuse, shown
from .synthetic.arrivals import Bursts, Poisson, Steady
from .synthetic.column import GeneratedColumn
from .synthetic.distributions import (
    Chance,
    Choice,
    EventTimes,
    Exponential,
    Integers,
    Normal,
    Numbering,
    PerKey,
    Uniform,
    Walk,
    Zipf,
    check_weights,
)
from .synthetic.events import Usual
from .synthetic.names import Names
from .synthetic.profile import Profile, example_column
from .synthetic.regular import Regex

__all__ = [
    "GeneratedColumn", "Profile", "bursts", "chance", "choice", "event_time", "exponential", "integers", "like",
    "names", "normal", "per_key", "poisson", "regex", "sequence", "steady", "uniform", "usual", "walk", "zipf",
]  # fmt: skip


def choice(values: Sequence[Any], weights: Sequence[float] | None = None) -> GeneratedColumn:
    """One of several values, each in proportion to its weight; without weights all are equally likely.

    None among the values is null. Raises `Misuse` for weights that are not one number from 0 for each value.
    """
    values = _list_plain(values, "choice: values")
    weights = None if weights is None else _list_plain(weights, "choice: weights")
    check_weights("choice", weights, len(values))
    return Choice(tuple(values), None if weights is None else tuple(weights))


def chance(probability: float) -> GeneratedColumn:
    """True with a probability from 0 to 1, else false."""
    return Chance(probability)


def uniform(low: float, high: float, decimals: int | None = None) -> GeneratedColumn:
    """Numbers from `low` to `high`, all equally likely, rounded to `decimals` places; whole ones include `high`."""
    return Uniform(low, high, decimals)


def integers(low: int, high: int) -> GeneratedColumn:
    """Whole numbers from `low` to `high`, both included, all equally likely."""
    return Integers(low, high)


def normal(
    mean: float, deviation: float, low: float | None = None, high: float | None = None, decimals: int | None = None
) -> GeneratedColumn:
    """Normally distributed numbers with a standard deviation; those beyond `low` or `high` are mirrored there."""
    return Normal(mean, deviation, low, high, decimals)


def exponential(mean: float, low: float = 0.0, decimals: int | None = None) -> GeneratedColumn:
    """Exponentially distributed numbers from `low` on: many small ones and a few large ones."""
    return Exponential(mean, low, decimals)


def walk(
    start: float,
    step: float,
    low: float | None = None,
    high: float | None = None,
    *,
    key: str | None = None,
    spread: float = 0.0,
    decimals: int | None = None,
) -> GeneratedColumn:
    """A random walk: each number differs from the one before by a normally distributed step of deviation `step`.

    With `key`, the name of another column, each of its values has a walk of its own, and begins within a share `spread`
    of `start`. Walks turn back at `low` and `high`.
    """
    return Walk(start, step, low, high, key, spread, decimals)


def sequence(start: int = 1, step: int = 1, prefix: str = "") -> GeneratedColumn:
    """Numbers in order; for texts with a prefix: `order-1`, `order-2`, ..."""
    return Numbering(start, step, prefix)


def zipf(distinct: int, exponent: float = 1.0, prefix: str = "", first: int = 1) -> GeneratedColumn:
    """Keys of which the k-th is drawn in proportion to 1 / k**exponent: `card-1`, `card-2`, ..., or numbers.

    The exponent 0 makes all keys alike; numbers begin with `first`.
    """
    return Zipf(distinct, exponent, prefix, first)


def regex(pattern: str) -> GeneratedColumn:
    r"""Texts that match a regular expression, such as `[A-Z]{3}-\d{4}`.

    It may have characters, `.`, `\d`, `\w`, `\s`, classes, groups, `|`, and `?`, `*`, `+`, `{3}`, `{2,5}`. Raises
    `Misuse`, with the place, for anything else.
    """
    return Regex(pattern)


@explain_arguments
def names(kind: str, locale: str = "en_US", distinct: int = 1000) -> GeneratedColumn:
    """Names of persons, companies, places and the like, of which at most `distinct` are different.

    They come from Faker, which `pip install 'sparkstream-nb[generate]'` brings; the same seed gives the same names with
    the same version of Faker. Raises `Misuse` for an unknown kind.
    """
    return Names(kind, locale, distinct)


def per_key(key: str, column: GeneratedColumn | Sequence[Any]) -> GeneratedColumn:
    """One value for each value of the column `key`, drawn from another generator: the country of a card."""
    return PerKey(key, column if isinstance(column, GeneratedColumn) else choice(column))


@explain_arguments
def like(example: Iterable[Any]) -> GeneratedColumn:
    """Values that imitate an example, a list or a column of a frame: numbers by their quantiles, texts and booleans by
    their frequency, and as many nulls."""
    return example_column(example)


def usual() -> GeneratedColumn:
    """The values that the attribute gets without a generator, by its name and type: `usual().nulls(0.1)`."""
    return Usual()


def event_time() -> GeneratedColumn:
    """The event time once more: ms since 1970 for a long, ISO 8601 for a text."""
    return EventTimes()


def steady() -> Steady:
    """Arrivals that are all equally far apart."""
    return Steady()


def poisson() -> Poisson:
    """Arrivals that are independent of each other: exponentially distributed gaps."""
    return Poisson()


def bursts(size: float = 20.0, factor: float = 10.0) -> Bursts:
    """Arrivals in bursts of `size` events on average, at `factor` times the rate, with pauses between them."""
    return Bursts(size, factor)


def _list_plain(values: Any, what: str) -> list[Any]:
    """A list of Python's own values."""
    if isinstance(values, str | dict) or not hasattr(values, "__iter__"):
        raise Misuse(f"{what}: a list is expected, not {shown(values)}")
    return list(values.tolist()) if hasattr(values, "tolist") else list(values)
