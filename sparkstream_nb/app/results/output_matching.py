"""The outputs of nodes, and their pairing with others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...plan.nodes import Plan
from ...plan.output_labels import is_inner, query_of, stream_of
from ...plan.reports.lineage import LINEAGE
from ...replay.replay import ONE, NodeReplay, Way

Alerts = dict[str, list["Alert"]]
"""Outputs by derived stream."""


@dataclass(frozen=True, eq=False)
class Alert:
    """An output: the app's clock when it was emitted, its own time (both ms), its values, the node that emitted it
    (None: the one of the truth), its lineage (None: not known), and the query that wrote it ("": none did).
    """

    clock: int
    ts: int
    values: tuple[Any, ...]
    node: int | None
    made_of: Any = None
    query: str = ""

    @property
    def times(self) -> tuple[int, int]:
        """The clock when it was emitted, and its own time."""
        return self.clock, self.ts

    @cached_property
    def identity(self) -> tuple[Any, ...]:
        """The values, such that equal ones are equal: a NaN too, and lists."""
        return tuple(map(frozen, self.values))

    @cached_property
    def origin(self) -> Any:
        """The events that it was made from, for comparison; None if unknown."""
        return None if self.made_of is None else frozen(self.made_of)


def alerts_of(replays: Iterable[NodeReplay], plan: Plan, way: Way) -> Alerts:
    """The outputs of replayed nodes, by stream; of a plan with lineage, with their events."""
    out: Alerts = {}
    for replay in replays:
        node = None if way == ONE else replay.node
        for label in replay.streams:
            if is_inner(label):
                continue
            stream, query = stream_of(label), query_of(label, plan)
            place = plan.streams[stream].source.schema.find(LINEAGE)
            for clock, ts, values in replay.rows(label):
                made_of = None if place is None else values.pop(place)
                out.setdefault(stream, []).append(Alert(clock, ts, tuple(values), node, made_of, query))
    return out


def pair_outputs(
    ones: Sequence[Alert], others: Sequence[Alert], key: Callable[[Alert], Any]
) -> tuple[list[tuple[Alert, Alert]], list[Alert], list[Alert]]:
    """Pairs outputs with equal keys, in order of time; returns the pairs, and the unpaired ones of both."""
    if not ones or not others:
        return [], list(ones), list(others)
    waiting: dict[Any, list[Alert]] = defaultdict(list)
    for a in sorted(ones, key=place_of, reverse=True):
        waiting[key(a)].append(a)
    pairs, rest = [], []
    for a in sorted(others, key=place_of):
        candidates = waiting.get(key(a))
        if candidates:
            pairs.append((candidates.pop(), a))
        else:
            rest.append(a)
    return pairs, [a for candidates in waiting.values() for a in candidates], rest


def are_equal(ones: Sequence[Alert], others: Sequence[Alert]) -> bool:
    """True if two lists have the same outputs in the same order, whatever their lineage."""
    return len(ones) == len(others) and all(
        (a.times, a.node, a.query) == (b.times, b.node, b.query) and (a.values == b.values or a.identity == b.identity)
        for a, b in zip(ones, others, strict=True)
    )


def place_of(alert: Alert) -> tuple[int, int, int]:
    """The order of outputs: by their times, then by node."""
    return *alert.times, -1 if alert.node is None else alert.node


def frozen(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(map(frozen, value))
    if isinstance(value, set | frozenset):
        return "set", *sorted(map(repr, map(frozen, value)))
    if isinstance(value, Mapping):
        return tuple(sorted((str(k), frozen(v)) for k, v in value.items()))
    if isinstance(value, float) and value != value:
        return "NaN"
    return value if isinstance(value, str | int | float | bool | None) else repr(value)
