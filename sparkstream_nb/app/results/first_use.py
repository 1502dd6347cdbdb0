"""The work that the first deployment on a machine does once: the engine's loops are compiled and Spark's classes
archived.

`make setup` does both ahead. After `pip install` nothing has run yet.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ...engine import warm
from ...system import end_with_children
from .feed_progress import span
from .frontend import current

_PACKAGE = __package__.partition(".")[0]
_NOTICES = {
    "engine.warm": "Compiling the engine's loops, once (some minutes on two busy cores) ...",
    "app.warm_spark": "Starting Spark once, so that it starts in half the time from now on (under a minute) ...",
}
_DONE = re.compile(r"(\d+)/(\d+)")
"""A line that a step prints of how far it is."""


def prepare(steps: Sequence[str]) -> None:
    """Run the modules of `steps` if the engine's loops are not compiled; shows the step and its progress.

    If a step fails, its error is shown and the deployment continues: a loop is then compiled when it is first used.
    """
    if not steps or warm.is_compiled():
        return
    for module in steps:
        current().notice(_NOTICES[module])
        with contextlib.closing(current().status()) as status:
            arguments = [warm.WITH_PARENT] if module == "engine.warm" else []
            error = _run(["-m", f"{_PACKAGE}.{module}", *arguments], status)
        if error is not None:
            current().notice(f"It failed, and is left for later: {error}")
            return


def _run(arguments: Sequence[str], tell: Callable[[str], None]) -> str | None:
    """Runs Python with `arguments` in a process of its own, and report its progress; returns the last line of its error
    if it fails.

    The Stop button and Ctrl-C end it with all the processes that it started.
    """
    search = [str(Path(__file__).parents[3]), *filter(None, [os.environ.get("PYTHONPATH")])]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(search)},
            stdin=subprocess.PIPE,  # nothing is written: it ends when this process does
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
            start_new_session=True,
        )
        assert process.stdout is not None
        began = time.monotonic()
        try:
            for line in process.stdout:
                if match := _DONE.fullmatch(line.strip()):
                    tell(_progress(int(match[1]), int(match[2]), time.monotonic() - began))
            process.wait()
        except BaseException:
            end_with_children(process)
            process.wait()
            raise
        finally:
            process.stdout.close()
        errors.seek(0)
        return (errors.read().splitlines() or ["no message"])[-1] if process.returncode else None


def _progress(done_count: int, total: int, seconds: float) -> str:
    """`12 of 71 · 20 s · about 1 min 38 s left`."""
    remaining_seconds = seconds / done_count * (total - done_count)
    return f"{done_count:,} of {total:,} · {span(seconds)}" + (
        f" · about {span(remaining_seconds)} left" if done_count < total else ""
    )
