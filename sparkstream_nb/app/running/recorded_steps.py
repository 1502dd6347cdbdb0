"""The input of an app, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import Misuse
from ...journal.routing import nodes_of
from ...replay.replay import Recorded, read_recording
from .runtime import AppRuntime


@dataclass(frozen=True)
class StepEvent:
    """An event: its stream, its time (ms), its values, and the number (from 0) of the node that took it."""

    stream: str
    time: int
    values: Sequence[Any]
    node: int


@dataclass(frozen=True)
class RecordedStep:
    """A step: the app's `clock` (ms) after it, and its events; none in a tick of the clock."""

    clock: int
    events: Sequence[StepEvent]


def recorded_steps(app: AppRuntime, limit: int) -> Iterator[RecordedStep]:
    """All steps of an app's committed input. Raises `Misuse` if there are more than `limit`, and SparkStreamError if
    the beginning is no longer kept."""
    recording = read_recording(app.inbox.folder, app.schemas, app.app_run.began, last=app.progress.last)
    if recording.steps > limit:
        steps = f"{app.name} took {recording.steps:,} steps, and a test has at most {limit:,}"
        raise Misuse(f"{steps}: ask for a larger limit, or feed less")
    for item in recording.recorded_events:
        yield from _steps_of(app, item)


def _steps_of(app: AppRuntime, item: Recorded) -> Iterator[RecordedStep]:
    batch = item.batch
    node_numbers = nodes_of(batch, item.entry, app.schemas, app.app_run.began)
    events_by_step: dict[int, list[StepEvent]] = {}
    for stream, rows in batch.rows.items():
        columns = [column if isinstance(column, list) else column.to_pylist() for column in rows.columns]
        for i, step in enumerate(rows.step.tolist()):
            event = StepEvent(stream, int(rows.ts[i]), [c[i] for c in columns], int(node_numbers[stream][i]))
            events_by_step.setdefault(step, []).append(event)
    for step, clock in enumerate(batch.clock.tolist()):
        yield RecordedStep(clock, events_by_step.get(step, []))
