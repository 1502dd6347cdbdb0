"""Siddhi's own answers through an operator's tasks: the cases that it can run, as batches and as streams.

The tasks run in this process, as Spark would run them. `test_on_spark.py` has Spark itself run some.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import pyarrow as pa
import pytest

from operators.cases import TIME, OperatorCase, runnable, shuffled_cases
from operators.in_process import RunningOperator, run_batch
from profiles import THIRDS, examples, one_of_these, seed
from reference.parts import failing
from reference.replay import siddhi_cases

PARTS = 8
AT_LEAST = 40
"""The operator can run more of a part of a third of the cases than that: 45 to 69."""


def in_tasks(case: OperatorCase, stream: str, draw: random.Random) -> list[list[pa.RecordBatch]]:
    """The rows of a stream in up to three tasks of up to three batches each."""
    rows = len(case.rows[stream])
    cuts = sorted(draw.randrange(rows + 1) for _ in range(draw.randrange(8)))
    batches = [case.batch(stream, a, b) for a, b in zip([0, *cuts], [*cuts, rows], strict=True)]
    return [batches[:3], batches[3:6], batches[6:]]


@pytest.mark.parametrize("part", [0, *(pytest.param(i, marks=pytest.mark.thorough) for i in range(1, PARTS))])
def test_batches(part: int) -> None:
    cases = list(runnable(siddhi_cases()[one_of_these(range(THIRDS)) :: THIRDS][part::PARTS]))
    assert len(cases) > AT_LEAST

    def wrong(case: OperatorCase) -> str | None:
        draw = random.Random(f"{seed()} {case.case['id']}")
        return case.difference(run_batch(case.spec, {s: in_tasks(case, s, draw) for s in case.rows}))

    failing([c.case for c in cases], lambda found: wrong(next(c for c in cases if c.case["id"] == found["id"])))


def test_streams_cut_into_micro_batches_with_restarts() -> None:
    cases = list(islice(runnable(shuffled_cases(seed())), examples(200)))

    def wrong(case: OperatorCase) -> str | None:
        return case.difference(stream(case, random.Random(f"{seed()} {case.case['id']}")))

    failing([c.case for c in cases], lambda found: wrong(next(c for c in cases if c.case["id"] == found["id"])))


def stream(case: OperatorCase, draw: random.Random) -> Iterator[pa.RecordBatch]:
    """The outputs of a case in micro-batches, of which some find an operator that was started again."""
    times = sorted({ts for rows in case.rows.values() for ts, _ in rows})
    cuts = sorted(draw.sample(times, min(len(times), draw.randint(1, 5))))
    delays = (0,) * len(case.rows) if draw.random() < 0.5 else None
    running = RunningOperator(replace(case.spec, delays=delays))
    for begin, end in zip([0, *cuts], [*cuts, times[-1] + 1], strict=True):
        frames = {s: [_between(case, s, begin, end)] for s in case.rows}
        yield from running.micro_batch(frames, restart=draw.random() < 0.5)
        running.watermark = max([running.watermark, *(_last(b) for (own,) in frames.values() for b in own)])
        if draw.random() < 0.5:
            yield from running.micro_batch({})
    yield from running.micro_batch({}, restart=True)


def _between(case: OperatorCase, stream: str, begin: int, end: int) -> Sequence[pa.RecordBatch]:
    """Rows whose times are `begin` ≤ time < `end`; none if there are none."""
    places = [i for i, (ts, _) in enumerate(case.rows[stream]) if begin <= ts < end]
    return [case.batch(stream, places[0], places[-1] + 1)] if places else []


def _last(batch: pa.RecordBatch) -> int:
    return int(batch.column(TIME)[-1].as_py())
