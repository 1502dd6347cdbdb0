"""Cases that a rule has to detect, and how well the outputs of a setting do so: precision, recall, and examples."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import nsmallest
from itertools import chain
from operator import attrgetter
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from ...argument_checks import duration_of
from ...errors import Misuse, nearest
from ...ingest.ingest import time_of
from ...plan.nodes import Plan
from .output_blocks import Hashes, Mask, OutputBlock, value_hashes

MOST_EXAMPLES = 5
"""Examples of each kind that a score has."""


@dataclass(frozen=True, slots=True)
class Example:
    """An output that detects a case, an output that detects none, or a case that no output detects: its stream ("" of
    a case), time (ms) and values, and how much later than its case it came (ms; None without one)."""

    kind: Literal["true positive", "false positive", "missed"]
    stream: str
    time: int
    values: tuple[Any, ...]
    delay: int | None = None


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

    def since(self, start: int) -> Labels:
        """The cases from a time (ms) on."""
        return replace(self, cases=tuple(case for case in self.cases if case[0] >= start))

    @cached_property
    def _hashes(self) -> Hashes:
        """The hashes of the cases' values."""
        columns = [list(values) for values in zip(*(values for _, values in self.cases), strict=True)]
        return value_hashes([pa.array(c) for c in columns], len(self.cases))

    def are_in(self, block: OutputBlock, places: Sequence[int]) -> Mask:
        """For each output of a block: true if a case has its values in `places`."""
        hashes = value_hashes([block.columns[p] for p in places], len(block))
        return np.isin(hashes[:, 0], self._hashes[:, 0])


@dataclass(frozen=True)
class Score:
    """The numbers of detected cases, of outputs, and of cases; the mean delay (ms) of a detection; the first
    `MOST_EXAMPLES` of each kind."""

    hits: int
    outputs: int
    cases: int
    delay: float
    examples: tuple[Example, ...] = ()

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


class LabelledOutputs:
    """Outputs of a plan, by the values of the cases that they may detect."""

    def __init__(self, plan: Plan, labels: Labels) -> None:
        self._plan, self._labels = plan, labels
        self._total = 0
        self._candidates: dict[tuple[Any, ...], list[Example]] = defaultdict(list)
        self._others: dict[str, list[Example]] = defaultdict(list)
        """By stream, the first outputs that have the values of no case."""

    def add(self, stream: str, blocks: Iterable[OutputBlock]) -> None:
        """Further outputs of a stream."""
        places = [p for a in self._labels.attributes if (p := self._plan.schema(stream).find(a)) is not None]
        others = self._others[stream]
        for block in blocks:
            self._total += len(block)
            mask = np.zeros(len(block), np.bool_)
            if len(places) == len(self._labels.attributes):
                mask = self._labels.are_in(block, places)
                for alert in block.take(np.flatnonzero(mask)).alerts():
                    key = tuple(alert.values[p] for p in places)
                    self._candidates[key].append(Example("false positive", stream, alert.ts, alert.values))
            if len(others) < MOST_EXAMPLES:
                first = np.flatnonzero(~mask)[: MOST_EXAMPLES - len(others)]
                others += [Example("false positive", stream, a.ts, a.values) for a in block.take(first).alerts()]

    def score(self) -> Score:
        """The score. Each case is detected by its first output, and an output may detect one case."""
        for outputs in self._candidates.values():
            outputs.sort(key=_TIME)
        hits: list[Example] = []
        misses: list[Example] = []
        for at, key in sorted(self._labels.cases, key=lambda case: case[0]):
            outputs = self._candidates.get(key, [])
            place = bisect_left(outputs, at - self._labels.tolerance, key=_TIME)
            if place < len(outputs) and outputs[place].time <= at + self._labels.tolerance:
                output = outputs.pop(place)
                hits.append(replace(output, kind="true positive", delay=output.time - at))
            else:
                misses.append(Example("missed", "", at, key))
        mean = sum(hit.delay or 0 for hit in hits) / len(hits) if hits else float("nan")
        others = _first(chain.from_iterable([*self._candidates.values(), *self._others.values()]))
        examples = (*_first(hits), *others, *_first(misses))
        return Score(len(hits), self._total, len(self._labels.cases), mean, examples)


_TIME = attrgetter("time")


def _first(examples: Iterable[Example]) -> list[Example]:
    return nsmallest(MOST_EXAMPLES, examples, key=attrgetter("time", "stream"))
