"""A text with `${NAME}` in it under many settings of these names, over the same events: the outputs of each setting
against the outputs of the app's own text, and with labels its precision and recall.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import pandas as pd

from ...charts.loading import draw_figure
from ...durations import describe_duration
from ...errors import Misuse
from ...lang import tree as t
from ...lang.clause_changes import TextComparison, with_names
from ...lang.printer import to_text
from ...plan.nodes import Plan
from ...replay.replay import Nodes, Recording, Way
from ..pictures.sweep_picture import sweep_picture
from .compared_attributes import OutputAttributes, Places, input_notes, input_places
from .frontend import Displayed
from .label_scores import Example, LabelledOutputs, Labels, Score
from .output_blocks import NO_HASHES, Blocks, Hashes, SameCount, all_hashes, split_by_clock
from .rule_comparison import NOT_JUDGED
from .rule_trial import ALL_JUDGED, Judging, TextReplay

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


@dataclass(frozen=True, repr=False, eq=False)
class RuleSweep(Displayed):
    """The outputs of an app under many settings of another text. `text` has the names; `settings` are in the order of
    `frame`, and so are the examples of what is detected, if there are labels. `notes` say what is not compared."""

    app: str
    text: str
    events: int
    settings: tuple[Setting, ...]
    rows: tuple[Mapping[str, Any], ...]
    all_examples: tuple[tuple[Example, ...], ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each setting: its values; the number of outputs, and how many are the same as under the app's own
        text, gone and new, and of its outputs that are not judged if there is a time of warming up; with labels also
        precision, recall, f1 and the mean delay (ms)."""
        return pd.DataFrame([{**setting, **row} for setting, row in zip(self.settings, self.rows, strict=True)])

    @property
    def best(self) -> Setting | None:
        """The first setting with the highest f1; None without labels."""
        scores = [row.get("f1", float("nan")) for row in self.rows]
        numbers = [i for i, f1 in enumerate(scores) if f1 == f1]
        return self.settings[max(numbers, key=lambda i: scores[i])] if numbers else None

    def examples(self, setting: Setting | None = None) -> pd.DataFrame:
        """The first outputs that detect a case (`true positive`), outputs that detect none (`false positive`), and
        cases `missed`, under a setting, or the best one: kind, stream, timestamp (ms), values, delay (ms). Empty
        without labels. Raises `Misuse` for a setting that was not tried."""
        shown_setting = self.best if setting is None else {name: str(value) for name, value in setting.items()}
        if setting is not None and shown_setting not in self.settings:
            raise Misuse(f"{shown_setting} is none of the {len(self.settings):,} settings that were tried")
        examples = self.all_examples[self.settings.index(shown_setting)] if self.all_examples and shown_setting else ()
        rows = [[e.kind, e.stream, e.time, list(e.values), e.delay] for e in examples]
        frame = pd.DataFrame(rows, columns=["kind", "stream", "timestamp", "values", "delay"])
        return frame.astype({"timestamp": "int64", "delay": "Int64"})

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
    """A text of an app and how to run it: `nodes` have the plan of the app's own text; `tree` makes a tree of the text
    under a setting, `compile` a plan of a text under one."""

    app: str
    text: str
    nodes: Nodes
    own_tree: t.App
    tree: Callable[[Setting], t.App]
    compile: Callable[[str, Setting], Plan]

    def over(
        self,
        recording: Recording,
        way: Way,
        settings: Sequence[Setting],
        labels: Labels | None = None,
        judging: Judging = ALL_JUDGED,
    ) -> RuleSweep:
        """Runs the settings over a recording, many at a time. Raises as `RuleTrial.over` does."""
        new_names = TextComparison.of(self.own_tree, self.tree(settings[0])).new_names
        own_names = {new_name: name for name, new_name in new_names.items()}
        start = judging.start(recording)
        if labels is not None:
            names = tuple(own_names.get(name, name) for name in labels.attributes)
            labels = replace(labels if start is None else labels.since(start), attributes=names)
        first_plan = self._plan(settings[0], own_names)
        attributes = OutputAttributes.of(self.nodes.plan, first_plan, {})
        all_outputs: list[Outputs] = []
        for first in range(0, len(settings), MOST_AT_ONCE):
            plans = [self._plan(setting, own_names) for setting in settings[first : first + MOST_AT_ONCE]]
            inputs = [input_places(recording, plan, {}) for plan in plans]
            replays = [
                TextReplay(replace(self.nodes, plan=plan, inputs=places), recording, way)
                for plan, places in zip(plans, inputs, strict=True)
            ]
            outputs_of_plans = [
                Outputs(attributes.places(plan), start, None if labels is None else LabelledOutputs(plan, labels))
                for plan in plans
            ]
            own_replay = TextReplay(self.nodes, recording, way, attributes.places(self.nodes.plan))
            for _ in recording.recorded_events:
                own_blocks = {stream: split_by_clock(b, start)[0] for stream, b in own_replay.next_blocks().items()}
                own_hashes = {stream: all_hashes(blocks) for stream, blocks in own_blocks.items()}
                for replay, outputs in zip(replays, outputs_of_plans, strict=True):
                    outputs.add(replay.next_blocks(), own_hashes)
            all_outputs += outputs_of_plans
        scores = [score for outputs in all_outputs if (score := outputs.score()) is not None]
        rows = [outputs.counts() for outputs in all_outputs]
        notes = (*input_notes(recording, first_plan, {}), *attributes.notes, *_warm_up_notes(rows, judging.warm_up))
        if labels is not None:
            rows = [{**row, **_score_row(score)} for row, score in zip(rows, scores, strict=True)]
        examples = tuple(score.examples for score in scores)
        return RuleSweep(self.app, self.text, recording.events, tuple(settings), tuple(rows), examples, notes)

    def _plan(self, setting: Setting, own_names: Mapping[str, str]) -> Plan:
        """The plan under a setting, with the names of the app's own text."""
        return self.compile(to_text(with_names(self.tree(setting), own_names)) if own_names else self.text, setting)


def _warm_up_notes(rows: Sequence[Mapping[str, Any]], warm_up: int) -> list[str]:
    """The outputs that are not judged, if there are any: a sentence."""
    numbers = [row.get(NOT_JUDGED, 0) for row in rows]
    if not any(numbers):
        return []
    count = f"{min(numbers):,} to {max(numbers):,}" if len(set(numbers)) > 1 else f"{numbers[0]:,}"
    return [f"{count} outputs of the first {describe_duration(warm_up)} are not judged"]


class Outputs:
    """The outputs of a plan, counted against the outputs of the app's own text. `places` as of
    `OutputAttributes`; outputs before `start` (ms; None: none) are not judged."""

    def __init__(
        self, places: Mapping[str, Places], start: int | None, labelled_outputs: LabelledOutputs | None
    ) -> None:
        self._places, self._start, self._labelled_outputs = places, start, labelled_outputs
        self._total = self._own_total = self._not_judged = 0
        self._same: dict[str, SameCount] = defaultdict(SameCount)

    def add(self, all_blocks: Blocks, own_hashes: Mapping[str, Hashes]) -> None:
        """The outputs of an item, and hashes of the outputs of the app's own text that are judged, by stream."""
        hashes: dict[str, Hashes] = {}
        for stream, of_stream in all_blocks.items():
            blocks, early = split_by_clock(of_stream, self._start)
            self._not_judged += sum(map(len, early))
            hashes[stream] = all_hashes([block.with_columns(self._places.get(stream)) for block in blocks])
            if self._labelled_outputs is not None:
                self._labelled_outputs.add(stream, blocks)
        for stream in dict.fromkeys([*hashes, *own_hashes]):
            sides = own_hashes.get(stream, NO_HASHES), hashes.get(stream, NO_HASHES)
            self._own_total += len(sides[0])
            self._total += len(sides[1])
            self._same[stream].add(*sides)

    def counts(self) -> dict[str, Any]:
        """The numbers of outputs, by their outcome."""
        same = sum(count.total() for count in self._same.values())
        counts = {"outputs": self._total, "same": same, "gone": self._own_total - same, "new": self._total - same}
        return counts if self._start is None else {**counts, NOT_JUDGED: self._not_judged}

    def score(self) -> Score | None:
        """The score by the labels; None without labels."""
        return None if self._labelled_outputs is None else self._labelled_outputs.score()


def _score_row(score: Score) -> dict[str, float]:
    return {"precision": score.precision, "recall": score.recall, "f1": score.f1, "delay": score.delay}
