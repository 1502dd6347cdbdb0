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
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from ..engine.notation.kernels import watch_compilation
from ..recovery.batch_care import BatchCare, EventsBlamed, Trial
from ..recovery.trial import find_culprits
from ..recovery.trial_report import StepRange, TrialOutcome, TrialReport
from ..system import end_with_parent, offer_to_oom_killer

_POLLING_SECONDS = 0.1
_SENT_BY_OTHERS = {"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGSTOP", "SIGUSR1", "SIGUSR2"}
"""Signals that ask a process to end. One of these accuses no event."""


class ProcessTrial(Protocol):
    """Work that can be tried in a child process, to which it is sent as it is."""

    def run(self, instructions: BatchCare) -> None:
        """Do the work. Raises what fails."""
        ...


def blame_culprits(
    trial: ProcessTrial, instructions: BatchCare, steps: StepRange, check: Callable[[], None] | None = None
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
    trial: ProcessTrial, instructions: BatchCare, suspects: StepRange, check: Callable[[], None] | None
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
