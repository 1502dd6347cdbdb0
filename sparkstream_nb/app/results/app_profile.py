"""The profile of an app: time of its nodes by query and step, frequent keys, growth of state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

import pandas as pd

from ...charts.picture import Picture
from ..pictures.profile_picture import profile_picture
from .plotly_results import Pictured


@dataclass(frozen=True)
class PartProfile:
    """A part of a query, window, aggregation or partition (`element`) on a node: its time (ms), and the rows that went
    in and came out (None: they are not counted)."""

    node: str
    element: str
    part: str
    ms: float
    rows_in: int
    rows_out: int | None


@dataclass(frozen=True)
class NodeProfile:
    """The events that a node took, its working time (ms), the bytes of its state, and how it works: by operator, or
    event by event, and then why."""

    node: str
    events: int
    ms: float
    state_bytes: int
    runs: str


@dataclass(frozen=True)
class KeyProfile:
    """A frequent value of an attribute by which queries group, or should be routed: its events, and their share of the
    stream's."""

    stream: str
    attribute: str
    value: str
    events: int
    share: float


@dataclass(frozen=True)
class StateGrowth:
    """The state of a query, table, window or aggregation on all nodes: bytes and rows (None: not counted) half-way
    through the events, and at the end."""

    element: str
    half_bytes: int
    bytes: int
    half_rows: int | None
    rows: int | None


@dataclass(frozen=True)
class BatchTime:
    """The time (ms) of the app's last `count` micro-batches, and the time in which the slowest node of each worked; the
    rest is Spark, reading and writing."""

    count: int
    ms: float
    node_ms: float


@dataclass(frozen=True, repr=False, eq=False)
class Profile(Pictured):
    """Times, keys and state of an app's nodes over `events` of its input. `batch_time`: None before the
    first micro-batch. `advice`: sentences about known causes."""

    app: str
    events: int
    nodes: Sequence[NodeProfile]
    parts: Sequence[PartProfile]
    keys: Sequence[KeyProfile]
    growth: Sequence[StateGrowth]
    batch_time: BatchTime | None
    advice: Sequence[str]

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each part on each node, with the fields of `PartProfile`."""
        return pd.DataFrame([asdict(p) for p in self.parts], columns=[f.name for f in fields(PartProfile)])

    @property
    def ms(self) -> float:
        """The working time of all nodes (ms)."""
        return sum(n.ms for n in self.nodes)

    def picture(self) -> Picture:
        """The time by node, element and part."""
        return profile_picture(self)

    def summary(self) -> str:
        return f"<Profile of {self.app}: {self.ms:,.1f} ms for {self.events:,} events>"
