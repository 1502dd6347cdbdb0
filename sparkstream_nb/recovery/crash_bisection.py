"""Bisects a failing micro-batch to find the events that crash its worker (out of memory, a crash), or fail with tables
in a database or after their step, and sets them aside.

A process that dies reports nothing, so it first writes down the steps that it begins with. If a micro-batch has failed
several times (`query_recovery.py`), the query is started with `CrashBisection`: one process at a time works on
suspected steps, one part after the other, and the next try divides the part in which it died. A step that fails by
itself is set aside: its events become errors, and the nodes never see it.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from ..engine.state.node_batch import Outputs
from ..errors import StoreError
from ..journal.entries import Entry, EventsEntry
from ..journal.marks import MARKS
from ..journal.private import private_file, write_private
from ..journal.segments import StepsOfNode
from ..nodes.batches import between
from ..system import lock, put_in_place, to_disk
from .quarantine import errors_of, why_of

PARTS = 32
"""Number of parts into which a try divides the suspected steps."""
DIED = "the process that took it ended: out of memory, or a fault"
_TRYING = "trying-"
_FILE = "aside.json"
_LOCK = "care.lock"


@dataclass(frozen=True)
class StepRange:
    """The steps `first` to before `end`, numbered through the app's life."""

    first: int
    end: int

    def __len__(self) -> int:
        return self.end - self.first


@dataclass(frozen=True)
class Trying:
    """Work that a process began before it died or failed: `steps`, the query of entry `ask`, or the rest of its work on
    `all` steps of the micro-batch, when it had finished each.
    """

    steps: StepRange | None = None
    ask: int | None = None
    all: StepRange | None = None
    why: str = DIED


@dataclass(frozen=True)
class Aside:
    """Steps that are set aside, and why."""

    steps: StepRange
    why: str = DIED


@dataclass(frozen=True)
class CrashBisection:
    """Instructions for the nodes of a query: the steps and the on-demand queries (numbers of their entries) that are
    set aside; and if a micro-batch is to be bisected, its `entries`, from the first to before the last number, and the
    suspected steps.
    """

    aside: tuple[Aside, ...] = ()
    asks: tuple[int, ...] = ()
    entries: tuple[int, int] = (0, 0)
    suspects: StepRange | None = None

    @staticmethod
    def of(folder: Path) -> CrashBisection:
        """Steps and queries set aside so far in the inbox `folder`."""
        with contextlib.suppress(FileNotFoundError):
            found = json.loads((folder / _FILE).read_text(encoding="utf-8"))
            return CrashBisection(tuple(Aside(StepRange(*s[:2]), *s[2:]) for s in found["steps"]), tuple(found["asks"]))
        return CrashBisection()

    def write(self, folder: Path) -> None:
        """Write the steps and queries that are set aside into the inbox."""
        new = folder / f"{_FILE}.new"
        steps = [[a.steps.first, a.steps.end, a.why] for a in self.aside]
        write_private(new, json.dumps({"steps": steps, "asks": self.asks}).encode())
        to_disk(new)
        put_in_place(new, folder / _FILE)

    def after(self, died: Trying) -> CrashBisection:
        """The care of the next try, when a process died of something."""
        if died.ask is not None:
            return replace(self, asks=(*self.asks, died.ask))
        if died.all is not None:
            return replace(self, aside=(*self.aside, Aside(died.all, died.why)), suspects=None)
        assert died.steps is not None
        if len(died.steps) > 1:
            return replace(self, suspects=died.steps)
        return replace(self, aside=(*self.aside, Aside(died.steps, died.why)), suspects=None)

    def concerns(self, entries: Sequence[Entry]) -> bool:
        """True if `entries` are to be taken with care."""
        first, end = self.entries
        return any(first <= e.seq < end for e in entries)

    def shows(self, entries: Sequence[EventsEntry]) -> bool:
        """True if reported errors may contain the values of events of `entries`: some of them are set aside, or may
        be.
        """
        first, end = entries[0].step, entries[-1].step + entries[-1].steps
        found = [*(a.steps for a in self.aside), *([] if self.suspects is None else [self.suspects])]
        return self.concerns(entries) or any(s.first < end and first < s.end for s in found)

    def parts(self, piece: StepsOfNode) -> Iterator[tuple[StepsOfNode, StepRange]]:
        """A piece, cut where its steps are set aside or suspected."""
        first, end = piece.step, piece.step + len(piece.batch.clock)
        if not self.aside and self.suspects is None:
            yield piece, StepRange(first, end)
            return
        cuts = {first, end}
        for a in self.aside:
            cuts |= {a.steps.first, a.steps.end}
        if self.suspects is not None:
            s = self.suspects
            cuts |= {*range(s.first, s.end, -(-len(s) // PARTS)), s.end}
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
        within = (a.why for a in self.aside if a.steps.first <= steps.first and steps.end <= a.steps.end)
        return next(within, None) if len(steps) else None

    def is_suspected(self, steps: StepRange) -> bool:
        """True if `steps` are suspected."""
        s = self.suspects
        return s is not None and s.first <= steps.first and steps.end <= s.end


@dataclass(frozen=True)
class WorkPlace:
    """Place of a worker process: the inbox `folder`, its name among the processes, and whether it reports (`tells`)
    events that are set aside.
    """

    folder: Path
    who: str
    tells: bool = True


def with_care(
    care: CrashBisection,
    place: WorkPlace,
    piece: StepsOfNode,
    take: Callable[[StepsOfNode], None],
    put: Callable[[StepsOfNode, Outputs], None],
) -> None:
    """Pass a piece to `take`, part by part if it is suspected, without the steps set aside: these are `put` out as
    errors.
    """
    for part, steps in care.parts(piece):
        why = care.why(steps)
        if why is not None:
            if place.tells:
                put(part, Outputs(errors=list(errors_of(part.batch, why))))
        elif care.is_suspected(steps):
            with record_attempt(place, Trying(steps)):
                take(part)
        else:
            take(part)


@contextlib.contextmanager
def alone(folder: Path, *, when: bool) -> Iterator[None]:
    """Keeps other processes from taking care meanwhile, `when` this one does."""
    if not when:
        yield
        return
    with private_file(folder / _LOCK).open("r+b") as file:
        lock(file, wait=True)
        yield


@contextlib.contextmanager
def record_attempt(place: WorkPlace, what: Trying) -> Iterator[None]:
    """Write down the work that a process begins, until it is done; or, if it fails, the reason. A failure of a
    database, disk or Spark says nothing about the events.
    """
    file = place.folder / MARKS / f"{_TRYING}{place.who}"
    steps = what.steps or what.all
    said = {"ask": what.ask, "all": what.all is not None, "steps": None if steps is None else [steps.first, steps.end]}
    write_private(file, json.dumps(said).encode())
    try:
        yield
    except Exception as error:
        if _elsewhere(error):
            file.unlink(missing_ok=True)
        else:
            file.write_text(json.dumps({**said, "why": why_of(error)}), encoding="utf-8")
        raise
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    file.unlink(missing_ok=True)


def _elsewhere(error: Exception) -> bool:
    """True if a database, disk or Spark has failed, and not the processing of events."""
    if "sqlalchemy" in sys.modules:
        from ..stores.sql import of_database

        if of_database(error):
            return True
    # Spark's errors come from Spark's workers alone, and those have loaded it.
    return isinstance(error, StoreError | OSError | EOFError) or any(
        c.__module__.startswith("pyspark.") and c.__name__ == "PySparkException" for c in type(error).__mro__
    )


def take_last_attempt(folder: Path) -> Trying | None:
    """The last recorded work of the process that died or failed last, if it wrote that down; the record is removed."""
    found = None
    for file in (folder / MARKS).glob(f"{_TRYING}*"):
        with contextlib.suppress(ValueError):  # it died while it wrote
            said = json.loads(file.read_text(encoding="utf-8"))
            steps = None if said["steps"] is None else StepRange(*said["steps"])
            why = said.get("why", DIED)
            found = Trying(None if said["all"] else steps, said["ask"], steps if said["all"] else None, why)
        file.unlink(missing_ok=True)
    return found
