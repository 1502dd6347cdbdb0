"""A text with `${NAME}` in it under many settings of these names, over the same events: the outputs of each setting
against the outputs of the app's own text, and with labels its precision and recall.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import pandas as pd

from ...durations import parse_duration
from ...errors import Misuse, nearest, shown
from ...ingest.ingest import time_of
from ...lang import tree as t
from ...lang.clause_changes import TextComparison
from ...plan.nodes import Plan
from ...replay.replay import Nodes, Recording, Way, replay_nodes
from .frontend import Displayed
from .output_matching import Alert, alerts_of, count_equal
from .rule_comparison import recording_of

MOST_SETTINGS = 10_000
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
        ms = parse_duration(tolerance) if isinstance(tolerance, str) else tolerance
        if not isinstance(ms, int) or ms < 0:
            raise Misuse(f"the tolerance is a duration such as '1 min', not {shown(tolerance)}")
        attributes = tuple(c for c in frame.columns if c != time)
        rows = frame[[time, *attributes]].itertuples(index=False)
        return Labels(attributes, tuple((time_of(at), tuple(values)) for at, *values in rows), ms)

    def score(self, alerts: Mapping[str, Sequence[Alert]], plan: Plan) -> Score:
        """The score of outputs by stream of a plan. Each case is detected by its first output, and an output may detect
        one case."""
        times: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for stream, stream_alerts in alerts.items():
            places = [plan.schema(stream).find(a) for a in self.attributes]
            if None not in places:
                for alert in stream_alerts:
                    times[tuple(alert.values[p] for p in places if p is not None)].append(alert.ts)
        for candidates in times.values():
            candidates.sort()
        delays = []
        for at, key in sorted(self.cases, key=lambda case: case[0]):
            candidates = times.get(key, [])
            place = bisect_left(candidates, at - self.tolerance)
            if place < len(candidates) and candidates[place] <= at + self.tolerance:
                delays.append(candidates.pop(place) - at)
        outputs = sum(map(len, alerts.values()))
        return Score(len(delays), outputs, len(self.cases), sum(delays) / len(delays) if delays else float("nan"))


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
        """Runs each setting over a recording. Raises as `RuleTrial.over` does."""
        before = count_equal(self._outputs(self.nodes.plan, recording, way))
        new_names = TextComparison.of(self.own_tree, self.tree(settings[0])).new_names
        own_names = {new_name: name for name, new_name in new_names.items()}
        rows = []
        for setting in settings:
            plan = self.compile(setting)
            alerts = self._outputs(plan, recording, way)
            after = count_equal({own_names.get(stream, stream): a for stream, a in alerts.items()})
            same = (before & after).total()
            row = {"outputs": after.total(), "same": same, "gone": before.total() - same, "new": after.total() - same}
            score = {} if labels is None else _score_row(labels.score(alerts, plan))
            rows.append({**row, **score})
        return RuleSweep(self.app, self.text, recording.events, tuple(settings), tuple(rows))

    def _outputs(self, plan: Plan, recording: Recording, way: Way) -> dict[str, list[Alert]]:
        nodes = replace(self.nodes, plan=plan)
        return alerts_of(replay_nodes(recording_of(recording, plan), way, nodes), plan, way)


def _score_row(score: Score) -> dict[str, float]:
    return {"precision": score.precision, "recall": score.recall, "f1": score.f1, "delay": score.delay}
