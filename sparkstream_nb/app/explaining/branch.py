"""A branch of an app's input: with other events, on other nodes or under another text, and the outputs that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd

from ...charts.value_texts import format_count
from ...replay.replay import Nodes, Recording, Way, replay_nodes
from ..results.frontend import Displayed
from ..results.output_matching import Alert, alerts_of, place_of
from ..results.rule_comparison import OUTCOMES, OutputPair, match_outputs
from ..results.rule_trial import subject_places

if TYPE_CHECKING:
    from ..results.moment import Moment


@dataclass(frozen=True)
class ReplayedInput:
    """Input and the nodes that take it, with their names."""

    recording: Recording
    way: Way
    nodes: Nodes
    names: Sequence[str]

    def outputs(self) -> Mapping[str, list[Alert]]:
        """The outputs of all nodes, by stream."""
        return alerts_of(replay_nodes(self.recording, self.way, self.nodes), self.nodes.plan, self.way)

    def name_of(self, alert: Alert | None) -> str | None:
        """The name of the node of an output."""
        return None if alert is None else self.names[alert.node or 0]


@dataclass(frozen=True, repr=False, eq=False)
class Branch(Displayed):
    """The outputs of an app over a branch of its input (after), compared with the outputs over its recorded input
    (before). `changes` describe the differences of the branch. `moment` is the same time in the branch."""

    app: str
    changes: Sequence[str]
    before: ReplayedInput
    after: ReplayedInput
    moment_of_branch: Callable[[], Moment] = field(repr=False)

    @cached_property
    def pairs(self) -> Mapping[str, Sequence[OutputPair]]:
        """The outputs by stream, each paired with the equal output of the other side, if there is one."""
        ones, others = self.before.outputs(), self.after.outputs()
        queries = {q.output.target.id: q for x in (self.before, self.after) for q in x.nodes.plan.queries}
        return {
            stream: match_outputs(ones.get(stream, []), others.get(stream, []), subject_places(queries[stream]))
            for stream in queries if stream in ones or stream in others
        }  # fmt: skip

    @cached_property
    def moment(self) -> Moment:
        """The moment at the same time of the clock in the branch."""
        return self.moment_of_branch()

    @cached_property
    def counts(self) -> pd.DataFrame:
        """The number of outputs of each outcome, by query and stream."""
        tallies: dict[tuple[str, str], Counter[str]] = {}
        for stream, pairs in self.pairs.items():
            for pair in pairs:
                tallies.setdefault((pair.alert.query, stream), Counter())[pair.outcome] += 1
        rows = [[*key, *(tally[o] for o in OUTCOMES)] for key, tally in tallies.items()]
        return pd.DataFrame(rows, columns=["query", "stream", *OUTCOMES])

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each output, by time: outcome, stream, query, timestamp (ms), the nodes that emitted it before and
        after (None: it was not there), and its values before and after."""
        rows = []
        for stream, pairs in self.pairs.items():
            for p in sorted(pairs, key=lambda pair: place_of(pair.alert)):
                nodes = [self.before.name_of(p.before), self.after.name_of(p.after)]
                values = [None if a is None else list(a.values) for a in (p.before, p.after)]
                rows.append([p.outcome, stream, p.alert.query, p.alert.ts, *nodes, *values])
        columns = ["outcome", "stream", "query", "timestamp", "node before", "node after", "before", "after"]
        frame = pd.DataFrame(rows, columns=columns)
        return frame.sort_values("timestamp", kind="stable", ignore_index=True)

    @property
    def differences(self) -> pd.DataFrame:
        """The rows of `frame` whose outputs are not the same."""
        return self.frame[self.frame["outcome"] != "same"].reset_index(drop=True)

    @property
    def title(self) -> str:
        """The changes, in words."""
        return "; ".join(self.changes)

    def summary(self) -> str:
        differences = format_count(len(self.differences), "output differs", "outputs differ")
        return f"<Branch of {self.app}: {self.title}: {differences}>"
