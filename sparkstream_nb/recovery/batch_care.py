"""Care for a micro-batch whose work ends processes: which steps are set aside, and which micro-batch is tried first.

A process that ends proves nothing about the events that it worked on: a person, a scheduler or the system may have
ended it. So the work of a micro-batch that failed several times (`query_recovery.py`) is first tried by a child process
(`trial.py`), whose parent sees how it ends. An event is set aside if its step alone ended two such children by itself:
it becomes an error, and the nodes never see it.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from .. import checksums
from ..engine.state.node_batch import Outputs
from ..errors import DamagedFile, StoreError
from ..journal.entries import Entry, EventsEntry
from ..journal.private import private_file, write_private
from ..journal.segments import StepsOfNode
from ..nodes.batches import between
from ..system import lock, put_in_place, to_disk
from .quarantine import errors_of
from .trial_report import StepRange, TrialReport

PARTS = 32
"""Number of parts into which a trial divides the suspected steps."""
DIED = "the process that took it ended: out of memory, or a fault"
_FILE = "aside.json"
_LOCK = "care.lock"
_MOST_IN_ERROR = 20
"""Culprits that one error names: Spark cuts long messages, and the next trial finds the others."""
_MOST_OF_REASON = 300


@dataclass(frozen=True)
class Aside:
    """Steps that are set aside, and why."""

    steps: StepRange
    why: str = DIED


@dataclass(frozen=True)
class Trial:
    """A trial, in its child process: the suspected steps, and the report to the parent."""

    suspects: StepRange
    report: TrialReport


@dataclass(frozen=True)
class BatchCare:
    """Instructions for the nodes of a query: the steps and the on-demand queries (numbers of their entries) that are
    set aside, and the `entries`, from the first to before the last number, whose work is first tried by a child
    process. There it has a `trial`.
    """

    skipped_steps: tuple[Aside, ...] = ()
    asks: tuple[int, ...] = ()
    entries: tuple[int, int] = (0, 0)
    trial: Trial | None = None

    @staticmethod
    def of(folder: Path) -> BatchCare:
        """Steps and queries set aside so far in the inbox `folder`. Raises DamagedFile."""
        try:
            return BatchCare()._with_json(checksums.read_json(folder / _FILE))
        except FileNotFoundError:
            return BatchCare()
        except (ValueError, KeyError, TypeError):
            raise DamagedFile(folder / _FILE, "not what was written: no list of steps") from None

    def write(self, folder: Path) -> None:
        """Write the steps and queries that are set aside into the inbox."""
        new = folder / f"{_FILE}.new"
        write_private(new, checksums.to_json(self._as_json()).encode())
        to_disk(new)
        put_in_place(new, folder / _FILE)

    def _as_json(self) -> dict[str, object]:
        return {"steps": [[a.steps.first, a.steps.end, a.why] for a in self.skipped_steps], "asks": self.asks}

    def _with_json(self, data: dict[str, list[list[object]]]) -> BatchCare:
        steps = tuple(Aside(StepRange(*s[:2]), *s[2:]) for s in data["steps"])  # type: ignore[arg-type]
        return replace(self, skipped_steps=(*self.skipped_steps, *steps), asks=(*self.asks, *data["asks"]))  # type: ignore[arg-type]

    def concerns(self, entries: Sequence[Entry]) -> bool:
        """True if the work on `entries` is to be tried first."""
        first, end = self.entries
        return any(first <= e.seq < end for e in entries)

    def shows(self, entries: Sequence[EventsEntry]) -> bool:
        """True if reported errors may contain the values of events of `entries`: some of them are set aside, or may
        be.
        """
        entry_steps = steps_of(entries)
        return self.concerns(entries) or any(
            a.steps.first < entry_steps.end and entry_steps.first < a.steps.end for a in self.skipped_steps
        )

    def parts(self, piece: StepsOfNode) -> Iterator[tuple[StepsOfNode, StepRange]]:
        """A piece, cut where its steps are set aside or suspected."""
        first, end = piece.step, piece.step + len(piece.batch.clock)
        if not self.skipped_steps and self.trial is None:
            yield piece, StepRange(first, end)
            return
        cuts = {first, end}
        for a in self.skipped_steps:
            cuts |= {a.steps.first, a.steps.end}
        if self.trial is not None:
            s = self.trial.suspects
            cuts |= {*range(s.first, s.end, max(1, -(-len(s) // PARTS))), s.end}
        places = sorted(c for c in cuts if first <= c <= end)
        if len(places) <= 2:
            yield piece, StepRange(first, end)
            return
        before = piece.before
        for low, high in pairwise(places):
            batch = between(piece.batch, low - first, high - first)
            yield StepsOfNode(piece.seq, piece.last, low, before, batch), StepRange(low, high)
            before = max([int(batch.clock.max()), *([] if before is None else [before])])

    def why(self, steps: StepRange) -> str | None:
        """Why `steps` are set aside; None if they are not."""
        within = (a.why for a in self.skipped_steps if a.steps.first <= steps.first and steps.end <= a.steps.end)
        return next(within, None) if len(steps) else None

    def record(
        self, steps: StepRange | None = None, *, ask: int | None = None
    ) -> contextlib.AbstractContextManager[None]:
        """Report to the parent that work on `steps`, or on the on-demand query of entry `ask`, begins and ends, if this
        is a trial and they are suspected.
        """
        if self.trial is None or (steps is not None and not self.trial.suspects.includes(steps)):
            return contextlib.nullcontext()
        return self.trial.report.record(steps, ask, is_elsewhere)


class EventsBlamed(Exception):
    """Trials have found steps or queries that end processes. The text holds them, as it is all that some runners pass
    on to the process of the app; that restarts the query without them, so that outputs and state are of one try.
    """

    _MARK = "set aside after a trial: "
    _TEXT = re.compile(re.escape(_MARK))

    def __init__(self, culprits: BatchCare) -> None:
        few = replace(
            culprits,
            skipped_steps=tuple(
                replace(a, why=a.why[:_MOST_OF_REASON]) for a in culprits.skipped_steps[:_MOST_IN_ERROR]
            ),
            asks=culprits.asks[:_MOST_IN_ERROR],
        )
        super().__init__(self._MARK + json.dumps(few._as_json()))

    @classmethod
    def add_to(cls, instructions: BatchCare, text: str) -> BatchCare:
        """The `instructions` and the culprits that the text of a runner's failure names, if it is of this class."""
        start = cls._TEXT.search(text)
        if start is None:
            return instructions
        with contextlib.suppress(ValueError):  # the text was cut
            return instructions._with_json(json.JSONDecoder().raw_decode(text[start.end() :])[0])
        return instructions


def with_care(
    instructions: BatchCare,
    piece: StepsOfNode,
    take: Callable[[StepsOfNode], None],
    put_errors: Callable[[StepsOfNode, Outputs], None] | None,
) -> None:
    """Pass a piece to `take`, without the steps set aside: `put_errors` puts these out as errors (None: another one
    does that). In a trial the suspected steps are taken part by part.
    """
    for part, steps in instructions.parts(piece):
        why = instructions.why(steps)
        if why is None:
            with instructions.record(steps):
                take(part)
        elif put_errors is not None:
            put_errors(part, Outputs(errors=list(errors_of(part.batch, why))))


def steps_of(entries: Sequence[Entry]) -> StepRange:
    """The steps of consecutive entries."""
    return StepRange(entries[0].step, entries[-1].step + entries[-1].steps)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keeps other processes of this machine from trying their work meanwhile: the memory that one event asks for must
    not end the trial of another.
    """
    with private_file(folder / _LOCK).open("r+b") as file:
        lock(file, wait=True)
        yield


def is_elsewhere(error: Exception) -> bool:
    """True if a database, disk or Spark has failed, and not the processing of events."""
    if "sqlalchemy" in sys.modules:
        from ..stores.sql import of_database

        if of_database(error):
            return True
    # Spark's errors come from Spark's workers alone, and those have loaded it.
    return isinstance(error, StoreError | OSError | EOFError) or any(
        c.__module__.startswith("pyspark.") and c.__name__ == "PySparkException" for c in type(error).__mro__
    )
