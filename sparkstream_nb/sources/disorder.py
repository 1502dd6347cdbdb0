"""Disorder of a feed, chosen by a seed: events that come late, swapped, twice, not at all, in bursts, or with a clock
that is off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import numpy as np

from .. import argument_checks
from ..engine.columnar.column_data import Array
from ..errors import Misuse, nearest, shown
from ..option_values import duration_ms, share
from ..seeded import uniforms, uniforms_at
from .feed_order import rewrite
from .feeds import FeedOnDisk, Shape

LONGEST = 100 * 365 * 86_400_000
"""The longest time (ms) of a disorder: 100 years."""
LARGEST_SEED = 2**64 - 1
DISTRIBUTIONS = ("exponential", "uniform", "fixed")


@dataclass(frozen=True)
class Disorder:
    """Changes to the events of a feed before they reach the app. The same seed makes the same changes.

    Shares are from 0 to 1, of all events of the feed; times are ms. A share `late` comes later than its event time: by
    `delay` on average, `distribution` "exponential", "uniform" (from 0 to twice that) or "fixed". A share `swapped`
    changes places with the next event, a share `duplicated` comes a second time, late as above, and a share `dropped`
    does not come. In each `held_every`, all events of a moment of `held_for` are held back and come at its end. `skew`
    is added to the event times of those events that a node takes, by shard id: its senders' clock is off.
    """

    late: float = 0.0
    delay: int = 1_000
    distribution: str = "exponential"
    swapped: float = 0.0
    duplicated: float = 0.0
    dropped: float = 0.0
    held_every: int = 0
    held_for: int = 0
    skew: Mapping[str, int] = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises `Misuse` for values that are none."""
        for name in ("late", "swapped", "duplicated", "dropped"):
            value = getattr(self, name)
            argument_checks.check_number(name, value)
            if value > 1:
                raise Misuse(f"{name} is a share from 0 to 1, not {shown(value)}")
        for name in ("delay", "held_every", "held_for"):
            argument_checks.require_int(name, getattr(self, name), 0, LONGEST)
        argument_checks.require_int("seed", self.seed, 0, LARGEST_SEED)
        if not isinstance(self.distribution, str) or self.distribution not in DISTRIBUTIONS:
            message = f"distribution is one of {', '.join(DISTRIBUTIONS)}, not {shown(self.distribution)}"
            raise Misuse(message)
        if self.held_for > self.held_every:
            raise Misuse("held_for is at most held_every: in each held_every ms, events of held_for ms are held back")
        if not isinstance(self.skew, Mapping):
            raise Misuse(f"skew is a dict of ms by shard id, not {shown(self.skew)}")
        for node, ms in self.skew.items():
            argument_checks.require_str("each shard id in skew", node)
            if isinstance(ms, bool) or not isinstance(ms, int):
                raise Misuse(f"skew[{shown(node)}] is a number of ms, not {shown(ms)}")
            argument_checks.require_int(f"skew[{shown(node)}]", ms, -LONGEST, LONGEST)

    def __str__(self) -> str:
        """`late=5%, delay=3,000 ms, seed=7`: the fields that are not as they are by default."""
        shares = {n: getattr(self, n) for n in ("late", "swapped", "duplicated", "dropped")}
        words = [f"{name}={value:.4g}" for name, value in shares.items() if value]
        if self.late or self.duplicated:
            words.append(f"delay={self.delay:,} ms")
            words += [] if self.distribution == "exponential" else [self.distribution]
        if self.held_for:
            words.append(f"held {self.held_for:,} of {self.held_every:,} ms")
        words += [f"{node}={ms:+,} ms" for node, ms in self.skew.items()]
        return ", ".join([*words, f"seed={self.seed}"])

    @staticmethod
    def parse(text: str) -> Disorder:
        """The disorder that a text describes, such as `late=5%,delay=3 sec,dropped=1%,node-2=+3 sec,seed=7`; other
        names than the fields are shard ids of `skew`. Raises `Misuse` for anything else."""
        shares = {"late", "swapped", "duplicated", "dropped"}
        times = {"delay", "held_every", "held_for"}
        values: dict[str, object] = {}
        skew: dict[str, int] = {}
        for word in filter(None, (w.strip() for w in text.split(","))):
            name, equals, value = (part.strip() for part in word.partition("="))
            name = name.replace("-every", "_every").replace("-for", "_for") if name.startswith("held") else name
            if not equals or not value:
                raise Misuse(f"disorder: '{word}' is not NAME=VALUE, such as late=5%")
            if name in shares:
                values[name] = share(value, f"disorder: {name}")
            elif name in times:
                values[name] = duration_ms(value, f"disorder: {name}")
            elif name == "seed":
                if not value.isdecimal() or len(value) > 20:
                    raise Misuse(f"disorder: seed is a whole number from 0 to {LARGEST_SEED:,}, not {shown(value)}")
                values[name] = int(value)
            elif name == "distribution":
                values[name] = value
            elif value[0] in "+-":
                skew[name] = (-1 if value[0] == "-" else 1) * duration_ms(value[1:], f"disorder: {name}")
            else:
                names = [f.name for f in fields(Disorder) if f.name != "skew"]
                hint = "a node's clock is written with its sign, such as node-2=+3 sec"
                raise Misuse(f"{nearest(f'disorder has no {name}', name, names)} ({hint})")
        return Disorder(**values, skew=skew)  # type: ignore[arg-type]


@dataclass(frozen=True)
class DisorderCounts:
    """Numbers of events that were changed: `late` ones come after an event of a later time, by `latest` ms at most."""

    late: int = 0
    latest: int = 0
    swapped: int = 0
    duplicated: int = 0
    dropped: int = 0
    held: int = 0

    def __str__(self) -> str:
        """`51 late (up to 9,812 ms), 12 swapped`."""
        words = [f"{self.late:,} late (up to {self.latest:,} ms)"] if self.late else []
        words += [f"{n:,} {what}" for what, n in self._others() if n]
        return ", ".join(words) or "nothing was changed"

    def _others(self) -> Sequence[tuple[str, int]]:
        return (
            ("swapped", self.swapped),
            ("duplicated", self.duplicated),
            ("dropped", self.dropped),
            ("held back", self.held),
        )


@dataclass(frozen=True)
class Ranked:
    """A source in the order in which its events come: `ranks` are their places among the events of all sources,
    `clocks` the times (ms) at which they come, neither decreasing. `is_chunked`: rows of equal rank come at once, as
    one chunk."""

    feed: FeedOnDisk
    shape: Shape
    ranks: Array
    clocks: Array
    is_chunked: bool = False


def disarrange(
    sources: Sequence[tuple[FeedOnDisk, Shape]], times: Sequence[Array], folder: Path, disorder: Disorder
) -> tuple[list[Ranked], DisorderCounts]:
    """Rewrites sources in order of event time, whose `times` (ms) these are, in the order in which their events come
    under a disorder. Raises SparkStreamError if the disk is full."""
    ends = np.cumsum([0, *map(len, times)])
    ts = np.concatenate([np.empty(0, np.int64), *times])
    in_order = np.argsort(ts, kind="stable")
    rows, comes, counts = _arrivals(ts[in_order], disorder)
    order = np.argsort(comes, kind="stable")
    order, swaps = _swap(order, uniforms(disorder.seed, "swapped", len(order)) < disorder.swapped)
    row, clock = in_order[rows[order]], np.maximum.accumulate(comes[order]) if len(order) else comes
    lateness = np.maximum.accumulate(ts[row]) - ts[row] if len(row) else np.empty(0, np.int64)
    counts = replace(
        counts, swapped=swaps, late=int(np.count_nonzero(lateness)), latest=int(lateness.max(initial=0))
    )
    out = []
    for k, (feed, shape) in enumerate(sources):
        ranks = np.flatnonzero((row >= ends[k]) & (row < ends[k + 1]))
        out.append(Ranked(rewrite(feed, folder, row[ranks] - ends[k]), shape, ranks, clock[ranks]))
    return out, counts


def _arrivals(ts: Array, disorder: Disorder) -> tuple[Array, Array, DisorderCounts]:
    """Rows of a feed in order that come, by number, and the times (ms) at which they do."""
    n, seed = len(ts), disorder.seed
    late = uniforms(seed, "late", n) < disorder.late
    comes = ts + np.where(late, _delays(seed, "delay", n, disorder), 0)
    rows = np.arange(n)
    keep = uniforms(seed, "dropped", n) >= disorder.dropped
    twice = keep & (uniforms(seed, "duplicated", n) < disorder.duplicated)
    again = (ts + _delays(seed, "again", n, disorder))[twice]
    rows, comes = np.concatenate([rows[keep], rows[twice]]), np.concatenate([comes[keep], again])
    held_back = 0
    if disorder.held_for:
        period = comes // disorder.held_every
        offsets = uniforms_at(seed, "held", period - period.min(initial=0))
        span = disorder.held_every - disorder.held_for
        begins = period * disorder.held_every + (offsets * span).astype(np.int64)
        inside = (comes >= begins) & (comes < begins + disorder.held_for)
        comes = np.where(inside, begins + disorder.held_for, comes)
        held_back = int(np.count_nonzero(inside))
    return rows, comes, DisorderCounts(duplicated=len(again), dropped=n - int(np.count_nonzero(keep)), held=held_back)


def _delays(seed: int, name: str, n: int, disorder: Disorder) -> Array:
    """Delays in whole ms, at least 1."""
    u = uniforms(seed, name, n)
    if disorder.distribution == "exponential":
        factors = -np.log1p(-u)
    elif disorder.distribution == "uniform":
        factors = 2 * u
    else:
        factors = np.ones(n)
    return np.maximum(1, np.rint(factors * disorder.delay)).astype(np.int64)


def _swap(order: Array, first_of_pair: Array) -> tuple[Array, int]:
    """The order with each chosen one and the next exchanged, unless one of them was already."""
    out = order.copy()
    count, last = 0, -1
    for i in np.flatnonzero(first_of_pair[:-1]).tolist():
        if i > last:
            out[i], out[i + 1] = order[i + 1], order[i]
            count, last = count + 1, i + 1
    return out, count
