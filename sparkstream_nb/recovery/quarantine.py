"""Events that a node cannot process are set aside, each with the reason, and the app continues.

Errors of one event in a function are handled in `engine.expressions.function_checks`. This module is for all other
failures of a step: streams that feed each other without end, a fault of ours. The steps are bisected until one is found
that fails by itself. If it fails without its events too, the cause is a query's state,
which would fail again at each later step: that state is dropped then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..engine.expressions.function_checks import reason_of
from ..engine.state.node_batch import EventError, InputBatch, Outputs
from ..ingest.ingest import values_by_row
from ..journal.segments import StepsOfNode
from ..nodes.batches import between

ASIDE = "set aside"
"""Prefix of the errors of events that were set aside."""


def bisected_steps(
    piece: StepsOfNode,
    step: Callable[[StepsOfNode], Outputs],
    mend: Callable[[StepsOfNode, str], EventError | None] = lambda p, why: None,
) -> Iterator[tuple[StepsOfNode, Outputs]]:
    """`step` over a piece, or over parts of it if it raises. A step that fails alone gives errors, and nothing else: to
    `step`, it must be as if it had never been there.

    `mend` drops state that fails at such a step's time also without its events, with the reason, and returns an error
    for it; None if there is no such state. The step is run again then.
    """
    try:
        yield piece, step(piece)
        return
    except MemoryError:
        raise  # what else this process holds may be the cause: a trial tells (`trial.py`)
    except Exception as error:
        count = len(piece.batch.clock)
        if count == 1:
            why = why_of(error)
            event_error = mend(piece, why)
            if event_error is not None:
                yield piece, Outputs(errors=[event_error])
                yield from bisected_steps(piece, step)
                return
            yield piece, Outputs(errors=list(errors_of(piece.batch, why)))
            return
    half = count // 2
    first = between(piece.batch, 0, half)
    yield from bisected_steps(StepsOfNode(piece.seq, piece.last, piece.step, piece.before, first), step, mend)
    before = max([int(first.clock.max()), *([] if piece.before is None else [piece.before])])
    rest = StepsOfNode(piece.seq, piece.last, piece.step + half, before, between(piece.batch, half, count))
    yield from bisected_steps(rest, step, mend)


def why_of(error: Exception) -> str:
    """Why a step is set aside that raises `error`."""
    if isinstance(error, RecursionError):
        return "streams feed each other without end, or something is nested too deep"
    return reason_of(error)


def errors_of(batch: InputBatch, why: str) -> Iterator[EventError]:
    """An error for each event of a batch that is set aside."""
    for stream, r in batch.rows.items():
        for at, values in zip(r.ts.tolist(), values_by_row(r.columns), strict=True):
            yield EventError(ASIDE, stream, at, values, why)
