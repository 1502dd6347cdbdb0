"""The report of a trial: lines of JSON that the child process writes, from which its parent learns where it ended.

`begins` names the steps or the on-demand query that the child works on from now on, `ends` says that it is through,
`raised` that it failed with an error, `failed` that all of the work did, `compiles` whether the engine's loops are
being compiled meanwhile, and `passed` that all work of the micro-batch is done.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO

from .quarantine import why_of


@dataclass(frozen=True)
class StepRange:
    """The steps `first` to before `end`, numbered through the app's life."""

    first: int
    end: int

    def __len__(self) -> int:
        return self.end - self.first

    def includes(self, other: StepRange) -> bool:
        """True if all steps of `other` are among these."""
        return self.first <= other.first and other.end <= self.end


@dataclass(frozen=True)
class Suspect:
    """Work that a child began: on some steps, or on the on-demand query of entry `ask`."""

    steps: StepRange | None = None
    ask: int | None = None


@dataclass
class TrialReport:
    """The child's end: `file` leads to the parent."""

    file: IO[bytes]

    def write(self, **line: object) -> None:
        """Write a line. The parent has it even if this process ends at the next instruction."""
        self.file.write(json.dumps(line).encode() + b"\n")
        self.file.flush()

    @contextlib.contextmanager
    def record(
        self, steps: StepRange | None, ask: int | None, is_elsewhere: Callable[[Exception], bool]
    ) -> Iterator[None]:
        """Report that work begins, and that it ends or raises. Errors that are of elsewhere accuse no event."""
        self.write(begins=[None if steps is None else [steps.first, steps.end], ask])
        try:
            yield
        except Exception as error:
            if is_elsewhere(error):
                self.write(ends=True)
            else:
                self.write(raised=why_of(error))
            raise
        self.write(ends=True)


@dataclass(frozen=True)
class TrialOutcome:
    """The end of a trial: it `passed`, or failed where no event can be the cause; or it ended in the work on a
    `suspect`, if on any, because of `why` (None: the process ended).
    """

    passed: bool = False
    suspect: Suspect | None = None
    why: str | None = None

    @staticmethod
    def of(lines: Iterable[bytes]) -> TrialOutcome:
        """The outcome that a report tells. One that was cut off while loops were compiled accuses no event."""
        suspect, why, compiling = None, None, False
        for line in lines:
            try:
                data = json.loads(line)
            except ValueError:  # the child ended while it wrote
                continue
            if "passed" in data or ("failed" in data and suspect is None):
                return TrialOutcome(passed=True)
            if "begins" in data:
                (steps, ask), why = data["begins"], None
                suspect = Suspect(None if steps is None else StepRange(*steps), ask)
            elif "ends" in data:
                suspect, why = None, None
            elif "raised" in data:
                why = data["raised"]
            elif "compiles" in data:
                compiling = data["compiles"]
        return TrialOutcome() if compiling else TrialOutcome(suspect=suspect, why=why)
