"""Finds the events that end processes, by trials in child processes.

A trial that ends while it works on a part of the suspected steps makes these the suspects of the next one. A single
step is a culprit when it has ended two trials by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from .batch_care import DIED, Aside, BatchCare
from .trial_report import StepRange, Suspect, TrialOutcome

TIMES = 2
"""Number of trials that a step has to end to be set aside."""
_MOST_UNCLEAR = 3
"""Number of trials without a suspect, or that contradict the one before, after which the search ends."""


def find_culprits(
    instructions: BatchCare, steps: StepRange, run: Callable[[BatchCare, StepRange], TrialOutcome]
) -> BatchCare:
    """The steps and queries that end processes, of a micro-batch with `steps`; `instructions` has those set aside so
    far.

    `run` carries out a trial with the given care and suspected steps. The search ends without further culprits if a
    trial passes, or if several in a row end outside of their suspects' work.
    """
    skipped_steps: tuple[Aside, ...] = ()
    asks: tuple[int, ...] = ()
    ends_by_suspect: Counter[Suspect] = Counter()
    suspects, unclear = steps, 0
    while unclear < _MOST_UNCLEAR:
        trial_instructions = replace(
            instructions, skipped_steps=(*instructions.skipped_steps, *skipped_steps), asks=(*instructions.asks, *asks)
        )
        outcome = run(trial_instructions, suspects)
        if outcome.passed and suspects == steps:
            break
        suspect = outcome.suspect
        if outcome.passed or suspect is None:
            suspects, unclear = steps, unclear + 1
            continue
        if suspect.steps is not None and len(suspect.steps) > 1:
            suspects = suspect.steps
            continue
        ends_by_suspect[suspect] += 1
        if ends_by_suspect[suspect] < TIMES:
            suspects = suspect.steps or steps
            continue
        if suspect.steps is not None:
            skipped_steps = (*skipped_steps, Aside(suspect.steps, outcome.why or DIED))
        elif suspect.ask is not None:
            asks = (*asks, suspect.ask)
        suspects = steps
    return BatchCare(skipped_steps, asks)
