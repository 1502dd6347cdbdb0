"""Trials of the work of a micro-batch, each in a child process (`recovery/trial.py`).

The child gets the work over its standard input, reports over its standard output, and ends with its parent. It changes
nothing: the node's new state stays in its memory, changes of tables in databases are rolled back, and outputs are
dropped.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..journal.batch_planning import TaskShare
from ..recovery.batch_care import BatchCare, EventsBlamed, Trial
from ..recovery.trial import find_culprits
from ..recovery.trial_report import StepRange, TrialOutcome, TrialReport
from ..system import end_with_parent, offer_to_oom_killer
from .node_spec import NodeWork
from .node_work import NodeInput, try_entries
from .stateless import SourceApp, try_share

_POLLING_SECONDS = 0.1
_SENT_BY_OTHERS = {"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGSTOP", "SIGUSR1", "SIGUSR2"}
"""Signals that ask a process to end. One of these accuses no event."""


@dataclass
class MemoryState:
    """The state of a node in the memory of a trial. A `NodeState`."""

    current: tuple[str, str] | None
    pieces: dict[str, bytes] = field(default_factory=dict)

    def version(self) -> tuple[str, str] | None:
        return self.current

    def set_version(self, version: str, digests: str) -> None:
        self.current = version, digests

    def piece(self, digest: str) -> bytes | None:
        return self.pieces.get(digest)

    def put_piece(self, digest: str, piece: bytes) -> None:
        self.pieces[digest] = piece

    def remove_piece(self, digest: str) -> None:
        self.pieces.pop(digest, None)


@dataclass(frozen=True)
class NodeTrial:
    """A node's work on its entries: the node's `key` in `work`, and its state before it."""

    work: NodeWork
    key: int
    input: NodeInput
    version: tuple[str, str] | None
    pieces: Mapping[str, bytes]

    def run(self, instructions: BatchCare) -> None:
        """Do the work. Raises what fails."""
        state = MemoryState(self.version, dict(self.pieces))
        try_entries(replace(self.work, instructions=instructions), state, self.key, self.input)


@dataclass(frozen=True)
class ShareTrial:
    """A task's stateless work on its share of an app's entries."""

    folder: Path
    app: SourceApp
    share: TaskShare

    def run(self, instructions: BatchCare) -> None:
        """Do the work. Raises what fails."""
        try_share(self.folder, replace(self.app, instructions=instructions), self.share)


def blame_culprits(
    trial: NodeTrial | ShareTrial, instructions: BatchCare, steps: StepRange, check: Callable[[], None] | None = None
) -> None:
    """Raises EventsBlamed if there are events or queries that end the trial's process. `instructions`: the ones set
    aside already. `check` is called ten times a second, and raises the error that ends the search.
    """
    culprits = find_culprits(
        instructions, steps, lambda known_culprits, suspects: _run_child(trial, known_culprits, suspects, check)
    )
    if culprits.skipped_steps or culprits.asks:
        raise EventsBlamed(culprits)


def _run_child(
    trial: NodeTrial | ShareTrial, instructions: BatchCare, suspects: StepRange, check: Callable[[], None] | None
) -> TrialOutcome:
    """Carry out a trial in a child process, and see how it ends."""
    # Spark may have added folders of modules.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = subprocess.Popen(
        [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    assert child.stdin is not None
    assert child.stdout is not None
    lines: list[bytes] = []
    reader = threading.Thread(target=lines.extend, args=(child.stdout,), daemon=True)
    reader.start()
    try:
        with contextlib.suppress(BrokenPipeError):  # it has ended, which its status tells
            pickle.dump((trial, instructions, suspects), child.stdin, pickle.HIGHEST_PROTOCOL)
            child.stdin.flush()
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_POLLING_SECONDS)
                break
            if check is not None:
                check()
    finally:
        child.kill()
        child.wait()
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()
        reader.join()
        child.stdout.close()
    return TrialOutcome() if _is_ended_by_others(child.returncode) else TrialOutcome.of(lines)


def _is_ended_by_others(status: int) -> bool:
    return status < 0 and signal.Signals(-status).name in _SENT_BY_OTHERS


def main() -> None:
    """The child's process."""
    report = TrialReport(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)  # what libraries print is no report
    offer_to_oom_killer()
    trial, instructions, suspects = pickle.load(sys.stdin.buffer)
    end_with_parent(sys.stdin.buffer)
    from ..engine.notation.kernels import watch_compilation

    watch_compilation(lambda compiles: report.write(compiles=compiles))
    try:
        trial.run(replace(instructions, trial=Trial(suspects, report)))
    except Exception:
        report.write(failed=True)
        raise
    report.write(passed=True)
    os._exit(0)  # what would still be done at exit does not belong to the work


if __name__ == "__main__":
    main()
