"""Memory limit of Spark's Python processes on this machine: an event that asks for more is an error.

Without a limit the system ends some process when memory is short, and that may be any. `$SPARKSTREAM_WORKER_MEMORY` is
the limit set by the user, such as `4GB`; by default it is most of the memory of the machine, or of its control group.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from ...retention import bytes_of
from ...system import limit_memory, memory_of_machine

VARIABLE = "SPARKSTREAM_WORKER_MEMORY"
SHARE = 0.6
_GROUP = Path("/sys/fs/cgroup/memory.max")


def limit() -> int | None:
    """Bytes; None if neither the variable nor the system tells. Raises `Misuse` if the variable is no size."""
    text = os.environ.get(VARIABLE)
    if text:
        return bytes_of(VARIABLE, text)
    memory = memory_of_machine()
    if memory is None:
        return None
    with contextlib.suppress(OSError, ValueError):  # there is no group, or it has no limit
        memory = min(memory, int(_GROUP.read_text(encoding="ascii")))
    return int(SHARE * memory)


def apply_limit() -> None:
    """Limit this process, and those that it forks: further requests for memory raise MemoryError."""
    most = limit()
    if most is not None:
        limit_memory(most)
