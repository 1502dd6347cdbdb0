"""What the first deployment on a machine does once: the engine's loops are compiled and Spark's classes archived.

`make setup` does both ahead. After `pip install` nothing has run yet.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ..engine import warm
from .frontend import current

_PACKAGE = __package__.partition(".")[0]
_NOTICES = {
    "engine.warm": "Compiling the engine's loops, once (under a minute on two cores) ...",
    "cluster.warm": "Starting Spark once, so that it starts in half the time from now on (under a minute) ...",
}


def prepare(steps: Sequence[str]) -> None:
    """Runs the modules of `steps` where the engine's loops are not compiled, and says so before each.

    If a step fails, its error is shown and the deployment goes on: a loop is then compiled when it is first used.
    """
    if not steps or warm.compiled():
        return
    for module in steps:
        current().notice(_NOTICES[module])
        error = _run(module)
        if error is not None:
            current().notice(f"It failed, and is left for later: {error}")
            return


def _run(module: str) -> str | None:
    """Runs a module of this package in a process of its own; returns the last line of its error if it fails.

    The Stop button and Ctrl-C end it with all the processes that it started.
    """
    search = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        [sys.executable, "-m", f"{_PACKAGE}.{module}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(search)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, said = process.communicate()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return (said.splitlines() or ["no message"])[-1] if process.returncode else None
