"""The differences of two texts on several nodes, held against one node that takes all events: which are due to the
text, and which to the topology."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import pandas as pd

from .output_matching import Alert

OutputKey = tuple[str, int, tuple[Any, ...]]
"""Stream, time (ms) and values of an output, such that equal ones are equal."""
Surplus = Mapping[OutputKey, int]
"""By output, how often it comes more often than in another run; negative: less often."""
Source = Literal["text", "nodes"]


def key_of(stream: str, alert: Alert) -> OutputKey:
    """The key of an output of a stream."""
    return stream, alert.ts, alert.identity


def brings(surplus: Surplus, stream: str, before: Alert | None, after: Alert | None) -> bool:
    """True if the old output comes less often, or the new one more often."""
    is_gone = before is not None and surplus.get(key_of(stream, before), 0) < 0
    return is_gone or (after is not None and surplus.get(key_of(stream, after), 0) > 0)


@dataclass(frozen=True, eq=False)
class TopologyShare:
    """Two texts, each on several nodes and on one. `text_on_one`, `text_on_nodes`: outputs that the new text has more
    often than the old one, or less; `nodes_before`, `nodes_after`: outputs that the nodes have more often than one
    node, or less, under the old text and under the new one.
    """

    text_on_one: Surplus
    text_on_nodes: Surplus
    nodes_before: Surplus
    nodes_after: Surplus

    def source_of(self, stream: str, before: Alert | None, after: Alert | None) -> Source:
        """`text` if the old output goes, or the new one comes, on one node as well; else `nodes`."""
        return "text" if brings(self.text_on_one, stream, before, after) else "nodes"

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each stream whose outputs the texts or nodes change: the number of outputs that go or come with the
        new text on one node alone (`one node alone`), of outputs that one node has and the nodes have not (`lost`)
        under the old and the new text, and of outputs that only the nodes have (`spurious`)."""
        alone = {
            key: count for key, count in self.text_on_one.items()
            if (self.text_on_nodes.get(key, 0) > 0) != (count > 0) or not self.text_on_nodes.get(key, 0)
        }  # fmt: skip
        columns = {
            "one node alone": _count(alone, (-1, 1)),
            "lost, old text": _count(self.nodes_before, (-1,)), "lost, new text": _count(self.nodes_after, (-1,)),
            "spurious, old text": _count(self.nodes_before, (1,)), "spurious, new text": _count(self.nodes_after, (1,)),
        }  # fmt: skip
        streams = sorted(set().union(*columns.values()))
        rows = [[stream, *(counts[stream] for counts in columns.values())] for stream in streams]
        return pd.DataFrame(rows, columns=["stream", *columns])


def _count(surplus: Surplus, signs: Iterable[int]) -> Counter[str]:
    """By stream, the number of outputs that come less (-1) or more (1) often."""
    counts: Counter[str] = Counter()
    for (stream, _, _), count in surplus.items():
        if (1 if count > 0 else -1) in signs:
            counts[stream] += abs(count)
    return counts
