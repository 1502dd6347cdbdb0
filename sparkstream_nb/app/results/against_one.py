"""Nodes that fail, compared with one node that takes all events and never fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd

from ...charts.loading import draw_figure
from ...charts.picture import Picture
from ...nodes.tallies import Tally
from ...plan.output_labels import stream_of
from ...replay.failover_replay import FailoverOutcome
from ...replay.rescheduling_replay import DistributedOutcome
from ...simulation.timeline import Happening
from ..pictures.outputs_picture import with_outputs
from .frontend import Displayed

if TYPE_CHECKING:
    from ...charts.loading import Figure


@dataclass(frozen=True, repr=False, eq=False)
class AgainstOneNode(Displayed):
    """Base of the reports on an `app`'s failing nodes.

    An output that both have is the same; else it is lost, or duplicated where the nodes put it out more often, or
    spurious where one node never put it out. Times are ms since 1970. `queries`: derived streams, or labels
    of them (`plan.output_labels`), and the queries that write them.
    """

    app: str
    queries: Mapping[str, str]
    outcome: FailoverOutcome | DistributedOutcome

    @property
    def tallies(self) -> Mapping[str, Tally]:
        """The comparison of outputs with one node's, by stream or label of it."""
        return self.outcome.tallies

    @property
    def happenings(self) -> Sequence[Happening]:
        """The log in order, without the start."""
        raise NotImplementedError

    @property
    def said(self) -> str:
        """The affected events and outputs, in a line."""
        raise NotImplementedError

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each query that writes a stream: query, stream, same, lost, spurious, duplicated."""
        rows = [
            [self.queries.get(s, ""), stream_of(s), t.same, t.lost, t.spurious, t.duplicated]
            for s, t in self.tallies.items()
        ]
        return pd.DataFrame(rows, columns=["query", "stream", "same", "lost", "spurious", "duplicated"])

    @cached_property
    def timeline(self) -> pd.DataFrame:
        """The log: at (ms), what."""
        return pd.DataFrame([[h.at, str(h)] for h in self.happenings], columns=["at", "what"])

    @property
    def figure(self) -> Figure:
        """The time line of the nodes, and the outputs by stream and verdict below, as a Plotly figure. Raises
        SparkStreamError where Plotly is not installed."""
        return draw_figure(with_outputs(self.picture(), self.frame))

    def picture(self) -> Picture:
        """The time line of the nodes."""
        raise NotImplementedError

    def summary(self) -> str:
        return f"<{type(self).__name__} of {self.app}: {self.said}>"

    def outputs_said(self) -> str:
        """The number of damaged outputs, in words."""
        t = self.tallies.values()
        lost_outputs, spurious, twice = (sum(getattr(x, n) for x in t) for n in ("lost", "spurious", "duplicated"))
        return f"outputs {lost_outputs:,} lost, {spurious:,} spurious, {twice:,} duplicated"
