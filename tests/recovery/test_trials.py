"""Trials of the work of a micro-batch in child processes: an event is blamed on evidence alone."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sparkstream_nb.engine.state.node_batch import InputBatch, StreamRows
from sparkstream_nb.journal.inbox import Inbox
from sparkstream_nb.journal.journal import entries_from
from sparkstream_nb.recovery.batch_care import PARTS, Aside, BatchCare, EventsBlamed
from sparkstream_nb.recovery.trial import find_culprits
from sparkstream_nb.recovery.trial_report import StepRange, Suspect, TrialOutcome
from sparkstream_nb.runners import trial_process
from sparkstream_nb.runners.node_spec import NodeWork
from sparkstream_nb.runners.node_work import NodeInput, NodeTrial
from sparkstream_nb.runners.trial_process import blame_culprits
from tests.runners.test_node_work import spec_of

STEPS = StepRange(100, 1_100)


def trial_of(poison: set[int]) -> Callable[[BatchCare, StepRange], TrialOutcome]:
    """A trial whose process ends at the first step of `poison` that is not set aside."""

    def run(care: BatchCare, suspects: StepRange) -> TrialOutcome:
        left = sorted(p for p in poison if care.why(StepRange(p, p + 1)) is None)
        if not left:
            return TrialOutcome(passed=True)
        if not suspects.includes(StepRange(left[0], left[0] + 1)):
            return TrialOutcome()
        size = max(1, -(-len(suspects) // PARTS))
        first = suspects.first + (left[0] - suspects.first) // size * size
        return TrialOutcome(suspect=Suspect(StepRange(first, min(first + size, suspects.end))))

    return run


def test_steps_that_end_each_trial_are_the_culprits() -> None:
    culprits = find_culprits(BatchCare(), STEPS, trial_of({150, 700, 701}))
    assert culprits == BatchCare(skipped_steps=tuple(Aside(StepRange(p, p + 1)) for p in (150, 700, 701)))


@pytest.mark.parametrize("seed", range(20))
def test_trials_that_are_ended_from_outside_accuse_nobody(seed: int) -> None:
    """Nine of ten trials are ended somewhere in their work, wherever the suspects are."""
    draw = random.Random(seed)

    def run(care: BatchCare, suspects: StepRange) -> TrialOutcome:
        if draw.random() < 0.1:
            return TrialOutcome(passed=True)
        size = max(1, -(-len(suspects) // PARTS))
        first = suspects.first + (draw.randrange(*astuple(STEPS)) - suspects.first) // size * size
        within = suspects.first <= first < suspects.end
        part = StepRange(first, min(first + size, suspects.end))
        return TrialOutcome(suspect=Suspect(part) if within else None)

    assert find_culprits(BatchCare(), STEPS, run) == BatchCare()


def test_a_step_is_not_blamed_for_one_trial() -> None:
    once = TrialOutcome(suspect=Suspect(StepRange(5, 6)))
    ends = itertools.chain([once], itertools.repeat(TrialOutcome(passed=True)))
    assert find_culprits(BatchCare(), STEPS, lambda *_: next(ends)) == BatchCare()


def test_a_query_that_ends_two_trials_is_set_aside() -> None:
    def run(care: BatchCare, _: StepRange) -> TrialOutcome:
        return TrialOutcome(passed=True) if 7 in care.asks else TrialOutcome(suspect=Suspect(ask=7))

    assert find_culprits(BatchCare(), STEPS, run) == BatchCare(asks=(7,))


@pytest.mark.parametrize(
    ("report", "outcome"),
    [
        ([], TrialOutcome()),
        ([b'{"begins": [[1, 9], null]}'], TrialOutcome(suspect=Suspect(StepRange(1, 9)))),
        ([b'{"begins": [null, 4]}'], TrialOutcome(suspect=Suspect(ask=4))),
        ([b'{"begins": [[1, 9], null]}', b'{"ends": true}'], TrialOutcome()),
        ([b'{"begins": [[1, 9], null]}', b'{"compiles": true}'], TrialOutcome()),
        (
            [b'{"compiles": true}', b'{"compiles": false}', b'{"begins": [[1, 9], null]}', b'{"raised": "no'],
            TrialOutcome(suspect=Suspect(StepRange(1, 9))),
        ),
        (
            [b'{"begins": [[1, 9], null]}', b'{"raised": "MemoryError"}'],
            TrialOutcome(suspect=Suspect(StepRange(1, 9)), why="MemoryError"),
        ),
        ([b'{"begins": [[1, 9], null]}', b'{"raised": "x"}', b'{"passed": true}'], TrialOutcome(passed=True)),
    ],
)
def test_the_outcome_that_a_report_tells(report: list[bytes], outcome: TrialOutcome) -> None:
    assert TrialOutcome.of(report) == outcome


def test_culprits_go_through_the_text_of_an_error() -> None:
    culprits = BatchCare(skipped_steps=(Aside(StepRange(3, 4), 'a "quoted"\nreason {}'),), asks=(9,))
    before = BatchCare(skipped_steps=(Aside(StepRange(1, 2)),), entries=(0, 3))
    text = f"java.lang.X: Traceback\n ...EventsBlamed: {EventsBlamed(culprits)}\n\tat scala.Y"
    assert EventsBlamed.add_to(before, text) == BatchCare(
        skipped_steps=(*before.skipped_steps, *culprits.skipped_steps), asks=(9,), entries=(0, 3)
    )
    assert EventsBlamed.add_to(before, text[:40]) == before


# Read by each child process: what its engine does with some values.
PATCH = """
import os, signal, sys
from sparkstream_nb.engine.node import NodeEngine

step, saved_parts = NodeEngine.step, NodeEngine.saved_parts

def patched(self, batch):
    for value in [v for rows in batch.rows.values() for v in rows.columns[1].to_pylist()]:
        if value == -1:
            os.kill(os.getpid(), signal.SIGSEGV)
        if value == -3:
            raise MemoryError("9 GB")
        if value == -4:
            os.kill(os.getpid(), signal.SIGTERM)
        if value == -2:
            self.unsavable = True
        if value == -5:
            raise RecursionError
    return step(self, batch)

def saved(self):
    if getattr(self, "unsavable", False):
        os._exit(4)
    return saved_parts(self)

NodeEngine.step, NodeEngine.saved_parts = patched, saved
"""
APP = "define stream S (k string, v int); from S#window.length(2) select k, sum(v) as s insert into O;"
DIED = "the process that took it ended: out of memory, or a fault"


def node_trial(folder: Path, values: list[int]) -> tuple[NodeTrial, StepRange]:
    inbox = Inbox(folder / "inbox")
    at = np.arange(len(values), dtype=np.int64)
    columns = [pa.array(["a"] * len(values)), pa.array(values, pa.int32())]
    inbox.append([inbox.batch(InputBatch(at, {"S": StreamRows(np.arange(len(at)), at, columns)}), "round_robin")])
    entries = [e for e, _ in entries_from(folder / "inbox")]
    work = NodeWork("run", {0: spec_of(APP)}, folder / "inbox")
    return NodeTrial(work, 0, NodeInput(entries), None, {}), StepRange(0, len(values))


@pytest.mark.parametrize(
    ("values", "culprits"),
    [
        pytest.param([1, -1, 2, -2, -3], {1: DIED, 3: DIED, 4: "MemoryError: 9 GB"}, marks=pytest.mark.thorough),
        pytest.param([1, -4, 3], {}, marks=pytest.mark.thorough),  # ended by others
        ([1, -5, 3], {}),  # an error that the work itself sets aside
    ],
)
def test_a_child_shows_what_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: list[int], culprits: dict[int, str]
) -> None:
    (tmp_path / "patch").mkdir()
    (tmp_path / "patch" / "sitecustomize.py").write_text(PATCH)
    monkeypatch.syspath_prepend(str(tmp_path / "patch"))
    trial, steps = node_trial(tmp_path, values)
    if not culprits:
        blame_culprits(trial, BatchCare(), steps)
        return
    with pytest.raises(EventsBlamed) as raised:
        blame_culprits(trial, BatchCare(), steps)
    aside = EventsBlamed.add_to(BatchCare(), str(raised.value)).skipped_steps
    assert {a.steps.first: a.why for a in aside} == culprits
    assert all(len(a.steps) == 1 for a in aside)


def test_a_search_that_is_stopped_ends_its_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    children: list[object] = []
    start = trial_process.subprocess.Popen

    def note_child(*arguments: object, **options: object) -> object:
        children.append(start(*arguments, **options))  # type: ignore[call-overload]
        return children[-1]

    monkeypatch.setattr(trial_process.subprocess, "Popen", note_child)
    trial, steps = node_trial(tmp_path, [1])

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        blame_culprits(trial, BatchCare(), steps, stop)
    assert [child.returncode for child in children] == [-9]  # type: ignore[attr-defined]
