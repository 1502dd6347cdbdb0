"""The costs of failovers that charts show."""

from __future__ import annotations

from typing import NamedTuple


class Cost(NamedTuple):
    """A column of a failover study, with the label of its chart; a value is divided by `unit`."""

    column: str
    label: str
    unit: float = 1.0


FAILOVER_COSTS = (
    Cost("gap", "no active node, s", 1000.0),
    Cost("events_lost", "events lost"),
    Cost("lost", "outputs lost"),
    Cost("duplicated", "outputs duplicated"),
)
