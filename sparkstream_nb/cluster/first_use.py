"""What the first deployment on a machine does once: the engine's loops are compiled and Spark's classes archived.

`make setup` does both ahead. After `pip install` nothing has run yet.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ..engine import warm
from .frontend import current

_PACKAGE = __package__.partition(".")[0]
_STEPS = {
    "engine.warm": "Compiling the engine's loops, once (under a minute on two cores) ...",
    "cluster.warm": "Starting Spark once, so that it starts in half the time from now on (under a minute) ...",
}


def prepare() -> None:
    """Does both where the engine's loops are not compiled, and says so before each.

    If a step fails, its error is shown and the deployment goes on: a loop is then compiled when it is first used.
    """
    if warm.compiled():
        return
    search = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    for module, notice in _STEPS.items():
        current().notice(notice)
        done = subprocess.run(
            [sys.executable, "-m", f"{_PACKAGE}.{module}"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(search)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            current().notice(f"It failed, and is left for later: {(done.stderr.splitlines() or ['no message'])[-1]}")
            return
