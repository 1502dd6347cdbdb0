"""A text with `${NAME}` in it under many settings of these names, over the same events: the outputs of each setting
against the outputs of the app's own text, and with labels its precision and recall.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ...argument_checks import duration_of
from ...charts.loading import draw_figure
from ...errors import Misuse, nearest
from ...ingest.ingest import time_of
from ...lang import tree as t
from ...lang.clause_changes import TextComparison
from ...plan.nodes import Plan
from ...replay.replay import Nodes, Recording, Way
from ..pictures.sweep_picture import sweep_picture
from .frontend import Displayed
from .output_blocks import NO_HASHES, Blocks, Hashes, OutputBlock, SameCount, all_hashes, value_hashes
from .rule_trial import TextReplay, require_schemas

if TYPE_CHECKING:
    from ...charts.loading import Figure

MOST_SETTINGS = 10_000
MOST_AT_ONCE = 32
"""Settings that take the events side by side."""
Setting = Mapping[str, str]
"""A value for each name."""


def settings_of(values: Mapping[str, Any]) -> list[dict[str, str]]:
    """Every combination of the values: by name one, or several. Raises `Misuse` for none, and for more than
    `MOST_SETTINGS`."""
    lists = {name: [v] if isinstance(v, str | int | float) else list(v) for name, v in values.items()}
    count = 1
    for name, choices in lists.items():
        if not choices:
            raise Misuse(f"{name} has no values to try")
        count *= len(choices)
    if count > MOST_SETTINGS:
        raise Misuse(f"these are {count:,} settings, and at most {MOST_SETTINGS:,} are tried: name fewer values")
    return [dict(zip(lists, map(str, choice), strict=True)) for choice in product(*lists.values())]


@dataclass(frozen=True)
class Labels:
    """Cases to detect: the time (ms) of each, and the values of the attributes that name it. An output detects a case
    with equal values from `tolerance` ms before its time until as much after it."""

    attributes: tuple[str, ...]
    cases: tuple[tuple[int, tuple[Any, ...]], ...]
    tolerance: int = 0

    @staticmethod
    def of(frame: pd.DataFrame, time: str, tolerance: str | int = 0) -> Labels:
        """The rows of a frame: the column `time`, as `feed` takes it, and others that are called as attributes of the
        outputs. Raises `Misuse` for a column that is missing and a tolerance that is no duration, SparkStreamError
        for a wrong time."""
        if time not in frame.columns:
            raise Misuse(nearest(f"the labels have no column '{time}'", time, map(str, frame.columns)))
        ms = duration_of("the tolerance", tolerance)
        attributes = tuple(c for c in frame.columns if c != time)
        rows = frame[[time, *attributes]].itertuples(index=False)
        return Labels(attributes, tuple((time_of(at), tuple(values)) for at, *values in rows), ms)

    def score(self, outputs: Outputs) -> Score:
        """The score of outputs. Each case is detected by its first output, and an output may detect one case."""
        times: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for key, ts in outputs.hits:
            times[key].append(ts)
        for candidates in times.values():
            candidates.sort()
        delays = []
        for at, key in sorted(self.cases, key=lambda case: case[0]):
            candidates = times.get(key, [])
            place = bisect_left(candidates, at - self.tolerance)
            if place < len(candidates) and candidates[place] <= at + self.tolerance:
                delays.append(candidates.pop(place) - at)
        mean = sum(delays) / len(delays) if delays else float("nan")
        return Score(len(delays), outputs.total, len(self.cases), mean)

    @cached_property
    def _hashes(self) -> Hashes:
        """The hashes of the cases' values."""
        columns = [list(values) for values in zip(*(values for _, values in self.cases), strict=True)]
        return value_hashes([pa.array(c) for c in columns], len(self.cases))

    def keys_of(self, block: OutputBlock, places: Sequence[int]) -> Iterator[tuple[tuple[Any, ...], int]]:
        """The values and the time of each output of a block that has the values of a case, in `places`."""
        columns = [block.columns[p] for p in places]
        hits = np.flatnonzero(np.isin(value_hashes(columns, len(block))[:, 0], self._hashes[:, 0]))
        for alert in block.taken(hits).alerts():
            yield tuple(alert.values[p] for p in places), alert.ts


@dataclass(frozen=True)
class Score:
    """The numbers of detected cases, of outputs, and of cases; the mean delay (ms) of a detection."""

    hits: int
    outputs: int
    cases: int
    delay: float

    @property
    def precision(self) -> float:
        """The share of outputs that detect a case; NaN without outputs."""
        return self.hits / self.outputs if self.outputs else float("nan")

    @property
    def recall(self) -> float:
        """The share of cases that are detected; NaN without cases."""
        return self.hits / self.cases if self.cases else float("nan")

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        total = self.outputs + self.cases
        return 2 * self.hits / total if total else float("nan")


@dataclass(frozen=True, repr=False, eq=False)
class RuleSweep(Displayed):
    """The outputs of an app under many settings of another text. `text` has the names; `settings` are in the order of
    `frame`."""

    app: str
    text: str
    events: int
    settings: tuple[Setting, ...]
    rows: tuple[Mapping[str, Any], ...]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each setting: its values; the number of outputs, and how many are the same as under the app's own
        text, gone and new; with labels also precision, recall, f1 and the mean delay (ms)."""
        return pd.DataFrame([{**setting, **row} for setting, row in zip(self.settings, self.rows, strict=True)])

    @property
    def best(self) -> Setting | None:
        """The first setting with the highest f1; None without labels."""
        scores = [row.get("f1", float("nan")) for row in self.rows]
        numbers = [i for i, f1 in enumerate(scores) if f1 == f1]
        return self.settings[max(numbers, key=lambda i: scores[i])] if numbers else None

    def text_with(self, setting: Setting) -> str:
        """The text with a setting's values in the place of the names."""
        text = self.text
        for name, value in setting.items():
            text = text.replace(f"${{{name}}}", value)
        return text

    @property
    def figure(self) -> Figure:
        """The outputs and scores of the settings, as a Plotly figure. Raises SparkStreamError where Plotly is not
        installed."""
        return draw_figure(sweep_picture(self))

    def summary(self) -> str:
        return f"<RuleSweep of {self.app}: {len(self.settings):,} settings over {self.events:,} events>"


@dataclass(frozen=True)
class SweepTrial:
    """A text of an app and how to run it: `nodes` have the plan of the app's own text; `tree` and `compile` make a tree
    and a plan of the text under a setting."""

    app: str
    text: str
    nodes: Nodes
    own_tree: t.App
    tree: Callable[[Setting], t.App]
    compile: Callable[[Setting], Plan]

    def over(
        self, recording: Recording, way: Way, settings: Sequence[Setting], labels: Labels | None = None
    ) -> RuleSweep:
        """Runs the settings over a recording, many at a time. Raises as `RuleTrial.over` does."""
        new_names = TextComparison.of(self.own_tree, self.tree(settings[0])).new_names
        own_names = {new_name: name for name, new_name in new_names.items()}
        rows: list[dict[str, Any]] = []
        for first in range(0, len(settings), MOST_AT_ONCE):
            plans = [self.compile(setting) for setting in settings[first : first + MOST_AT_ONCE]]
            for plan in plans:
                require_schemas(recording, plan)
            replays = [TextReplay(replace(self.nodes, plan=plan), recording, way) for plan in plans]
            all_outputs = [Outputs(plan, own_names, labels) for plan in plans]
            own_replay, own_total = TextReplay(self.nodes, recording, way), 0
            for _ in recording.recorded_events:
                own_hashes = {stream: all_hashes(blocks) for stream, blocks in own_replay.next_blocks().items()}
                own_total += sum(map(len, own_hashes.values()))
                for replay, outputs in zip(replays, all_outputs, strict=True):
                    outputs.add(replay.next_blocks(), own_hashes)
            for outputs in all_outputs:
                total, same = outputs.total, outputs.same
                row = {"outputs": total, "same": same, "gone": own_total - same, "new": total - same}
                rows.append({**row, **({} if labels is None else _score_row(labels.score(outputs)))})
        return RuleSweep(self.app, self.text, recording.events, tuple(settings), tuple(rows))


class Outputs:
    """The outputs of a plan, counted against the outputs of the app's own text. `own_names` has the own name of streams
    that are called otherwise in the plan; `hits` are the outputs that have the values of a labelled case."""

    def __init__(self, plan: Plan, own_names: Mapping[str, str], labels: Labels | None) -> None:
        self.total = 0
        self.hits: list[tuple[tuple[Any, ...], int]] = []
        self._plan, self._own_names, self._labels = plan, own_names, labels
        self._same: dict[str, SameCount] = defaultdict(SameCount)

    def add(self, all_blocks: Blocks, own_hashes: Mapping[str, Hashes]) -> None:
        """The outputs of an item, and hashes of the outputs of the app's own text, by stream."""
        hashes = {self._own_names.get(s, s): all_hashes(blocks) for s, blocks in all_blocks.items()}
        for stream in dict.fromkeys([*hashes, *own_hashes]):
            self._same[stream].add(own_hashes.get(stream, NO_HASHES), hashes.get(stream, NO_HASHES))
        for stream, blocks in all_blocks.items():
            self.total += sum(map(len, blocks))
            if self._labels is None:
                continue
            places = [self._plan.schema(stream).find(a) for a in self._labels.attributes]
            if None not in places:
                for block in blocks:
                    self.hits += self._labels.keys_of(block, [p for p in places if p is not None])

    @property
    def same(self) -> int:
        """The number of outputs that the app's own text has as well."""
        return sum(count.total() for count in self._same.values())


def _score_row(score: Score) -> dict[str, float]:
    return {"precision": score.precision, "recall": score.recall, "f1": score.f1, "delay": score.delay}
