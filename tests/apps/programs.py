"""Programs in processes of their own: apps that are killed, or go on, elsewhere than in the tests' process."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

from sparkstream_nb.runners.choice import INLINE

ROOT = Path(__file__).parents[2]
_MASTER = "TEST_MASTER"
_SECONDS = 240
"""How long a program may take."""


def master() -> str | None:
    """The master of a program's apps: that of the test which runs it."""
    return os.environ.get(_MASTER, INLINE) or None


def ran(
    program: str, *arguments: object, master: str | None = INLINE, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a file of this folder, or a program that is given as text, in a process group of its own. Its apps run on
    `master`, where it asks for that. `environment` is what its variables have more. Raises TimeoutExpired."""
    given = [str(ROOT / "tests" / "apps" / program)] if program.endswith(".py") else ["-c", program]
    return subprocess.run(
        [sys.executable, *given, *map(str, arguments)],
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), _MASTER: master or "", **environment},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def killed(home: Path, program: str, *arguments: object, master: str | None = INLINE, **environment: str) -> None:
    """Runs a program, as `ran`, that kills itself with its JVM, and waits until its app's folder `home` is free."""
    ended = ran(program, *arguments, master=master, **environment)
    assert ended.returncode == -9, ended.stderr
    wait_until_free(home / "store.duckdb")


def wait_until_free(store: Path) -> None:
    """The kernel drops a killed process's lock with the process: at once, or nearly."""
    end = time.monotonic() + 30
    while store.exists() and time.monotonic() < end:
        with store.open("rb+") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError:
                time.sleep(0.05)
