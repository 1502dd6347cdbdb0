"""The feeds of an audit and its measurements, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...plan.nodes import Plan
from ..running.source_reading import Reading, readings_of


@dataclass(frozen=True)
class Measured:
    """Outputs of `nodes` under a routing, compared with one node's: outputs of each verdict by query (by
    trigger for its events). `repaired`: of the app with its repairs."""

    nodes: int
    routing: str
    repaired: bool
    queries: Mapping[str, Mapping[str, int]]
    aggregations: Mapping[str, int] = field(default_factory=dict)
    """Merged rows that differ, by aggregation."""
    part: Sequence[str] = ()
    """The queries that are counted, if the app's queries need several routings; () if all are."""

    @property
    def outputs(self) -> int:
        """The number of outputs, of one node or of the nodes."""
        return sum(sum(v.values()) for v in self.queries.values())

    @property
    def differences(self) -> int:
        """The number of outputs and merged rows that differ."""
        differing_outputs = sum(n for v in self.queries.values() for verdict, n in v.items() if verdict != "same")
        return differing_outputs + sum(self.aggregations.values())


@dataclass(frozen=True)
class FeedFiles:
    """Files to replay, as (stream, path), and how they are read: arguments of `readings_of`."""

    files: Sequence[tuple[str, str]]
    reading: Mapping[str, Any] = field(default_factory=dict)

    def by_stream(self, plan: Plan) -> dict[str, Reading]:
        """By stream, how its files are read. Raises `Misuse` for an attribute that none has."""
        schemas = {s: plan.schema(s) for s, _ in self.files if s in plan.streams}
        return readings_of(schemas, **self.reading)


@dataclass(frozen=True)
class Measurement:
    """The results of an audit's feeds: `ways`, or the reason why they could not be replayed; and the rows that do not
    fit. `notes`: why they do not, and which columns were guessed."""

    ways: Sequence[Measured] = ()
    failure: str | None = None
    rejected: int = 0
    notes: Sequence[str] = ()


def measurement_text(m: Measured) -> str:
    """`3 nodes, round_robin: 4 differ from one node's (q: 3 lost, 1 spurious)`."""
    part = f" ({', '.join(m.part)})" if m.part else ""
    text = f"{'repaired, ' if m.repaired else ''}{m.nodes} nodes, {m.routing}{part}: "
    if not m.differences:
        return f"{text}{m.outputs:,} outputs, all as one node's"
    causes = []
    for query, verdicts in m.queries.items():
        counts = [f"{n:,} {verdict}" for verdict, n in verdicts.items() if verdict != "same" and n]
        if counts:
            causes.append(f"{query}: {', '.join(counts)}")
    causes += [f"{a}: {n:,} merged rows other" for a, n in m.aggregations.items() if n]
    return f"{text}{m.differences:,} differ from one node's ({'; '.join(causes)})"
